//! Objects and fields of others stay theirs.

use super::support::{LiveFixture, configmap, deployment};

#[tokio::test]
async fn an_existing_deployment_is_refused_until_deleted() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("stranger").await else { return };
    let theirs = deployment("web", "shop/web:0.9", 1).to_string();
    let mut before = Vec::new();
    for cluster in scene.clusters() {
        let apply = ["apply", "-n", scene.name(), "-f", "-"];
        cluster.kubectl_with_input(&apply, &theirs).await.expect("an object");
        scene.until_ready(cluster, "web", "shop/web:0.9", 1).await;
        before.push(scene.object(cluster, "deployments", "web").await.expect("an object"));
    }

    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1)]);
    scene.write_app("neighbour", &[configmap("neighbour", "a", "1")]);
    let commit = scene.worktree.publish("first");
    scene.start(&[]).await;
    let words = ["cluster-1", "web", "does not manage it", "kubectl-client-side-apply"];
    scene.until_status(&commit, "deploy", "failure", &words).await;
    scene
        .until_logged_for_each(&[
            "stranger/web",
            "Refused",
            "does not manage it",
            "kubectl-client-side-apply",
        ])
        .await;
    for cluster in scene.clusters() {
        scene.object(cluster, "configmaps", "neighbour").await.expect("the other app goes on");
    }

    let ended = scene.run(&scene.arguments(&["get", "targets"], &["-o", "json"])).await;
    let targets: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let all = targets.as_array().expect("targets").iter();
    let of_web: Vec<_> = all.filter(|it| it["app"] == "stranger/web").collect();
    assert_eq!(of_web.len(), scene.clusters().len(), "{targets}");
    for target in of_web {
        assert_eq!(target["phase"], "Refused", "{target}");
        assert!(
            target["detail"].as_str().is_some_and(|detail| detail.contains("does not manage it")),
            "{target}"
        );
    }
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);

    for (cluster, before) in scene.clusters().iter().zip(before) {
        let after = scene.object(cluster, "deployments", "web").await.expect("an object");
        assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"], "untouched");
        cluster.kubectl(&["delete", "deployment", "web", "-n", scene.name()]).await.expect("a delete");
    }
    scene.until_succeeded(&commit).await;
    for cluster in scene.clusters() {
        scene.until_ready(cluster, "web", "shop/web:1.0", 1).await;
    }
}

