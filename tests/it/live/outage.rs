//! A cluster that does not answer holds up nobody, and is taken up again by itself.

use super::support::{Scene, configmap, deployment};

#[tokio::test]
async fn a_cluster_that_is_down_misses_a_push_and_catches_up() {
    let Some(scene) = Scene::alone("outage").await else { return };
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.succeeded(&first).await;

    scene.cluster(3).stop_server();
    scene.write_app("web", &[deployment("web", "shop/web:1.1", 1)]);
    let second = scene.worktree.publish("web 1.1");
    three_of_four(&scene, &second).await;
    for cluster in &scene.clusters()[..3] {
        scene.ready(cluster, "web", "shop/web:1.1", 1).await;
    }

    scene.cluster(3).start_server().await.expect("a server that starts again");
    scene.succeeded(&second).await;
    scene.ready(scene.cluster(3), "web", "shop/web:1.1", 1).await;
}

#[tokio::test]
async fn a_cluster_that_is_down_at_the_start_is_taken_up_later() {
    let Some(scene) = Scene::alone("outage-start").await else { return };
    scene.cluster(3).stop_server();
    // Needs no controller, which would come back by its own back-off of up to half a minute.
    scene.write_app("web", &[configmap("settings", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    three_of_four(&scene, &first).await;
    for cluster in &scene.clusters()[..3] {
        scene.object(cluster, "configmaps", "settings").await.expect("it is there");
    }

    scene.cluster(3).start_server().await.expect("a server that starts again");
    scene.succeeded(&first).await;
    scene.object(scene.cluster(3), "configmaps", "settings").await.expect("it is there");
}

/// The fourth is missing, and its ring says so.
async fn three_of_four(scene: &Scene, commit: &str) {
    scene.told(commit, "deploy/test", "success", &["2/2 healthy"]).await;
    scene.told(commit, "deploy/prod", "pending", &["1/2 healthy", "cluster-4"]).await;
}
