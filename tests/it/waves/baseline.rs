//! The content of a held unit after a restart, on a rebuilt cluster, and after a delete.

use std::time::Duration;

use tutti::report::{Overview, TargetPhase};

use super::fixture::{
    PAY, RINGS, RolloutFixture, TEST_PROD, component, component_with, hold_reason, ring_fixture, ring_waves,
    sleep_a_while, unit_report,
};
use crate::support::live_objects;

// Row 14.
#[tokio::test(start_paused = true)]
async fn rebuilt_cluster_gets_what_its_wave_runs() {
    let mut scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    scene.rebuild(&["c2"]).await;
    scene.until("c2 is well", |now| unit_report(now, "c2", "").is_some_and(|it| it.revision.is_some())).await;
    scene.until_confirmation_requested("prod").await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    assert!(live_objects::get(scene.cluster("c2"), "Service", "default", "pay").await.is_some());
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

// Row 14, if no other cluster of the wave remains: the version that test ran before.
#[tokio::test(start_paused = true)]
async fn rebuilt_wave_gets_what_an_earlier_one_ran() {
    let mut scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    scene.rebuild(&["c2", "c3"]).await;
    scene
        .until("c3 is there", |now| unit_report(now, "c3", "").is_some_and(|it| it.revision.is_some()))
        .await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.confirm("prod").await;
    scene.until_over().await;
    scene.assert_ends_at_head();
}

// Row 30.
#[tokio::test(start_paused = true)]
async fn empty_clusters_get_the_head_at_once() {
    let mut scene = ring_fixture().await;
    let second = scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    scene.rebuild(&["c1", "c2", "c3"]).await;
    scene.until_converged(&second).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

/// It renders a Deployment alone.
fn deployment_only_component(version: &str) -> String {
    component(version).replace("runType: server", "runType: worker").replace("  port: 8080\n", "")
}

/// R with an app of a Deployment alone.
async fn deployment_only_fixture() -> RolloutFixture {
    RolloutFixture::new_started(
        &["c1", "c2", "c3"],
        &[(RINGS, TEST_PROD), (PAY, &deployment_only_component("v1"))],
        ring_waves("default/pay"),
    )
    .await
}

// Row 15.
#[tokio::test(start_paused = true)]
async fn a_held_unit_gets_its_sole_object_back() {
    let scene = deployment_only_fixture().await;
    scene.push_pay("v2", &deployment_only_component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    for cluster in ["c2", "c3"] {
        live_objects::delete(scene.cluster(cluster), "Deployment", "pay").await;
    }
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.confirm("prod").await;
    scene.until_over().await;
    scene.assert_ends_at_head();
}

// Row 15, with a kill after it.
#[tokio::test(start_paused = true)]
async fn sole_object_is_made_again_after_a_kill() {
    for gone in [&["c2"][..], &["c2", "c3"]] {
        let mut scene = deployment_only_fixture().await;
        scene.push_pay("v2", &deployment_only_component("v2")).await;
        scene.until_confirmation_requested("prod").await;
        scene.kill().await;
        for cluster in gone {
            live_objects::delete(scene.cluster(cluster), "Deployment", "pay").await;
        }
        scene.restart().await;
        scene.until_confirmation_requested("prod").await;
        sleep_a_while().await;
        assert_eq!(scene.versions().await, ["v2", "v1", "v1"], "{gone:?}");
        scene.confirm("prod").await;
        scene.until_over().await;
        scene.assert_ends_at_head();
    }
}

// The Service is equal in all versions, so it does not identify the version.
#[tokio::test(start_paused = true)]
async fn a_workload_deleted_during_pause_is_recreated() {
    for is_restarted in [false, true] {
        let mut scene = ring_fixture().await;
        scene.push_pay("v2", &component("v2")).await;
        scene.confirm("prod").await;
        scene.until_over().await;
        let paused = scene.push_pay("paused", &component_with("v2", "paused: true")).await;
        let is_read = |now: &Overview| now.revision.as_ref() == Some(&paused);
        scene.until("the pause is read", is_read).await;
        live_objects::delete(scene.cluster("c2"), "Deployment", "pay").await;
        sleep_a_while().await;
        assert!(live_objects::get(scene.cluster("c2"), "Deployment", "default", "pay").await.is_none());
        if is_restarted {
            scene.restart().await;
            scene.until("the pause is read", is_read).await;
        }
        scene.push_pay("v3", &component("v3")).await;
        scene.until_confirmation_requested("prod").await;
        sleep_a_while().await;
        assert_eq!(scene.versions().await, ["v3", "v2", "v2"], "{is_restarted}");
        scene.confirm("prod").await;
        scene.until_over().await;
        scene.assert_ends_at_head();
    }
}

// The head lacks an existing object, which still identifies the version of the unit.
#[tokio::test(start_paused = true)]
async fn a_new_workload_kind_rolls_out_by_waves() {
    let mut scene = deployment_only_fixture().await;
    scene.kill().await;
    let other =
        deployment_only_component("v2").replace("workloadType: Deployment", "workloadType: StatefulSet");
    assert_ne!(other, deployment_only_component("v2"));
    scene.commit("Another kind", &[(PAY, Some(&other))]);
    scene.start().await;
    scene.until_confirmation_requested("prod").await;
    sleep_a_while().await;
    for cluster in ["c2", "c3"] {
        assert!(live_objects::get(scene.cluster(cluster), "StatefulSet", "default", "pay").await.is_none());
        assert!(live_objects::get(scene.cluster(cluster), "Deployment", "default", "pay").await.is_some());
    }
    scene.confirm("prod").await;
    scene.until_over().await;
    scene.assert_ends_at_head();
}

// A revert returns to the version that ran, not further.
#[tokio::test(start_paused = true)]
async fn a_returning_cluster_keeps_its_previous_version() {
    let scene = ring_fixture().await;
    let v2 = scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    scene.set_down("c2", true);
    scene.push_pay("v3", &component("v3")).await;
    scene.confirm("prod").await;
    scene.until("c3 has it", |now| unit_report(now, "c3", "").is_some_and(|it| it.is_done)).await;
    scene.set_down("c2", false);
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v3", "v3", "v3"]);
    let deployment = scene.deployment("c2", "pay").await;
    let previous = deployment["metadata"]["annotations"]["tutti.dev/previous"].as_str().unwrap_or_default();
    assert!(previous.starts_with(v2.as_str()), "{previous} is not {v2}");
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn refused_creates_are_tried_ever_more_seldom() {
    let there = component("v1").replace("name: pay", "name: pay, namespace: nowhere");
    let files = [(RINGS, TEST_PROD), (PAY, &*there)];
    let mut scene = RolloutFixture::not_started(&["c1", "c2", "c3"], &files, ring_waves("nowhere/pay"));
    scene.start().await;
    tokio::time::sleep(Duration::from_secs(1_200)).await;
    let writes = scene.fleet.requests().iter().filter(|(_, request)| request.verb == "apply").count();
    assert!(writes > 0 && writes < 60, "{writes} writes");
}

// Row 13.
#[tokio::test(start_paused = true)]
async fn restart_beside_an_offline_cluster_goes_on() {
    for is_restarted in [false, true] {
        let rings = TEST_PROD.replace("[c2, c3]}", "[c2, c3]}, maxConcurrency: 1");
        let mut waves = ring_waves("default/pay");
        waves.gates[1].max_concurrent = Some(1);
        let files = [(RINGS, &*rings), (PAY, &*component("v1"))];
        let mut scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, waves).await;
        // The pods of c2 start slowly.
        set_pod_start(&scene, "c2", "90s");
        scene.push_pay("v2", &component("v2")).await;
        scene.confirm("prod").await;
        scene.until("c2 changes", |now| unit_report(now, "c2", "").is_some_and(|it| it.is_at_head)).await;
        scene.set_down("c1", true);
        if is_restarted {
            scene.restart().await;
        }
        scene
            .until("c1 is offline", |now| {
                now.targets
                    .iter()
                    .any(|it| it.cluster.as_str() == "c1" && it.phase == TargetPhase::Unreachable)
            })
            .await;
        assert_eq!(scene.versions_of(&["c2", "c3"]).await, ["v2", "v1"]);
        scene.until("c3 has it", |now| unit_report(now, "c3", "").is_some_and(|it| it.is_done)).await;
        assert_eq!(scene.versions_of(&["c2", "c3"]).await, ["v2", "v2"]);
        scene.set_down("c1", false);
        scene.until_over().await;
        scene.assert_ends_at_head();
    }
}

/// Pods are ready this long after their start.
fn set_pod_start(scene: &RolloutFixture, cluster: &str, time: &str) {
    let text = format!("rules: [{{image: 'registry.example.com/pay:*', ready-after: {time}}}]");
    scene.cluster(cluster).set_scenario(sandbox::Scenario::parse(&text).expect("a scenario"));
}

/// R with prod held at a commit that is unreadable.
async fn rewritten_history_fixture() -> RolloutFixture {
    let mut scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    scene.kill().await;
    scene.rewrite_history(&[(PAY, &component("v3"))]);
    scene.restart().await;
    scene.until("c2 is frozen", |now| hold_reason(now, "c2", "").starts_with("frozen")).await;
    scene
}

// Running objects stay, nothing is repaired or deleted; an approval opens the wave.
#[tokio::test(start_paused = true)]
async fn rewritten_history_leaves_held_units_alone() {
    let scene = rewritten_history_fixture().await;
    live_objects::delete(scene.cluster("c2"), "Service", "pay").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scene.versions().await, ["v3", "v1", "v1"]);
    assert!(live_objects::get(scene.cluster("c2"), "Service", "default", "pay").await.is_none());
    scene.approve(&scene.digest(), "prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v3", "v3", "v3"]);
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn frozen_unit_still_asks_for_its_gate() {
    let scene = rewritten_history_fixture().await;
    scene.confirm("prod").await;
    scene.until_over().await;
    scene.assert_ends_at_head();
}
