//! Clusters that connect one after another, change, or are in maintenance.

use std::time::Duration;

use super::scene::{
    PAY, RINGS, Scene, TEST_PROD, WORD, a_while, approval, component, fleet_r, held, rings_of, rollout, unit,
};
use crate::support::live;
use crate::support::manifests;
use crate::support::oracle::{Event, Waves};

const MANY: [&str; 20] = [
    "c01", "c02", "c03", "c04", "c05", "c06", "c07", "c08", "c09", "c10", "c11", "c12", "c13", "c14", "c15",
    "c16", "c17", "c18", "c19", "c20",
];

/// Test on the first cluster, prod on all others; no object exists.
fn many() -> Scene {
    let rings = TEST_PROD
        .replace("{names: [c1]}", "{names: [c01]}")
        .replace("{names: [c2, c3]}", &format!("{{names: [{}]}}", MANY[1..].join(", ")));
    let waves = Waves { wave_of: |unit| usize::from(unit.cluster != "c01"), ..rings_of("default/pay") };
    Scene::not_started(&MANY, &[(RINGS, &rings), (PAY, &component("v1"))], waves)
}

// Row 24.
#[tokio::test(start_paused = true)]
async fn first_installation_comes_when_all_clusters_are_read() {
    let mut scene = many();
    for (number, name) in (1..).zip(MANY) {
        scene.cluster(name).set_latency(Duration::from_millis(20 * number));
    }
    scene.start().await;
    let slowest = MANY[19];
    scene
        .until("the slowest cluster answers", |now| {
            now.clusters.iter().any(|it| it.name.as_str() == slowest && it.state == "Ready")
        })
        .await;
    let is_write = |event: &&(Duration, Event)| matches!(event.1, Event::Write(_));
    assert_eq!(scene.oracle.story().events.iter().filter(is_write).count(), 0, "not all are read");
    scene.converged(&scene.fleet.begin).await;
    assert!(scene.versions().await.iter().all(|version| version == "v1"));
    scene.ends_at_head();
}

// Row 24, with one cluster that does not answer.
#[tokio::test(start_paused = true)]
async fn first_installation_uses_waves_beside_offline_clusters() {
    let mut scene = many();
    scene.set_down("c20", true);
    scene.start().await;
    scene.until_asked("prod").await;
    a_while().await;
    let versions = scene.versions_of(&MANY[..19]).await;
    assert_eq!(versions[0], "v1");
    assert!(versions[1..].iter().all(|version| version == "-"), "{versions:?}");
    scene.confirm("prod").await;
    scene.until("c19 runs", |now| unit(now, "c19", "").is_some_and(|it| it.is_done)).await;
    scene.set_down("c20", false);
    scene.until_over().await;
    assert!(scene.versions().await.iter().all(|version| version == "v1"));
    scene.ends_at_head();
}

/// The render depends on the kinds of a cluster.
const API: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: pay-api}
data: {api: '{{ \"new\" if cluster.capabilities is has(\"shop.example.com/v1\") else \"old\" }}'}
";
const TEMPLATE: &str = "apps/pay/layer/api.yaml.j2";

async fn api(scene: &Scene, cluster: &str) -> String {
    let map =
        live::get(scene.cluster(cluster), "ConfigMap", "default", "pay-api").await.expect("it is there");
    live::text(&map, "/data/api")
}

// Row 25.
#[tokio::test(start_paused = true)]
async fn a_new_cluster_api_waits_for_its_wave() {
    let files = [(RINGS, TEST_PROD), (PAY, &*component("v1")), (TEMPLATE, API)];
    let scene = Scene::begin(&["c1", "c2", "c3"], &files, rings_of("default/pay")).await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_asked("prod").await;
    let digest = scene.digest();
    let definition = manifests::definition("shop.example.com", "v1", "Till");
    live::apply_as(scene.cluster("c2"), "kubectl", &definition).await;
    // The oracle renders from Git alone: there the template gives this.
    scene.renders_as(
        TEMPLATE,
        &API.replace("cluster.capabilities is has(\"shop.example.com/v1\")", "cluster.name == 'c2'"),
    );
    a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    assert_eq!(api(&scene, "c2").await, "old", "it is held");
    assert_eq!(scene.digest(), digest, "a version is what Git says");
    scene.approve(&digest, "prod").await;
    scene.renders_as(
        TEMPLATE,
        &API.replace("cluster.capabilities is has(\"shop.example.com/v1\")", "cluster.name == 'c2'"),
    );
    scene.until_over().await;
    a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    assert_eq!((api(&scene, "c2").await, api(&scene, "c3").await), ("new".to_owned(), "old".to_owned()));
    scene.ends_at_head();
}

