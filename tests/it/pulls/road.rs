//! From an opened pull request to three statuses and one comment.

use tutti::model::Revision;

use super::scene::{CONTEXTS, PAY, Scene, pay};
use crate::support::forge::simulator::BOT;
use crate::support::manifests::component;

const VALID: &str = "success 1 app × 2 clusters valid, 0 warnings";

/// A pull request with `pay` at v2; its number and its head.
async fn bumped(scene: &Scene) -> (u64, Revision) {
    let head = scene.push("bump", &[(PAY, Some(&pay("v2")))]);
    let number = scene.open("bump").await;
    scene.settled(&head).await;
    scene.until("a comment", |now| !now.comments(number).is_empty()).await;
    (number, head)
}

fn edits(requests: &[String]) -> usize {
    requests.iter().filter(|line| line.starts_with("PATCH /issues/comments/")).count()
}

#[tokio::test(start_paused = true)]
async fn a_head_becomes_valid_with_one_comment() {
    let scene = Scene::small().await;
    let (number, head) = bumped(&scene).await;
    let [validate, plan, gate] = CONTEXTS.map(|context| scene.simulator.said(&head, context));
    assert_eq!(validate, ["pending comparing with main", VALID]);
    assert_eq!(plan[0], "pending comparing with main");
    assert!(plan.len() == 2 && plan[1].starts_with("success 1 app, 2 clusters: "), "{plan:?}");
    assert_eq!(gate, ["success no promotion"]);

    let second = scene.push("bump", &[(PAY, Some(&pay("v3")))]);
    scene.settled(&second).await;
    scene.until("v3", |now| now.comments(number)[0].1.contains("pay:v3")).await;

    let broken = pay("v4").replace("  port: 8080\n", "  port: many\n");
    let third = scene.push("bump", &[(PAY, Some(&broken))]);
    scene.settled(&third).await;
    let [validate, plan, _] = CONTEXTS.map(|context| scene.simulator.last(&third, context));
    assert!(validate.starts_with("failure ") && validate.contains("(apps/pay/app.yaml:9)"), "{validate}");
    assert!(plan.starts_with("failure "), "{plan}");
    scene.quiet(20).await;
    let comments = scene.simulator.comments(number);
    assert_eq!(comments.len(), 1, "{comments:#?}");
    assert_eq!(comments[0].0, BOT);
    assert!(comments[0].1.contains("apps/pay/app.yaml:9"), "{}", comments[0].1);
    let created = scene.simulator.requests().iter().filter(|line| line.starts_with("POST /issues/")).count();
    assert_eq!((created, edits(&scene.simulator.requests())), (1, 2));
    // Statuses of earlier heads stay.
    assert_eq!(scene.simulator.last(&head, CONTEXTS[0]), VALID);
    assert_eq!(scene.simulator.last(&second, CONTEXTS[0]), VALID);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_shown_until_the_next_push() {
    let scene = Scene::small().await;
    let (number, head) = bumped(&scene).await;
    scene.push("main", &[(PAY, Some(&pay("v5")))]);
    let conflicts = "failure conflicts with main: apps/pay/app.yaml";
    scene.until("a conflict", |now| now.last(&head, CONTEXTS[0]) == conflicts).await;
    assert!(scene.simulator.last(&head, CONTEXTS[1]).starts_with("failure "));
    scene.until("words", |now| now.comments(number)[0].1.contains("No plan")).await;
    // The opposite order.
    let solved = scene.push("bump", &[(PAY, Some(&pay("v1"))), ("apps/pay/notes.txt", Some("x"))]);
    scene.settled(&solved).await;
    assert_eq!(scene.simulator.last(&solved, CONTEXTS[0]), VALID);
    assert_eq!(scene.simulator.comments(number).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_head_without_manifests_cannot_be_read() {
    let scene = Scene::prepared("fleet", &["c1"], &[(PAY, &pay("v1"))]).await.started().await;
    let gone =
        ["fleet/apps/pay/app.yaml", "fleet/clusters/c1.yaml", "fleet/tutti.yaml"].map(|path| (path, None));
    let head = scene.push("gone", &[&gone[..], &[("README.md", Some("x"))]].concat());
    let number = scene.open("gone").await;
    scene.settled(&head).await;
    let validate = scene.simulator.last(&head, CONTEXTS[0]);
    assert!(validate.starts_with("failure failed to find folder `fleet`"), "{validate}");
    scene.until("a comment", |now| now.comments(number).len() == 1).await;
    // Others are planned all the same.
    let head = scene.push("fine", &[("fleet/apps/pay/app.yaml", Some(&pay("v2")))]);
    scene.open("fine").await;
    scene.settled(&head).await;
    assert!(scene.simulator.last(&head, CONTEXTS[0]).starts_with("success "));
}

#[tokio::test(start_paused = true)]
async fn a_reopened_pull_request_keeps_its_statuses() {
    let scene = Scene::small().await;
    let (number, head) = bumped(&scene).await;
    let said = || CONTEXTS.map(|context| scene.simulator.said(&head, context));
    let (before, requests) = (said(), scene.simulator.requests().len());
    scene.simulator.set_open("li", number, false);
    scene
        .push("main", &[("apps/other/app.yaml", Some(&component("other", "registry.example.com/other:v1")))]);
    scene.quiet(60).await;
    let writes: Vec<String> = scene
        .writes_since(requests)
        .into_iter()
        .filter(|line| line.contains(head.as_str()) || line.contains("/issues/"))
        .collect();
    assert_eq!(writes, Vec::<String>::new());
    assert_eq!(said(), before);

    scene.simulator.set_open("li", number, true);
    scene.until("another edit", |now| edits(&now.requests()) == 1).await;
    scene.quiet(20).await;
    assert_eq!(
        said().map(|words| words.iter().filter(|word| word.starts_with("pending ")).count()),
        [1, 1, 0]
    );
    assert_eq!(scene.simulator.last(&head, CONTEXTS[0]), VALID.replace("1 app ", "2 apps "));
    assert_eq!(scene.simulator.comments(number).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_moved_base_is_planned_again_once_stable() {
    let scene = Scene::small().await;
    let (number, head) = bumped(&scene).await;
    let before = CONTEXTS.map(|context| scene.simulator.said(&head, context));
    let requests = scene.simulator.requests().len();
    let mut last = None;
    for version in ["v1", "v2", "v3"] {
        let other = component("other", &format!("registry.example.com/other:{version}"));
        last = Some(scene.push("main", &[("apps/other/app.yaml", Some(&other))]));
        scene.quiet(4).await;
    }
    assert_eq!(edits(&scene.simulator.requests()[requests..]), 0);
    scene.quiet(60).await;
    let base = last.expect("a push");
    assert!(
        scene.simulator.comments(number)[0].1.contains(base.short()),
        "{}",
        scene.simulator.comments(number)[0].1
    );
    assert_eq!(edits(&scene.simulator.requests()[requests..]), 1);
    // The plan's text is unchanged; that of validate counts one more app.
    let [validate, plan, gate] = CONTEXTS.map(|context| scene.simulator.said(&head, context));
    assert_eq!([&plan, &gate], [&before[1], &before[2]]);
    assert_eq!(validate, ["pending comparing with main", VALID, &VALID.replace("1 app ", "2 apps ")]);
}

// One that accepts no comment delays no other.
#[tokio::test(start_paused = true)]
async fn a_locked_pull_request_delays_no_other() {
    let scene = Scene::small().await;
    let locked = crate::support::forge::simulator::Fault::Status(403);
    scene.simulator.fail_next("/issues/1/comments", 1_000, locked);
    let first = scene.push("first", &[(PAY, Some(&pay("v2")))]);
    scene.open("first").await;
    scene.settled(&first).await;
    let second = scene.push("second", &[(PAY, Some(&pay("v3")))]);
    let number = scene.open("second").await;
    scene.settled(&second).await;
    scene.until("a comment", |now| now.comments(number).len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn default_branch_may_get_another_name() {
    let scene = Scene::small().await;
    let (number, _) = bumped(&scene).await;
    scene.quiet(20).await;
    scene.simulator.rename_default_branch("trunk");
    let head = scene.push("bump", &[(PAY, Some(&pay("v3")))]);
    scene.settled(&head).await;
    assert_eq!(scene.simulator.said(&head, CONTEXTS[0]), ["pending comparing with trunk", VALID]);
    scene.until("the comment", |now| now.comments(number)[0].1.contains("`trunk` ← `bump`")).await;
    assert_eq!(scene.simulator.comments(number).len(), 1);
}
