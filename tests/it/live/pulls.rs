//! A pull request on the real Gitea: its effect is shown before the merge, and its result afterwards.

use std::time::Instant;

use serde_json::json;

use super::support::{ForgeUsers, LiveFixture, component};

#[tokio::test]
async fn pull_request_is_planned_reviewed_merged_and_deployed() {
    let Some(scene) = LiveFixture::new("pull-road", 4).await else { return };
    let people = ForgeUsers::of(&scene);
    // Polls are too rare to find anything.
    scene.write_instance("poll: 2h\n  pageUrl: https://tutti.example.com/page");
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.0", ""));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    people.create_webhook().await;
    people.reviewer("pull-road-li").await;
    scene.until_status(&first, "validate", "success", &["1 app × 4 clusters valid, 0 warnings"]).await;

    // A pull request shows its plan.
    scene.worktree.git(&["checkout", "-q", "-b", "bump"]);
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.1", ""));
    let head = scene.worktree.commit("web 1.1");
    scene.worktree.push_branch("bump");
    let opened = Instant::now();
    let number = people.open("bump").await;
    let plan = people.until_plan_contains(number, &["shop/web:1.1", "shop/web:1.0"]).await;
    println!("figure pull_comment_after_opening_ms {} ms", opened.elapsed().as_millis());
    assert!(plan.contains("same on 4 clusters") || plan.contains("4 clusters"), "{plan}");
    scene.until_status(&head, "validate", "success", &["valid, 0 warnings"]).await;
    scene.until_status(&head, "plan", "success", &["1 app, 4 clusters"]).await;
    scene.until_status(&head, "gate", "success", &["no promotion"]).await;
    for context in ["validate", "plan"] {
        let history = scene.status_history(&head, context).await;
        let states: Vec<&str> = history.iter().map(|(state, _)| state.as_str()).collect();
        assert_eq!(states, ["pending", "success"], "{context}: {history:?}");
    }

    // The second push edits the comment.
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.2", ""));
    let second = scene.worktree.commit("web 1.2");
    let pushed = Instant::now();
    scene.worktree.push_branch("bump");
    people.until_plan_contains(number, &["shop/web:1.2", "shop/web:1.0", &second[..7]]).await;
    println!("figure pull_comment_after_push_ms {} ms", pushed.elapsed().as_millis());
    scene.until_status(&second, "validate", "success", &[]).await;

    // A mistake, with its place.
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.2", "  replica: 3\n"));
    let broken = scene.worktree.commit("an error");
    scene.worktree.push_branch("bump");
    scene
        .until_status(&broken, "validate", "failure", &["unknown field `replica`", "apps/web/app.yaml:11"])
        .await;
    scene.until_status(&broken, "plan", "failure", &[]).await;
    people.until_plan_contains(number, &["apps/web/app.yaml:11:3", "replica"]).await;

    // Corrected, approved and merged: the deployment is shown with a link.
    scene.worktree.git(&["revert", "--no-edit", "HEAD"]);
    let mended = scene.worktree.head();
    scene.worktree.push_branch("bump");
    scene.until_status(&mended, "validate", "success", &[]).await;
    let approval = json!({"event": "APPROVED", "commit_id": mended, "body": "good"});
    let as_reviewer = format!("/pulls/{number}/reviews?sudo=pull-road-li");
    people.request("POST", &as_reviewer, Some(&approval)).await;
    let merge = json!({"Do": "merge", "head_commit_id": mended});
    people.request("POST", &format!("/pulls/{number}/merge"), Some(&merge)).await;
    let merged = people.request("GET", &format!("/pulls/{number}"), None).await;
    let merged = merged["merge_commit_sha"].as_str().expect("a commit").to_owned();
    scene.until_succeeded(&merged).await;
    for cluster in scene.clusters() {
        scene.until_ready(cluster, "web", "shop/web:1.2", 2).await;
    }
    let statuses = scene.gitea().statuses(scene.name(), &merged).await.expect("statuses");
    let deployed = statuses.iter().find(|it| it["context"] == "tutti/deploy/prod").expect("a status");
    assert_eq!(deployed["target_url"], "https://tutti.example.com/page");
    // Tutti's own writes cause no loop: one comment, and no repeated status.
    assert_eq!(people.plan_comments(number).await.len(), 1);
}
