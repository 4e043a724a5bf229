//! New and empty clusters during a rollout, and a chart whose hooks belong to podSets.

use serde_json::json;

use super::super::releases::write_chart;
use super::super::support::LiveFixture;
use super::{APP, component, confirm, fixture_with_rings, until_running};
use crate::support::live_objects::required_text;

/// A new cluster stays empty during a rollout, as the commit of its wave does not know it; a
/// rebuilt one (row 14) gets what its wave runs.
#[tokio::test]
async fn new_and_rebuilt_clusters_run_their_wave_version() {
    let Some(scene) = fixture_with_rings("waves-new", ", confirm: true").await else { return };
    let last = scene.cluster(3).name().to_owned();
    let file = format!("clusters/{last}.yaml");
    scene.worktree.remove(&file);
    scene.worktree.write(APP, &component(scene.name(), "1.0", ""));
    scene.worktree.publish("first");
    scene.start(&[]).await;
    until_running(&scene, "web", &["1.0 x2", "1.0 x2", "1.0 x2", "-"]).await;
    scene.worktree.write(APP, &component(scene.name(), "1.1", ""));
    scene.worktree.publish("web 1.1");
    until_running(&scene, "web", &["1.1 x2", "1.1 x2", "1.0 x2", "-"]).await;
    scene.write_cluster(&last, "prod", &format!("{last}/kubeconfig.yaml"));
    let with_it = scene.worktree.publish("another cluster");
    scene.until_status(&with_it, "deploy/prod", "pending", &["wave prod waits for confirmation"]).await;
    let held = ["1.1 x2", "1.1 x2", "1.0 x2", "-"];
    until_running(&scene, "web", &held).await;

    scene.kill();
    let all = ["delete", "deployments,services,configmaps", "--all", "-n", scene.name()];
    scene.cluster(2).kubectl(&all).await.expect("emptied");
    scene.start(&[]).await;
    until_running(&scene, "web", &held).await;
    assert_eq!(confirm(&scene, "web").await, "prod");
    until_running(&scene, "web", &["1.1 x2", "1.1 x2", "1.1 x2", "1.1 x2"]).await;
}

/// Row 15, with and without a kill: the only object of a held unit is restored unchanged.
#[tokio::test]
async fn a_held_unit_gets_its_sole_object_back() {
    let Some(scene) = fixture_with_rings("waves-sole", ", confirm: true").await else { return };
    let lone = |version: &str| {
        component(scene.name(), version, "")
            .replace("runType: server", "runType: worker")
            .replace("  port: 8080\n", "")
    };
    scene.worktree.write(APP, &lone("1.0"));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    scene.worktree.write(APP, &lone("1.1"));
    scene.worktree.publish("web 1.1");
    let held = ["1.1 x1", "1.1 x1", "1.0 x1", "1.0 x1"];
    until_running(&scene, "web", &held).await;
    let delete = ["delete", "deployments", "web", "-n", scene.name()];
    scene.cluster(2).kubectl(&delete).await.expect("deleted");
    until_running(&scene, "web", &held).await;
    scene.kill();
    scene.cluster(3).kubectl(&delete).await.expect("deleted");
    scene.start(&[]).await;
    until_running(&scene, "web", &held).await;
}

fn with_chart(scene: &LiveFixture, colour: &str) -> String {
    let pod_set = |name: &str| json!({"name": name, "rawValues": {"colour": colour}});
    json!({
        "apiVersion": "tutti.dev/v1alpha1", "kind": "AppSet",
        "metadata": {"name": "shop", "namespace": scene.name()},
        "spec": {
            "podSpec": {
                "deployType": "Helm",
                "chart": {"chartUrl": {"url": "charts/release", "chartVersion": "1.0.0"}},
            },
            "updateStrategy": {"upgradeType": "canary|blue", "needWaitingForConfirm": true},
            "clusterTopology": {"clusters": [{
                "name": scene.cluster(0).name(), "podSets": [pod_set("shop-canary"), pod_set("shop-blue")],
            }]},
        },
    })
    .to_string()
}

/// The Jobs of a hook; finished ones are deleted after a while.
async fn jobs(scene: &LiveFixture, hook: &str) -> Vec<String> {
    let path = format!("/apis/batch/v1/namespaces/{}/jobs", scene.name());
    let jobs = scene.cluster(0).get(&path).await.expect("a list");
    let jobs = jobs["items"].as_array().expect("items").iter();
    let mine = jobs.filter(|job| required_text(job, "/metadata/name").starts_with(hook));
    mine.map(|job| required_text(job, "/metadata/uid")).collect()
}

async fn until_new_job(scene: &LiveFixture, hook: &str, before: &[String]) {
    scene
        .eventually(&format!("{hook} runs"), async || {
            let found = jobs(scene, hook).await;
            if found.iter().any(|uid| !before.contains(uid)) { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
}

#[tokio::test]
async fn chart_hooks_run_when_their_pod_set_changes() {
    let Some(scene) = LiveFixture::new("waves-hooks", 1).await else { return };
    write_chart(&scene);
    scene.worktree.write(APP, &with_chart(&scene, "red"));
    let first = scene.worktree.publish("red");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    let canary = jobs(&scene, "shop-canary-migrate").await;
    let blue = jobs(&scene, "shop-blue-migrate").await;
    scene.worktree.write(APP, &with_chart(&scene, "green"));
    let second = scene.worktree.publish("green");
    until_new_job(&scene, "shop-canary-migrate", &canary).await;
    scene.until_status(&second, "deploy", "pending", &["wave blue waits for confirmation"]).await;
    let held = jobs(&scene, "shop-blue-migrate").await;
    assert!(held.iter().all(|uid| blue.contains(uid)), "{held:?} after {blue:?}");
    assert_eq!(confirm(&scene, "shop").await, "blue");
    until_new_job(&scene, "shop-blue-migrate", &blue).await;
    scene.until_succeeded(&second).await;
}
