//! Replicas rise at once and fall at the end.

use super::fixture::{
    PAY, PodSetsManifest, RolloutFixture, component_with, group_waves, pod_set, pod_set_fixture,
    ring_fixture, sleep_a_while,
};
use crate::support::live_objects;

const VALUES: &str = "apps/pay/layer/values.yaml";

// Row 6.
#[tokio::test(start_paused = true)]
async fn number_rises_at_once_in_a_held_unit() {
    let scene = pod_set_fixture().await;
    let sets = PodSetsManifest::all_at("v4").with("c1", "green", "v4", 8).with("c2", "green", "v4", 8);
    scene.push_pay("v4 and more", &sets.manifest()).await;
    scene.until_confirmation_requested("canary").await;
    sleep_a_while().await;
    assert_eq!(scene.group_versions().await, "v4 v3 v3 v3 v3 v3");
    for cluster in ["c1", "c2"] {
        assert_eq!(scene.replicas(cluster, &pod_set(cluster, "green")).await, 8, "{cluster}");
    }
    for through in ["canary", "blue", "green"] {
        scene.confirm(through).await;
    }
    scene.until_over().await;
    scene.assert_ends_at_head();
}

// Row 7.
#[tokio::test(start_paused = true)]
async fn pods_of_blue_stay_until_green_has_them() {
    let begin = PodSetsManifest::all_at("v3").with("c1", "blue", "v3", 10).with("c2", "blue", "v3", 10);
    let begin = begin.without("c1", "green").without("c2", "green");
    let files = [(PAY, &*begin.manifest())];
    let scene = RolloutFixture::new_started(&["c1", "c2"], &files, group_waves("default/pay")).await;
    let sets = ["c1", "c2"].into_iter().fold(PodSetsManifest::all_at("v4"), |sets, cluster| {
        sets.with(cluster, "blue", "v4", 0).with(cluster, "green", "v4", 10)
    });
    scene.push_pay("From blue to green", &sets.manifest()).await;
    for through in ["canary", "blue", "green"] {
        scene.until_confirmation_requested(through).await;
        sleep_a_while().await;
        for cluster in ["c1", "c2"] {
            assert_eq!(scene.replicas(cluster, &pod_set(cluster, "blue")).await, 10, "before {through}");
        }
        scene.confirm(through).await;
    }
    scene.until_over().await;
    sleep_a_while().await;
    for cluster in ["c1", "c2"] {
        assert_eq!(scene.replicas(cluster, &pod_set(cluster, "green")).await, 10);
        assert_eq!(scene.replicas(cluster, &pod_set(cluster, "blue")).await, 0);
    }
    assert_eq!(scene.group_versions().await, "v4 v4 v4 v4 v4 v4");
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn replicas_reduced_during_pause_wait_for_the_rollout() {
    let scene = ring_fixture().await;
    let revision = scene.push_pay("Three", &component_with("v1", "replicas: 3")).await;
    scene.until_converged(&revision).await;
    scene.push_pay("Pause", &component_with("v1", "replicas: 3\n  paused: true")).await;
    sleep_a_while().await;
    scene.push_pay("One", &component_with("v1", "replicas: 1\n  paused: true")).await;
    sleep_a_while().await;
    scene.push_pay("v2, and on", &component_with("v2", "replicas: 1")).await;
    scene.until_confirmation_requested("prod").await;
    sleep_a_while().await;
    for cluster in ["c1", "c2", "c3"] {
        assert_eq!(scene.replicas(cluster, "pay").await, 3, "{cluster}");
    }
    scene.confirm("prod").await;
    scene.until_over().await;
    sleep_a_while().await;
    for cluster in ["c1", "c2", "c3"] {
        assert_eq!(scene.replicas(cluster, "pay").await, 1, "{cluster}");
    }
    scene.assert_ends_at_head();
}

// Row 8.
#[tokio::test(start_paused = true)]
async fn a_held_unit_keeps_its_replicas_beside_autoscalers() {
    let scene = ring_fixture().await;
    let three = component_with("v1", "replicas: 3");
    let revision = scene.push_pay("Three", &three).await;
    scene.until_converged(&revision).await;
    let both =
        [(PAY, Some(&*component_with("v2", "replicas: 3"))), (VALUES, Some("autoscale: {maxReplicas: 8}\n"))];
    scene.push("v2, with an autoscaler", &both).await;
    scene.until_confirmation_requested("prod").await;
    sleep_a_while().await;
    for cluster in ["c2", "c3"] {
        assert_eq!(scene.replicas(cluster, "pay").await, 3, "{cluster}");
        assert_eq!(
            live_objects::names(scene.cluster(cluster), "HorizontalPodAutoscaler").await,
            Vec::<String>::new()
        );
    }
    assert_eq!(live_objects::names(scene.cluster("c1"), "HorizontalPodAutoscaler").await, ["pay"]);
    // Somebody scales the held unit: it is repaired, as without rollouts.
    live_objects::scale_as(scene.cluster("c2"), "kubectl", "pay", 1).await;
    sleep_a_while().await;
    assert_eq!(scene.replicas("c2", "pay").await, 3);
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.replicas("c2", "pay").await, 3);
    assert_eq!(live_objects::names(scene.cluster("c2"), "HorizontalPodAutoscaler").await, ["pay"]);
    scene.assert_ends_at_head();
}
