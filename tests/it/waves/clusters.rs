//! Clusters that connect one after another, change, or are in maintenance.

use std::time::Duration;

use super::fixture::{
    APPROVAL, PAY, RINGS, RolloutFixture, TEST_PROD, approval, component, hold_reason, ring_fixture,
    ring_waves, rollout_report, sleep_a_while, unit_report,
};
use crate::support::live_objects;
use crate::support::manifests;
use crate::support::oracle::{ExpectedWaves, OracleEvent};

const MANY_CLUSTERS: [&str; 20] = [
    "c01", "c02", "c03", "c04", "c05", "c06", "c07", "c08", "c09", "c10", "c11", "c12", "c13", "c14", "c15",
    "c16", "c17", "c18", "c19", "c20",
];

/// Test on the first cluster, prod on all others; no object exists.
fn many_clusters_fixture() -> RolloutFixture {
    let rings = TEST_PROD
        .replace("{names: [c1]}", "{names: [c01]}")
        .replace("{names: [c2, c3]}", &format!("{{names: [{}]}}", MANY_CLUSTERS[1..].join(", ")));
    let waves =
        ExpectedWaves { wave_of: |unit| usize::from(unit.cluster != "c01"), ..ring_waves("default/pay") };
    RolloutFixture::not_started(&MANY_CLUSTERS, &[(RINGS, &rings), (PAY, &component("v1"))], waves)
}

// Row 24.
#[tokio::test(start_paused = true)]
async fn first_installation_comes_when_all_clusters_are_read() {
    let mut scene = many_clusters_fixture();
    for (number, name) in (1..).zip(MANY_CLUSTERS) {
        scene.cluster(name).set_latency(Duration::from_millis(20 * number));
    }
    scene.start().await;
    let slowest = MANY_CLUSTERS[19];
    scene
        .until("the slowest cluster answers", |now| {
            now.clusters.iter().any(|it| it.name.as_str() == slowest && it.state == "Ready")
        })
        .await;
    let is_write = |event: &&(Duration, OracleEvent)| matches!(event.1, OracleEvent::Write(_));
    assert_eq!(scene.oracle.story().events.iter().filter(is_write).count(), 0, "not all are read");
    scene.until_converged(&scene.fleet.first_commit).await;
    assert!(scene.versions().await.iter().all(|version| version == "v1"));
    scene.assert_ends_at_head();
}

// Row 24, with one cluster that does not answer.
#[tokio::test(start_paused = true)]
async fn first_installation_uses_waves_beside_offline_clusters() {
    let mut scene = many_clusters_fixture();
    scene.set_down("c20", true);
    scene.start().await;
    scene.until_confirmation_requested("prod").await;
    sleep_a_while().await;
    let versions = scene.versions_of(&MANY_CLUSTERS[..19]).await;
    assert_eq!(versions[0], "v1");
    assert!(versions[1..].iter().all(|version| version == "-"), "{versions:?}");
    scene.confirm("prod").await;
    scene.until("c19 runs", |now| unit_report(now, "c19", "").is_some_and(|it| it.is_done)).await;
    scene.set_down("c20", false);
    scene.until_over().await;
    assert!(scene.versions().await.iter().all(|version| version == "v1"));
    scene.assert_ends_at_head();
}

/// The render depends on the kinds of a cluster.
const API: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: pay-api}
data: {api: '{{ \"new\" if cluster.capabilities is has(\"shop.example.com/v1\") else \"old\" }}'}
";
const TEMPLATE: &str = "apps/pay/layer/api.yaml.j2";

async fn api_of_cluster(scene: &RolloutFixture, cluster: &str) -> String {
    let map = live_objects::get(scene.cluster(cluster), "ConfigMap", "default", "pay-api")
        .await
        .expect("it is there");
    live_objects::required_text(&map, "/data/api")
}

// Row 25.
#[tokio::test(start_paused = true)]
async fn a_new_cluster_api_waits_for_its_wave() {
    let files = [(RINGS, TEST_PROD), (PAY, &*component("v1")), (TEMPLATE, API)];
    let scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, ring_waves("default/pay")).await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    let digest = scene.digest();
    let definition = manifests::definition("shop.example.com", "v1", "Till");
    live_objects::apply_as(scene.cluster("c2"), "kubectl", &definition).await;
    // The oracle renders from Git alone: there the template gives this.
    scene.record_render(
        TEMPLATE,
        &API.replace("cluster.capabilities is has(\"shop.example.com/v1\")", "cluster.name == 'c2'"),
    );
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    assert_eq!(api_of_cluster(&scene, "c2").await, "old", "it is held");
    assert_eq!(scene.digest(), digest, "a version is what Git says");
    scene.approve(&digest, "prod").await;
    scene.record_render(
        TEMPLATE,
        &API.replace("cluster.capabilities is has(\"shop.example.com/v1\")", "cluster.name == 'c2'"),
    );
    scene.until_over().await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    assert_eq!(
        (api_of_cluster(&scene, "c2").await, api_of_cluster(&scene, "c3").await),
        ("new".to_owned(), "old".to_owned())
    );
    scene.assert_ends_at_head();
}

