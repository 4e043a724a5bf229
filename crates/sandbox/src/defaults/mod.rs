//! What the server writes into objects that do not say it: the common defaults of the common kinds.
//!
//! Idempotent: filling a filled object changes nothing. Source: the `defaults.go` of each API group.

mod admission;
mod batch;
mod cluster;
mod empty;
mod pod;
mod quantity;
mod service;
mod skeleton;
mod workload;

use serde_json::{Value, json};

use crate::cluster::State;
use crate::custom;
use crate::object::{self, set_default};
use crate::registry::ResourceKind;
use crate::store::ObjectName;

pub(crate) use skeleton::of as skeleton;
pub(crate) use workload::TEMPLATE_GENERATION;

/// What the server's types write when they read an object. Belongs to whoever wrote the object.
pub(crate) fn fill(state: &State, kind: &ResourceKind, new: &mut Value) {
    if let Some(schema) = &kind.schema {
        return custom::fill(schema, new);
    }
    if !kind.is_custom() && kind.group != "apiextensions.k8s.io" {
        empty::drop_from(new);
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod::fill_pod(new),
        ("", "Service") => service::fill(new),
        ("", "Secret") => secret(new),
        ("", "Namespace") => cluster::namespace(new),
        ("", "Node") => cluster::node(new, &state.options.version, &state.clock.timestamp()),
        ("", "PersistentVolumeClaim") => {
            set_default(new, &["spec", "volumeMode"], "Filesystem");
            quantity::canonicalise_map(new.pointer_mut("/spec/resources/requests"));
            set_default(new, &["status", "phase"], "Pending");
        }
        ("apps", "Deployment") => workload::deployment(new),
        ("apps", "ReplicaSet") => workload::replica_set(new),
        ("apps", "StatefulSet") => workload::stateful_set(new),
        ("apps", "DaemonSet") => workload::daemon_set(new),
        ("batch", "Job") => batch::job(new),
        ("batch", "CronJob") => batch::cron_job(new),
        ("autoscaling", "HorizontalPodAutoscaler") => workload::autoscaler(new),
        ("", "ResourceQuota") => quantity::canonicalise_map(new.pointer_mut("/spec/hard")),
        ("networking.k8s.io", "NetworkPolicy") => {
            let mut types = vec!["Ingress"];
            if object::at(new, &["spec", "egress"]).is_some() {
                types.push("Egress");
            }
            set_default(new, &["spec", "policyTypes"], types);
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => cluster::binding(new),
        ("storage.k8s.io", "StorageClass") => {
            set_default(new, &["reclaimPolicy"], "Delete");
            set_default(new, &["volumeBindingMode"], "Immediate");
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            custom::definition::fill(new);
        }
        _ => {}
    }
}

/// What the server decides for an object that is about to be stored. Belongs to nobody. A dry run
/// takes nothing that stays taken.
pub(crate) fn allocate(state: &mut State, kind: &ResourceKind, new: &mut Value, dry_run: bool) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => service::allocate(state, new, dry_run),
        ("", "Pod") => admission::admit_pod(state, new),
        ("", "Namespace") => cluster::hold(new),
        ("batch", "Job") => batch::select_pods(new),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let name = ObjectName::of(new);
            let live = state.store.get(custom::DEFINITIONS, &name).cloned();
            custom::definition::allocate(live.as_deref(), new);
        }
        _ => {}
    }
}

/// `stringData` is a way to write `data`; it is never stored.
fn secret(new: &mut Value) {
    use base64::Engine as _;
    set_default(new, &["type"], "Opaque");
    let Some(Value::Object(plain)) = object::take(new, &["stringData"]) else { return };
    for (key, value) in plain {
        let text = value.as_str().unwrap_or("");
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        object::set(new, &["data", &key], json!(encoded));
    }
}
