//! Manifests without a namespace, or with one on cluster-scoped kinds, on real servers: twenty objects equal those of kubectl from the
//! same manifest with `-n`. Also the missing namespace of an app.

use serde_json::{Value, json};

use super::support::{LiveFixture, configmap, dry_run_by_kubectl, without_identity};

/// Built-in and custom kinds; each without a namespace, and some cluster-scoped ones with one.
fn namespaced_objects() -> Vec<Value> {
    let named = |api_version: &str, kind: &str, name: &str, more: Value| {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
            object.extend(more);
        }
        object
    };
    let with = |mut object: Value, namespace: Value| {
        object["metadata"]["namespace"] = namespace;
        object
    };
    let rule = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let labels = json!({"app": "web"});
    let role = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "places"});
    let till = |name: &str, spec: Value| named("places.example.com/v1", "Till", name, json!({"spec": spec}));
    let town = |name: &str, spec: Value| named("places.example.com/v1", "Town", name, json!({"spec": spec}));
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        named("v1", "ConfigMap", "one", json!({"data": {"a": "1"}})),
        with(named("v1", "ConfigMap", "two", json!({"data": {"a": "1"}})), json!("")),
        named("v1", "Secret", "one", json!({"stringData": {"password": "x"}})),
        named("v1", "ServiceAccount", "one", json!({"automountServiceAccountToken": false})),
        named(
            "v1",
            "Service",
            "one",
            json!({"spec": {"clusterIP": "None", "selector": labels, "ports": [{"port": 80}]}}),
        ),
        named(
            "v1",
            "LimitRange",
            "one",
            json!({"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1000m"}}]}}),
        ),
        named(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "one",
            json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
        ),
        named(
            "policy/v1",
            "PodDisruptionBudget",
            "one",
            json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}),
        ),
        named(rbac, "Role", "one", json!({"rules": rule})),
        named(rbac, "RoleBinding", "one", json!({"roleRef": role("Role"), "subjects": []})),
        named(rbac, "ClusterRole", "places-one", json!({"rules": rule})),
        with(named(rbac, "ClusterRole", "places-two", json!({"rules": rule})), json!("elsewhere")),
        with(
            named(
                rbac,
                "ClusterRoleBinding",
                "places-one",
                json!({"roleRef": role("ClusterRole"), "subjects": []}),
            ),
            json!("elsewhere"),
        ),
        with(
            named("scheduling.k8s.io/v1", "PriorityClass", "places-one", json!({"value": 10})),
            json!("elsewhere"),
        ),
        with(
            named(
                "storage.k8s.io/v1",
                "StorageClass",
                "places-one",
                json!({"provisioner": "example.com/none"}),
            ),
            json!("elsewhere"),
        ),
        till("one", json!({"open": true})),
        till("two", json!({"list": [{"a": 1}], "map": {}})),
        with(till("three", json!({"open": false})), json!("")),
        town("places-one", json!({"open": true})),
        with(town("places-two", json!({"open": true})), json!("elsewhere")),
    ]
}

fn definition(kind: &str, scope: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.places.example.com")},
        "spec": {
            "group": "places.example.com", "scope": scope,
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
        },
    })
}

#[tokio::test]
async fn objects_come_where_kubectl_puts_them() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("places").await else { return };
    let table = namespaced_objects();
    assert_eq!(table.len(), 20);
    scene.write_app("web", &table);
    // Another app, later by name.
    scene.write_app("zz-kinds", &[definition("Till", "Namespaced"), definition("Town", "Cluster")]);
    scene.worktree.publish("all of them");
    let ended = scene.run(&scene.local_arguments(&["run", "--once"], &[])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for cluster in scene.clusters() {
        for manifest in &table {
            let kind = manifest["kind"].as_str().expect("a kind");
            let name = manifest["metadata"]["name"].as_str().expect("a name");
            let arguments = ["get", kind, name, "-n", scene.name(), "-o", "json"];
            let found =
                cluster.kubectl(&arguments).await.unwrap_or_else(|error| panic!("{manifest}: {error}"));
            let found: Value = serde_json::from_str(&found).expect("JSON");
            let theirs = dry_run_by_kubectl(cluster, scene.name(), manifest).await;
            assert_eq!(without_identity(&found), without_identity(&theirs), "on {}", cluster.version());
            let is_of_cluster = found["metadata"].get("namespace").is_none();
            assert_eq!(is_of_cluster, theirs["metadata"].get("namespace").is_none(), "{manifest}");
        }
    }
}

#[tokio::test]
async fn missing_namespace_is_made_when_the_app_asks() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("unmade").await else { return };
    let app = |create: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: web, namespace: unmade-web}}\nspec: {{files: [objects/*.yaml]{create}}}\n"
        )
    };
    scene.write_objects("web", &[configmap("one", "a", "1"), configmap("two", "a", "1")]);
    scene.worktree.write("apps/web/app.yaml", &app(""));
    scene.worktree.publish("nobody makes the namespace");
    let ended = scene.run(&scene.local_arguments(&["run", "--once"], &[])).await;
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.code, Some(3), "{shown}");
    for words in ["namespaces \"unmade-web\" not found", "createNamespace: true", "kind Project"] {
        assert!(shown.contains(words), "no {words:?} in {shown}");
    }

    scene.worktree.write("apps/web/app.yaml", &app(", createNamespace: true"));
    scene.worktree.publish("the app does");
    let ended = scene.run(&scene.local_arguments(&["run", "--once"], &[])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for cluster in scene.clusters() {
        let namespace = cluster.get("/api/v1/namespaces/unmade-web").await.expect("it is there");
        let labels = namespace["metadata"]["labels"].as_object().expect("labels");
        assert_eq!(labels.keys().collect::<Vec<_>>(), ["kubernetes.io/metadata.name"]);
        let map = cluster.get("/api/v1/namespaces/unmade-web/configmaps/two").await.expect("it is there");
        assert_eq!(map["data"], json!({"a": "1"}));
        cluster.kubectl(&["delete", "namespace", "unmade-web", "--wait=false"]).await.expect("deleted");
    }
}
