//! Windows: while one is shut, nothing new starts.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sandbox::Scenario;
use tutti::report::{Overview, TargetPhase};

use super::fixture::{
    PAY, RINGS, RolloutFixture, TEST_PROD, component, hold_reason, pay_target, retry, ring_waves,
    rollout_report, sleep_a_while,
};
use crate::support::live_objects;
use crate::support::oracle::ExpectedWaves;

const FREEZE: &str = "policies/freeze.yaml";
const OVERRIDE: &str = "approvals/override.yaml";
const CLUSTERS: [&str; 3] = ["c1", "c2", "c3"];

/// From yesterday until this many hours from now.
fn freeze(select: &str, hours: i64) -> String {
    let now = Timestamp::now();
    let at = |hours: i64| {
        let at = now.saturating_add(SignedDuration::from_hours(hours)).expect("a time");
        at.strftime("%Y-%m-%dT%H:%M").to_string()
    };
    format!(
        "\
apiVersion: tutti.dev/v1alpha1
kind: Window
metadata: {{name: freeze}}
spec:
  action: deny
  select: {{{select}}}
  from: {}
  to: {}
  timeZone: UTC
  reason: year end
  override: [release-managers]
",
        at(-24),
        at(hours)
    )
}

fn override_approval(window: &str, digest: &str) -> String {
    format!(
        "\
apiVersion: tutti.dev/v1alpha1
kind: Approval
metadata: {{name: override}}
spec: {{app: default/pay, action: override, window: {window}, digest: {digest}}}
"
    )
}

/// Ring test (c1), then prod (c2, c3), without confirmation.
async fn unconfirmed_rings_fixture() -> RolloutFixture {
    let rings = TEST_PROD.replace(", confirm: true", "");
    let mut waves = ring_waves("default/pay");
    waves.gates[0].confirm = false;
    RolloutFixture::new_started(&CLUSTERS, &[(RINGS, &rings), (PAY, &component("v1"))], waves).await
}

/// No rings: the app has one wave, and its objects do not name their commit.
async fn single_wave_fixture() -> RolloutFixture {
    let mut waves = ring_waves("default/pay");
    waves.wave_of = |_| 0;
    waves.gates[0].confirm = false;
    RolloutFixture::new_started(&CLUSTERS, &[(PAY, &component("v1"))], waves).await
}

async fn until_held(scene: &RolloutFixture, cluster: &str) {
    let is_held = |now: &Overview| hold_reason(now, cluster, "").starts_with("window freeze is shut until ");
    scene.until(&format!("{cluster} waits for the window"), is_held).await;
}

/// Commits a freeze.
async fn push_freeze(scene: &RolloutFixture, select: &str, hours: i64) {
    let revision = scene.push("Freeze", &[(FREEZE, Some(&freeze(select, hours)))]).await;
    scene.until("the freeze", |now| now.revision.as_ref() == Some(&revision) && now.is_rendered).await;
}

