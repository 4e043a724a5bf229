//! A change that the cluster never accepts fails with the field in the status, and its revert heals.

use super::support::{Scene, deployment};

#[tokio::test]
async fn an_immutable_field_is_named_and_a_revert_heals() {
    let Some(scene) = Scene::new("immutable", 1).await else { return };
    let cluster = scene.cluster(0);
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.succeeded(&first).await;

    let mut changed = deployment("web", "shop/web:1.0", 1);
    changed["spec"]["selector"]["matchLabels"]["app"] = "other".into();
    changed["spec"]["template"]["metadata"]["labels"]["app"] = "other".into();
    scene.write_objects("web", &[changed]);
    let bad = scene.worktree.publish("another selector");
    scene.told(&bad, "deploy", "failure", &["cluster-1", "web", "spec.selector"]).await;
    scene.ready(cluster, "web", "shop/web:1.0", 1).await;

    let back = scene.worktree.revert();
    scene.worktree.push();
    scene.succeeded(&back).await;
    scene.ready(cluster, "web", "shop/web:1.0", 1).await;
}
