//! Messages about commits in rings.

use std::sync::Arc;

use tokio::sync::watch;
use tutti::model::AppId;
use tutti::report::{TargetPhase, TargetReport};

use super::fixture::{NotificationFixture, WEB, web};
use crate::support::chat::ChatFault;
use crate::support::manifests::{component, config_map, objects_app};

#[tokio::test(start_paused = true)]
async fn each_rollout_phase_is_sent_once_per_ring() {
    let scene = NotificationFixture::two_rings().await;
    scene.release("v2").await;
    scene.until_received("done rollout/v2/prod").await;
    scene.sleep_seconds(600).await;
    let expected = [
        "rollout/Begin/prod: started done",
        "rollout/Begin/test: started done",
        "rollout/v2/prod: started done",
        "rollout/v2/test: started done",
    ];
    let threads: Vec<String> = scene
        .phases_by_thread()
        .into_iter()
        .map(|(thread, phases)| format!("{thread}: {}", phases.join(" ")))
        .collect();
    assert_eq!(threads, expected);
    // Test is done before prod.
    let told = scene.received_events();
    let place = |text: &str| told.iter().position(|it| it == text);
    assert!(place("done rollout/v2/test") < place("done rollout/v2/prod"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn failed_commit_is_reverted_where_it_failed() {
    let scene = NotificationFixture::two_rings().await;
    let bad = scene.push("bad", &[(WEB, Some(&web("broken-1")))]).await;
    scene.until_received("failed rollout/bad/test").await;
    scene.sleep_seconds(300).await;
    scene.revert(&bad, &[(WEB, Some(&web("v1")))]).await;
    scene.until_received("reverted rollout/bad/test").await;
    scene.sleep_seconds(300).await;
    let story = scene.thread_summaries();
    assert_eq!(story.len(), 4, "{story:#?}");
    assert!(story[0].starts_with("rollout/Back") && story[0].ends_with("/prod: done"), "{story:#?}");
    assert!(story[1].starts_with("rollout/Back") && story[1].ends_with("/test: done"), "{story:#?}");
    // It waited for its turn in prod.
    assert_eq!(
        story[2..],
        ["rollout/bad/prod: started reverted", "rollout/bad/test: started failed reverted"]
    );
    let received = scene.chat.received();
    let reverted = received
        .iter()
        .find(|it| it.body["data"]["phase"] == "reverted" && it.body["data"]["ring"] == "test");
    let data = &reverted.expect("a message").body["data"];
    assert_eq!((&data["what"], &data["subject"]), (&"↩ default/web: reverted in test".into(), &"bad".into()));
}

#[tokio::test(start_paused = true)]
async fn late_pod_failures_are_sent_after_a_minute() {
    let scene = NotificationFixture::two_rings().await;
    scene.sleep_seconds(60).await;
    let before = scene.received_events();
    // A short failure sends nothing.
    scene.set_pod_scenario("p1", "rules: [{kind: Deployment, name: web, fail: crash-loop}]");
    scene.sleep_seconds(40).await;
    scene.set_pod_scenario("p1", "rules: []");
    scene.sleep_seconds(300).await;
    assert_eq!(scene.received_events(), before);
    scene.set_pod_scenario("p1", "rules: [{kind: Deployment, name: web, fail: crash-loop}]");
    scene.sleep_seconds(50).await;
    assert_eq!(scene.received_events(), before);
    scene.until_received("degraded rollout/Begin/prod").await;
    scene.sleep_seconds(600).await;
    scene.set_pod_scenario("p1", "rules: []");
    scene.until_received("recovered rollout/Begin/prod").await;
    scene.sleep_seconds(600).await;
    assert_eq!(
        scene.received_events()[before.len()..],
        ["degraded rollout/Begin/prod", "recovered rollout/Begin/prod"]
    );
    let last = scene.chat.received().pop().expect("a message");
    assert_eq!(last.body["data"]["what"], "✓ default/web v1: recovered in prod");
}

/// Another commit takes over a degraded app: it is reported as recovered, with the new commit's name.
#[tokio::test(start_paused = true)]
async fn degraded_app_that_another_commit_changes_has_recovered() {
    let scene = NotificationFixture::two_rings().await;
    scene.set_pod_scenario("p1", "rules: [{image: 'registry.example.com/web:v1', fail: crash-loop}]");
    scene.until_received("degraded rollout/Begin/prod").await;
    scene.release("v2").await;
    scene.until_received("recovered rollout/Begin/prod").await;
    scene.sleep_seconds(600).await;
    let received = scene.chat.received();
    let recovered = received.iter().find(|it| it.body["data"]["phase"] == "recovered").expect("a message");
    assert_eq!(recovered.body["data"]["what"], "✓ default/web: recovered in prod");
}

#[tokio::test(start_paused = true)]
async fn many_failures_of_one_commit_are_one_message() {
    const MANY: usize = 40;
    // The earlier ConfigMaps wait to be deleted.
    const FAILURES: &str = ", select: {phases: [failed, degraded, recovered]}";
    let manifests: Vec<(String, String)> = (0..MANY)
        .flat_map(|number| {
            let (name, folder) = (format!("a{number:04}"), format!("apps/a{number:04}"));
            [
                (format!("{folder}/app.yaml"), objects_app("default", &name)),
                (format!("{folder}/objects/one.yaml"), config_map("default", &name, "one")),
            ]
        })
        .collect();
    let files: Vec<(&str, &str)> =
        manifests.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let scene = NotificationFixture::with_routes(
        &["p1"],
        &[("all", "feishu", FAILURES), ("program", "generic", FAILURES)],
        &files,
    )
    .await;
    let before = scene.received_events().len();
    // Names that no server accepts.
    let wrong: Vec<(String, String)> = (0..MANY)
        .map(|number| {
            let text = config_map("default", "NOT A NAME", "two");
            (format!("apps/a{number:04}/objects/one.yaml"), text)
        })
        .collect();
    let changes: Vec<(&str, Option<&str>)> =
        wrong.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    scene.push("wrong", &changes).await;
    scene.until_received("✗ 40 apps: failed in prod").await;
    scene.sleep_seconds(120).await;
    let mut told = scene.received_events()[before..].to_vec();
    told.sort();
    assert_eq!(told, ["failed rollout/wrong/prod", "✗ 40 apps: failed in prod"]);
}

/// The overview of a controller with a thousand apps.
#[tokio::test(start_paused = true)]
async fn thousand_apps_that_fail_are_one_message() {
    let routes = [("all", "feishu", ""), ("slack", "slack", ""), ("program", "generic", "")];
    let mut scene = NotificationFixture::with_routes(&["p1"], &routes, &[(WEB, &web("v1"))]).await;
    scene.sleep_seconds(60).await;
    scene.kill().await;
    std::fs::remove_dir_all(scene.state_file()).expect("a folder");
    let before = scene.received_events().len();
    let mut overview = (*scene.overview()).clone();
    let one = overview.targets[0].clone();
    let many = (0..1000).map(|number| TargetReport {
        app: AppId::new("shop", &format!("an-app-with-a-long-name-{number:04}")),
        phase: TargetPhase::Degraded,
        detail: "CrashLoopBackOff ".repeat(100),
        ..one.clone()
    });
    overview.targets = many.collect();
    let (_alive, receiver) = watch::channel(Arc::new(overview));
    scene.start_notifier_with(receiver);
    scene.until("all", |told| told.len() == before + 3).await;
    scene.sleep_seconds(600).await;
    let mut told = scene.received_events().split_off(before);
    told.sort();
    let title = "✗ 1000 apps: failed in prod";
    assert_eq!(told, ["failed rollout/Begin/prod", title, title]);
}

/// The service returns after an hour with many changes.
async fn hour_of_service_fault(fault: ChatFault) {
    let scene = NotificationFixture::two_rings().await;
    scene.sleep_seconds(60).await;
    let before = scene.received_events();
    scene.chat.set_fault(fault);
    for version in ["v2", "v3", "v4"] {
        scene.release(version).await;
        scene.sleep_seconds(600).await;
    }
    scene.push("bad", &[(WEB, Some(&web("broken-1")))]).await;
    scene.sleep_seconds(1800).await;
    assert_eq!(scene.received_events(), before);
    // There is no queue: one entry for each thread.
    assert!(scene.thread_count("all") <= 10, "{:#}", scene.route_state("all"));
    scene.chat.set_fault(ChatFault::None);
    scene.until_received("failed rollout/bad/test").await;
    scene.sleep_seconds(600).await;
    assert_eq!(scene.thread_summaries(), ["rollout/bad/prod: started", "rollout/bad/test: failed"]);
}

#[tokio::test(start_paused = true)]
async fn last_state_arrives_after_an_hour_of_silence() {
    hour_of_service_fault(ChatFault::NoAnswer).await;
}

#[tokio::test(start_paused = true)]
async fn last_state_arrives_after_an_hour_of_errors() {
    hour_of_service_fault(ChatFault::ServerError).await;
}

/// Older than the reported commits: a restart keeps what people wait for.
#[tokio::test(start_paused = true)]
async fn an_old_failure_recovers_after_a_restart() {
    let pay = |version: usize| component("pay", &format!("registry.example.com/pay:v{version}"));
    let files = [(WEB, &*web("v1")), ("apps/pay/app.yaml", &*pay(0))];
    let mut scene = NotificationFixture::with_routes(&["p1"], &[("all", "generic", "")], &files).await;
    scene.set_pod_scenario("p1", "rules: [{image: 'registry.example.com/web:v2', fail: crash-loop}]");
    scene.push("bad", &[(WEB, Some(&web("v2")))]).await;
    scene.until_received("failed rollout/bad/prod").await;
    for version in 1..25 {
        scene.push(&format!("pay {version}"), &[("apps/pay/app.yaml", Some(&pay(version)))]).await;
    }
    scene.until_received("done rollout/pay 24/prod").await;
    scene.kill().await;
    scene.start_notifier();
    scene.sleep_seconds(300).await;
    scene.set_pod_scenario("p1", "rules: []");
    scene.until_received("done rollout/bad/prod").await;
    scene.sleep_seconds(300).await;
    let of_web: Vec<String> =
        scene.received_events().into_iter().filter(|it| !it.contains("/pay ")).collect();
    assert_eq!(of_web[1..], ["failed rollout/bad/prod", "done rollout/bad/prod"]);
}
