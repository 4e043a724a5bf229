//! A cluster that does not answer holds up nobody, and is taken up again by itself.

use super::support::{Scene, alone, deployment};

#[tokio::test]
async fn a_cluster_that_is_down_misses_a_push_and_catches_up() {
    let _alone = alone().await;
    let Some(scene) = Scene::new("outage", 4).await else { return };
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.succeeded(&first).await;

    scene.cluster(3).stop_server();
    scene.write_app("web", &[deployment("web", "shop/web:1.1", 1)]);
    let second = scene.worktree.publish("web 1.1");
    three_of_four(&scene, &second, "shop/web:1.1").await;

    scene.cluster(3).start_server().await.expect("a server that starts again");
    scene.succeeded(&second).await;
    scene.ready(scene.cluster(3), "web", "shop/web:1.1", 1).await;
}

#[tokio::test]
async fn a_cluster_that_is_down_at_the_start_is_taken_up_later() {
    let _alone = alone().await;
    let Some(scene) = Scene::new("outage-start", 4).await else { return };
    scene.cluster(3).stop_server();
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    three_of_four(&scene, &first, "shop/web:1.0").await;

    scene.cluster(3).start_server().await.expect("a server that starts again");
    scene.succeeded(&first).await;
    scene.ready(scene.cluster(3), "web", "shop/web:1.0", 1).await;
}

/// The fourth is missing, and its ring says so.
async fn three_of_four(scene: &Scene, commit: &str, image: &str) {
    for cluster in &scene.clusters()[..3] {
        scene.ready(cluster, "web", image, 1).await;
    }
    scene.told(commit, "deploy/test", "success", &["2/2 healthy"]).await;
    scene.told(commit, "deploy/prod", "pending", &["1/2 healthy", "cluster-4"]).await;
}
