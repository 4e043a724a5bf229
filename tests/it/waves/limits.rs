//! How many units change at the same time, and what a failure stops.

use std::time::Duration;

use sandbox::Scenario;
use tutti::report::TargetPhase;

use super::fixture::{
    APPROVAL, PAY, RolloutFixture, component, hold_reason, pay_target, retry, ring_waves, rollout_report,
    sleep_a_while, unit_report,
};
use crate::support::oracle::ExpectedWaves;

/// No deadline of the Deployment itself.
const LONG_DEADLINE: (&str, &str) = ("apps/pay/layer/values.yaml", "progressDeadlineSeconds: 100000\n");

/// The Component with one wave of all clusters, with these lines in its strategy and its wave.
fn one_wave(version: &str, strategy: &str, wave: &str) -> String {
    format!(
        "{}  updateStrategy: {{{strategy}waves: [{{name: all, clusters: {{names: [c1, c2, c3]}}{wave}}}]}}\n",
        component(version)
    )
}

fn waves(most: usize) -> ExpectedWaves {
    let mut waves = ring_waves("default/pay");
    waves.wave_of = |_| 0;
    waves.gates[0].confirm = false;
    waves.gates[0].max_concurrent = Some(most);
    waves
}

fn set_pod_start(scene: &RolloutFixture, cluster: &str, time: &str) {
    let text = format!("rules: [{{image: 'registry.example.com/pay:v2', ready-after: {time}}}]");
    scene.cluster(cluster).set_scenario(Scenario::parse(&text).expect("a scenario"));
}

fn set_never_ready(scene: &RolloutFixture, cluster: &str, rules: &str) {
    scene.cluster(cluster).set_scenario(Scenario::parse(rules).expect("a scenario"));
}

// Row 18.
#[tokio::test(start_paused = true)]
async fn unit_that_is_never_well_fails_and_stops() {
    let manifest = |version: &str| one_wave(version, "", ", maxConcurrency: 1");
    let scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &[(PAY, &manifest("v1"))], waves(1)).await;
    set_pod_start(&scene, "c2", "100000s");
    scene.push_pay("v2", &manifest("v2")).await;
    scene.until("c2 has it", |now| unit_report(now, "c2", "").is_some_and(|it| it.is_at_head)).await;
    tokio::time::sleep(Duration::from_secs(590)).await;
    assert!(unit_report(&scene.overview(), "c2", "").is_some_and(|it| it.failure.is_none()));
    assert_eq!(scene.versions().await, ["v2", "v2", "v1"]);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let now = scene.overview();
    let failure = unit_report(&now, "c2", "").and_then(|it| it.failure.clone()).expect("it has failed");
    assert!(failure.contains("pay"), "{failure}");
    assert_eq!(pay_target(&now, "c2").phase, TargetPhase::Degraded);
    tokio::time::sleep(Duration::from_secs(300)).await;
    let words = hold_reason(&scene.overview(), "c3", "");
    assert!(words.starts_with("stopped, c2 failed: "), "{words}");
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v1"]);
    scene.assert_no_violation();
}

// Row 19.
#[tokio::test(start_paused = true)]
async fn quarter_of_three_is_one_at_a_time() {
    let manifest = |version: &str| one_wave(version, "", ", maxConcurrency: 25%");
    let scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &[(PAY, &manifest("v1"))], waves(1)).await;
    for cluster in ["c1", "c2", "c3"] {
        set_pod_start(&scene, cluster, "60s");
    }
    scene.push_pay("v2", &manifest("v2")).await;
    for (cluster, versions) in [("c1", ["v2", "v1", "v1"]), ("c2", ["v2", "v2", "v1"])] {
        scene.until("it changes", |now| unit_report(now, cluster, "").is_some_and(|it| it.is_at_head)).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(scene.versions().await, versions);
    }
    let words = hold_reason(&scene.overview(), "c3", "");
    assert!(words.contains("at a time"), "{words}");
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

