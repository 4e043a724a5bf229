//! Objects in sync waves, on the newest and the oldest Kubernetes.

use serde_json::Value;

use super::support::{LiveFixture, configmap, deployment};

fn in_wave(mut object: Value, wave: &str) -> Value {
    object["metadata"]["annotations"]["tutti.dev/sync-wave"] = Value::from(wave);
    object
}

/// A store, and the object of the next wave.
fn shop_objects(store: &str, level: &str) -> [Value; 2] {
    [
        in_wave(configmap("settings", "level", level), "1"),
        in_wave(deployment("store", &format!("registry.example.com/store:{store}"), 1), "-1"),
    ]
}

#[tokio::test]
async fn the_next_wave_waits_for_a_healthy_one() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("sync-waves").await else { return };
    scene.write_instance("poll: 1s");
    scene.write_app("shop", &shop_objects("broken-1", "1"));
    let broken = scene.worktree.publish("an image that cannot be pulled");
    scene.start(&[]).await;
    for context in scene.contexts() {
        scene.until_status(&broken, context, "failure", &["store"]).await;
    }
    for cluster in scene.clusters() {
        let settings = scene.object(cluster, "configmaps", "settings").await;
        assert!(settings.is_err(), "{}: {settings:?}", cluster.name());
    }

    scene.write_objects("shop", &shop_objects("2", "2"));
    let mended = scene.worktree.publish("an image that can");
    scene.until_succeeded(&mended).await;
    for cluster in scene.clusters() {
        scene.until_ready(cluster, "store", "registry.example.com/store:2", 1).await;
        let settings = scene.object(cluster, "configmaps", "settings").await.expect("it came");
        assert_eq!(settings["data"]["level"], "2");
    }
}
