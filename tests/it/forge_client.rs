//! The forge client against the simulator: pull requests, comments, reviews and files of a real repository, with
//! surprising behaviour of Gitea.

use tutti::forge::{
    CommitStatus, CommitStatusState, FileChange, FileCommit, ForgeErrorKind, Label, MergeMethod, NewPull,
    PullApprovals, PullEdit, PullFilter, PullState, approvals,
};
use tutti::model::Revision;

use crate::support::forge::simulator::{BOT, ForgeFault, ForgePermission, ForgeSimulator, success};

const BRANCH: &str = "tutti/promote/pay-prod";
const PIN_FILE: &str = "apps/pay/pins/prod.yaml";

async fn start_simulator() -> ForgeSimulator {
    let simulator =
        ForgeSimulator::start(&[(PIN_FILE, Some("version: 1\n")), ("other.yaml", Some("a: 1\n"))]).await;
    simulator.add_user("li", ForgePermission::Write);
    simulator.add_user("root", ForgePermission::Admin);
    simulator
}

/// The pin with another version, on its own branch.
fn pin_commit(simulator: &ForgeSimulator, branch: &str, version: u8) -> FileCommit {
    FileCommit {
        branch: branch.to_owned(),
        new_branch_from: Some("main".to_owned()),
        message: format!("pay {version}"),
        files: vec![FileChange {
            path: PIN_FILE.to_owned(),
            content: Some(format!("version: {version}\n")),
            replaces: simulator.blob_id("main", PIN_FILE),
        }],
    }
}

