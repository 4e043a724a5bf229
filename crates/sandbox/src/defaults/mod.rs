//! Fields that the server sets in objects.
//!
//! [`fill`] writes an object as the server's types do ([`type_shape`]) and sets the defaults of its kind ([`default_rules`]).
//! [`allocate`] sets what the server decides at a create or change, such as addresses. Both are idempotent. Neither
//! validates an object.

mod admission;
mod batch;
mod cluster;
mod default_rules;
mod pod;
mod service;
mod type_shape;
mod workload;

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::cluster::SandboxState;
use crate::custom;
use crate::object::{self, set_default};
use crate::registry::ResourceKind;
use crate::store::NamespacedName;

pub(crate) use service::keep_allocated as keep_service;
pub(crate) use workload::TEMPLATE_GENERATION;

/// An empty object of a kind: the structs that the server's types always write. A create is compared with it, so
/// managers own only fields inside these structs.
pub(crate) fn skeleton(kind: &ResourceKind) -> Value {
    let mut empty = json!({});
    if kind.kind == "CustomResourceDefinition" {
        return json!({"spec": {"names": {}, "versions": null}});
    }
    // nothing in it can fail
    type_shape::apply_type_shape(kind, &mut empty).ok();
    object::take(&mut empty, &["metadata"]);
    empty
}

fn shape(kind: &ResourceKind, new: &mut Value) -> Result<(), ApiError> {
    type_shape::apply_type_shape(kind, new).map_err(|error| {
        ApiError::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {error}",
            kind.kind, kind.version, kind.kind
        ))
    })
}

/// As [`fill`], of an object that an apply merged.
pub(crate) fn fill_applied(
    state: &SandboxState,
    kind: &ResourceKind,
    new: &mut Value,
) -> Result<(), ApiError> {
    match &kind.schema {
        Some(schema) => {
            custom::fill_applied(schema, new);
            Ok(())
        }
        None => fill(state, kind, new),
    }
}

/// Sets the defaults of the server's types. The writer of the object owns them.
pub(crate) fn fill(state: &SandboxState, kind: &ResourceKind, new: &mut Value) -> Result<(), ApiError> {
    if let Some(schema) = &kind.schema {
        custom::fill(schema, new);
        return Ok(());
    }
    shape(kind, new)?;
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod::fill_pod(new),
        ("", "PodTemplate") => pod::fill_template(new, "template"),
        ("", "Service") => service::fill(new),
        ("", "Secret") => secret(new),
        ("", "Namespace") => cluster::namespace(new, state.options.release.labels_namespaces()),
        ("", "Node") => cluster::node(new, &state.options.version, &state.clock.timestamp()),
        ("", "PersistentVolumeClaim") => default_claim(new),
        ("", "PersistentVolume") => default_rules::apply_rules(default_rules::VOLUME, new),
        ("", "Endpoints") => default_rules::apply_rules(default_rules::ENDPOINTS, new),
        ("", "LimitRange") => cluster::limit_range(new),
        ("apps", "Deployment") => workload::deployment(new),
        ("apps", "ReplicaSet") => workload::replica_set(new),
        ("apps", "StatefulSet") => workload::stateful_set(new),
        ("apps", "DaemonSet") => workload::daemon_set(new),
        ("batch", "Job") => batch::job(new),
        ("batch", "CronJob") => batch::cron_job(new),
        ("autoscaling", "HorizontalPodAutoscaler") => workload::autoscaler(new),
        ("discovery.k8s.io", "EndpointSlice") => {
            default_rules::apply_rules(default_rules::ENDPOINT_SLICE, new)
        }
        ("networking.k8s.io", "NetworkPolicy") => network_policy(new),
        ("networking.k8s.io", "IngressClass") => {
            default_rules::apply_rules(default_rules::INGRESS_CLASS, new)
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => cluster::role_binding(new),
        ("scheduling.k8s.io", "PriorityClass") => {
            default_rules::apply_rules(default_rules::PRIORITY_CLASS, new)
        }
        ("storage.k8s.io", "StorageClass") => default_rules::apply_rules(default_rules::STORAGE_CLASS, new),
        ("storage.k8s.io", "CSIDriver") => cluster::csi_driver(new),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => {
            default_rules::apply_rules(default_rules::FLOW_SCHEMA, new)
        }
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
            default_rules::apply_rules(default_rules::PRIORITY_LEVEL, new);
        }
        ("admissionregistration.k8s.io", kind) => cluster::admission_object(kind, new),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            custom::definition::fill(new);
        }
        _ => {}
    }
    Ok(())
}