// Row 22.
#[tokio::test(start_paused = true)]
async fn paused_time_counts_towards_no_deadline() {
    let manifest = |version: &str, paused: &str| one_wave(version, paused, ", maxConcurrency: 1");
    let scene = RolloutFixture::new_started(
        &["c1", "c2", "c3"],
        &[(PAY, &manifest("v1", "")), LONG_DEADLINE],
        waves(1),
    )
    .await;
    set_never_ready(&scene, "c1", "rules: [{image: 'registry.example.com/pay:v2', fail: readiness}]");
    scene.push_pay("v2", &manifest("v2", "")).await;
    scene.until("c1 has it", |now| unit_report(now, "c1", "").is_some_and(|it| it.is_at_head)).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    scene.push_pay("Pause", &manifest("v2", "paused: true, ")).await;
    scene.until("paused", |now| pay_target(now, "c1").phase == TargetPhase::Paused).await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(unit_report(&scene.overview(), "c1", "").is_some_and(|it| it.failure.is_none()));
    scene.push_pay("Go on", &manifest("v2", "")).await;
    scene.until("not paused", |now| pay_target(now, "c1").phase != TargetPhase::Paused).await;
    tokio::time::sleep(Duration::from_secs(250)).await;
    assert!(
        unit_report(&scene.overview(), "c1", "").is_some_and(|it| it.failure.is_none()),
        "it failed while it was paused"
    );
    set_never_ready(&scene, "c1", "");
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

fn reverting_component(version: &str) -> String {
    one_wave(version, "onFailure: revert, ", ", maxConcurrency: 1")
}

async fn reverting_fixture() -> RolloutFixture {
    let mut waves = waves(1);
    waves.reverts = true;
    RolloutFixture::new_started(&["c1", "c2", "c3"], &[(PAY, &reverting_component("v1"))], waves).await
}

// Row 23. A day of a paused clock takes seconds, as clusters are read; the rollout ended after 20 minutes.
#[tokio::test(start_paused = true)]
async fn a_later_drain_fails_no_rollout() {
    let scene = reverting_fixture().await;
    scene.push_pay("v2", &reverting_component("v2")).await;
    scene.until_over().await;
    tokio::time::sleep(Duration::from_secs(30_000)).await;
    scene.fleet.clear_requests();
    scene.break_image("c1", "registry.example.com/pay:v2");
    scene.until("c1 is unwell", |now| pay_target(now, "c1").phase != TargetPhase::Running).await;
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    let writes = scene.fleet.requests().into_iter().filter(|(_, record)| record.is_write()).count();
    assert_eq!(writes, 0);
    assert!(
        unit_report(&scene.overview(), "c1", "").is_some_and(|it| it.failure.is_none() && it.hold.is_none())
    );
    scene.break_image("c1", "");
    scene.until_over().await;
    scene.assert_ends_at_head();
}

// A failed version is reverted automatically, and starts again only after an approval.
#[tokio::test(start_paused = true)]
async fn a_failed_version_restarts_only_by_approval() {
    let mut scene = reverting_fixture().await;
    scene.break_image("c2", "registry.example.com/pay:v2");
    scene.push_pay("v2", &reverting_component("v2")).await;
    let is_back = |now: &tutti::report::Overview| {
        ["c1", "c2", "c3"].iter().all(|it| hold_reason(now, it, "").contains("failed and was reverted"))
    };
    scene.until("reverted", is_back).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    let digest = scene.digest();
    scene.break_image("c2", "");
    sleep_a_while().await;
    scene.restart().await;
    scene.until("still reverted", is_back).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    scene.push("Again", &[(APPROVAL, Some(&retry(&digest)))]).await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    assert!(rollout_report(&scene.overview()).is_some_and(|it| !it.is_open));
    scene.assert_ends_at_head();
}

// A policy denial is no failure: it holds the wave and reverts nothing, however long it lasts.
#[tokio::test(start_paused = true)]
async fn denied_unit_holds_wave_and_is_not_reverted() {
    const POLICY: &str = "apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {name: no-v2}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE, UPDATE]}]}
  validations:
    - expression: cluster.name != 'c2' || object.spec.template.spec.containers.all(c, !c.image.endsWith('v2'))
      message: not here
";
    let scene = reverting_fixture().await;
    scene.push("Rule", &[("policies/rule.yaml", Some(POLICY))]).await;
    scene.push_pay("v2", &reverting_component("v2")).await;
    let words = "Deployment default/pay: policy no-v2 denies it: not here";
    scene.until("c2 is denied", |now| pay_target(now, "c2").detail == words).await;
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    assert!(
        hold_reason(&scene.overview(), "c3", "").contains("maxConcurrency"),
        "{}",
        hold_reason(&scene.overview(), "c3", "")
    );
    assert!(unit_report(&scene.overview(), "c2", "").is_some_and(|it| it.failure.is_none()));
    scene.push("No rule", &[("policies/rule.yaml", None)]).await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}
