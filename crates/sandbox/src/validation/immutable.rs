//! Fields that never change after the create.

use serde_json::Value;

use crate::object;
use crate::registry::ResourceKind;
use crate::status::FieldError;

const IMMUTABLE: &str = "field is immutable";

pub(super) fn check(kind: &ResourceKind, live: &Value, new: &Value) -> Vec<FieldError> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => {
            kept(live, new, &["spec", "selector"], IMMUTABLE)
        }
        ("apps", "StatefulSet") => stateful_set(live, new),
        ("batch", "Job") => [&["spec", "selector"][..], &["spec", "template"], &["spec", "completions"]]
            .iter()
            .flat_map(|path| kept(live, new, path, IMMUTABLE))
            .collect(),
        ("", "Service") => service(live, new),
        ("", "ConfigMap" | "Secret") => sealed(kind, live, new),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            kept(live, new, &["roleRef"], "cannot change roleRef")
        }
        ("", "PersistentVolumeClaim") => kept(live, new, &["spec", "storageClassName"], IMMUTABLE),
        ("storage.k8s.io", "StorageClass") => [&["provisioner"][..], &["parameters"]]
            .iter()
            .filter(|path| object::at(live, path) != object::at(new, path))
            .map(|path| {
                FieldError::forbidden(path.join("."), "updates to storageclass parameters are forbidden.")
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// An object that is being deleted takes no new finalizers. The server says it twice.
pub(super) fn finalizers(live: &Value, new: &Value) -> Vec<FieldError> {
    let before = object::finalizers(live);
    let added: Vec<String> =
        object::finalizers(new).iter().filter(|one| !before.contains(one)).map(Value::to_string).collect();
    if !object::is_deleting(live) || added.is_empty() {
        return Vec::new();
    }
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    let error = FieldError::forbidden("metadata.finalizers", &why);
    vec![error.clone(), error]
}

fn kept(live: &Value, new: &Value, path: &[&str], why: &str) -> Vec<FieldError> {
    let (before, after) = (object::at(live, path), object::at(new, path));
    if before == after {
        return Vec::new();
    }
    vec![FieldError::invalid(path.join("."), after.unwrap_or(&Value::Null), why)]
}

/// Only these fields of a StatefulSet may change.
const OPEN: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn stateful_set(live: &Value, new: &Value) -> Vec<FieldError> {
    let closed = |value: &Value| {
        let mut spec = value["spec"].clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|name, _| !OPEN.contains(&name.as_str()));
        }
        spec
    };
    if closed(live) == closed(new) {
        return Vec::new();
    }
    vec![FieldError::forbidden(
        "spec",
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
    )]
}

fn service(live: &Value, new: &Value) -> Vec<FieldError> {
    let kind_of = |value: &Value| object::text(value, &["spec", "type"]).unwrap_or("ClusterIP").to_owned();
    if kind_of(live) == "ExternalName" || kind_of(new) == "ExternalName" {
        return Vec::new();
    }
    let path = &["spec", "clusterIP"];
    let before = object::text(live, path).unwrap_or("");
    if before.is_empty() || object::text(new, path) == Some(before) {
        return Vec::new();
    }
    let after = object::at(new, path).cloned().unwrap_or_else(|| Value::from(""));
    vec![FieldError::invalid("spec.clusterIPs[0]", &Value::from(vec![after]), "may not change once set")]
}

/// ConfigMaps and Secrets that say `immutable: true`; the type of a Secret always.
fn sealed(kind: &ResourceKind, live: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if kind.kind == "Secret" {
        errors.extend(kept(live, new, &["type"], IMMUTABLE));
    }
    if live.get("immutable") != Some(&Value::Bool(true)) {
        return errors;
    }
    if new.get("immutable") != Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden("immutable", "field is immutable when `immutable` is set"));
    }
    for field in ["data", "binaryData"] {
        if live.get(field) != new.get(field) {
            errors.push(FieldError::forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
    errors
}
