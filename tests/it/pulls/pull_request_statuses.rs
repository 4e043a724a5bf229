//! From an opened pull request to three statuses and one comment.

use tutti::model::Revision;

use super::fixture::{CONTEXTS, PAY, PullRequestFixture, pay};
use crate::support::forge::simulator::BOT;
use crate::support::manifests::component;

const VALID: &str = "success 1 app × 2 clusters valid, 0 warnings";

/// A pull request with `pay` at v2; its number and its head.
async fn bump_pull(scene: &PullRequestFixture) -> (u64, Revision) {
    let head = scene.push("bump", &[(PAY, Some(&pay("v2")))]);
    let number = scene.open("bump").await;
    scene.until_settled(&head).await;
    scene.until("a comment", |now| !now.comments(number).is_empty()).await;
    (number, head)
}

fn comment_edits(requests: &[String]) -> usize {
    requests.iter().filter(|line| line.starts_with("PATCH /issues/comments/")).count()
}

#[tokio::test(start_paused = true)]
async fn a_head_becomes_valid_with_one_comment() {
    let scene = PullRequestFixture::two_clusters().await;
    let (number, head) = bump_pull(&scene).await;
    let [validate, plan, gate] = CONTEXTS.map(|context| scene.simulator.statuses_of(&head, context));
    assert_eq!(validate, ["pending comparing with main", VALID]);
    assert_eq!(plan[0], "pending comparing with main");
    assert!(plan.len() == 2 && plan[1].starts_with("success 1 app, 2 clusters: "), "{plan:?}");
    assert_eq!(gate, ["success no promotion"]);

    let second = scene.push("bump", &[(PAY, Some(&pay("v3")))]);
    scene.until_settled(&second).await;
    scene.until("v3", |now| now.comments(number)[0].1.contains("pay:v3")).await;

    let broken = pay("v4").replace("  port: 8080\n", "  port: many\n");
    let third = scene.push("bump", &[(PAY, Some(&broken))]);
    scene.until_settled(&third).await;
    let [validate, plan, _] = CONTEXTS.map(|context| scene.simulator.last_status(&third, context));
    assert!(validate.starts_with("failure ") && validate.contains("(apps/pay/app.yaml:9)"), "{validate}");
    assert!(plan.starts_with("failure "), "{plan}");
    scene.assert_no_requests(20).await;
    let comments = scene.simulator.comments(number);
    assert_eq!(comments.len(), 1, "{comments:#?}");
    assert_eq!(comments[0].0, BOT);
    assert!(comments[0].1.contains("apps/pay/app.yaml:9"), "{}", comments[0].1);
    let created = scene.simulator.requests().iter().filter(|line| line.starts_with("POST /issues/")).count();
    assert_eq!((created, comment_edits(&scene.simulator.requests())), (1, 2));
    // Statuses of earlier heads stay.
    assert_eq!(scene.simulator.last_status(&head, CONTEXTS[0]), VALID);
    assert_eq!(scene.simulator.last_status(&second, CONTEXTS[0]), VALID);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_shown_until_the_next_push() {
    let scene = PullRequestFixture::two_clusters().await;
    let (number, head) = bump_pull(&scene).await;
    scene.push("main", &[(PAY, Some(&pay("v5")))]);
    let conflicts = "failure conflicts with main: apps/pay/app.yaml";
    scene.until("a conflict", |now| now.last_status(&head, CONTEXTS[0]) == conflicts).await;
    assert!(scene.simulator.last_status(&head, CONTEXTS[1]).starts_with("failure "));
    scene.until("words", |now| now.comments(number)[0].1.contains("No plan")).await;
    // The opposite order.
    let solved = scene.push("bump", &[(PAY, Some(&pay("v1"))), ("apps/pay/notes.txt", Some("x"))]);
    scene.until_settled(&solved).await;
    assert_eq!(scene.simulator.last_status(&solved, CONTEXTS[0]), VALID);
    assert_eq!(scene.simulator.comments(number).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_head_without_manifests_cannot_be_read() {
    let scene = PullRequestFixture::new_without_process("fleet", &["c1"], &[(PAY, &pay("v1"))])
        .await
        .start_process()
        .await;
    let gone =
        ["fleet/apps/pay/app.yaml", "fleet/clusters/c1.yaml", "fleet/tutti.yaml"].map(|path| (path, None));
    let head = scene.push("gone", &[&gone[..], &[("README.md", Some("x"))]].concat());
    let number = scene.open("gone").await;
    scene.until_settled(&head).await;
    let validate = scene.simulator.last_status(&head, CONTEXTS[0]);
    assert!(validate.starts_with("failure failed to find folder `fleet`"), "{validate}");
    scene.until("a comment", |now| now.comments(number).len() == 1).await;
    // Others are planned all the same.
    let head = scene.push("fine", &[("fleet/apps/pay/app.yaml", Some(&pay("v2")))]);
    scene.open("fine").await;
    scene.until_settled(&head).await;
    assert!(scene.simulator.last_status(&head, CONTEXTS[0]).starts_with("success "));
}

#[tokio::test(start_paused = true)]
async fn a_reopened_pull_request_keeps_its_statuses() {
    let scene = PullRequestFixture::two_clusters().await;
    let (number, head) = bump_pull(&scene).await;
    let said = || CONTEXTS.map(|context| scene.simulator.statuses_of(&head, context));
    let (before, requests) = (said(), scene.simulator.requests().len());
    scene.simulator.set_open("li", number, false);
    scene
        .push("main", &[("apps/other/app.yaml", Some(&component("other", "registry.example.com/other:v1")))]);
    scene.assert_no_requests(60).await;
    let writes: Vec<String> = scene
        .writes_since(requests)
        .into_iter()
        .filter(|line| line.contains(head.as_str()) || line.contains("/issues/"))
        .collect();
    assert_eq!(writes, Vec::<String>::new());
    assert_eq!(said(), before);

    scene.simulator.set_open("li", number, true);
    scene.until("another edit", |now| comment_edits(&now.requests()) == 1).await;
    scene.assert_no_requests(20).await;
    assert_eq!(
        said().map(|words| words.iter().filter(|word| word.starts_with("pending ")).count()),
        [1, 1, 0]
    );
    assert_eq!(scene.simulator.last_status(&head, CONTEXTS[0]), VALID.replace("1 app ", "2 apps "));
    assert_eq!(scene.simulator.comments(number).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_moved_base_is_planned_again_once_stable() {
    let scene = PullRequestFixture::two_clusters().await;
    let (number, head) = bump_pull(&scene).await;
    let before = CONTEXTS.map(|context| scene.simulator.statuses_of(&head, context));
    let requests = scene.simulator.requests().len();
    let mut last = None;
    for version in ["v1", "v2", "v3"] {
        let other = component("other", &format!("registry.example.com/other:{version}"));
        last = Some(scene.push("main", &[("apps/other/app.yaml", Some(&other))]));
        scene.assert_no_requests(4).await;
    }
    assert_eq!(comment_edits(&scene.simulator.requests()[requests..]), 0);
    scene.assert_no_requests(60).await;
    let base = last.expect("a push");
    assert!(
        scene.simulator.comments(number)[0].1.contains(base.short()),
        "{}",
        scene.simulator.comments(number)[0].1
    );
    assert_eq!(comment_edits(&scene.simulator.requests()[requests..]), 1);
    // The plan's text is unchanged; that of validate counts one more app.
    let [validate, plan, gate] = CONTEXTS.map(|context| scene.simulator.statuses_of(&head, context));
    assert_eq!([&plan, &gate], [&before[1], &before[2]]);
    assert_eq!(validate, ["pending comparing with main", VALID, &VALID.replace("1 app ", "2 apps ")]);
}

// One that accepts no comment delays no other.
#[tokio::test(start_paused = true)]
async fn a_locked_pull_request_delays_no_other() {
    let scene = PullRequestFixture::two_clusters().await;
    let locked = crate::support::forge::simulator::ForgeFault::Status(403);
    scene.simulator.fail_next("/issues/1/comments", 1_000, locked);
    let first = scene.push("first", &[(PAY, Some(&pay("v2")))]);
    scene.open("first").await;
    scene.until_settled(&first).await;
    let second = scene.push("second", &[(PAY, Some(&pay("v3")))]);
    let number = scene.open("second").await;
    scene.until_settled(&second).await;
    scene.until("a comment", |now| now.comments(number).len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn default_branch_may_get_another_name() {
    let scene = PullRequestFixture::two_clusters().await;
    let (number, _) = bump_pull(&scene).await;
    scene.assert_no_requests(20).await;
    scene.simulator.rename_default_branch("trunk");
    let head = scene.push("bump", &[(PAY, Some(&pay("v3")))]);
    scene.until_settled(&head).await;
    assert_eq!(scene.simulator.statuses_of(&head, CONTEXTS[0]), ["pending comparing with trunk", VALID]);
    scene.until("the comment", |now| now.comments(number)[0].1.contains("`trunk` ← `bump`")).await;
    assert_eq!(scene.simulator.comments(number).len(), 1);
}
