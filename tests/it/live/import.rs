//! Objects made by kubectl are imported and adopted without restarting a pod.

use std::fs;

use live::LiveCluster;
use serde_json::Value;

use super::support::{LiveFixture, configmap, deployment, service};

/// The fields of the author, which adoption must not change.
async fn comparable_state(scene: &LiveFixture, cluster: &LiveCluster) -> Vec<Value> {
    let mut pods = scene.list(cluster, "pods", "").await;
    pods.sort_by_key(|pod| pod["metadata"]["uid"].to_string());
    let mut found: Vec<Value> = pods.iter().map(|pod| pod["metadata"]["uid"].clone()).collect();
    found.push(replica_sets(scene, cluster).await);
    for (kind, name) in [("deployments", "web"), ("services", "web"), ("configmaps", "settings")] {
        let object = scene.object(cluster, kind, name).await.expect("an object");
        found.extend([object["metadata"]["uid"].clone(), object["spec"].clone(), object["data"].clone()]);
    }
    found
}

async fn replica_sets(scene: &LiveFixture, cluster: &LiveCluster) -> Value {
    let template = "jsonpath={range .items[*]}{.metadata.name} {.metadata.generation} {end}";
    let names = cluster.kubectl(&["get", "replicasets", "-n", scene.name(), "-o", template]).await;
    Value::from(names.expect("replica sets"))
}

async fn field_managers(scene: &LiveFixture, cluster: &LiveCluster) -> Vec<String> {
    let web = scene.object(cluster, "deployments", "web").await.expect("an object");
    let entries = web["metadata"]["managedFields"].as_array().expect("entries").iter();
    entries.filter_map(|entry| entry["manager"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn existing_objects_are_imported_without_a_restart() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("import").await else { return };
    let mut web = deployment("web", "shop/web:1.0", 2);
    web["metadata"]["labels"] = serde_json::json!({"team": "shop"});
    web["spec"]["minReadySeconds"] = 1.into();
    web["spec"]["template"]["spec"]["containers"][0]["env"] =
        serde_json::json!([{"name": "FORMAT", "value": "{{ name }} {% x %}"}]);
    web["spec"]["template"]["spec"]["containers"][0]["resources"] =
        serde_json::json!({"requests": {"cpu": "0.1", "memory": "1024Mi"}});
    web["spec"]["template"]["spec"]["volumes"] =
        serde_json::json!([{"name": "settings", "configMap": {"name": "settings"}}]);
    let objects = [web, service("web"), configmap("settings", "level", "yes")];
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    for cluster in scene.clusters() {
        let apply = ["apply", "-n", scene.name(), "-f", "-"];
        cluster.kubectl_with_input(&apply, &text.join("\n---\n")).await.expect("objects");
        scene.until_ready(cluster, "web", "shop/web:1.0", 2).await;
    }
    let mut before = Vec::new();
    for cluster in scene.clusters() {
        before.push(comparable_state(&scene, cluster).await);
    }

    let folder = scene.worktree.folder().display().to_string();
    let kubeconfigs = scene.kubeconfigs();
    let import = ["import", "-n", scene.name(), "--out", &folder, "--kubeconfigs", &kubeconfigs];
    let ended = scene.run(&import.map(str::to_owned)).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for line in [
        "import/web: AppSet",
        "wrote apps/web/app.yaml",
        "cluster-1 Deployment import/web: the same, its pods stay",
        "cluster-4 Service import/web: the same",
    ] {
        assert!(ended.stdout.contains(line), "no {line:?} in {}", ended.stdout);
    }
    let commit = scene.worktree.publish("import");
    let ended = scene.run(&["lint".to_owned(), folder]).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let ended = scene.run(&scene.arguments(&["plan"], &[])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let line = "~ adopt      Deployment import/web: taken over from kubectl-client-side-apply, nothing \
                changes; its pods stay";
    assert_eq!(ended.stdout.matches(line).count(), 2, "{}", ended.stdout);
    assert!(ended.stdout.contains("6 adopt"), "{}", ended.stdout);

    scene.start(&[]).await;
    scene.until_succeeded(&commit).await;
    for (cluster, before) in scene.clusters().iter().zip(&before) {
        assert_eq!(&comparable_state(&scene, cluster).await, before, "{}", cluster.name());
        let managers = field_managers(&scene, cluster).await;
        assert!(!managers.iter().any(|manager| manager.starts_with("kubectl")), "{managers:?}");
    }

    // A field that Git drops is removed, without a restart.
    let template = scene.worktree.folder().join("apps/web/layer/deployment.yaml.j2");
    let text = fs::read_to_string(&template).expect("a template");
    let less = text.replace("  minReadySeconds: 1\n", "").replace("  labels:\n    team: shop\n", "");
    assert_ne!(less, text);
    fs::write(&template, less).expect("a file");
    let commit = scene.worktree.publish("less");
    scene.until_succeeded(&commit).await;
    for (cluster, before) in scene.clusters().iter().zip(&before) {
        let web = scene.object(cluster, "deployments", "web").await.expect("an object");
        assert_eq!(
            (&web["spec"]["minReadySeconds"], &web["metadata"]["labels"]["team"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(
            comparable_state(&scene, cluster).await[..2],
            before[..2],
            "the pods of {}",
            cluster.name()
        );
    }

    let manifest = scene.worktree.folder().join("apps/web/app.yaml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    fs::write(&manifest, text.replace("shop/web:1.0", "shop/web:1.1")).expect("a file");
    let commit = scene.worktree.publish("web 1.1");
    scene.until_succeeded(&commit).await;
    for cluster in scene.clusters() {
        scene.until_ready(cluster, "web", "shop/web:1.1", 2).await;
    }
}