#[tokio::test]
async fn a_conflict_names_field_and_manager() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("conflict").await else { return };
    scene.write_app("settings", &[configmap("settings", "level", "info")]);
    scene.write_app("neighbour", &[configmap("neighbour", "a", "1")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;

    let theirs = configmap("settings", "verbose", "yes").to_string();
    let take = ["apply", "--server-side", "--field-manager=somebody", "-n", scene.name(), "-f", "-"];
    for cluster in scene.clusters() {
        cluster.kubectl_with_input(&take, &theirs).await.expect("an apply");
    }

    scene.write_objects("settings", &[configmap("settings", "verbose", "no")]);
    scene.write_objects("neighbour", &[configmap("neighbour", "a", "2")]);
    let second = scene.worktree.publish("both apps");
    scene
        .until_status(&second, "deploy", "failure", &["settings", "conflict", "somebody", ".data.verbose"])
        .await;
    scene.until_logged_for_each(&["conflict/settings", "Refused", "somebody", ".data.verbose"]).await;
    for cluster in scene.clusters() {
        scene
            .eventually("the other app goes on", async || {
                let neighbour = scene.object(cluster, "configmaps", "neighbour").await?;
                (neighbour["data"]["a"] == "2").then_some(()).ok_or_else(|| neighbour.to_string())
            })
            .await;
        let settings = scene.object(cluster, "configmaps", "settings").await.expect("an object");
        assert_eq!(settings["data"], serde_json::json!({"level": "info", "verbose": "yes"}), "untouched");
    }

    scene.write_spec("settings", &["force: true"]);
    let forced = scene.worktree.publish("by force");
    scene.until_succeeded(&forced).await;
    for cluster in scene.clusters() {
        let settings = scene.object(cluster, "configmaps", "settings").await.expect("an object");
        assert_eq!(settings["data"], serde_json::json!({"verbose": "no"}));
    }
}

#[tokio::test]
async fn the_next_commit_takes_back_kubectl_fields() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("retaken").await else { return };
    scene.write_app("web", &[deployment("web", "shop/web:1.0", 1), configmap("web", "level", "info")]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    scene.write_spec("web", &["paused: true"]);
    let paused = scene.worktree.publish("paused");
    scene.until_status(&paused, "deploy", "pending", &["paused"]).await;

    let edit = async |image: &str, level: &str| {
        let container = serde_json::json!({"name": "app", "image": image});
        let image =
            serde_json::json!({"spec": {"template": {"spec": {"containers": [container]}}}}).to_string();
        let level = serde_json::json!({"data": {"level": level}}).to_string();
        for cluster in scene.clusters() {
            for (kind, patch) in [("deployments", &image), ("configmaps", &level)] {
                let arguments = ["patch", kind, "web", "--patch", patch, "-n", scene.name()];
                cluster.kubectl(&arguments).await.expect("an edit");
            }
            let arguments = ["scale", "deployments", "web", "--replicas=3", "-n", scene.name()];
            cluster.kubectl(&arguments).await.expect("scaled");
        }
    };
    let release = |image: &str, level: &str, fields: &[&str]| {
        scene.write_objects("web", &[deployment("web", image, 2), configmap("web", "level", level)]);
        scene.write_spec("web", fields);
        scene.worktree.publish(image)
    };
    let holds = async |image: &str, level: &str| {
        for cluster in scene.clusters() {
            scene.until_ready(cluster, "web", image, 2).await;
            let map = scene.object(cluster, "configmaps", "web").await.expect("an object");
            assert_eq!(map["data"]["level"], level);
        }
    };
    edit("shop/web:7", "debug").await;
    let commit = release("shop/web:1.1", "warn", &[]);
    scene.until_succeeded(&commit).await;
    holds("shop/web:1.1", "warn").await;

    // Also by a later process, which knows only Git and the cluster.
    scene.kill();
    edit("shop/web:8", "trace").await;
    let commit = release("shop/web:1.2", "error", &[]);
    scene.start(&[]).await;
    scene.until_succeeded(&commit).await;
    holds("shop/web:1.2", "error").await;
}

#[tokio::test]
async fn an_ignored_field_stays_with_its_manager() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("yielding").await else { return };
    let rules = "ignore: [{target: {kind: Deployment}, paths: [/spec/template/spec/containers/name=app/image, \
                 /metadata/annotations/example.com~1note]}]";
    let noted = |image: &str, replicas: u32| {
        let mut web = deployment("web", image, replicas);
        web["metadata"]["annotations"] = serde_json::json!({"example.com/note": "of Git"});
        web
    };
    scene.write_app("web", &[noted("shop/web:1.0", 1)]);
    scene.write_spec("web", &[rules]);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;

    let patch = serde_json::json!({
        "metadata": {"annotations": {"example.com/note": null}},
        "spec": {"template": {"spec": {"containers": [{"name": "app", "image": "shop/web:7"}]}}},
    });
    let arguments = ["patch", "deployments", "web", "--patch", &patch.to_string(), "-n", scene.name()];
    for cluster in scene.clusters() {
        scene.until_ready(cluster, "web", "shop/web:1.0", 1).await;
        cluster.kubectl(&arguments).await.expect("an edit");
    }
    scene.write_objects("web", &[noted("shop/web:1.1", 2)]);
    scene.write_spec("web", &[rules, "force: true"]);
    let second = scene.worktree.publish("another image, and more pods");
    scene.until_succeeded(&second).await;
    for cluster in scene.clusters() {
        scene.until_ready(cluster, "web", "shop/web:7", 2).await;
        let web = scene.object(cluster, "deployments", "web").await.expect("an object");
        assert_eq!(web["metadata"]["annotations"].get("example.com/note"), None, "gone stays gone");
    }
}
