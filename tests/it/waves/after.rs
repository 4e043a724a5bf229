//! `after`: an app that waits for another one, cluster by cluster. Row 27.

use tutti::report::{Overview, TargetPhase};

use super::fixture::{RolloutFixture, ring_waves, sleep_a_while};
use crate::support::fleet::target;
use crate::support::live_objects;
use crate::support::manifests;
use crate::support::oracle::ExpectedWaves;

const B: &str = "apps/b/app.yaml";
const PAY: &str = super::fixture::PAY;

/// One wave: only `after` holds it.
fn waves() -> ExpectedWaves {
    ExpectedWaves { wave_of: |_| 0, ..ring_waves("default/pay") }
}

fn app(name: &str, version: &str, more: &str) -> String {
    format!("{}{more}", manifests::component(name, &format!("registry.example.com/{name}:{version}")))
}

fn pay(version: &str) -> String {
    app("pay", version, "  updateStrategy: {after: [b]}\n")
}

async fn after_fixture(b: &str) -> RolloutFixture {
    RolloutFixture::new_started(&["c1", "c2"], &[(B, b), (PAY, &pay("v1"))], waves()).await
}

async fn until_waiting(scene: &RolloutFixture, words: &str) {
    let is_said = |now: &Overview| {
        let pay = target(now, "c2", "default/pay");
        pay.phase == TargetPhase::Waiting && pay.detail.starts_with("waits for app default/b: ")
    };
    let now = scene.until("pay waits", is_said).await;
    sleep_a_while().await;
    assert_eq!(scene.version("c2", "pay").await, "v1");
    let detail = target(&scene.overview(), "c2", "default/pay").detail.clone();
    assert!(detail.contains(words), "{detail}, before {}", target(&now, "c2", "default/pay").detail);
}

async fn until_both_at(scene: &RolloutFixture, version: &str) {
    let head = scene.head();
    scene.until_converged(&head).await;
    for cluster in ["c1", "c2"] {
        assert_eq!(scene.version(cluster, "pay").await, version, "{cluster}");
    }
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn follower_waits_for_a_held_app() {
    let waves = "  updateStrategy: {waves: [{name: one, clusters: {names: [c1]}, confirm: true}]}\n";
    let scene = after_fixture(&app("b", "v1", waves)).await;
    scene.push("v2", &[(B, Some(&app("b", "v2", waves))), (PAY, Some(&pay("v2")))]).await;
    until_waiting(&scene, "waits for confirmation").await;
    assert_eq!(scene.version("c1", "pay").await, "v2", "b is done there");
    let now = scene.overview();
    let b = now.rollouts.iter().find(|it| &*it.app.name == "b").expect("a rollout");
    let asked = b.confirmation.clone().expect("a person is asked");
    let word = super::fixture::approval("b", &asked.digest.to_string(), &asked.through);
    scene.push("Confirm", &[("approvals/b.yaml", Some(&word))]).await;
    until_both_at(&scene, "v2").await;
}

#[tokio::test(start_paused = true)]
async fn follower_waits_for_a_failed_app() {
    let scene = after_fixture(&app("b", "v1", "")).await;
    scene.push("v2", &[(B, Some(&app("b", "broken-2", ""))), (PAY, Some(&pay("v2")))]).await;
    until_waiting(&scene, "ImagePullBackOff").await;
    assert_eq!(scene.version("c1", "pay").await, "v1");
    scene.push("v3", &[(B, Some(&app("b", "v3", "")))]).await;
    until_both_at(&scene, "v2").await;
}

#[tokio::test(start_paused = true)]
async fn follower_waits_for_a_refused_app() {
    let scene = after_fixture(&app("b", "v1", "")).await;
    let map = manifests::config_map("default", "b-config", "of somebody else");
    for cluster in ["c1", "c2"] {
        live_objects::apply_as(scene.cluster(cluster), "kubectl", &map).await;
    }
    let values = "config: {level: info}\n";
    scene.push("v2", &[("apps/b/layer/values.yaml", Some(values)), (PAY, Some(&pay("v2")))]).await;
    until_waiting(&scene, "b-config").await;
    for cluster in ["c1", "c2"] {
        live_objects::delete(scene.cluster(cluster), "ConfigMap", "b-config").await;
    }
    until_both_at(&scene, "v2").await;
}

#[tokio::test(start_paused = true)]
async fn follower_waits_for_a_paused_app() {
    let scene = after_fixture(&app("b", "v1", "")).await;
    let paused = app("b", "v2", "  updateStrategy: {paused: true}\n");
    scene.push("v2", &[(B, Some(&paused)), (PAY, Some(&pay("v2")))]).await;
    until_waiting(&scene, "Paused").await;
    scene.push("Go on", &[(B, Some(&app("b", "v2", "")))]).await;
    until_both_at(&scene, "v2").await;
}

#[tokio::test(start_paused = true)]
async fn app_that_the_cluster_lacks_holds_nothing() {
    let only = "  placement: {clusters: {names: [c1]}}\n";
    let scene = after_fixture(&app("b", "v1", only)).await;
    scene.push("v2", &[(B, Some(&app("b", "broken-2", only))), (PAY, Some(&pay("v2")))]).await;
    sleep_a_while().await;
    assert_eq!(
        (scene.version("c1", "pay").await, scene.version("c2", "pay").await),
        ("v1".into(), "v2".into())
    );
    scene.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn app_that_git_lacks_is_a_warning() {
    let scene = after_fixture(&app("b", "v1", "")).await;
    scene.push("No b", &[(B, None), (PAY, Some(&pay("v2")))]).await;
    sleep_a_while().await;
    assert_eq!(scene.version("c2", "pay").await, "v2");
    let now = scene.overview();
    let warning = now
        .diagnostics
        .iter()
        .find(|it| it.message.contains("default/b under `after`, an app that does not exist"));
    assert!(warning.is_some_and(|it| !it.is_error()), "{:?}", now.diagnostics);
    scene.assert_no_violation();
}

// Also at the first installation, and in a new process.
#[tokio::test(start_paused = true)]
async fn first_installation_follows_too() {
    let broken = app("b", "broken-1", "");
    let mut scene = RolloutFixture::not_started(&["c1", "c2"], &[(B, &broken), (PAY, &pay("v1"))], waves());
    scene.start().await;
    let waiting =
        |now: &Overview| now.targets.iter().any(|it| it.detail.starts_with("waits for app default/b: "));
    scene.until("pay waits", waiting).await;
    sleep_a_while().await;
    assert_eq!(scene.version("c1", "pay").await, "-");
    scene.restart().await;
    scene.until("pay waits", waiting).await;
    sleep_a_while().await;
    assert_eq!(scene.version("c1", "pay").await, "-");
    scene.push("Mend", &[(B, Some(&app("b", "v1", "")))]).await;
    until_both_at(&scene, "v1").await;
}
