//! The order of the units of a commit, and what no wave holds.

use sandbox::Scenario;

use super::fixture::{
    APPROVAL, PodSetsManifest, RolloutFixture, approval, component, hold_reason, pod_set, pod_set_fixture,
    ring_fixture, rollout_report, sleep_a_while, unit_report,
};
use crate::support::oracle::OracleEvent;

/// The pods of a podSet crash on a cluster, with any image.
fn crash_pods(scene: &RolloutFixture, cluster: &str, name: &str) {
    let text = format!("rules: [{{kind: Deployment, name: '{name}', fail: crash-loop}}]");
    scene.cluster(cluster).set_scenario(Scenario::parse(&text).expect("a scenario"));
    scene.oracle.record_event(OracleEvent::Disturbed);
}

// Row 1.
#[tokio::test(start_paused = true)]
async fn groups_come_one_after_another_each_confirmed() {
    let scene = pod_set_fixture().await;
    scene.push_pay("v4", &PodSetsManifest::all_at("v4").manifest()).await;
    for (through, groups) in
        [("canary", "v4 v3 v3 v3 v3 v3"), ("blue", "v4 v3 v3 v4 v3 v3"), ("green", "v4 v4 v3 v4 v4 v3")]
    {
        scene.until_confirmation_requested(through).await;
        sleep_a_while().await;
        assert_eq!(scene.group_versions().await, groups, "before {through}");
        scene.confirm(through).await;
    }
    scene.until_over().await;
    assert_eq!(scene.group_versions().await, "v4 v4 v4 v4 v4 v4");
    scene.assert_ends_at_head();
}

// Row 4.
#[tokio::test(start_paused = true)]
async fn change_of_the_last_wave_asks_no_other() {
    let scene = pod_set_fixture().await;
    crash_pods(&scene, "c1", &pod_set("c1", "canary"));
    scene
        .until("canary crashes", |now| unit_report(now, "c1", "pay-c1-canary").is_some_and(|it| !it.is_done))
        .await;
    let sets = PodSetsManifest::all_at("v3").with("c2", "green", "v4", 4);
    scene.push_pay("green", &sets.manifest()).await;
    scene
        .until("green is done", |now| {
            unit_report(now, "c2", "pay-c2-green").is_some_and(|it| it.is_done && it.is_at_head)
        })
        .await;
    sleep_a_while().await;
    assert_eq!(scene.group_versions().await, "v3 v3 v3 v3 v3 v4");
    assert!(rollout_report(&scene.overview()).expect("a rollout").confirmation.is_none());
    scene.assert_no_violation();
}

// Row 5.
#[tokio::test(start_paused = true)]
async fn the_service_port_changes_with_the_last_unit() {
    let scene = pod_set_fixture().await;
    crash_pods(&scene, "c1", &pod_set("c1", "canary"));
    scene
        .until("canary crashes", |now| unit_report(now, "c1", "pay-c1-canary").is_some_and(|it| !it.is_done))
        .await;
    let port = |scene: &RolloutFixture, cluster: &str| {
        let cluster = scene.cluster(cluster).clone();
        async move {
            let service = crate::support::live_objects::get(&cluster, "Service", "default", "pay")
                .await
                .expect("it is there");
            service["spec"]["ports"][0]["port"].as_i64().expect("a port")
        }
    };
    scene.push("Port", &[("apps/pay/layer/values.yaml", Some("service: {port: 81}\n"))]).await;
    sleep_a_while().await;
    assert_eq!((port(&scene, "c1").await, port(&scene, "c2").await), (81, 81));
    assert!(rollout_report(&scene.overview()).expect("a rollout").confirmation.is_none());
    // With another version it changes together with green.
    crash_pods(&scene, "c1", "nobody");
    scene
        .push(
            "Both",
            &[
                (super::fixture::PAY, Some(&PodSetsManifest::all_at("v4").manifest())),
                ("apps/pay/layer/values.yaml", Some("service: {port: 82}\n")),
            ],
        )
        .await;
    for through in ["canary", "blue", "green"] {
        scene.until_confirmation_requested(through).await;
        assert_eq!((port(&scene, "c1").await, port(&scene, "c2").await), (81, 81), "before {through}");
        scene.confirm(through).await;
    }
    scene.until_over().await;
    assert_eq!((port(&scene, "c1").await, port(&scene, "c2").await), (82, 82));
    scene.assert_ends_at_head();
}

// Row 26.
#[tokio::test(start_paused = true)]
async fn confirmed_wave_waits_for_earlier_ones_to_recover() {
    let scene = pod_set_fixture().await;
    scene.push_pay("v4", &PodSetsManifest::all_at("v4").manifest()).await;
    scene.until_confirmation_requested("canary").await;
    crash_pods(&scene, "c2", &pod_set("c2", "canary"));
    scene.approve(&scene.digest(), "blue").await;
    scene
        .until("canary has it", |now| unit_report(now, "c2", "pay-c2-canary").is_some_and(|it| it.is_at_head))
        .await;
    sleep_a_while().await;
    assert_eq!(scene.group_versions().await, "v4 v3 v3 v4 v3 v3");
    let words = hold_reason(&scene.overview(), "c1", "pay-c1-blue");
    assert!(words.contains("pay-c2-canary on c2"), "{words}");
    crash_pods(&scene, "c2", "nobody");
    scene.until_confirmation_requested("green").await;
    assert_eq!(scene.group_versions().await, "v4 v4 v3 v4 v4 v3");
    scene.confirm("green").await;
    scene.until_over().await;
    scene.assert_ends_at_head();
}

// Rows 12 and 6, on rings: an Approval stays valid, replicas change at once.
#[tokio::test(start_paused = true)]
async fn change_without_content_starts_no_rollout() {
    let scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    let digest = scene.digest();
    // A comment in the manifest and in a layer.
    scene
        .push(
            "Comments",
            &[
                (super::fixture::PAY, Some(&format!("# Pays.\n{}", component("v2")))),
                ("apps/pay/layer/values.yaml", Some("# Nothing is changed.\nrevisionHistoryLimit: 10\n")),
            ],
        )
        .await;
    sleep_a_while().await;
    assert_eq!(scene.digest(), digest);
    scene.approve(&digest, "prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    // Replicas alone: at once, and the approval is unchanged.
    let more = super::fixture::component_with("v2", "replicas: 3");
    let revision = scene.push_pay("More", &more).await;
    scene.until_converged(&revision).await;
    assert_eq!(scene.digest(), digest);
    for cluster in ["c1", "c2", "c3"] {
        assert_eq!(scene.replicas(cluster, "pay").await, 3);
    }
    scene.assert_ends_at_head();
}

// An Approval names one version: for another one it has no effect, and is reported.
#[tokio::test(start_paused = true)]
async fn an_approval_for_another_version_opens_nothing() {
    let scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    let digest = scene.digest();
    scene.push_pay("v3", &component("v3")).await;
    scene.until("v3", |now| rollout_report(now).is_some_and(|it| it.digest.to_string() != digest)).await;
    scene.push("Late", &[(APPROVAL, Some(&approval("pay", &digest, "prod")))]).await;
    scene
        .until("it is said", |now| rollout_report(now).is_some_and(|it| !it.approvals_unused.is_empty()))
        .await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v3", "v1", "v1"]);
    scene.assert_no_violation();
}
