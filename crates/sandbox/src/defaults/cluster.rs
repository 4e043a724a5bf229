//! Namespaces, nodes, bindings, CustomResourceDefinitions.

use serde_json::{Value, json};

use crate::object::{self, set_default};

pub(super) fn namespace(new: &mut Value) {
    let name = object::name(new).to_owned();
    set_default(new, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
    set_default(new, &["status", "phase"], "Active");
}

/// A namespace is held until its content is gone.
pub(super) fn hold(new: &mut Value) {
    if !object::is_deleting(new) {
        set_default(new, &["spec", "finalizers"], json!(["kubernetes"]));
    }
}

pub(super) fn node(new: &mut Value, version: &str, now: &str) {
    let name = object::name(new).to_owned();
    let size = json!({"cpu": "8", "memory": "32Gi", "pods": "110"});
    set_default(new, &["status", "capacity"], size.clone());
    set_default(new, &["status", "allocatable"], size);
    set_default(new, &["status", "addresses"], json!([{"type": "Hostname", "address": name}]));
    set_default(new, &["status", "nodeInfo", "kubeletVersion"], version);
    set_default(
        new,
        &["status", "conditions"],
        json!([{"type": "Ready", "status": "True", "reason": "KubeletReady",
            "message": "kubelet is posting ready status", "lastTransitionTime": now}]),
    );
}

pub(super) fn binding(new: &mut Value) {
    set_default(new, &["roleRef", "apiGroup"], "rbac.authorization.k8s.io");
    for subject in new.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if subject["kind"] != "ServiceAccount" {
            set_default(subject, &["apiGroup"], "rbac.authorization.k8s.io");
        }
    }
}