/// Kinds whose status the types alone fill, and nothing refuses: those that controllers write most.
pub(crate) fn has_plain_status(kind: &ResourceKind) -> bool {
    matches!((kind.group.as_str(), kind.kind.as_str()), ("apps", "Deployment" | "ReplicaSet") | ("", "Pod"))
}

/// As [`fill`] and without nulls, of an object that is filled but for its plain status.
pub(crate) fn fill_status(kind: &ResourceKind, new: &mut Value) -> Result<(), ApiError> {
    let mut only = json!({"status": object::take(new, &["status"]).unwrap_or_else(|| json!({}))});
    object::drop_nulls(&mut only);
    shape(kind, &mut only)?;
    if kind.kind == "Pod" {
        set_default(&mut only, &["status", "phase"], "Pending");
    }
    new["status"] = object::take(&mut only, &["status"]).unwrap_or_else(|| json!({}));
    Ok(())
}

/// Sets the fields that admission decides for a new object. No manager owns them. A dry run allocates nothing
/// permanently.
pub(crate) fn admit(state: &mut SandboxState, kind: &ResourceKind, new: &mut Value) {
    admission::admit(state, kind, new);
}

/// Sets the fields that the server allocates before it stores an object. No manager owns them. A dry run allocates
/// nothing permanently.
pub(crate) fn allocate(
    state: &mut SandboxState,
    kind: &ResourceKind,
    new: &mut Value,
    dry_run: bool,
) -> Result<(), ApiError> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => service::allocate(state, kind, new, dry_run)?,
        ("", "Namespace") => cluster::add_namespace_finalizer(new),
        ("", "Pod") => admission::tolerate_lost_nodes(new),
        ("", "PersistentVolume") => {
            set_default(new, &["status", "lastPhaseTransitionTime"], state.clock.timestamp());
        }
        ("batch", "Job") => {
            // what changes has its selector
            if object::value_at(new, &["metadata", "resourceVersion"]).is_some() {
                return Ok(());
            }
            // labels that were taken from the pods are the very same
            let labels = object::value_at(new, &["metadata", "labels"]);
            let of_pods = object::value_at(new, &["spec", "template", "metadata", "labels"]);
            let are_shared = labels.is_some() && labels == of_pods;
            batch::add_selector(new);
            if are_shared {
                let shared = new["spec"]["template"]["metadata"]["labels"].clone();
                object::set(new, &["metadata", "labels"], shared);
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let name = NamespacedName::of(new);
            let live = state.store.get(custom::DEFINITIONS, &name).cloned();
            custom::definition::allocate(live.as_deref(), new);
        }
        _ => {}
    }
    Ok(())
}

/// The changes that storing and reading back make to a valid object.
pub(crate) fn normalize_stored(kind: &ResourceKind, new: &mut Value) {
    if kind.has_resource_name("jobs.batch") {
        batch::copy_pod_labels(new);
    }
}

/// `dataSource` and `dataSourceRef` are kept equal.
fn default_claim(new: &mut Value) {
    default_rules::apply_rules(default_rules::CLAIM, new);
    let (older, newer) =
        (object::value_at(new, &["spec", "dataSource"]), object::value_at(new, &["spec", "dataSourceRef"]));
    match (older.cloned(), newer.cloned()) {
        (Some(mut source), None) => {
            set_default(&mut source, &["apiGroup"], Value::Null);
            object::set(new, &["spec", "dataSourceRef"], source.clone());
            object::set(new, &["spec", "dataSource"], source);
        }
        (None, Some(source)) if source.get("namespace").is_none() => {
            object::set(new, &["spec", "dataSource"], source);
        }
        _ => {}
    }
}

/// The policy types: `Ingress` always, `Egress` with egress rules.
fn network_policy(new: &mut Value) {
    default_rules::apply_rules(default_rules::NETWORK_POLICY, new);
    let egress = !object::list(new, &["spec", "egress"]).is_empty();
    let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    set_default(new, &["spec", "policyTypes"], types);
}

/// `stringData` is a way to write `data`; it is never stored.
fn secret(new: &mut Value) {
    use base64::Engine as _;
    default_rules::apply_rules(default_rules::SECRET, new);
    let Some(Value::Object(plain)) = object::take(new, &["stringData"]) else { return };
    for (key, value) in plain {
        let text = value.as_str().unwrap_or("");
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        object::set(new, &["data", &key], json!(encoded));
    }
}