fn new_pull(branch: &str, labels: &[&str]) -> NewPull {
    NewPull {
        head: branch.to_owned(),
        base: "main".to_owned(),
        title: "pay 2".to_owned(),
        body: "why".to_owned(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
    }
}

/// A branch with a pull request; returns its number and its head.
async fn open_pull(simulator: &ForgeSimulator, branch: &str, version: u8) -> (u64, Revision) {
    let bot = simulator.client(BOT);
    let head = bot.commit_files(&pin_commit(simulator, branch, version)).await.expect("a commit");
    let pull = bot.create_pull(&new_pull(branch, &[])).await.expect("a pull request");
    assert_eq!((&pull.head.revision, pull.state), (&head, PullState::Open));
    (pull.number, head)
}

#[tokio::test]
async fn promotion_pull_request_is_opened_and_merged() {
    let simulator = start_simulator().await;
    let (bot, li, root) = (simulator.client(BOT), simulator.client("li"), simulator.client("root"));
    assert_eq!(bot.who_am_i().await.expect("a user").login, BOT);
    let label = |name: &str| Label {
        name: name.to_owned(),
        color: "1d76db".to_owned(),
        description: "by tutti".to_owned(),
    };
    let labels = [label("tutti/promotion"), label("ring/prod")];
    assert_eq!(bot.ensure_labels(&labels).await.expect("labels"), ["tutti/promotion", "ring/prod"]);
    assert_eq!(bot.ensure_labels(&labels).await.expect("labels"), [""; 0]);
    assert_eq!(bot.labels().await.expect("labels"), labels);
    root.create_protection("main", &["tutti/gate".to_owned()]).await.expect("a protection");

    assert_eq!(bot.branch(BRANCH).await, Ok(None));
    let head = bot.commit_files(&pin_commit(&simulator, BRANCH, 2)).await.expect("a commit");
    assert_eq!(bot.branch(BRANCH).await, Ok(Some(head.clone())));
    let commits = bot.branch_commits("main", BRANCH).await.expect("commits");
    assert!(commits.len() == 1 && commits[0].revision == head && commits[0].is_by(BOT), "{commits:?}");
    let pull = bot.create_pull(&new_pull(BRANCH, &["ring/prod"])).await.expect("a pull request");
    bot.add_labels(pull.number, &["tutti/promotion".to_owned()]).await.expect("labelled");
    let edit = PullEdit { title: Some("pay 2 to prod".to_owned()), body: None };
    bot.edit_pull(pull.number, &edit).await.expect("edited");
    let found = bot.pull(pull.number).await.expect("an answer").expect("a pull request");
    assert_eq!((found.title.as_str(), found.body.as_str()), ("pay 2 to prod", "why"));
    assert_eq!(found.labels, ["tutti/promotion", "ring/prod"]);
    assert!(!found.head.is_fork && found.head.reference == BRANCH && found.author == BOT, "{found:?}");
    assert_eq!(bot.pulls_open().await, Ok(vec![found]));
    assert_eq!(bot.pull(99).await, Ok(None));

    let comment = bot.create_comment(pull.number, "first").await.expect("a comment");
    bot.edit_comment(comment.id, "second").await.expect("edited");
    bot.react(comment.id, "eyes").await.expect("a reaction");
    bot.react(comment.id, "eyes").await.expect("once more");
    let comments = bot.comments(pull.number).await.expect("comments");
    assert!(comments.len() == 1 && comments[0].body == "second" && comments[0].author == BOT, "{comments:?}");

    // The gate is still closed; then the head changes.
    let refused = bot.merge_pull(pull.number, MergeMethod::Merge, &head).await.expect_err("no status");
    assert!(refused.is_transient() && refused.kind() == ForgeErrorKind::NotMergeable, "{refused:?}");
    assert!(refused.to_string().contains("required status checks"), "{refused}");
    bot.post_status(&head, &success("tutti/gate")).await.expect("a status");
    let main = simulator.tip("main").expect("a tip");
    let refused = bot.merge_pull(pull.number, MergeMethod::Merge, &main).await.expect_err("another head");
    assert!(!refused.is_transient() && refused.kind() == ForgeErrorKind::HeadMoved, "{refused:?}");

    simulator.review("li", pull.number, "APPROVED");
    let reviews = li.reviews(pull.number).await.expect("reviews");
    let expected = PullApprovals { by: vec!["li".to_owned()], refused_by: Vec::new() };
    assert_eq!(approvals(&reviews, &head, BOT, BOT), expected);
    bot.merge_pull(pull.number, MergeMethod::Merge, &head).await.expect("merged");
    bot.delete_branch(BRANCH).await.expect("deleted");
    bot.delete_branch(BRANCH).await.expect("gone already");
    let merged = bot.pulls_of_branch(BRANCH).await.expect("pull requests").remove(0);
    assert_eq!((merged.state, merged.merged_by.as_deref()), (PullState::Merged, Some(BOT)));
    assert_eq!(merged.merge_commit, simulator.tip("main"));
    let merge = merged.merge_commit.clone().expect("a merge");
    assert_eq!(bot.merged_pull(&merge).await, Ok(Some(merged)));
    assert_eq!(bot.merged_pull(&main).await, Ok(None));
    let commits = bot.pull_commits(pull.number).await.expect("commits");
    assert!(commits.len() == 1 && commits[0].revision == head, "{commits:?}");
    let commit = bot.commit(&head).await.expect("an answer").expect("a commit");
    assert!(commit.revision == head && commit.is_by(BOT), "{commit:?}");
    assert_eq!(bot.commit(&Revision::from("0".repeat(40).as_str())).await, Ok(None));
    let parents = simulator.parents(&merge);
    assert_eq!(parents, [main.to_string(), head.to_string()]);
    assert_eq!(simulator.file_text("main", PIN_FILE).as_deref(), Some("version: 2\n"));
    assert_eq!(bot.pulls_open().await, Ok(Vec::new()));
}

#[tokio::test]
async fn all_pages_of_lists_are_read() {
    let simulator = start_simulator().await;
    let bot = simulator.client(BOT);
    for version in 2..7 {
        open_pull(&simulator, &format!("tutti/{version}"), version).await;
        let name = format!("label-{version}");
        let label = Label { name, color: "1d76db".to_owned(), description: String::new() };
        bot.ensure_labels(&[label]).await.expect("a label");
        bot.create_comment(1, &format!("comment {version}")).await.expect("a comment");
        simulator.review("li", 1, "COMMENT");
    }
    for (largest_page, hides_totals) in [(50, false), (2, false), (2, true), (5, true), (1, false)] {
        simulator.set_quirks(|quirks| {
            (quirks.max_page, quirks.hides_totals) = (largest_page, hides_totals);
        });
        let found = (
            bot.pulls_open().await.expect("pull requests").len(),
            bot.labels().await.expect("labels").len(),
            // Gitea does not page these, and returns the same list for each page.
            bot.comments(1).await.expect("comments").len(),
            bot.reviews(1).await.expect("reviews").len(),
        );
        assert_eq!(found, (5, 5, 5, 5), "{largest_page} {hides_totals}");
        let filter = PullFilter { most: 3, ..PullFilter::default() };
        let numbers: Vec<u64> =
            bot.pulls(&filter).await.expect("pull requests").iter().map(|it| it.number).collect();
        assert_eq!(numbers, [5, 4, 3], "{largest_page} {hides_totals}");
    }
    let of_others = PullFilter { author: Some("li".to_owned()), ..PullFilter::default() };
    assert_eq!(bot.pulls(&of_others).await, Ok(Vec::new()));
}

#[tokio::test]
async fn huge_pull_request_hides_no_other() {
    let simulator = start_simulator().await;
    simulator.add_user("stranger", ForgePermission::Read);
    open_pull(&simulator, "tutti/2", 2).await;
    let huge = simulator.pull_from_fork("stranger", &"x".repeat(5 << 20), &[("other.yaml", Some("a: 3\n"))]);
    open_pull(&simulator, "tutti/3", 3).await;
    let bot = simulator.client(BOT);
    for hides_totals in [false, true] {
        simulator.set_quirks(|quirks| quirks.hides_totals = hides_totals);
        let found: Vec<u64> =
            bot.pulls_open().await.expect("pull requests").iter().map(|pull| pull.number).collect();
        assert_eq!(found, [3, 1], "{hides_totals}");
    }
    let error = bot.pull(huge).await.expect_err("too large");
    assert!(error.to_string().contains("more than 4194304 bytes"), "{error}");
}

#[tokio::test]
async fn concurrent_file_changes_are_conflicts() {
    let simulator = start_simulator().await;
    let bot = simulator.client(BOT);
    let read = pin_commit(&simulator, BRANCH, 2);
    let check = async |commit: &FileCommit, words: &str| {
        let error = bot.commit_files(commit).await.expect_err(words);
        assert!(error.kind() == ForgeErrorKind::Conflict && error.to_string().contains(words), "{error}");
        assert!(!error.is_transient(), "{error}");
    };
    bot.commit_files(&read).await.expect("a commit");
    check(&read, "branch already exists").await;
    // The next commit is on the branch itself.
    let on_branch = FileCommit { new_branch_from: None, ..read.clone() };
    check(&on_branch, "sha does not match").await;
    let added = |replaces: Option<String>| FileCommit {
        files: vec![FileChange { path: "other.yaml".to_owned(), content: Some(String::new()), replaces }],
        ..on_branch.clone()
    };
    check(&added(None), "already exists").await;
    check(&FileCommit { branch: "nowhere".to_owned(), ..added(None) }, "branch does not exist").await;
    let deleted = FileCommit {
        files: vec![FileChange {
            path: PIN_FILE.to_owned(),
            content: None,
            replaces: simulator.blob_id(BRANCH, PIN_FILE),
        }],
        ..on_branch
    };
    bot.commit_files(&deleted).await.expect("a commit");
    assert_eq!(simulator.file_text(BRANCH, PIN_FILE), None);
    check(&deleted, "object does not exist").await;
    bot.create_pull(&new_pull(BRANCH, &[])).await.expect("a pull request");
    let second = bot.create_pull(&new_pull(BRANCH, &[])).await.expect_err("there is one");
    assert_eq!(second.kind(), ForgeErrorKind::Conflict, "{second}");
    let unknown = bot.create_pull(&new_pull(BRANCH, &["nobody's"])).await.expect_err("no label");
    assert!(unknown.to_string().contains("no label `nobody's`"), "{unknown}");
}

#[tokio::test]
async fn foreign_commit_on_our_branch_is_detected() {
    let simulator = start_simulator().await;
    let bot = simulator.client(BOT);
    let (number, head) = open_pull(&simulator, BRANCH, 2).await;
    let review = simulator.review("li", number, "APPROVED");
    let approved =
        async |head: &Revision| approvals(&bot.reviews(number).await.expect("reviews"), head, BOT, BOT).by;
    assert_eq!(approved(&head).await, ["li"]);
    let pushed = simulator.push("wu", BRANCH, "One more", &[("other.yaml", Some("a: 2\n"))]);
    let pull = bot.pull(number).await.expect("an answer").expect("a pull request");
    assert_eq!(pull.head.revision, pushed);
    let commits = bot.branch_commits("main", BRANCH).await.expect("commits");
    let ours: Vec<bool> = commits.iter().map(|commit| commit.is_by(BOT)).collect();
    assert_eq!(ours, [false, true]);
    // The approval is for the old head.
    assert!(approved(&pushed).await.is_empty());
    assert!(approved(&head).await.is_empty(), "it is stale");
    simulator.review("li", number, "APPROVED");
    assert_eq!(approved(&pushed).await, ["li"]);
    let newest = bot.reviews(number).await.expect("reviews").pop().expect("a review");
    assert_ne!(newest.id, review);
    simulator.dismiss(newest.id);
    assert!(approved(&pushed).await.is_empty());
    bot.close_pull(number).await.expect("closed");
    let closed = bot.pulls_of_branch(BRANCH).await.expect("pull requests");
    assert_eq!(closed[0].state, PullState::Closed);
}

#[tokio::test]
async fn pull_request_of_a_fork_is_recognized() {
    let simulator = start_simulator().await;
    simulator.add_user("stranger", ForgePermission::Read);
    let number = simulator.pull_from_fork("stranger", "Mine", &[("other.yaml", Some("a: 3\n"))]);
    let bot = simulator.client(BOT);
    let pull = bot.pull(number).await.expect("an answer").expect("a pull request");
    assert!(pull.head.is_fork, "{pull:?}");
    assert_eq!(pull.head.repository.as_deref(), Some("stranger/config"));
    // Its head is in our repository too.
    let repository = git2::Repository::open_bare(simulator.path()).expect("a repository");
    let id = repository.refname_to_id(&pull.head_reference()).expect("a reference");
    assert_eq!(id.to_string(), pull.head.revision.as_str());
    // A branch with the same name is a different branch.
    assert_eq!(bot.pulls_of_branch(&pull.head.reference).await, Ok(Vec::new()));
}

#[tokio::test]
async fn parallel_merges_wait_for_each_other() {
    let simulator = start_simulator().await;
    let bot = simulator.client(BOT);
    let (first, first_head) = open_pull(&simulator, "tutti/a", 2).await;
    let change = FileChange { path: "new.yaml".to_owned(), content: Some(String::new()), replaces: None };
    let commit = FileCommit { files: vec![change], ..pin_commit(&simulator, "tutti/b", 2) };
    let second_head = bot.commit_files(&commit).await.expect("a commit");
    let second = bot.create_pull(&new_pull("tutti/b", &[])).await.expect("a pull request").number;
    let (third, third_head) = open_pull(&simulator, "tutti/c", 3).await;
    simulator.set_quirks(|quirks| quirks.late_merge_checks = 1);
    bot.merge_pull(first, MergeMethod::Squash, &first_head).await.expect("merged");
    let busy =
        bot.merge_pull(second, MergeMethod::Merge, &second_head).await.expect_err("it is checked again");
    assert!(busy.is_transient() && busy.to_string().contains("try again later"), "{busy}");
    bot.merge_pull(second, MergeMethod::Merge, &second_head).await.expect("merged");
    simulator.set_quirks(|quirks| quirks.late_merge_checks = 0);
    // The first merge changed the same file: the conflict is permanent.
    for _ in 0..3 {
        let error = bot.merge_pull(third, MergeMethod::Merge, &third_head).await.expect_err("a conflict");
        assert_eq!(error.kind(), ForgeErrorKind::NotMergeable, "{error}");
    }
    let again = bot.merge_pull(first, MergeMethod::Merge, &first_head).await.expect_err("merged already");
    assert!(again.to_string().contains("already merged"), "{again}");
    assert_eq!(bot.pull(first).await.expect("an answer").expect("it").state, PullState::Merged);
    let (fourth, fourth_head) = open_pull(&simulator, "tutti/d", 4).await;
    bot.merge_pull(fourth, MergeMethod::FastForward, &fourth_head).await.expect("merged");
    assert_eq!(simulator.tip("main"), Some(fourth_head));
    assert!(simulator.requests().contains(&format!("POST /pulls/{fourth}/merge")), "as it is asked");
}

#[tokio::test(start_paused = true)]
async fn failures_say_whether_to_try_again() {
    let simulator = start_simulator().await;
    let bot = simulator.client(BOT);
    let check = async |fault: ForgeFault, kind: ForgeErrorKind, is_transient: bool| {
        simulator.fail_next("/pulls", 1, fault);
        let error = bot.pulls_open().await.expect_err("a fault");
        assert_eq!((error.kind(), error.is_transient()), (kind, is_transient), "{error}");
        error
    };
    check(ForgeFault::Status(502), ForgeErrorKind::Server, true).await;
    check(ForgeFault::Status(403), ForgeErrorKind::Authentication, false).await;
    check(ForgeFault::NoAnswer, ForgeErrorKind::Unreachable, true).await;
    let limited = check(ForgeFault::RateLimit(7), ForgeErrorKind::RateLimited, true).await;
    let tutti::forge::Error::RateLimited { retry_after, .. } = limited else { panic!("{limited}") };
    assert_eq!(retry_after.map(|after| after.as_secs()), Some(7));
    assert_eq!(bot.pulls_open().await, Ok(Vec::new()));
    // The write succeeded but its response was lost: a repeat is a conflict.
    simulator.fail_next("POST /api/v1/repos/platform/config/contents", 1, ForgeFault::LostAnswer);
    let commit = pin_commit(&simulator, BRANCH, 2);
    assert!(bot.commit_files(&commit).await.expect_err("lost").is_transient());
    assert_eq!(bot.commit_files(&commit).await.expect_err("done").kind(), ForgeErrorKind::Conflict);
    assert_eq!(
        simulator.client("nobody").who_am_i().await.expect_err("a token").kind(),
        ForgeErrorKind::Authentication
    );
}

#[tokio::test]
async fn statuses_of_all_forge_versions_are_read() {
    let simulator = start_simulator().await;
    let bot = simulator.client(BOT);
    let head = simulator.tip("main").expect("a tip");
    simulator.set_quirks(|quirks| quirks.empty_combined = true);
    assert_eq!(bot.statuses(&head).await, Ok(Vec::new()));
    let pending = CommitStatus { state: CommitStatusState::Pending, ..success("tutti/gate") };
    bot.post_status(&head, &pending).await.expect("a status");
    bot.post_status(&head, &success("tutti/gate")).await.expect("a status");
    bot.post_status(&head, &success("tutti/validate")).await.expect("a status");
    for (answers_state, largest_page) in [(false, 50), (true, 50), (true, 1)] {
        simulator.set_quirks(|quirks| {
            (quirks.answers_state, quirks.max_page) = (answers_state, largest_page);
        });
        let expected = vec![success("tutti/gate"), success("tutti/validate")];
        assert_eq!(bot.statuses(&head).await, Ok(expected), "{answers_state} {largest_page}");
    }
    let unknown = bot.statuses(&Revision::from("0123456789012345678901234567890123456789")).await;
    assert_eq!(unknown.expect_err("no commit").kind(), ForgeErrorKind::UnknownCommit);
}
