//! Moves without a gap: between apps an object changes its owner; between clusters the new copy is healthy before the
//! old one is deleted.

use tutti::report::Overview;

use crate::support::fleet::{TestFleet, deletion_causes, wait_for_effects};
use crate::support::live_objects::{delete_count, managed_names};
use crate::support::manifests::{config_map, deployment, objects_app};

const APP: &str = "apps/web/app.yaml";
const MANIFESTS: &str = "apps/web/objects/all.yaml";

/// The app `web` on these clusters.
fn app_on(clusters: &str) -> String {
    objects_app("default", "web")
        .replace("spec: {", &format!("spec: {{placement: {{clusters: {{names: [{clusters}]}}}}, "))
}

fn web_deployment(image: &str) -> String {
    deployment("default", "web", "web", &format!("registry.example.com/web:{image}"))
}

fn fleet(clusters: &str) -> TestFleet {
    TestFleet::new(&["bj1", "gz1"], &[(APP, &app_on(clusters)), (MANIFESTS, &web_deployment("1"))])
}

fn waits_for_health_on_gz1(now: &Overview) -> bool {
    deletion_causes(now).iter().any(|cause| cause["code"] == "waitsForHealth" && cause["on"] == "gz1")
}

#[tokio::test(start_paused = true)]
async fn moved_app_is_healthy_before_old_copy_goes() {
    let fleet = fleet("bj1");
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let changes = [(APP, Some(app_on("gz1"))), (MANIFESTS, Some(web_deployment("broken-2")))];
    let changes: Vec<_> = changes.iter().map(|(path, text)| (*path, text.as_deref())).collect();
    fleet.push(&running, "To gz1, where it does not start", &changes).await;
    running.until("a delete that waits", waits_for_health_on_gz1).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 0);

    let revision =
        fleet.push(&running, "With an image that does", &[(MANIFESTS, Some(&web_deployment("2")))]).await;
    running.until_converged(&revision).await;
    assert_eq!(managed_names(fleet.cluster("bj1")).await, Vec::<String>::new());
    assert_eq!(managed_names(fleet.cluster("gz1")).await, ["Deployment default/web"]);
}

/// A paused rollout creates no pods of a new Deployment: it is settled, but replaces nothing.
#[tokio::test(start_paused = true)]
async fn paused_deployment_without_pods_replaces_nothing() {
    let fleet = fleet("bj1");
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let paused = web_deployment("1").replace("spec:\n  replicas", "spec:\n  paused: true\n  replicas");
    let changes = [(APP, Some(app_on("gz1"))), (MANIFESTS, Some(paused))];
    let changes: Vec<_> = changes.iter().map(|(path, text)| (*path, text.as_deref())).collect();
    fleet.push(&running, "To gz1, paused", &changes).await;
    running
        .until("a delete that waits for one that is settled", |now| {
            waits_for_health_on_gz1(now) && now.targets.iter().all(|it| it.phase.is_done())
        })
        .await;
    wait_for_effects().await;
    assert_eq!(managed_names(fleet.cluster("bj1")).await, ["Deployment default/web"]);

    let revision = fleet.push(&running, "Resumed", &[(MANIFESTS, Some(&web_deployment("1")))]).await;
    running.until_converged(&revision).await;
    assert_eq!(managed_names(fleet.cluster("bj1")).await, Vec::<String>::new());

    // Paused after its pods started, it replaces the copy on another cluster.
    let both = fleet.push(&running, "To both", &[(APP, Some(&app_on("bj1, gz1")))]).await;
    running.until_converged(&both).await;
    let paused = web_deployment("1").replace("spec:\n  replicas", "spec:\n  paused: true\n  replicas");
    let changes = [(APP, Some(app_on("gz1"))), (MANIFESTS, Some(paused))];
    let changes: Vec<_> = changes.iter().map(|(path, text)| (*path, text.as_deref())).collect();
    let revision = fleet.push(&running, "Leaves bj1, paused", &changes).await;
    running.until_converged(&revision).await;
    assert_eq!(managed_names(fleet.cluster("bj1")).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn app_moving_to_offline_cluster_stays() {
    for clusters in ["bj1", "bj1, gz1"] {
        // New on the cluster or not: a cluster that does not answer may have lost everything.
        let fleet = fleet(clusters);
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        fleet.cluster("gz1").set_down(true);
        running.until("gz1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
        let revision = fleet.push(&running, "To gz1", &[(APP, Some(&app_on("gz1")))]).await;
        wait_for_effects().await;
        assert_eq!(managed_names(fleet.cluster("bj1")).await, ["Deployment default/web"], "from {clusters}");
        fleet.cluster("gz1").set_down(false);
        running.until_converged(&revision).await;
        assert_eq!(managed_names(fleet.cluster("bj1")).await, Vec::<String>::new());
        assert_eq!(managed_names(fleet.cluster("gz1")).await, ["Deployment default/web"]);
    }
}

#[tokio::test(start_paused = true)]
async fn offline_cluster_blocks_deletes_only_for_pending_replacements() {
    let maps = |names: &[&str]| {
        names.iter().map(|name| config_map("default", name, "first")).collect::<Vec<_>>().join("---\n")
    };
    let fleet = TestFleet::new(
        &["bj1", "gz1"],
        &[(APP, &app_on("bj1, gz1")), (MANIFESTS, &maps(&["one", "two", "three"]))],
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.cluster("gz1").set_down(true);
    running.until("gz1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;

    // All remaining objects were on gz1 when it was last read.
    fleet.push(&running, "Without one", &[(MANIFESTS, Some(&maps(&["two", "three"])))]).await;
    wait_for_effects().await;
    assert_eq!(
        managed_names(fleet.cluster("bj1")).await,
        ["ConfigMap default/three", "ConfigMap default/two"]
    );

    // `four` was not: it may replace `two`.
    let revision =
        fleet.push(&running, "Four for two", &[(MANIFESTS, Some(&maps(&["three", "four"])))]).await;
    wait_for_effects().await;
    let all = ["ConfigMap default/four", "ConfigMap default/three", "ConfigMap default/two"];
    assert_eq!(managed_names(fleet.cluster("bj1")).await, all);

    // A new process has never read gz1.
    running.stop().await;
    let running = fleet.start().await;
    wait_for_effects().await;
    assert_eq!(managed_names(fleet.cluster("bj1")).await, all);
    fleet.cluster("gz1").set_down(false);
    running.until_converged(&revision).await;
    for sandbox in fleet.clusters.values() {
        assert_eq!(managed_names(sandbox).await, all[..2]);
    }
}
