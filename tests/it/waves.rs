//! Rollouts in waves: what each unit runs, and what it waits for.

use std::time::Duration;

use sandbox::Sandbox;
use tutti::report::{Overview, Phase, RolloutReport, TargetReport};

use crate::support::fleet::{Fleet, Running, target};
use crate::support::live;
use crate::support::manifests;
use crate::support::wires::Wires;

const PAY: &str = "apps/pay/app.yaml";

/// Test, then prod.
const RINGS: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {name: rings}
spec:
  rings:
    - {name: test, clusters: {names: [c1]}, confirm: true}
    - {name: prod, clusters: {names: [c2, c3]}}
";

fn component(version: &str) -> String {
    manifests::component("pay", &format!("registry.example.com/pay:{version}"))
}

fn fleet(files: &[(&str, &str)]) -> Fleet {
    Fleet::new(&["c1", "c2", "c3"], files)
}

/// The version that runs on each cluster.
async fn versions(fleet: &Fleet) -> Vec<String> {
    let mut versions = Vec::new();
    for sandbox in fleet.clusters.values() {
        versions.push(image(sandbox, "pay").await);
    }
    versions
}

async fn image(sandbox: &Sandbox, name: &str) -> String {
    let Some(object) = live::get(sandbox, "Deployment", "default", name).await else { return "-".to_owned() };
    let image = live::text(&object, "/spec/template/spec/containers/0/image");
    image.rsplit(':').next().unwrap_or_default().to_owned()
}

fn approval(digest: &str, through: &str) -> String {
    format!(
        "\
apiVersion: tutti.dev/v1alpha1
kind: Approval
metadata: {{name: pay}}
spec: {{app: default/pay, action: rollout, digest: {digest}, through: {through}}}
"
    )
}

fn waits<'a>(now: &'a Overview, cluster: &str) -> &'a str {
    let is_it = |it: &&TargetReport| it.cluster.as_str() == cluster && it.phase == Phase::Waiting;
    now.targets.iter().find(is_it).map_or("", |target| &target.detail)
}

fn rollout(now: &Overview) -> &RolloutReport {
    now.rollouts.iter().find(|it| it.app.to_string() == "default/pay").expect("a rollout of pay")
}

const WORD: &str = "approvals/pay.yaml";

/// Waits until a person is asked, and confirms.
async fn confirm(fleet: &Fleet, running: &Running) -> String {
    let now = running.until("a person is asked", |now| rollout(now).confirmation.is_some()).await;
    let asked = rollout(&now).confirmation.clone().expect("it was there");
    let file = approval(&asked.digest.to_string(), &asked.through);
    fleet.push(running, "Confirm", &[(WORD, Some(&file))]).await;
    asked.through
}

async fn a_while() {
    tokio::time::sleep(Duration::from_secs(120)).await;
}

