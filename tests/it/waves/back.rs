//! Reverts of a version.

use super::scene::{PAY, Sets, WORD, a_while, component, fleet_r, fleet_s, unit};
use crate::support::live::text;

// Row 2.
#[tokio::test(start_paused = true)]
async fn revert_takes_back_only_what_changed() {
    let scene = fleet_s().await;
    scene.break_image("c1", "registry.example.com/pay:v4");
    scene.push_pay("v4", &Sets::at("v4").manifest()).await;
    scene
        .until("canary crashes", |now| {
            unit(now, "c1", "pay-c1-canary").is_some_and(|it| it.failure.is_some())
        })
        .await;
    assert_eq!(scene.groups().await, "v4 v3 v3 v3 v3 v3");
    scene.fleet.forget_requests();
    let back = scene.push_pay("Revert", &Sets::at("v3").manifest()).await;
    scene.converged(&back).await;
    assert_eq!(scene.groups().await, "v3 v3 v3 v3 v3 v3");
    a_while().await;
    let writes = scene.fleet.requests().into_iter().filter(|(_, record)| record.is_write());
    let written: Vec<String> = writes.map(|(cluster, record)| format!("{cluster} {}", record.name)).collect();
    assert_eq!(written, ["c1 pay-c1-canary"]);
    scene.ends_at_head();
}

// Row 3.
#[tokio::test(start_paused = true)]
async fn a_repeated_version_needs_another_approval() {
    let scene = fleet_r().await;
    for cluster in ["c2", "c3"] {
        scene.break_image(cluster, "registry.example.com/pay:v2");
    }
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until("prod is in trouble", |now| unit(now, "c2", "").is_some_and(|it| it.failure.is_some())).await;
    let third = scene.push_pay("Revert", &component("v1")).await;
    scene.converged(&third).await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    for cluster in ["c2", "c3"] {
        scene.break_image(cluster, "");
    }
    // Test completed it before, so it returns there at once; the existing approval belongs to the earlier rollout.
    scene.push_pay("Revert the revert", &component("v2")).await;
    scene.until_asked("prod").await;
    a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.push("No word", &[(WORD, None)]).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.ends_at_head();
}

// A unit that completed both versions switches between them without gates, but not to a third.
#[tokio::test(start_paused = true)]
async fn previous_version_comes_back_at_once_everywhere() {
    let scene = fleet_r().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    for version in ["v1", "v2", "v1"] {
        let revision = scene.push("Flip", &[(PAY, Some(&component(version)))]).await;
        scene.converged(&revision).await;
        assert_eq!(scene.versions().await, [version; 3]);
    }
    scene.ends_at_head();
}

// A process that starts with a change of an open wave knows the version before it.
#[tokio::test(start_paused = true)]
async fn a_restart_with_a_change_keeps_previous_versions() {
    let mut scene = fleet_r().await;
    let first = scene.head();
    for version in ["v2", "v3", "v4"] {
        scene.kill().await;
        scene.commit(version, &[(PAY, Some(&component(version)))]);
        scene.start().await;
        scene.until_asked("prod").await;
        assert_eq!(scene.versions().await, [version, "v1", "v1"]);
        let test = scene.deployment("c1", "pay").await;
        let previous = text(&test, "/metadata/annotations/tutti.dev~1previous");
        assert!(!previous.is_empty(), "{version}: {test:#}");
        if version == "v2" {
            assert!(previous.contains(&first.to_string()), "{previous}");
        }
    }
    scene.confirm("prod").await;
    scene.until_over().await;
    scene.ends_at_head();
}
