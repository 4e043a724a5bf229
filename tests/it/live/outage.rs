//! Clusters that do not answer delay no other, and are connected to again without help.

use super::support::{LiveFixture, configmap, deployment};

#[tokio::test]
async fn offline_clusters_catch_up_after_a_push() {
    let Some(scene) = LiveFixture::with_exclusive_clusters("outage").await else { return };
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;

    stop_last_clusters(&scene);
    scene.write_app("web", &[deployment("web", "shop/web:1.1", 1)]);
    let second = scene.worktree.publish("web 1.1");
    until_two_of_four(&scene, &second).await;
    for cluster in &scene.clusters()[..2] {
        scene.until_ready(cluster, "web", "shop/web:1.1", 1).await;
    }

    start_last_clusters(&scene).await;
    scene.until_succeeded(&second).await;
    for cluster in &scene.clusters()[2..] {
        scene.until_ready(cluster, "web", "shop/web:1.1", 1).await;
    }
}

#[tokio::test]
async fn clusters_offline_at_the_start_connect_later() {
    let Some(scene) = LiveFixture::with_exclusive_clusters("outage-start").await else { return };
    stop_last_clusters(&scene);
    // Needs no controller, which would return only after its own back-off of up to half a minute.
    scene.write_app("web", &[configmap("settings", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    until_two_of_four(&scene, &first).await;
    for cluster in &scene.clusters()[..2] {
        scene.object(cluster, "configmaps", "settings").await.expect("it is there");
    }

    start_last_clusters(&scene).await;
    scene.until_succeeded(&first).await;
    for cluster in &scene.clusters()[2..] {
        scene.object(cluster, "configmaps", "settings").await.expect("it is there");
    }
}

/// The last two clusters: the newest and the oldest Kubernetes.
pub fn stop_last_clusters(scene: &LiveFixture) {
    for cluster in &scene.clusters()[2..] {
        cluster.stop_server();
    }
}

pub async fn start_last_clusters(scene: &LiveFixture) {
    for cluster in &scene.clusters()[2..] {
        cluster.start_server().await.expect("a server that starts again");
    }
}

/// The other clusters are missing, and the status of their ring says so.
async fn until_two_of_four(scene: &LiveFixture, commit: &str) {
    scene.until_status(commit, "deploy/test", "success", &["2/2 healthy"]).await;
    scene.until_status(commit, "deploy/prod", "pending", &["0/2 healthy", "cluster-3", "unreachable"]).await;
}