// Row 25 with an existing approval: no other one is needed.
#[tokio::test(start_paused = true)]
async fn new_api_of_a_finished_cluster_asks_nobody() {
    let files = [(RINGS, TEST_PROD), (PAY, &*component("v1")), (TEMPLATE, API)];
    let scene = Scene::begin(&["c1", "c2", "c3"], &files, rings_of("default/pay")).await;
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    scene.renders_as(
        TEMPLATE,
        &API.replace("cluster.capabilities is has(\"shop.example.com/v1\")", "cluster.name == 'c2'"),
    );
    let definition = manifests::definition("shop.example.com", "v1", "Till");
    live::apply_as(scene.cluster("c2"), "kubectl", &definition).await;
    a_while().await;
    scene.until_over().await;
    assert_eq!(api(&scene, "c2").await, "new");
    assert!(rollout(&scene.now()).is_some_and(|it| it.confirmation.is_none()));
    scene.ends_at_head();
}

fn maintained(cluster: &str) -> String {
    manifests::cluster(cluster).replace("spec: {", "spec: {state: Maintaining, ")
}

// Row 28.
#[tokio::test(start_paused = true)]
async fn a_wave_in_maintenance_holds_the_next() {
    let scene = fleet_r().await;
    scene.push("Maintain", &[("clusters/c1.yaml", Some(&maintained("c1")))]).await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until("prod waits", |now| !held(now, "c2", "").is_empty()).await;
    // An approval does not help: test was not updated.
    scene.push("A word", &[(WORD, Some(&approval("pay", &scene.digest(), "prod")))]).await;
    a_while().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    let words = held(&scene.now(), "c2", "");
    assert!(words.contains("wave test") && words.contains("left out: in maintenance"), "{words}");
    scene.push("Back", &[("clusters/c1.yaml", Some(&manifests::cluster("c1"))), (WORD, None)]).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.ends_at_head();
}

// Row 28, after a later wave has started.
#[tokio::test(start_paused = true)]
async fn maintenance_of_a_passed_wave_holds_nothing() {
    let rings = TEST_PROD.replace("[c2, c3]}", "[c2, c3]}, maxConcurrency: 1");
    let mut waves = rings_of("default/pay");
    waves.gates[1].most = Some(1);
    let files = [(RINGS, &*rings), (PAY, &*component("v1"))];
    let scene = Scene::begin(&["c1", "c2", "c3"], &files, waves).await;
    let slow = "rules: [{image: 'registry.example.com/pay:v2', ready-after: 90s}]";
    scene.cluster("c2").set_scenario(sandbox::Scenario::parse(slow).expect("a scenario"));
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until("c2 changes", |now| unit(now, "c2", "").is_some_and(|it| it.is_at_head)).await;
    scene.push("Maintain", &[("clusters/c1.yaml", Some(&maintained("c1")))]).await;
    scene.until("c3 is done", |now| unit(now, "c3", "").is_some_and(|it| it.is_done)).await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn a_broken_cluster_file_holds_later_waves() {
    for is_restarted in [false, true] {
        let mut scene = fleet_r().await;
        let file = "clusters/c1.yaml";
        let good = scene.fleet.repository.texts(&scene.head())[file].clone();
        let bad = good.replace("spec:", "spec: {state: Broken}\nstatus:");
        scene.push("A mistake", &[(file, Some(&bad))]).await;
        if is_restarted {
            scene.restart().await;
        }
        let v2 = scene.push_pay("v2", &component("v2")).await;
        scene.until("v2 is read", |now| now.revision.as_ref() == Some(&v2)).await;
        a_while().await;
        assert_eq!(scene.versions().await, ["v1", "v1", "v1"], "{is_restarted}");
        assert!(held(&scene.now(), "c2", "").contains("a mistake in the repository may hide its clusters"));
        scene.push("Mended", &[(file, Some(&good))]).await;
        scene.until_asked("prod").await;
        assert_eq!(scene.versions().await, ["v2", "v1", "v1"], "{is_restarted}");
        scene.confirm("prod").await;
        scene.until_over().await;
        scene.ends_at_head();
    }
}
