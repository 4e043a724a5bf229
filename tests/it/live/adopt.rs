//! Objects of which the server does not know who set what, as from before it kept account, or after somebody cleared it.

use serde_json::{Value, json};

use super::support::{Scene, deployment, service};

const NAMED: [(&str, &str); 3] =
    [("deployments", "web"), ("services", "web"), ("persistentvolumeclaims", "data")];

fn claim() -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}

async fn state(scene: &Scene) -> Vec<Value> {
    let mut found = Vec::new();
    for cluster in scene.clusters() {
        for (kind, name) in NAMED {
            let object = scene.object(cluster, kind, name).await.expect("an object");
            found.push(json!([object["spec"], object["metadata"]["finalizers"], object["metadata"]["uid"]]));
        }
    }
    found
}

#[tokio::test]
async fn what_nobody_knows_whose_it_is_becomes_what_the_plan_says() {
    let Some(scene) = Scene::pair("adopt").await else { return };
    let mut theirs = [deployment("web", "shop/web:1.0", 1), service("web"), claim()];
    theirs[0]["spec"]["template"]["spec"]["containers"][0]["workingDir"] = json!("/srv");
    theirs[0]["metadata"]["finalizers"] = json!(["example.com/held"]);
    theirs[1]["spec"]["type"] = json!("NodePort");
    theirs[2]["spec"]["volumeName"] = json!("by-hand");
    theirs[2]["spec"]["storageClassName"] = json!("");
    let text: Vec<String> = theirs.iter().map(Value::to_string).collect();
    let nobody = r#"{"metadata":{"managedFields":[{}]}}"#;
    for cluster in scene.clusters() {
        let create = ["create", "-n", scene.name(), "-f", "-"];
        cluster.kubectl_with_input(&create, &text.join("\n---\n")).await.expect("objects");
        scene.ready(cluster, "web", "shop/web:1.0", 1).await;
        for (kind, name) in NAMED {
            let clear = ["patch", kind, name, "-n", scene.name(), "--type", "merge", "-p", nobody];
            cluster.kubectl(&clear).await.expect("a patch");
        }
    }
    let mut expected = state(&scene).await;
    let mut wanted = [deployment("web", "shop/web:1.0", 1), service("web"), claim()];
    wanted[1]["spec"]["type"] = json!("NodePort");
    scene.write_instance("poll: 1s");
    scene.write_spec("web", &["adopt: true"]);
    scene.write_objects("web", &wanted);
    scene.worktree.publish("adopt");

    let ended = scene.run(&scene.arguments(&["plan"], &[])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for line in [
        "Deployment adopt/web: taken over, changes spec.template.spec.containers[0].workingDir; its pods are replaced",
        "Service adopt/web: taken over, nothing in it changes",
        "PersistentVolumeClaim adopt/data: taken over, nothing in it changes",
    ] {
        assert_eq!(ended.stdout.matches(line).count(), 2, "no {line:?} in {}", ended.stdout);
    }
    assert_eq!(state(&scene).await, expected, "a look changes nothing");

    scene.start(&[]).await;
    for cluster in scene.clusters() {
        for (kind, name) in NAMED {
            scene
                .eventually(&format!("{kind} {name} is ours"), async || {
                    let is_it = |object: &Value| object["metadata"]["name"] == name;
                    scene.ours(cluster, kind).await.iter().any(is_it).then_some(()).ok_or_else(String::new)
                })
                .await;
        }
    }
    for known in expected.iter_mut().step_by(NAMED.len()) {
        let container = &mut known[0]["template"]["spec"]["containers"][0];
        container.as_object_mut().expect("a container").shift_remove("workingDir");
    }
    assert_eq!(state(&scene).await, expected);
    for cluster in scene.clusters() {
        let web = scene.object(cluster, "deployments", "web").await.expect("an object");
        assert!(!web.to_string().contains("before-first-apply"), "{web}");
        // Nothing holds the namespace of the test.
        let free = r#"{"metadata":{"finalizers":null}}"#;
        let free = ["patch", "deployment", "web", "-n", scene.name(), "--type", "merge", "-p", free];
        cluster.kubectl(&free).await.expect("a patch");
    }
}
