//! Clusters that do not answer delay no other, and are connected to again without help.

use super::support::{Scene, configmap, deployment};

#[tokio::test]
async fn offline_clusters_catch_up_after_a_push() {
    let Some(scene) = Scene::alone("outage").await else { return };
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.succeeded(&first).await;

    stop(&scene);
    scene.write_app("web", &[deployment("web", "shop/web:1.1", 1)]);
    let second = scene.worktree.publish("web 1.1");
    two_of_four(&scene, &second).await;
    for cluster in &scene.clusters()[..2] {
        scene.ready(cluster, "web", "shop/web:1.1", 1).await;
    }

    start_again(&scene).await;
    scene.succeeded(&second).await;
    for cluster in &scene.clusters()[2..] {
        scene.ready(cluster, "web", "shop/web:1.1", 1).await;
    }
}

#[tokio::test]
async fn clusters_offline_at_the_start_connect_later() {
    let Some(scene) = Scene::alone("outage-start").await else { return };
    stop(&scene);
    // Needs no controller, which would return only after its own back-off of up to half a minute.
    scene.write_app("web", &[configmap("settings", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    two_of_four(&scene, &first).await;
    for cluster in &scene.clusters()[..2] {
        scene.object(cluster, "configmaps", "settings").await.expect("it is there");
    }

    start_again(&scene).await;
    scene.succeeded(&first).await;
    for cluster in &scene.clusters()[2..] {
        scene.object(cluster, "configmaps", "settings").await.expect("it is there");
    }
}

/// The last two clusters: the newest and the oldest Kubernetes.
pub fn stop(scene: &Scene) {
    for cluster in &scene.clusters()[2..] {
        cluster.stop_server();
    }
}

pub async fn start_again(scene: &Scene) {
    for cluster in &scene.clusters()[2..] {
        cluster.start_server().await.expect("a server that starts again");
    }
}

/// The other clusters are missing, and the status of their ring says so.
async fn two_of_four(scene: &Scene, commit: &str) {
    scene.told(commit, "deploy/test", "success", &["2/2 healthy"]).await;
    scene.told(commit, "deploy/prod", "pending", &["0/2 healthy", "cluster-3", "unreachable"]).await;
}
