//! Manifest texts. Variable values are JSON, which is YAML and needs no quoting.

use serde_json::{Value, json};

/// An Objects app on every cluster that takes all files of its folder `objects/`.
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

/// With one container, and the labels `app: <name>`.
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

/// A definition of a namespaced kind with one version.
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

/// A schema that accepts everything.
pub fn open_schema() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
