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

/// A definition of a kind in namespaces, with one version.
pub fn definition(group: &str, kind: &str, version: &str, schema: &Value) -> Value {
    let singular = kind.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": format!("{singular}s"), "singular": singular, "kind": kind},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// The schema of a kind that takes whatever is written.
pub fn open_schema() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
