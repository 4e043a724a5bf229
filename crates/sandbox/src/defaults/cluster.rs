//! Namespaces, nodes, bindings, CustomResourceDefinitions.

use serde_json::{Value, json};

use super::rules;
use crate::object::{self, set_default};

pub(super) fn namespace(new: &mut Value, has_label: bool) {
    let name = object::name(new).to_owned();
    if has_label && !name.is_empty() {
        object::set(new, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
    }
    rules::apply(rules::NAMESPACE, new);
}

/// Adds the finalizer that keeps a namespace until its content is deleted.
pub(super) fn hold(new: &mut Value) {
    if !object::is_deleting(new) {
        set_default(new, &["spec", "finalizers"], json!(["kubernetes"]));
    }
}

pub(super) fn node(new: &mut Value, version: &str, now: &str) {
    let name = object::name(new).to_owned();
    if let Some(range) = object::at(new, &["spec", "podCIDR"]).cloned() {
        set_default(new, &["spec", "podCIDRs"], json!([range]));
    }
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

/// The default limit falls back to the maximum, the default request to the default limit, then to the minimum.
pub(super) fn limit_range(new: &mut Value) {
    rules::at_each(new, "spec.limits[]", &mut |limit| {
        if limit["type"] != "Container" {
            return;
        }
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            let Some(Value::Object(amounts)) = object::at(limit, &[from]).cloned() else { continue };
            for (resource, amount) in amounts {
                set_default(limit, &[to, &resource], amount);
            }
        }
    });
}

/// Webhooks and policies of admission.
pub(super) fn admission(kind: &str, new: &mut Value) {
    match kind {
        "ValidatingWebhookConfiguration" => rules::apply(rules::WEBHOOKS, new),
        "MutatingWebhookConfiguration" => {
            rules::apply(rules::WEBHOOKS, new);
            rules::apply(rules::REINVOCATION, new);
        }
        "ValidatingAdmissionPolicy" => rules::apply(rules::ADMISSION_POLICY, new),
        "ValidatingAdmissionPolicyBinding" => rules::apply(rules::ADMISSION_BINDING, new),
        _ => {}
    }
}

pub(super) fn driver(new: &mut Value) {
    rules::apply(rules::CSI_DRIVER, new);
    set_default(new, &["spec", "volumeLifecycleModes"], json!(["Persistent"]));
}

pub(super) fn binding(new: &mut Value) {
    rules::apply(rules::BINDING, new);
    for subject in new.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            set_default(subject, &["apiGroup"], "rbac.authorization.k8s.io");
        }
    }
}
