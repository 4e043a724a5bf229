//! Messages about commits in rings.

use std::sync::Arc;

use tokio::sync::watch;
use tutti::model::AppId;
use tutti::report::{TargetPhase, TargetReport};

use super::scene::{Scene, WEB, web};
use crate::support::chat::Fault;
use crate::support::manifests::{component, config_map, objects};

#[tokio::test(start_paused = true)]
async fn each_rollout_phase_is_sent_once_per_ring() {
    let scene = Scene::rings().await;
    scene.release("v2").await;
    scene.until_told("done rollout/v2/prod").await;
    scene.quiet(600).await;
    let expected = [
        "rollout/Begin/prod: started done",
        "rollout/Begin/test: started done",
        "rollout/v2/prod: started done",
        "rollout/v2/test: started done",
    ];
    let threads: Vec<String> = scene
        .threads()
        .into_iter()
        .map(|(thread, phases)| format!("{thread}: {}", phases.join(" ")))
        .collect();
    assert_eq!(threads, expected);
    // Test is done before prod.
    let told = scene.told();
    let place = |text: &str| told.iter().position(|it| it == text);
    assert!(place("done rollout/v2/test") < place("done rollout/v2/prod"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn failed_commit_is_reverted_where_it_failed() {
    let scene = Scene::rings().await;
    let bad = scene.push("bad", &[(WEB, Some(&web("broken-1")))]).await;
    scene.until_told("failed rollout/bad/test").await;
    scene.quiet(300).await;
    scene.revert(&bad, &[(WEB, Some(&web("v1")))]).await;
    scene.until_told("reverted rollout/bad/test").await;
    scene.quiet(300).await;
    let story = scene.story();
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
    let scene = Scene::rings().await;
    scene.quiet(60).await;
    let before = scene.told();
    // A short failure sends nothing.
    scene.fare("p1", "rules: [{kind: Deployment, name: web, fail: crash-loop}]");
    scene.quiet(40).await;
    scene.fare("p1", "rules: []");
    scene.quiet(300).await;
    assert_eq!(scene.told(), before);
    scene.fare("p1", "rules: [{kind: Deployment, name: web, fail: crash-loop}]");
    scene.quiet(50).await;
    assert_eq!(scene.told(), before);
    scene.until_told("degraded rollout/Begin/prod").await;
    scene.quiet(600).await;
    scene.fare("p1", "rules: []");
    scene.until_told("recovered rollout/Begin/prod").await;
    scene.quiet(600).await;
    assert_eq!(scene.told()[before.len()..], ["degraded rollout/Begin/prod", "recovered rollout/Begin/prod"]);
    let last = scene.chat.received().pop().expect("a message");
    assert_eq!(last.body["data"]["what"], "✓ default/web v1: recovered in prod");
}

/// Another commit takes over a degraded app: it is reported as recovered, with the new commit's name.
#[tokio::test(start_paused = true)]
async fn degraded_app_that_another_commit_changes_has_recovered() {
    let scene = Scene::rings().await;
    scene.fare("p1", "rules: [{image: 'registry.example.com/web:v1', fail: crash-loop}]");
    scene.until_told("degraded rollout/Begin/prod").await;
    scene.release("v2").await;
    scene.until_told("recovered rollout/Begin/prod").await;
    scene.quiet(600).await;
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
                (format!("{folder}/app.yaml"), objects("default", &name)),
                (format!("{folder}/objects/one.yaml"), config_map("default", &name, "one")),
            ]
        })
        .collect();
    let files: Vec<(&str, &str)> =
        manifests.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let scene =
        Scene::with(&["p1"], &[("all", "feishu", FAILURES), ("program", "generic", FAILURES)], &files).await;
    let before = scene.told().len();
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
    scene.until_told("✗ 40 apps: failed in prod").await;
    scene.quiet(120).await;
    let mut told = scene.told()[before..].to_vec();
    told.sort();
    assert_eq!(told, ["failed rollout/wrong/prod", "✗ 40 apps: failed in prod"]);
}

/// The overview of a controller with a thousand apps.
#[tokio::test(start_paused = true)]
async fn thousand_apps_that_fail_are_one_message() {
    let routes = [("all", "feishu", ""), ("slack", "slack", ""), ("program", "generic", "")];
    let mut scene = Scene::with(&["p1"], &routes, &[(WEB, &web("v1"))]).await;
    scene.quiet(60).await;
    scene.kill().await;
    std::fs::remove_dir_all(scene.memory()).expect("a folder");
    let before = scene.told().len();
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
    scene.tell_of(receiver);
    scene.until("all", |told| told.len() == before + 3).await;
    scene.quiet(600).await;
    let mut told = scene.told().split_off(before);
    told.sort();
    let title = "✗ 1000 apps: failed in prod";
    assert_eq!(told, ["failed rollout/Begin/prod", title, title]);
}

/// The service returns after an hour with many changes.
async fn hour_without(fault: Fault) {
    let scene = Scene::rings().await;
    scene.quiet(60).await;
    let before = scene.told();
    scene.chat.set_fault(fault);
    for version in ["v2", "v3", "v4"] {
        scene.release(version).await;
        scene.quiet(600).await;
    }
    scene.push("bad", &[(WEB, Some(&web("broken-1")))]).await;
    scene.quiet(1800).await;
    assert_eq!(scene.told(), before);
    // There is no queue: one entry for each thread.
    assert!(scene.entries("all") <= 10, "{:#}", scene.remembers("all"));
    scene.chat.set_fault(Fault::None);
    scene.until_told("failed rollout/bad/test").await;
    scene.quiet(600).await;
    assert_eq!(scene.story(), ["rollout/bad/prod: started", "rollout/bad/test: failed"]);
}

#[tokio::test(start_paused = true)]
async fn last_state_arrives_after_an_hour_of_silence() {
    hour_without(Fault::Hangs).await;
}

#[tokio::test(start_paused = true)]
async fn last_state_arrives_after_an_hour_of_errors() {
    hour_without(Fault::Unwell).await;
}

/// Older than the reported commits: a restart keeps what people wait for.
#[tokio::test(start_paused = true)]
async fn an_old_failure_recovers_after_a_restart() {
    let pay = |version: usize| component("pay", &format!("registry.example.com/pay:v{version}"));
    let files = [(WEB, &*web("v1")), ("apps/pay/app.yaml", &*pay(0))];
    let mut scene = Scene::with(&["p1"], &[("all", "generic", "")], &files).await;
    scene.fare("p1", "rules: [{image: 'registry.example.com/web:v2', fail: crash-loop}]");
    scene.push("bad", &[(WEB, Some(&web("v2")))]).await;
    scene.until_told("failed rollout/bad/prod").await;
    for version in 1..25 {
        scene.push(&format!("pay {version}"), &[("apps/pay/app.yaml", Some(&pay(version)))]).await;
    }
    scene.until_told("done rollout/pay 24/prod").await;
    scene.kill().await;
    scene.tell();
    scene.quiet(300).await;
    scene.fare("p1", "rules: []");
    scene.until_told("done rollout/bad/prod").await;
    scene.quiet(300).await;
    let of_web: Vec<String> = scene.told().into_iter().filter(|it| !it.contains("/pay ")).collect();
    assert_eq!(of_web[1..], ["failed rollout/bad/prod", "done rollout/bad/prod"]);
}