#[tokio::test(start_paused = true)]
async fn rings_are_waves_and_wait_for_confirmation() {
    let fleet = fleet(&[("rings.yaml", RINGS), (PAY, &component("v1"))]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    assert_eq!(versions(&fleet).await, ["v1", "v1", "v1"]);
    fleet.push(&running, "v2", &[(PAY, Some(&component("v2")))]).await;
    running.until("prod waits", |now| waits(now, "c2").contains("waits for confirmation")).await;
    a_while().await;
    assert_eq!(versions(&fleet).await, ["v2", "v1", "v1"]);
    assert_eq!(confirm(&fleet, &running).await, "prod");
    running.until("all at v2", |now| !rollout(now).is_open).await;
    assert_eq!(versions(&fleet).await, ["v2", "v2", "v2"]);
    // The next version needs another word.
    fleet.push(&running, "v3", &[(PAY, Some(&component("v3")))]).await;
    running.until("prod waits", |now| waits(now, "c2").contains("waits for confirmation")).await;
    a_while().await;
    assert_eq!(versions(&fleet).await, ["v3", "v2", "v2"]);
}

#[tokio::test(start_paused = true)]
async fn process_that_restarts_goes_on_where_it_was() {
    let fleet = fleet(&[("rings.yaml", RINGS), (PAY, &component("v1"))]);
    let wires = Wires::lasting();
    let running = fleet.start_with(&wires, |_| {}).await;
    running.converged(&fleet.begin).await;
    fleet.push(&running, "v2", &[(PAY, Some(&component("v2")))]).await;
    running.until("prod waits", |now| waits(now, "c2").contains("waits for confirmation")).await;
    wires.die_after(0);
    running.kill().await;
    // What is held is repaired as it was.
    live::delete(fleet.cluster("c2"), "Deployment", "pay").await;
    let running = fleet.start().await;
    running.until("prod waits", |now| waits(now, "c2").contains("waits for confirmation")).await;
    a_while().await;
    assert_eq!(versions(&fleet).await, ["v2", "v1", "v1"]);
    confirm(&fleet, &running).await;
    running.until("all at v2", |now| !rollout(now).is_open).await;
    assert_eq!(versions(&fleet).await, ["v2", "v2", "v2"]);
}

#[tokio::test(start_paused = true)]
async fn held_unit_is_repaired_and_scaled() {
    let fleet = fleet(&[("rings.yaml", RINGS), (PAY, &component("v1"))]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    let scaled = |version: &str, replicas: u32| format!("{}  replicas: {replicas}\n", component(version));
    fleet.push(&running, "v2", &[(PAY, Some(&scaled("v2", 3)))]).await;
    running.until("prod waits", |now| waits(now, "c2").contains("waits for confirmation")).await;
    live::delete(fleet.cluster("c2"), "Deployment", "pay").await;
    live::edit_as(
        fleet.cluster("c3"),
        "kubectl-edit",
        ("Deployment", "pay"),
        &serde_json::json!({"spec": {"template": {"spec": {"containers": [{"name": "pay", "image": "evil:9"}]}}}}),
    )
    .await;
    a_while().await;
    assert_eq!(versions(&fleet).await, ["v2", "v1", "v1"]);
    for cluster in ["c1", "c2", "c3"] {
        let object =
            live::get(fleet.cluster(cluster), "Deployment", "default", "pay").await.expect("it is there");
        assert_eq!(object["spec"]["replicas"], 3, "{cluster}");
    }
    // Numbers that fall wait for the end.
    fleet.push(&running, "Smaller", &[(PAY, Some(&scaled("v2", 2)))]).await;
    a_while().await;
    let replicas = async |cluster: &str| {
        let object =
            live::get(fleet.cluster(cluster), "Deployment", "default", "pay").await.expect("it is there");
        object["spec"]["replicas"].as_i64()
    };
    assert_eq!((replicas("c1").await, replicas("c2").await), (Some(3), Some(3)));
    confirm(&fleet, &running).await;
    running.until("all at v2", |now| !rollout(now).is_open).await;
    a_while().await;
    assert_eq!(versions(&fleet).await, ["v2", "v2", "v2"]);
    assert_eq!((replicas("c1").await, replicas("c2").await), (Some(2), Some(2)));
}

#[tokio::test(start_paused = true)]
async fn revert_goes_back_without_gates() {
    let fleet = fleet(&[("rings.yaml", RINGS), (PAY, &component("v1"))]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    fleet.push(&running, "v2", &[(PAY, Some(&component("v2")))]).await;
    confirm(&fleet, &running).await;
    running.until("all at v2", |now| !rollout(now).is_open).await;
    let back = fleet.push(&running, "Revert", &[(PAY, Some(&component("v1"))), (WORD, None)]).await;
    running.converged(&back).await;
    assert_eq!(versions(&fleet).await, ["v1", "v1", "v1"]);
    // That version again: it needs another word, but where it was done before.
    fleet.push(&running, "v3", &[(PAY, Some(&component("v3")))]).await;
    running.until("prod waits", |now| waits(now, "c2").contains("waits for confirmation")).await;
    assert_eq!(versions(&fleet).await, ["v3", "v1", "v1"]);
}

#[tokio::test(start_paused = true)]
async fn broken_version_stops_in_the_first_wave() {
    let rings = RINGS.replace(", confirm: true", "");
    let fleet = fleet(&[("rings.yaml", &rings), (PAY, &component("v1"))]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    let broken = manifests::component("pay", "registry.example.com/pay:broken");
    fleet.push(&running, "Broken", &[(PAY, Some(&broken))]).await;
    running.until("test fails", |now| target(now, "c1", "default/pay").phase == Phase::Degraded).await;
    a_while().await;
    assert_eq!(versions(&fleet).await, ["broken", "v1", "v1"]);
    assert!(waits(&running.overview.borrow(), "c2").starts_with("waits for wave test, 0/1 done"));
    let mended = fleet.push(&running, "Mend", &[(PAY, Some(&component("v2")))]).await;
    running.converged(&mended).await;
    assert_eq!(versions(&fleet).await, ["v2", "v2", "v2"]);
}

#[tokio::test(start_paused = true)]
async fn approval_outlives_repairs_and_other_numbers() {
    let fleet = fleet(&[("rings.yaml", RINGS), (PAY, &component("v1"))]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    fleet.push(&running, "v2", &[(PAY, Some(&component("v2")))]).await;
    running.until("prod waits", |now| waits(now, "c2").contains("waits for confirmation")).await;
    let asked = rollout(&running.overview.borrow()).confirmation.clone().expect("a confirmation");
    // Approved on a branch, while others go on: test is scaled and repaired meanwhile.
    let file = approval(&asked.digest.to_string(), &asked.through);
    let pause = format!("{}  paused: true\n", component("v2"));
    fleet.push(&running, "Confirmed, and paused", &[(WORD, Some(&file)), (PAY, Some(&pause))]).await;
    a_while().await;
    assert_eq!(versions(&fleet).await, ["v2", "v1", "v1"]);
    let scaled = format!("{}  replicas: 3\n", component("v2"));
    let revision = fleet.push(&running, "More pods", &[(PAY, Some(&scaled))]).await;
    running.converged(&revision).await;
    assert_eq!(versions(&fleet).await, ["v2", "v2", "v2"]);
}

#[tokio::test(start_paused = true)]
async fn rollout_costs_one_request_for_each_change() {
    let fleet = fleet(&[("rings.yaml", &RINGS.replace(", confirm: true", "")), (PAY, &component("v1"))]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    fleet.forget_requests();
    let revision = fleet.push(&running, "v2", &[(PAY, Some(&component("v2")))]).await;
    running.converged(&revision).await;
    assert_eq!(fleet.counted(), ["3 apply deployments.apps"]);
    fleet.forget_requests();
    tokio::time::sleep(Duration::from_secs(900)).await;
    assert_eq!(fleet.counted(), Vec::<String>::new());
}
