//! `mode: observe` shows the plan, and writes nothing.

use super::support::{LiveFixture, configmap, deployment};

#[tokio::test]
async fn observing_shows_the_plan_and_writes_nothing() {
    let Some(scene) = LiveFixture::new("observe", 2).await else { return };
    scene.write_instance("poll: 1s\n  mode: observe");
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1), configmap("settings", "a", "1")]);
    let commit = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene
        .until_status(&commit, "deploy", "pending", &["observe", "4 writes", "2 targets", "nothing written"])
        .await;

    let ended = scene.run(&scene.arguments(&["plan"], &["-o", "json"])).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let plan: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let plans = plan["plans"].as_array().expect("a list");
    let steps: Vec<_> =
        plans.iter().flat_map(|plan| plan["steps"].as_array().cloned().unwrap_or_default()).collect();
    assert_eq!((plans.len(), steps.len()), (2, 4), "{plan}");
    for step in &steps {
        assert!(step.to_string().contains("create"), "{step}");
        assert!(
            step["reason"]["words"].as_str().is_some_and(|words| words.contains("observe mode")),
            "{step}"
        );
    }
    let ended = scene.run(&scene.arguments(&["plan"], &["--exit-code"])).await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stdout.contains("4 create"), "{}", ended.stdout);

    for cluster in scene.clusters() {
        for kind in ["deployments", "configmaps"] {
            assert!(scene.managed_objects(cluster, kind).await.is_empty(), "{kind} on {}", cluster.name());
        }
        assert!(scene.object(cluster, "deployments", "web").await.is_err());
    }
}
