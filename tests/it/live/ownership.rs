//! What is somebody else's stays theirs, whole objects and single fields.

use super::support::{Scene, configmap, deployment};

#[tokio::test]
async fn a_deployment_that_is_there_already_is_refused_until_it_goes() {
    let Some(scene) = Scene::new("stranger", 1).await else { return };
    let cluster = scene.cluster(0);
    let theirs = deployment("web", "shop/web:0.9", 1).to_string();
    cluster.kubectl_with_input(&["apply", "-n", scene.name(), "-f", "-"], &theirs).await.expect("an object");
    scene.ready(cluster, "web", "shop/web:0.9", 1).await;
    let before = scene.object(cluster, "deployments", "web").await.expect("an object");

    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
    scene.write_app("neighbour", &[configmap("neighbour", "a", "1")]);
    let commit = scene.worktree.publish("first");
    scene.start(&[]).await;
    let words = ["cluster-1", "web", "not ours", "kubectl-client-side-apply"];
    scene.told(&commit, "deploy", "failure", &words).await;
    scene.object(cluster, "configmaps", "neighbour").await.expect("the other app goes on");

    let ended = scene.run(&scene.arguments(&["get", "targets"], &["-o", "json"])).await;
    let targets: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let target = targets.as_array().and_then(|all| all.iter().find(|it| it["app"] == "stranger/web"));
    let target = target.unwrap_or_else(|| panic!("no target of web in {targets}"));
    assert_eq!(target["phase"], "Refused", "{target}");
    assert!(target["detail"].as_str().is_some_and(|detail| detail.contains("not ours")), "{target}");
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);

    let after = scene.object(cluster, "deployments", "web").await.expect("an object");
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"], "untouched");

    cluster.kubectl(&["delete", "deployment", "web", "-n", scene.name()]).await.expect("a delete");
    scene.succeeded(&commit).await;
    scene.ready(cluster, "web", "shop/web:1.0", 1).await;
}

#[tokio::test]
async fn a_field_that_another_manager_had_first_is_refused_and_both_are_named() {
    let Some(scene) = Scene::new("conflict", 1).await else { return };
    let cluster = scene.cluster(0);
    scene.write_app("settings", &[configmap("settings", "level", "info")]);
    scene.write_app("neighbour", &[configmap("neighbour", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.succeeded(&first).await;

    let theirs = configmap("settings", "verbose", "yes").to_string();
    let take = ["apply", "--server-side", "--field-manager=somebody", "-n", scene.name(), "-f", "-"];
    cluster.kubectl_with_input(&take, &theirs).await.expect("an apply");

    scene.write_objects("settings", &[configmap("settings", "verbose", "no")]);
    scene.write_objects("neighbour", &[configmap("neighbour", "a", "2")]);
    let second = scene.worktree.publish("both apps");
    scene.told(&second, "deploy", "failure", &["settings", "conflict", "somebody", ".data.verbose"]).await;
    scene
        .eventually("the other app goes on", async || {
            let neighbour = scene.object(cluster, "configmaps", "neighbour").await?;
            (neighbour["data"]["a"] == "2").then_some(()).ok_or_else(|| neighbour.to_string())
        })
        .await;
    let settings = scene.object(cluster, "configmaps", "settings").await.expect("an object");
    assert_eq!(settings["data"], serde_json::json!({"level": "info", "verbose": "yes"}), "untouched");
}
