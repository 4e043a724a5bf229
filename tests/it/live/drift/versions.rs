//! Git uses another API version of an object: it stays the same object, and loses nothing.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::support::{LiveFixture, deployment};
use super::table::{AuditedCluster, is_about, request_names};

const SCENE: &str = "drift-versions";
const QUIET_TIME: Duration = Duration::from_secs(3);

fn autoscaler(version: &str, target: &Value) -> Value {
    let mut spec = json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1, "maxReplicas": 3});
    for (field, value) in target.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"}, "spec": spec})
}

fn metrics(percent: u32) -> Value {
    json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": percent}}}])
}

fn menu(version: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("versions.example.com/{version}"), "kind": "Menu",
        "metadata": {"name": "web", "namespace": SCENE}, "spec": spec})
}

fn definition() -> Value {
    let text = json!({"type": "string"});
    let spec =
        json!({"type": "object", "properties": {"dish": text, "note": text, "price": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "menus.versions.example.com"},
        "spec": {
            "group": "versions.example.com", "scope": "Namespaced",
            "versions": [version("v1beta1", true), version("v1", false)],
            "names": {"plural": "menus", "singular": "menu", "kind": "Menu"},
        },
    })
}

/// Uid, spec, and our entries of `managedFields`.
async fn object_record(
    scene: &LiveFixture,
    counted: &AuditedCluster,
    resource: &str,
) -> (Value, Value, Vec<Value>) {
    let arguments = ["get", resource, "web", "-n", scene.name(), "-o", "json", "--show-managed-fields"];
    let text = counted.cluster.kubectl(&arguments).await.expect("an object");
    let object: Value = serde_json::from_str(&text).expect("JSON");
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let ours = entries.filter(|it| it["manager"].as_str().is_some_and(|name| name.starts_with("tutti-")));
    (object["metadata"]["uid"].clone(), object["spec"].clone(), ours.cloned().collect())
}

#[tokio::test]
async fn another_api_version_keeps_the_object() {
    let Some(scene) = LiveFixture::new(SCENE, 4).await else { return };
    for cluster in scene.clusters() {
        let input = definition().to_string();
        cluster.kubectl_with_input(&["create", "-f", "-"], &input).await.expect("a definition");
        let served =
            ["wait", "--for=condition=Established", "crd/menus.versions.example.com", "--timeout=60s"];
        cluster.kubectl(&served).await.expect("a served definition");
    }
    let clusters = [
        AuditedCluster::new(&scene, scene.cluster(0)).await,
        AuditedCluster::new(&scene, scene.cluster(3)).await,
    ];
    let objects = |autoscaler: Value, menu: Value| [deployment("web", "shop/web:1.0", 1), autoscaler, menu];
    let old = objects(
        autoscaler("v1", &json!({"targetCPUUtilizationPercentage": 50})),
        menu("v1beta1", &json!({"dish": "soup", "note": "old"})),
    );
    let new = objects(
        autoscaler("v2", &json!({"metrics": metrics(60)})),
        menu("v1", &json!({"dish": "soup", "price": 3})),
    );
    scene.write_app("web", &old);
    let commit = scene.worktree.publish("the old versions");
    let ways = ["--cluster", &clusters[0].cluster_option, "--cluster", &clusters[1].cluster_option];
    scene.start(&ways).await;
    scene.until_succeeded(&commit).await;

    let resources = ["horizontalpodautoscalers.v2.autoscaling", "menus.v1.versions.example.com"];
    let mut first = Vec::new();
    for counted in &clusters {
        for resource in resources {
            first.push(object_record(&scene, counted, resource).await.0);
        }
    }
    for (text, objects, percent, spec) in [
        ("the new versions", &new, 60, json!({"dish": "soup", "price": 3})),
        ("the old ones again", &old, 50, json!({"dish": "soup", "note": "old"})),
        ("the new ones again", &new, 60, json!({"dish": "soup", "price": 3})),
    ] {
        let before: Vec<usize> = clusters.iter().map(|counted| counted.counted_requests().len()).collect();
        scene.write_objects("web", objects);
        let commit = scene.worktree.publish(text);
        scene.until_succeeded(&commit).await;
        tokio::time::sleep(QUIET_TIME).await;
        let mut uids = Vec::new();
        for (counted, before) in clusters.iter().zip(before) {
            let version = counted.cluster.version();
            let mut asked = request_names(&counted.counted_requests().split_off(before));
            asked.sort();
            // They are watched in the applied version, which an older server lists once.
            let expected = [
                "list horizontalpodautoscalers.autoscaling",
                "list menus.versions.example.com",
                "patch horizontalpodautoscalers.autoscaling",
                "patch menus.versions.example.com",
            ];
            let lists = if counted.has_streamed_lists() { 0 } else { 2 };
            assert_eq!(asked, expected[2 - lists..], "{text} on {version}");
            let wanted = [&objects[1]["apiVersion"], &objects[2]["apiVersion"]];
            for (resource, wanted) in resources.into_iter().zip(wanted) {
                let (uid, live, ours) = object_record(&scene, counted, resource).await;
                uids.push(uid);
                let versions: Vec<&Value> = ours.iter().map(|it| &it["apiVersion"]).collect();
                assert_eq!(versions, [wanted], "{text}: {resource} on {version}");
                if resource.starts_with("menus") {
                    assert_eq!(live, spec, "{text} on {version}");
                } else {
                    assert_eq!(
                        (&live["metrics"], &live["maxReplicas"]),
                        (&metrics(percent), &json!(3)),
                        "{text} on {version}"
                    );
                }
            }
        }
        assert_eq!(uids, first, "{text}: the same objects");
    }

    // A change through the other version is repaired as usual.
    let patch = r#"{"spec":{"maxReplicas":9}}"#;
    let resource = "horizontalpodautoscalers.v1.autoscaling";
    let edit = ["patch", resource, "web", "--type=merge", "--patch", patch, "-n", scene.name()];
    for counted in &clusters {
        let before = counted.counted_requests().len();
        counted.cluster.kubectl(&edit).await.expect("an edit");
        scene
            .eventually("the autoscaler is put back", async || {
                let (_, spec, _) = object_record(&scene, counted, resources[0]).await;
                if spec["maxReplicas"] == 3 { Ok(()) } else { Err(spec.to_string()) }
            })
            .await;
        tokio::time::sleep(QUIET_TIME).await;
        let asked: Vec<_> = counted.counted_requests().split_off(before);
        assert!(asked.iter().all(|it| is_about(it, "horizontalpodautoscalers", "web")), "{asked:?}");
        assert_eq!(
            request_names(&asked),
            ["patch horizontalpodautoscalers.autoscaling"],
            "{}",
            counted.cluster.version()
        );
    }

    // A later process finds nothing to write.
    scene.kill();
    let before: Vec<usize> = clusters.iter().map(|counted| counted.counted_requests().len()).collect();
    scene.start(&ways).await;
    for (counted, before) in clusters.iter().zip(&before) {
        counted.until_read_again(&scene, *before).await;
    }
    tokio::time::sleep(2 * QUIET_TIME).await;
    for (counted, before) in clusters.iter().zip(before) {
        let mut asked = counted.counted_requests().split_off(before);
        asked.retain(|it| it.verb != "get" && it.verb != "list");
        assert_eq!(request_names(&asked), Vec::<String>::new(), "{}", counted.cluster.version());
    }
}
