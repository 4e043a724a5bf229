//! Reverts of a version.

use super::fixture::{
    APPROVAL, PAY, PodSetsManifest, component, pod_set_fixture, ring_fixture, sleep_a_while, unit_report,
};
use crate::support::live_objects::required_text;

// Row 2.
#[tokio::test(start_paused = true)]
async fn revert_takes_back_only_what_changed() {
    let scene = pod_set_fixture().await;
    scene.break_image("c1", "registry.example.com/pay:v4");
    scene.push_pay("v4", &PodSetsManifest::all_at("v4").manifest()).await;
    scene
        .until("canary crashes", |now| {
            unit_report(now, "c1", "pay-c1-canary").is_some_and(|it| it.failure.is_some())
        })
        .await;
    assert_eq!(scene.group_versions().await, "v4 v3 v3 v3 v3 v3");
    scene.fleet.clear_requests();
    let back = scene.push_pay("Revert", &PodSetsManifest::all_at("v3").manifest()).await;
    scene.until_converged(&back).await;
    assert_eq!(scene.group_versions().await, "v3 v3 v3 v3 v3 v3");
    sleep_a_while().await;
    let writes = scene.fleet.requests().into_iter().filter(|(_, record)| record.is_write());
    let written: Vec<String> = writes.map(|(cluster, record)| format!("{cluster} {}", record.name)).collect();
    assert_eq!(written, ["c1 pay-c1-canary"]);
    scene.assert_ends_at_head();
}

// Row 3.
#[tokio::test(start_paused = true)]
async fn a_repeated_version_needs_another_approval() {
    let scene = ring_fixture().await;
    for cluster in ["c2", "c3"] {
        scene.break_image(cluster, "registry.example.com/pay:v2");
    }
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene
        .until("prod is in trouble", |now| unit_report(now, "c2", "").is_some_and(|it| it.failure.is_some()))
        .await;
    let third = scene.push_pay("Revert", &component("v1")).await;
    scene.until_converged(&third).await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    for cluster in ["c2", "c3"] {
        scene.break_image(cluster, "");
    }
    // Test completed it before, so it returns there at once; the existing approval belongs to the earlier rollout.
    scene.push_pay("Revert the revert", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.push("No word", &[(APPROVAL, None)]).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

// A unit that completed both versions switches between them without gates, but not to a third.
#[tokio::test(start_paused = true)]
async fn previous_version_comes_back_at_once_everywhere() {
    let scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    for version in ["v1", "v2", "v1"] {
        let revision = scene.push("Flip", &[(PAY, Some(&component(version)))]).await;
        scene.until_converged(&revision).await;
        assert_eq!(scene.versions().await, [version; 3]);
    }
    scene.assert_ends_at_head();
}

// A process that starts with a change of an open wave knows the version before it.
#[tokio::test(start_paused = true)]
async fn a_restart_with_a_change_keeps_previous_versions() {
    let mut scene = ring_fixture().await;
    let first = scene.head();
    for version in ["v2", "v3", "v4"] {
        scene.kill().await;
        scene.commit(version, &[(PAY, Some(&component(version)))]);
        scene.start().await;
        scene.until_confirmation_requested("prod").await;
        assert_eq!(scene.versions().await, [version, "v1", "v1"]);
        let test = scene.deployment("c1", "pay").await;
        let previous = required_text(&test, "/metadata/annotations/tutti.dev~1previous");
        assert!(!previous.is_empty(), "{version}: {test:#}");
        if version == "v2" {
            assert!(previous.contains(&first.to_string()), "{previous}");
        }
    }
    scene.confirm("prod").await;
    scene.until_over().await;
    scene.assert_ends_at_head();
}
