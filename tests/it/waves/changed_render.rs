//! A commit renders differently from when it was applied. Row 16.
//!
//! A template depends on the kinds of a cluster, which change while the process is down: the same commit then renders differently,
//! as it does when a newer tutti ships another template.

use sandbox::Scenario;
use tutti::report::TargetPhase;

use super::fixture::{
    PAY, RINGS, RolloutFixture, TEST_PROD, component_with, hold_reason, pay_target, ring_waves,
    sleep_a_while, unit_report,
};
use crate::support::live_objects;
use crate::support::manifests;

const TEMPLATE: &str = "apps/pay/layer/api.yaml.j2";
const API: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: pay-api}
data: {api: '{{ \"new\" if cluster.capabilities is has(\"shop.example.com/v1\") else \"old\" }}'}
";

fn reverting_component(version: &str) -> String {
    component_with(version, "updateStrategy: {onFailure: revert}")
}

#[tokio::test(start_paused = true)]
async fn revert_to_what_renders_otherwise_now_fails_loudly() {
    let mut waves = ring_waves("default/pay");
    waves.reverts = true;
    let files = [(RINGS, TEST_PROD), (PAY, &*reverting_component("v1")), (TEMPLATE, API)];
    let mut scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, waves).await;
    scene.push_pay("v2", &reverting_component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    scene.kill().await;
    let definition = manifests::definition("shop.example.com", "v1", "Till");
    for cluster in ["c1", "c2"] {
        live_objects::apply_as(scene.cluster(cluster), "kubectl", &definition).await;
    }
    scene.record_render(
        TEMPLATE,
        &API.replace("cluster.capabilities is has(\"shop.example.com/v1\")", "cluster.name != 'c3'"),
    );
    let crash = "rules: [{image: 'registry.example.com/pay:v2', fail: crash-loop}]";
    scene.cluster("c1").set_scenario(Scenario::parse(crash).expect("a scenario"));
    scene.start().await;
    scene.until("the revert fails", |now| hold_reason(now, "c1", "").starts_with("RevertFailed")).await;
    sleep_a_while().await;
    // Test stays at v2, and prod at its present version.
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    let map =
        live_objects::get(scene.cluster("c2"), "ConfigMap", "default", "pay-api").await.expect("it is there");
    assert_eq!(live_objects::required_text(&map, "/data/api"), "old");
    assert_ne!(pay_target(&scene.overview(), "c1").phase, TargetPhase::Running);
    assert!(unit_report(&scene.overview(), "c2", "").is_some_and(|it| it.hold.is_some()));
    scene.assert_no_violation();
}
