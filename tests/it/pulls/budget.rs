//! The number of requests to the forge.

use std::collections::BTreeMap;

use super::fixture::{CONTEXTS, PAY, PullRequestFixture, pay};
use crate::support::forge::simulator::ForgeSimulator;
use crate::support::manifests::component;

/// By method and path, without numbers and ids.
fn request_counts(requests: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in requests {
        let line = line.split('?').next().unwrap_or_default();
        let is_id = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit()) || part.len() == 40;
        let parts: Vec<&str> = line.split('/').map(|part| if is_id(&part) { "*" } else { part }).collect();
        *counts.entry(parts.join("/")).or_default() += 1;
    }
    counts
}

/// The requests of one push to an open pull request: a read, three statuses at the start and two at the end, one comment.
const REQUESTS_PER_PUSH: [(&str, usize); 3] =
    [("GET /pulls/*", 1), ("PATCH /issues/comments/*", 1), ("POST /statuses/*", 5)];

fn other_component(changes: usize) -> String {
    component("other", &format!("registry.example.com/other:v{changes}"))
}

/// A pull request from the branch `bump`, with its statuses and its comment.
async fn open_planned_pull(scene: &PullRequestFixture) -> u64 {
    let head = scene.push("bump", &[(PAY, Some(&pay("v2")))]);
    let number = scene.open("bump").await;
    scene.until_settled(&head).await;
    scene.until("a comment", |now| now.comments(number).len() == 1).await;
    number
}

#[tokio::test(start_paused = true)]
async fn a_pull_request_push_costs_seven_requests() {
    let scene = PullRequestFixture::two_clusters().await;
    open_planned_pull(&scene).await;
    // From then on webhooks are used: the list of open ones is read every five minutes.
    scene.assert_no_requests(70).await;
    for version in ["v3", "v4"] {
        let before = scene.simulator.requests().len();
        let head = scene.push("bump", &[(PAY, Some(&pay(version)))]);
        scene.until_settled(&head).await;
        scene.assert_no_requests(30).await;
        let expected = REQUESTS_PER_PUSH.map(|(line, count)| (line.to_owned(), count)).into();
        assert_eq!(request_counts(&scene.simulator.requests()[before..]), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_push_defers_reads_of_other_pulls() {
    let scene = PullRequestFixture::two_clusters().await;
    let mut last = None;
    for number in 0..50 {
        let branch = format!("bump-{number}");
        let head = scene.push(&branch, &[(PAY, Some(&pay(&format!("w{number}"))))]);
        scene.open_without_wait(&branch);
        last = Some((number + 1, head));
    }
    let (number, head) = last.expect("one");
    scene.until_settled(&head).await;
    scene.until("all comments", |now| (1..=number).all(|number| now.comments(number).len() == 1)).await;
    scene.assert_no_requests(70).await;
    let before = scene.simulator.requests().len();
    let base = scene.push("main", &[("apps/other/app.yaml", Some(&other_component(1)))]);
    scene.assert_no_requests(9).await;
    let of_pulls = |line: &&String| !line.contains(base.as_str());
    let asked: Vec<String> = scene.simulator.requests()[before..].iter().filter(of_pulls).cloned().collect();
    assert_eq!(asked, Vec::<String>::new());
    scene
        .until("edits", |now| (1..=number).all(|number| now.comments(number)[0].1.contains(base.short())))
        .await;
    scene.assert_no_requests(30).await;
    // One edit each, and the one status whose text counts the new app.
    let asked: Vec<String> = scene.simulator.requests()[before..].iter().filter(of_pulls).cloned().collect();
    let expected = [("PATCH /issues/comments/*".to_owned(), 50), ("POST /statuses/*".to_owned(), 50)];
    assert_eq!(request_counts(&asked), expected.into());
}

#[tokio::test(start_paused = true)]
async fn a_push_webhook_delays_comparisons() {
    let scene = PullRequestFixture::two_clusters().await;
    let number = open_planned_pull(&scene).await;
    let base = scene.push("main", &[("apps/other/app.yaml", Some(&other_component(1)))]);
    let is_compared = |now: &ForgeSimulator| now.comments(number)[0].1.contains(base.short());
    for _ in 0..3 {
        scene.assert_no_requests(7).await;
        assert!(!is_compared(&scene.simulator));
        scene.tell_of_push();
    }
    scene.assert_no_requests(20).await;
    assert!(is_compared(&scene.simulator));
}

// Statuses return as pushes, comments as comments: they trigger nothing.
#[tokio::test(start_paused = true)]
async fn own_writes_trigger_nothing() {
    let scene = PullRequestFixture::two_clusters().await;
    scene.simulator.set_quirks(|quirks| quirks.statuses_loop_back = true);
    let number = open_planned_pull(&scene).await;
    scene.assert_no_requests(70).await;
    let before = scene.simulator.requests().len();
    let returned = |kind: &str| {
        let deliveries = scene.simulator.deliveries();
        let answered = |code: Option<u16>| code.is_some_and(|code| (200..300).contains(&code));
        deliveries.iter().filter(|it| it.kind == kind && answered(it.code)).count()
    };
    assert!(returned("status") >= 5 && returned("pull_request_comment") >= 1, "they came back");
    scene.assert_no_requests(60).await;
    assert_eq!(request_counts(&scene.simulator.requests()[before..]), BTreeMap::new());
    // A comment by a person costs nothing either.
    scene.simulator.client("li").create_comment(number, "Fine.").await.expect("a comment");
    scene.assert_no_requests(20).await;
    assert_eq!(
        request_counts(&scene.simulator.requests()[before..]),
        [("POST /issues/*/comments".to_owned(), 1)].into()
    );
}

#[tokio::test(start_paused = true)]
async fn status_contexts_do_not_grow_with_the_fleet() {
    let mut all = Vec::new();
    for clusters in [2, 40] {
        let names: Vec<String> = (0..clusters).map(|number| format!("c{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let scene = PullRequestFixture::new_started(&names, &[(PAY, &pay("v1"))]).await;
        let head = scene.push("bump", &[(PAY, Some(&pay("v2")))]);
        scene.open("bump").await;
        scene.until_settled(&head).await;
        let base = scene.simulator.tip("main").expect("a tip");
        scene.until("the base", |now| now.last_status(&base, CONTEXTS[0]).starts_with("success ")).await;
        scene.assert_no_requests(20).await;
        let contexts = |commit| {
            let of_commit =
                scene.simulator.status_writes().into_iter().filter(move |word| word.commit == commit);
            of_commit.map(|word| word.context).collect::<std::collections::BTreeSet<String>>()
        };
        all.push((contexts(head), contexts(base)));
    }
    assert_eq!(all[0].0, CONTEXTS.map(str::to_owned).into());
    assert_eq!(all[0], all[1]);
}
