//! A commit renders differently from when it was applied. Row 16.
//!
//! A template depends on the kinds of a cluster, which change while the process is down: the same commit then renders differently,
//! as it does when a newer tutti ships another template.

use sandbox::Scenario;
use tutti::report::TargetPhase;

use super::scene::{PAY, RINGS, Scene, TEST_PROD, a_while, component_with, held, pay, rings_of, unit};
use crate::support::live;
use crate::support::manifests;

const TEMPLATE: &str = "apps/pay/layer/api.yaml.j2";
const API: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: pay-api}
data: {api: '{{ \"new\" if cluster.capabilities is has(\"shop.example.com/v1\") else \"old\" }}'}
";

fn reverting(version: &str) -> String {
    component_with(version, "updateStrategy: {onFailure: revert}")
}

#[tokio::test(start_paused = true)]
async fn revert_to_what_renders_otherwise_now_fails_loudly() {
    let mut waves = rings_of("default/pay");
    waves.reverts = true;
    let files = [(RINGS, TEST_PROD), (PAY, &*reverting("v1")), (TEMPLATE, API)];
    let mut scene = Scene::begin(&["c1", "c2", "c3"], &files, waves).await;
    scene.push_pay("v2", &reverting("v2")).await;
    scene.until_asked("prod").await;
    scene.kill().await;
    let definition = manifests::definition("shop.example.com", "v1", "Till");
    for cluster in ["c1", "c2"] {
        live::apply_as(scene.cluster(cluster), "kubectl", &definition).await;
    }
    scene.renders_as(
        TEMPLATE,
        &API.replace("cluster.capabilities is has(\"shop.example.com/v1\")", "cluster.name != 'c3'"),
    );
    let crash = "rules: [{image: 'registry.example.com/pay:v2', fail: crash-loop}]";
    scene.cluster("c1").set_scenario(Scenario::parse(crash).expect("a scenario"));
    scene.start().await;
    scene.until("the revert fails", |now| held(now, "c1", "").starts_with("RevertFailed")).await;
    a_while().await;
    // Test stays at v2, and prod at its present version.
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    let map = live::get(scene.cluster("c2"), "ConfigMap", "default", "pay-api").await.expect("it is there");
    assert_eq!(live::text(&map, "/data/api"), "old");
    assert_ne!(pay(&scene.now(), "c1").phase, TargetPhase::Running);
    assert!(unit(&scene.now(), "c2", "").is_some_and(|it| it.hold.is_some()));
    scene.holds();
}
