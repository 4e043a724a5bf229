//! The client of the forge against the real Gitea, with the requests of a promotion.

use std::fs;

use serde_json::json;
use tutti::forge::{
    CommitStatus, CommitStatusState, FileChange, FileCommit, ForgeClient, ForgeErrorKind, ForgeHostRules,
    Label, MergeMethod, NewHook, NewPull, Permission, PullApprovals, PullEdit, PullState, ReviewState,
    approvals,
};
use tutti::model::{Hosts, Revision};

use super::support::{Worktree, eventually, tier};

const BRANCH: &str = "tutti/promote/pay-prod";
const PIN: &str = "apps/pay/pins/prod.yaml";

#[tokio::test]
async fn client_takes_a_promotion_to_its_merge() {
    let Some(live) = tier().await else { return };
    let gitea = live.gitea().expect("the setup has one");
    let (owner, folder) = (gitea.user(), tempfile::tempdir().expect("a folder"));
    gitea.create_repository("forge").await.expect("a repository");
    let worktree = Worktree::create(folder.path().join("config"), gitea.remote("forge"));
    worktree.write(PIN, "version: 1\n");
    let main = Revision::from(worktree.publish("first").as_str());
    let blob = |path: &str| worktree.git(&["rev-parse", &format!("HEAD:{path}")]);
    let api = |rest: &str| format!("/api/v1/repos/{owner}/forge{rest}");
    let rules = ForgeHostRules::new(gitea.url(), Hosts::default(), Hosts::default());
    let client =
        ForgeClient::gitea(gitea.url(), &format!("{owner}/forge"), Some(gitea.token().into()), &rules);
    let client = client.expect("a client");

    // A second person, created by the administrator.
    let user = json!({"username": "forge-li", "email": "forge-li@example.com", "password": "only-on-loopback",
        "must_change_password": false});
    gitea.request("POST", "/api/v1/admin/users", Some(&user)).await.expect("a user");
    assert_eq!(client.permission("forge-li").await, Ok(Permission::None));
    let right = json!({"permission": "write"});
    gitea.request("PUT", &api("/collaborators/forge-li"), Some(&right)).await.expect("a right");
    assert_eq!(client.permission("forge-li").await, Ok(Permission::Write));
    assert_eq!(client.permission(owner).await, Ok(Permission::Admin));
    assert_eq!(client.permission("forge-nobody").await, Ok(Permission::None));
    assert_eq!(client.who_am_i().await.expect("a user").login, owner);
    let facts = client.repository_facts().await.expect("facts");
    assert_eq!((facts.permission, facts.default_branch.as_str()), (Permission::Admin, "main"));

    let label = Label {
        name: "tutti/promotion".to_owned(),
        color: "1d76db".to_owned(),
        description: "by tutti".to_owned(),
    };
    let labels = [label.clone()];
    assert_eq!(client.ensure_labels(&labels).await.expect("labels").len(), 1);
    assert_eq!(client.ensure_labels(&labels).await.expect("labels").len(), 0);
    assert_eq!(client.labels().await, Ok(vec![label]));

    // The branch rule keeps what a person set.
    assert!(client.protection("main").await.expect("an answer").is_none());
    client.create_protection("main", &["tutti/gate".to_owned()]).await.expect("a rule");
    let approvals_wanted = json!({"required_approvals": 1});
    gitea
        .request("PATCH", &api("/branch_protections/main"), Some(&approvals_wanted))
        .await
        .expect("a person's setting");
    let required = ["tutti/validate", "tutti/gate"].map(str::to_owned);
    client.edit_protection("main", &required).await.expect("edited");
    let rule = client.protection("main").await.expect("an answer").expect("a rule");
    assert_eq!(
        (rule.required_contexts.as_slice(), rule.allows_push, rule.has_status_check),
        (&required[..], true, true)
    );
    let raw = gitea.request("GET", &api("/branch_protections/main"), None).await.expect("a rule");
    assert_eq!(raw["required_approvals"], 1);

    // The branch and its commit.
    assert_eq!(client.branch(BRANCH).await, Ok(None));
    let change = |content: Option<&str>, replaces: Option<String>| FileChange {
        path: PIN.to_owned(),
        content: content.map(str::to_owned),
        replaces,
    };
    let commit = FileCommit {
        branch: BRANCH.to_owned(),
        new_branch_from: Some("main".to_owned()),
        message: "pay 2".to_owned(),
        files: vec![change(Some("version: 2\n"), Some(blob(PIN)))],
    };
    let head = client.commit_files(&commit).await.expect("a commit");
    assert_eq!(client.branch(BRANCH).await, Ok(Some(head.clone())));
    let conflict = async |commit: &FileCommit| {
        let error = client.commit_files(commit).await.expect_err("a conflict");
        assert_eq!(error.kind(), ForgeErrorKind::Conflict, "{error}");
    };
    conflict(&commit).await;
    let on_branch =
        |file: FileChange| FileCommit { new_branch_from: None, files: vec![file], ..commit.clone() };
    conflict(&on_branch(change(Some("version: 3\n"), Some(blob(PIN))))).await;
    conflict(&on_branch(change(Some("version: 3\n"), None))).await;
    conflict(&FileCommit { branch: "nowhere".to_owned(), ..on_branch(change(Some(""), None)) }).await;
    let gone = FileChange { path: "gone.yaml".to_owned(), ..change(None, Some(blob(PIN))) };
    conflict(&on_branch(gone)).await;
    let commits = client.branch_commits("main", BRANCH).await.expect("commits");
    assert!(commits.len() == 1 && commits[0].revision == head && commits[0].is_by(owner), "{commits:?}");

    // The pull request, its comment and its review.
    let new = NewPull {
        head: BRANCH.to_owned(),
        base: "main".to_owned(),
        title: "pay 2".to_owned(),
        body: "why".to_owned(),
        labels: vec!["tutti/promotion".to_owned()],
    };
    let pull = client.create_pull(&new).await.expect("a pull request");
    assert_eq!(client.create_pull(&new).await.expect_err("there is one").kind(), ForgeErrorKind::Conflict);
    let edit = PullEdit { title: Some("pay 2 to prod".to_owned()), body: None };
    client.edit_pull(pull.number, &edit).await.expect("edited");
    client.add_labels(pull.number, &["tutti/promotion".to_owned()]).await.expect("labelled");
    let found = client.pull(pull.number).await.expect("an answer").expect("a pull request");
    assert_eq!(
        (found.title.as_str(), found.body.as_str(), found.state),
        ("pay 2 to prod", "why", PullState::Open)
    );
    assert_eq!((found.labels.as_slice(), &found.head.revision), (&["tutti/promotion".to_owned()][..], &head));
    assert!(!found.head.is_fork && found.base.revision == main && found.author == owner, "{found:?}");
    assert_eq!(client.pulls_open().await.expect("pull requests"), [found]);
    assert_eq!(client.pull(99).await, Ok(None));
    let comment = client.create_comment(pull.number, "first").await.expect("a comment");
    client.edit_comment(comment.id, "second").await.expect("edited");
    client.react(comment.id, "eyes").await.expect("a reaction");
    let comments = client.comments(pull.number).await.expect("comments");
    assert!(
        comments.len() == 1 && comments[0].body == "second" && comments[0].author == owner,
        "{comments:?}"
    );
    let review = json!({"event": "APPROVED", "body": "good", "commit_id": head.as_str()});
    let reviews_of = api(&format!("/pulls/{}/reviews?sudo=forge-li", pull.number));
    gitea.request("POST", &reviews_of, Some(&review)).await.expect("a review");
    let reviews = client.reviews(pull.number).await.expect("reviews");
    assert_eq!((reviews.len(), reviews[0].state), (1, ReviewState::Approved));
    let by = |names: &[&str]| PullApprovals {
        by: names.iter().map(|name| (*name).to_owned()).collect(),
        refused_by: Vec::new(),
    };
    assert_eq!(approvals(&reviews, &head, owner, "bot"), by(&["forge-li"]));

    // The gates are closed; then they open, and an old head is refused.
    let refused = client.merge_pull(pull.number, MergeMethod::Merge, &head).await.expect_err("no status");
    assert_eq!(refused.kind(), ForgeErrorKind::NotMergeable, "{refused}");
    for context in &required {
        let status = CommitStatus {
            context: context.clone(),
            state: CommitStatusState::Success,
            description: String::new(),
            target_url: None,
        };
        client.post_status(&head, &status).await.expect("a status");
    }
    eventually("the old head is refused", String::new, async || {
        match client.merge_pull(pull.number, MergeMethod::Merge, &main).await.map_err(|error| error.kind()) {
            Err(ForgeErrorKind::HeadMoved) => Ok(()),
            // Gitea checks in the background whether it can be merged.
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    eventually("the head is merged", String::new, async || {
        client.merge_pull(pull.number, MergeMethod::Merge, &head).await.map_err(|error| error.to_string())
    })
    .await;
    let merged = client.pull(pull.number).await.expect("an answer").expect("a pull request");
    assert_eq!((merged.state, merged.merged_by.as_deref()), (PullState::Merged, Some(owner)));
    assert_eq!(merged.merge_commit, client.branch("main").await.expect("an answer"));
    client.delete_branch(BRANCH).await.expect("deleted");
    client.delete_branch(BRANCH).await.expect("gone already");
    let of_branch = client.pulls_of_branch(BRANCH).await.expect("pull requests");
    assert_eq!(of_branch.iter().map(|it| it.number).collect::<Vec<_>>(), [pull.number], "{of_branch:?}");
    assert_eq!(client.pulls_open().await, Ok(Vec::new()));
    fs::remove_dir_all(folder.path().join("config")).expect("removed");
}

#[tokio::test]
async fn client_changes_webhooks_and_sees_new_heads() {
    let Some(live) = tier().await else { return };
    let gitea = live.gitea().expect("the setup has one");
    let (owner, folder) = (gitea.user(), tempfile::tempdir().expect("a folder"));
    gitea.create_repository("forge-hooks").await.expect("a repository");
    let worktree = Worktree::create(folder.path().join("config"), gitea.remote("forge-hooks"));
    worktree.write("a.yaml", "a: 1\n");
    worktree.publish("first");
    let rules = ForgeHostRules::new(gitea.url(), Hosts::default(), Hosts::default());
    let repository = format!("{owner}/forge-hooks");
    let client =
        ForgeClient::gitea(gitea.url(), &repository, Some(gitea.token().into()), &rules).expect("a client");

    let hook = NewHook {
        url: "http://127.0.0.1:1/hooks/v1/gitea".to_owned(),
        secret: "s3cr3t".into(),
        events: vec!["push".to_owned()],
    };
    client.create_hook(&hook).await.expect("a hook");
    let created = client.hooks().await.expect("hooks").remove(0);
    assert!(created.is_active && created.is_json && created.url == hook.url, "{created:?}");
    assert_eq!(created.events, ["push"]);
    let path = format!("/api/v1/repos/{repository}/hooks/{}", created.id);
    let filter = json!({"events": ["push"], "active": false, "branch_filter": "main"});
    gitea.request("PATCH", &path, Some(&filter)).await.expect("a person's setting");
    let filtered = client.hooks().await.expect("hooks").remove(0);
    assert!(!filtered.is_active, "{filtered:?}");
    let events = ["push", "create", "delete", "pull_request"].map(str::to_owned);
    client.edit_hook(&filtered, &events).await.expect("edited");
    let edited = client.hooks().await.expect("hooks").remove(0);
    assert!(edited.is_active && edited.branch_filter == "main", "{edited:?}");
    let more = ["pull_request_sync", "pull_request_review", "pull_request_comment", "pull_request_label"];
    for event in events.iter().map(String::as_str).chain(more) {
        assert!(edited.events.iter().any(|it| it == event), "{event}: {edited:?}");
    }
    client.delete_hook(created.id).await.expect("deleted");
    assert!(client.hooks().await.expect("hooks").is_empty());

    // A new head makes the approval of the old one stale, and shows the commit of a person.
    let commit = |branch: &str, base: Option<&str>, path: &str| FileCommit {
        branch: branch.to_owned(),
        new_branch_from: base.map(str::to_owned),
        message: path.to_owned(),
        files: vec![FileChange { path: path.to_owned(), content: Some(String::new()), replaces: None }],
    };
    let head = client.commit_files(&commit("patch", Some("main"), "b.yaml")).await.expect("a commit");
    let new = NewPull {
        head: "patch".to_owned(),
        base: "main".to_owned(),
        title: "b".to_owned(),
        body: String::new(),
        labels: Vec::new(),
    };
    let number = client.create_pull(&new).await.expect("a pull request").number;
    let user = json!({"username": "forge-wu", "email": "forge-wu@example.com", "password": "only-on-loopback",
        "must_change_password": false});
    gitea.request("POST", "/api/v1/admin/users", Some(&user)).await.expect("a user");
    let right = json!({"permission": "write"});
    let collaborator = format!("/api/v1/repos/{repository}/collaborators/forge-wu");
    gitea.request("PUT", &collaborator, Some(&right)).await.expect("a right");
    let review = json!({"event": "APPROVED", "body": "good", "commit_id": head.as_str()});
    let reviews = format!("/api/v1/repos/{repository}/pulls/{number}/reviews?sudo=forge-wu");
    gitea.request("POST", &reviews, Some(&review)).await.expect("a review");
    let by = async |head: &Revision| {
        approvals(&client.reviews(number).await.expect("reviews"), head, owner, "bot").by
    };
    assert_eq!(by(&head).await, ["forge-wu"]);
    let body = json!({"branch": "patch", "message": "mine", "content": "YQo="});
    let contents = format!("/api/v1/repos/{repository}/contents/c.yaml?sudo=forge-wu");
    gitea.request("POST", &contents, Some(&body)).await.expect("a commit of a person");
    let pushed = client.branch("patch").await.expect("an answer").expect("a branch");
    assert_ne!(pushed, head);
    let commits = client.branch_commits("main", "patch").await.expect("commits");
    assert_eq!(commits.iter().map(|it| it.is_by(owner)).collect::<Vec<_>>(), [false, true], "{commits:?}");
    eventually("the pull request has the new head", String::new, async || {
        let pull = client.pull(number).await.expect("an answer").expect("a pull request");
        let is_new = pull.head.revision == pushed && by(&head).await.is_empty();
        if is_new { Ok(()) } else { Err(format!("{pull:?}")) }
    })
    .await;
    assert!(by(&pushed).await.is_empty());
    client.close_pull(number).await.expect("closed");
    client.delete_branch("patch").await.expect("deleted");
    let closed = client.pulls_of_branch("patch").await.expect("pull requests");
    assert_eq!(closed.iter().map(|it| it.state).collect::<Vec<_>>(), [PullState::Closed], "{closed:?}");
}