// Row 25 with an existing approval: no other one is needed.
#[tokio::test(start_paused = true)]
async fn new_api_of_a_finished_cluster_asks_nobody() {
    let files = [(RINGS, TEST_PROD), (PAY, &*component("v1")), (TEMPLATE, API)];
    let scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, ring_waves("default/pay")).await;
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    scene.record_render(
        TEMPLATE,
        &API.replace("cluster.capabilities is has(\"shop.example.com/v1\")", "cluster.name == 'c2'"),
    );
    let definition = manifests::definition("shop.example.com", "v1", "Till");
    live_objects::apply_as(scene.cluster("c2"), "kubectl", &definition).await;
    sleep_a_while().await;
    scene.until_over().await;
    assert_eq!(api_of_cluster(&scene, "c2").await, "new");
    assert!(rollout_report(&scene.overview()).is_some_and(|it| it.confirmation.is_none()));
    scene.assert_ends_at_head();
}

fn cluster_in_maintenance(cluster: &str) -> String {
    manifests::cluster(cluster).replace("spec: {", "spec: {state: Maintaining, ")
}

// Row 28.
#[tokio::test(start_paused = true)]
async fn a_wave_in_maintenance_holds_the_next() {
    let scene = ring_fixture().await;
    scene.push("Maintain", &[("clusters/c1.yaml", Some(&cluster_in_maintenance("c1")))]).await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until("prod waits", |now| !hold_reason(now, "c2", "").is_empty()).await;
    // An approval does not help: test was not updated.
    scene.push("A word", &[(APPROVAL, Some(&approval("pay", &scene.digest(), "prod")))]).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    let words = hold_reason(&scene.overview(), "c2", "");
    assert!(words.contains("wave test") && words.contains("left out: in maintenance"), "{words}");
    scene.push("Back", &[("clusters/c1.yaml", Some(&manifests::cluster("c1"))), (APPROVAL, None)]).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

// Row 28, after a later wave has started.
#[tokio::test(start_paused = true)]
async fn maintenance_of_a_passed_wave_holds_nothing() {
    let rings = TEST_PROD.replace("[c2, c3]}", "[c2, c3]}, maxConcurrency: 1");
    let mut waves = ring_waves("default/pay");
    waves.gates[1].max_concurrent = Some(1);
    let files = [(RINGS, &*rings), (PAY, &*component("v1"))];
    let scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, waves).await;
    let slow = "rules: [{image: 'registry.example.com/pay:v2', ready-after: 90s}]";
    scene.cluster("c2").set_scenario(sandbox::Scenario::parse(slow).expect("a scenario"));
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until("c2 changes", |now| unit_report(now, "c2", "").is_some_and(|it| it.is_at_head)).await;
    scene.push("Maintain", &[("clusters/c1.yaml", Some(&cluster_in_maintenance("c1")))]).await;
    scene.until("c3 is done", |now| unit_report(now, "c3", "").is_some_and(|it| it.is_done)).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn a_broken_cluster_file_holds_later_waves() {
    for is_restarted in [false, true] {
        let mut scene = ring_fixture().await;
        let file = "clusters/c1.yaml";
        let good = scene.fleet.repository.texts(&scene.head())[file].clone();
        let bad = good.replace("spec:", "spec: {state: Broken}\nstatus:");
        scene.push("An error", &[(file, Some(&bad))]).await;
        if is_restarted {
            scene.restart().await;
        }
        let v2 = scene.push_pay("v2", &component("v2")).await;
        scene.until("v2 is read", |now| now.revision.as_ref() == Some(&v2)).await;
        sleep_a_while().await;
        assert_eq!(scene.versions().await, ["v1", "v1", "v1"], "{is_restarted}");
        assert!(
            hold_reason(&scene.overview(), "c2", "")
                .contains("an error in the repository may hide its clusters")
        );
        scene.push("Mended", &[(file, Some(&good))]).await;
        scene.until_confirmation_requested("prod").await;
        assert_eq!(scene.versions().await, ["v2", "v1", "v1"], "{is_restarted}");
        scene.confirm("prod").await;
        scene.until_over().await;
        scene.assert_ends_at_head();
    }
}
