//! Waves that open, wait and revert.

use std::time::Duration;

use serde_json::json;
use tutti::report::TargetPhase;

use super::fixture::{
    self, APPROVAL, PAY, RINGS, TEST_PROD, component, component_with, hold_reason, pay_target, ring_fixture,
    sleep_a_while,
};
use crate::support::live_objects;

#[tokio::test(start_paused = true)]
async fn rings_are_waves_and_wait_for_confirmation() {
    let scene = ring_fixture().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    assert!(pay_target(&scene.overview(), "c2").detail.contains("waits for confirmation"));
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    // The next version needs another approval.
    scene.push_pay("v3", &component("v3")).await;
    scene.until_confirmation_requested("prod").await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v3", "v2", "v2"]);
    scene.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn process_that_restarts_goes_on_where_it_was() {
    let mut scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    scene.kill().await;
    // Held units are repaired at their version.
    live_objects::delete(scene.cluster("c2"), "Deployment", "pay").await;
    scene.start().await;
    scene.until_confirmation_requested("prod").await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn held_unit_is_repaired_and_scaled() {
    let scene = ring_fixture().await;
    scene.push_pay("v2", &component_with("v2", "replicas: 3")).await;
    scene.until_confirmation_requested("prod").await;
    live_objects::delete(scene.cluster("c2"), "Deployment", "pay").await;
    let evil = json!({"spec": {"template": {"spec": {"containers": [{"name": "pay", "image": "evil:9"}]}}}});
    live_objects::edit_as(scene.cluster("c3"), "kubectl-edit", ("Deployment", "pay"), &evil).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    for cluster in ["c1", "c2", "c3"] {
        assert_eq!(scene.replicas(cluster, "pay").await, 3, "{cluster}");
    }
    // Reductions of replicas wait for the end.
    scene.push_pay("Smaller", &component_with("v2", "replicas: 2")).await;
    sleep_a_while().await;
    assert_eq!((scene.replicas("c1", "pay").await, scene.replicas("c2", "pay").await), (3, 3));
    scene.confirm("prod").await;
    scene.until_over().await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    assert_eq!((scene.replicas("c1", "pay").await, scene.replicas("c2", "pay").await), (2, 2));
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn revert_goes_back_without_gates() {
    let scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    let back = scene.push("Revert", &[(PAY, Some(&component("v1"))), (APPROVAL, None)]).await;
    scene.until_converged(&back).await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    // Another version needs another approval.
    scene.push_pay("v3", &component("v3")).await;
    scene.until_confirmation_requested("prod").await;
    assert_eq!(scene.versions().await, ["v3", "v1", "v1"]);
    scene.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn broken_version_stops_in_the_first_wave() {
    let rings = TEST_PROD.replace(", confirm: true", "");
    let mut waves = fixture::ring_waves("default/pay");
    waves.gates[0].confirm = false;
    let files = [(RINGS, &*rings), (PAY, &*component("v1"))];
    let scene = fixture::RolloutFixture::new_started(&["c1", "c2", "c3"], &files, waves).await;
    scene.push_pay("Broken", &component("broken")).await;
    scene.until("test fails", |now| pay_target(now, "c1").phase == TargetPhase::Degraded).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["broken", "v1", "v1"]);
    let words = hold_reason(&scene.overview(), "c2", "");
    assert!(words.starts_with("waits for wave test, 0/1 done") || words.starts_with("stopped"), "{words}");
    let mended = scene.push_pay("Mend", &component("v2")).await;
    scene.until_converged(&mended).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn approval_outlives_repairs_and_other_numbers() {
    let scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    // Approved on a branch while test is scaled and repaired.
    let file = fixture::approval("pay", &scene.digest(), "prod");
    let pause = component_with("v2", "paused: true");
    scene.push("Confirmed, and paused", &[(APPROVAL, Some(&file)), (PAY, Some(&pause))]).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    let revision = scene.push_pay("More pods", &component_with("v2", "replicas: 3")).await;
    scene.until_converged(&revision).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn rollout_costs_one_request_for_each_change() {
    let mut waves = fixture::ring_waves("default/pay");
    waves.gates[0].confirm = false;
    let files = [(RINGS, &*TEST_PROD.replace(", confirm: true", "")), (PAY, &*component("v1"))];
    let scene = fixture::RolloutFixture::new_started(&["c1", "c2", "c3"], &files, waves).await;
    scene.fleet.clear_requests();
    let revision = scene.push_pay("v2", &component("v2")).await;
    scene.until_converged(&revision).await;
    assert_eq!(scene.fleet.request_counts(), ["3 apply deployments.apps"]);
    scene.fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(900)).await;
    assert_eq!(scene.fleet.request_counts(), Vec::<String>::new());
    scene.assert_ends_at_head();
}
