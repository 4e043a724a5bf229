//! Objects without `managedFields`, as from before servers recorded them, or after somebody cleared them.

use live::LiveCluster;
use serde_json::{Value, json};

use super::support::{LiveFixture, deployment, service};

const OBJECT_NAMES: [(&str, &str); 3] =
    [("deployments", "web"), ("services", "web"), ("persistentvolumeclaims", "data")];

fn claim() -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}

async fn objects_state(scene: &LiveFixture) -> Vec<Value> {
    let mut found = Vec::new();
    for cluster in scene.clusters() {
        for (kind, name) in OBJECT_NAMES {
            let object = scene.object(cluster, kind, name).await.expect("an object");
            found.push(json!([object["spec"], object["metadata"]["finalizers"], object["metadata"]["uid"]]));
        }
    }
    found
}

#[tokio::test]
async fn unowned_objects_become_what_the_plan_says() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("adopt").await else { return };
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
        scene.until_ready(cluster, "web", "shop/web:1.0", 1).await;
        for (kind, name) in OBJECT_NAMES {
            let clear = ["patch", kind, name, "-n", scene.name(), "--type", "merge", "-p", nobody];
            cluster.kubectl(&clear).await.expect("a patch");
        }
    }
    let mut expected = objects_state(&scene).await;
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
        "Service adopt/web: taken over, nothing changes",
        "PersistentVolumeClaim adopt/data: taken over, nothing changes",
    ] {
        assert_eq!(ended.stdout.matches(line).count(), 2, "no {line:?} in {}", ended.stdout);
    }
    assert_eq!(objects_state(&scene).await, expected, "a look changes nothing");

    scene.start(&[]).await;
    for cluster in scene.clusters() {
        for (kind, name) in OBJECT_NAMES {
            scene
                .eventually(&format!("{kind} {name} is ours"), async || {
                    let is_it = |object: &Value| object["metadata"]["name"] == name;
                    scene
                        .managed_objects(cluster, kind)
                        .await
                        .iter()
                        .any(is_it)
                        .then_some(())
                        .ok_or_else(String::new)
                })
                .await;
        }
    }
    for known in expected.iter_mut().step_by(OBJECT_NAMES.len()) {
        let container = &mut known[0]["template"]["spec"]["containers"][0];
        container.as_object_mut().expect("a container").shift_remove("workingDir");
    }
    assert_eq!(objects_state(&scene).await, expected);
    for cluster in scene.clusters() {
        let web = scene.object(cluster, "deployments", "web").await.expect("an object");
        assert!(!web.to_string().contains("before-first-apply"), "{web}");
        // Nothing keeps the namespace of the test.
        let free = r#"{"metadata":{"finalizers":null}}"#;
        let free = ["patch", "deployment", "web", "-n", scene.name(), "--type", "merge", "-p", free];
        cluster.kubectl(&free).await.expect("a patch");
    }
}

/// How tools write, and which of their fields are removed without restarting a pod.
#[tokio::test]
async fn objects_of_other_tools_are_adopted_without_restart() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("adopt-tools").await else { return };
    let tools = [
        ("deployments", "helm", &["create", "--field-manager=helm"][..]),
        (
            "statefulsets",
            "kustomize-controller",
            &["apply", "--server-side", "--field-manager=kustomize-controller"],
        ),
        ("daemonsets", "argocd-controller", &["apply", "--server-side", "--field-manager=argocd-controller"]),
    ];
    let objects = workloads();
    for cluster in scene.clusters() {
        for ((_, tool, how), object) in tools.iter().zip(&objects) {
            let mut theirs = object.clone();
            theirs["metadata"]["labels"] = json!({"example.com/made-by": tool});
            let arguments = [how, &["-n", scene.name(), "-f", "-"][..]].concat();
            cluster.kubectl_with_input(&arguments, &theirs.to_string()).await.expect("made");
        }
        scene
            .eventually("all pods run", async || {
                let pods = pods(&scene, cluster).await;
                let is_ready = |kind: &str| pods.iter().any(|(name, _)| name.starts_with(kind));
                if ["deployment-", "statefulset-", "daemonset-"].into_iter().all(is_ready) {
                    Ok(())
                } else {
                    Err(format!("{pods:?}"))
                }
            })
            .await;
    }
    let mut before = Vec::new();
    for cluster in scene.clusters() {
        before.push(pods(&scene, cluster).await);
    }
    scene.write_spec("web", &["adopt: true"]);
    scene.write_objects("web", &objects);
    let commit = scene.worktree.publish("adopt");
    let ended = scene.run(&scene.arguments(&["plan"], &[])).await;
    for (_, tool, _) in tools {
        let line = format!("taken over from {tool}, changes metadata.labels; its pods stay");
        assert_eq!(ended.stdout.matches(&line).count(), 2, "no {line:?} in {}", ended.stdout);
    }

    scene.start(&[]).await;
    scene.until_succeeded(&commit).await;
    for (cluster, before) in scene.clusters().iter().zip(&before) {
        assert_eq!(&pods(&scene, cluster).await, before, "the pods of {}", cluster.name());
        for ((kind, tool, _), object) in tools.iter().zip(&objects) {
            let name = object["metadata"]["name"].as_str().expect("a name");
            let object = scene.object(cluster, kind, name).await.expect("there");
            let managers = object["metadata"]["managedFields"].to_string();
            assert!(!managers.contains(tool) && managers.contains("tutti-adopt-tools"), "{managers}");
            assert_eq!(object["metadata"]["labels"]["example.com/made-by"], Value::Null);
        }
    }
}

/// One object of each kind that makes pods, named after it.
fn workloads() -> [Value; 3] {
    ["Deployment", "StatefulSet", "DaemonSet"].map(|kind| {
        let mut workload = deployment(&kind.to_lowercase(), "shop/web:1.0", 1);
        workload["kind"] = kind.into();
        if kind == "DaemonSet" {
            workload["spec"].as_object_mut().expect("a spec").shift_remove("replicas");
        }
        workload
    })
}

/// The ready pods.
async fn pods(scene: &LiveFixture, cluster: &LiveCluster) -> Vec<(String, Value)> {
    let mut pods = scene.list(cluster, "pods", "").await;
    pods.retain(|pod| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        conditions.filter(|it| it["type"] == "Ready").any(|it| it["status"] == "True")
    });
    let named = |pod: &Value| {
        (pod["metadata"]["name"].as_str().unwrap_or_default().to_owned(), pod["metadata"]["uid"].clone())
    };
    let mut pods: Vec<_> = pods.iter().map(named).collect();
    pods.sort_by(|one, other| one.0.cmp(&other.0));
    pods
}
