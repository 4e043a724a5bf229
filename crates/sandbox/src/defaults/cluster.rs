//! Namespaces, nodes, bindings, CustomResourceDefinitions.

use serde_json::{Value, json};

use super::default_rules;
use crate::object::{self, set_default};

pub(super) fn namespace(new: &mut Value, has_label: bool) {
    let name = object::name(new).to_owned();
    if has_label && !name.is_empty() {
        object::set(new, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
    }
    default_rules::apply_rules(default_rules::NAMESPACE, new);
}

/// Adds the finalizer that keeps a namespace until its content is deleted.
pub(super) fn add_namespace_finalizer(new: &mut Value) {
    if !object::is_deleting(new) {
        set_default(new, &["spec", "finalizers"], json!(["kubernetes"]));
    }
}

pub(super) fn node(new: &mut Value, version: &str, now: &str) {
    let name = object::name(new).to_owned();
    if let Some(range) = object::value_at(new, &["spec", "podCIDR"]).cloned() {
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
    default_rules::for_each_at(new, "spec.limits[]", &mut |limit| {
        if limit["type"] != "Container" {
            return;
        }
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            let Some(Value::Object(amounts)) = object::value_at(limit, &[from]).cloned() else { continue };
            for (resource, amount) in amounts {
                set_default(limit, &[to, &resource], amount);
            }
        }
    });
}

/// Webhooks and policies of admission.
pub(super) fn admission_object(kind: &str, new: &mut Value) {
    match kind {
        "ValidatingWebhookConfiguration" => default_rules::apply_rules(default_rules::WEBHOOKS, new),
        "MutatingWebhookConfiguration" => {
            default_rules::apply_rules(default_rules::WEBHOOKS, new);
            default_rules::apply_rules(default_rules::REINVOCATION, new);
        }
        "ValidatingAdmissionPolicy" => default_rules::apply_rules(default_rules::ADMISSION_POLICY, new),
        "ValidatingAdmissionPolicyBinding" => {
            default_rules::apply_rules(default_rules::ADMISSION_BINDING, new)
        }
        _ => {}
    }
}

pub(super) fn csi_driver(new: &mut Value) {
    default_rules::apply_rules(default_rules::CSI_DRIVER, new);
    set_default(new, &["spec", "volumeLifecycleModes"], json!(["Persistent"]));
}

pub(super) fn role_binding(new: &mut Value) {
    default_rules::apply_rules(default_rules::BINDING, new);
    for subject in new.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            set_default(subject, &["apiGroup"], "rbac.authorization.k8s.io");
        }
    }
}
