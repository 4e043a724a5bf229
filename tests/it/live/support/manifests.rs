//! Texts of manifests. JSON where values vary: it is YAML too, and nothing needs quoting.

use serde_json::{Value, json};

/// An app of plain manifests, placed on every cluster, that takes all files of its folder `objects/`.
pub fn objects_app(namespace: &str, name: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1
kind: Objects
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  files: [objects/*.yaml]
"
    )
}

/// One container, and the labels `app: <name>`.
pub fn deployment(name: &str, image: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "app", "image": image}]},
            },
        },
    })
}

pub fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    })
}

pub fn configmap(name: &str, key: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: value}})
}