#[tokio::test(start_paused = true)]
async fn freeze_stops_second_wave_while_first_finishes() {
    let scene = unconfirmed_rings_fixture().await;
    let slow = "rules: [{image: 'registry.example.com/pay:v2', ready-after: 300s}]";
    scene.cluster("c1").set_scenario(Scenario::parse(slow).expect("a scenario"));
    scene.push_pay("v2", &component("v2")).await;
    let begins = |now: &Overview| {
        rollout_report(now).is_some_and(|it| it.units.iter().any(|it| it.is_at_head && !it.is_done))
    };
    scene.until("c1 begins", begins).await;
    push_freeze(&scene, "", 3).await;
    assert_eq!(pay_target(&scene.overview(), "c1").phase, TargetPhase::Progressing);
    until_held(&scene, "c2").await;
    let now = scene.overview();
    assert_eq!(pay_target(&now, "c1").phase, TargetPhase::Running);
    assert_eq!(pay_target(&now, "c2").phase, TargetPhase::Waiting);
    assert!(
        pay_target(&now, "c2").detail.ends_with("release-managers may override (year end)"),
        "{:?}",
        pay_target(&now, "c2")
    );
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    // Held units are repaired.
    live_objects::delete(scene.cluster("c2"), "Deployment", "pay").await;
    scene.until("it is put back", |now| pay_target(now, "c2").phase == TargetPhase::Waiting).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    // The window opens by time alone.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn freeze_of_one_ring_holds_that_ring() {
    let scene = unconfirmed_rings_fixture().await;
    push_freeze(&scene, "rings: [prod], apps: {names: [default/*]}", 3).await;
    scene.push_pay("v2", &component("v2")).await;
    until_held(&scene, "c3").await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    // Another ring is free to start.
    scene.push("Thaw", &[(FREEZE, None)]).await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn revert_passes_in_freeze() {
    let scene = unconfirmed_rings_fixture().await;
    push_freeze(&scene, "rings: [prod]", 3).await;
    scene.push_pay("v2", &component("v2")).await;
    until_held(&scene, "c2").await;
    push_freeze(&scene, "", 3).await;
    let revert = scene.push_pay("Revert", &component("v1")).await;
    scene.until_converged(&revert).await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    scene.assert_ends_at_head();
}

/// The version is older than the window: its objects do not name the version before.
#[tokio::test(start_paused = true)]
async fn version_from_before_the_freeze_is_reverted() {
    let mut scene = single_wave_fixture().await;
    let second = scene.push_pay("v2", &component("v2")).await;
    scene.until_converged(&second).await;
    push_freeze(&scene, "", 3).await;
    scene.restart().await;
    let third = scene.push_pay("v3", &component("v3")).await;
    until_held(&scene, "c1").await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    assert_eq!(scene.overview().revision.as_ref(), Some(&third));
    let revert = scene.push_pay("Revert", &component("v1")).await;
    scene.until_converged(&revert).await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    scene.until_over().await;
}

#[tokio::test(start_paused = true)]
async fn app_without_waves_is_held_too() {
    let scene = single_wave_fixture().await;
    push_freeze(&scene, "clusters: {names: [c2, c3]}", 3).await;
    scene.push_pay("v2", &component("v2")).await;
    until_held(&scene, "c2").await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.until_over().await;
}

#[tokio::test(start_paused = true)]
async fn override_is_a_commit_for_one_version() {
    let scene = unconfirmed_rings_fixture().await;
    push_freeze(&scene, "", 30).await;
    scene.push_pay("v2", &component("v2")).await;
    until_held(&scene, "c1").await;
    let digest = scene.digest();
    // Not for another window, and not by another action.
    for word in [override_approval("other", &digest), retry(&digest)] {
        scene.push("Try", &[(OVERRIDE, Some(&word))]).await;
        sleep_a_while().await;
        assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    }
    scene.push("Override", &[(OVERRIDE, Some(&override_approval("freeze", &digest)))]).await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    // The next version waits again.
    scene.push_pay("v3", &component("v3")).await;
    until_held(&scene, "c1").await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn process_that_restarts_holds_on() {
    let mut scene = unconfirmed_rings_fixture().await;
    push_freeze(&scene, "rings: [prod]", 5).await;
    scene.push_pay("v2", &component("v2")).await;
    until_held(&scene, "c2").await;
    scene.kill().await;
    scene.commit("v3", &[(PAY, Some(&component("v3")))]);
    scene.start().await;
    until_held(&scene, "c2").await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v3", "v1", "v1"]);
    scene.restart().await;
    until_held(&scene, "c3").await;
    tokio::time::sleep(Duration::from_secs(5 * 3600)).await;
    assert_eq!(scene.versions().await, ["v3", "v3", "v3"]);
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn first_installation_waits_for_the_window() {
    let rings = TEST_PROD.replace(", confirm: true", "");
    let mut waves: ExpectedWaves = ring_waves("default/pay");
    waves.gates[0].confirm = false;
    let files = [(RINGS, &*rings), (PAY, &component("v1")), (FREEZE, &freeze("", 3))];
    let mut scene = RolloutFixture::not_started(&CLUSTERS, &files, waves);
    scene.start().await;
    until_held(&scene, "c1").await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["-", "-", "-"]);
    tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    scene.assert_ends_at_head();
}

/// An unreadable freeze counts as a freeze.
#[tokio::test(start_paused = true)]
async fn window_with_mistake_holds_everything() {
    let scene = unconfirmed_rings_fixture().await;
    let broken = freeze("", 3).replace("action: deny", "action: dney");
    scene.push("Freeze", &[(FREEZE, Some(&broken))]).await;
    scene.push_pay("v2", &component("v2")).await;
    let is_held = |now: &Overview| hold_reason(now, "c1", "").starts_with("window freeze is shut");
    scene.until("c1 waits", is_held).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    let revert = scene.push("Mend", &[(FREEZE, None)]).await;
    scene.until_converged(&revert).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}
