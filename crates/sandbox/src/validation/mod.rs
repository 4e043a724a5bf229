//! Validates objects of built-in kinds, with the server's messages in the server's order.
//!
//! Each family of kinds has a file of rules. A rule reads a [`FieldCursor`](field_cursor::FieldCursor), a value with its path, and adds
//! to [`ValidationErrors`](validation_errors::ValidationErrors). Rules expect objects with defaults filled in and never change them. Kinds
//! without rules of their own get only their metadata checked.

mod access;
mod autoscaling;
mod batch;
mod config;
mod discovery;
mod field_cursor;
mod formats;
mod ingress;
mod limits;
mod metadata;
mod names;
mod pod;
mod policy;
mod schedule;
mod selector;
mod service;
mod storage;
mod validation_errors;
mod workload;

use serde_json::Value;

use crate::api_error::{ApiError, FieldError};
use crate::custom;
use crate::object;
use crate::registry::ResourceKind;
use field_cursor::FieldCursor;
use validation_errors::ValidationErrors;
use workload::WriteKind;

/// A new object on its way to the store.
pub(crate) fn check_new(kind: &ResourceKind, new: &Value) -> Result<(), ApiError> {
    if kind.has_resource_name(custom::DEFINITIONS) {
        return check_definition(kind, None, new);
    }
    let object = FieldCursor::root(new);
    let mut problems = ValidationErrors::default();
    // some kinds leave their metadata to the rules for all
    if !matches!(kind.kind.as_str(), "PodDisruptionBudget" | "Event") {
        metadata::check(kind, &object, &mut problems);
    }
    check_created(kind, &object, &mut problems);
    problems.extend(custom::mistakes(kind, None, new));
    if problems.len() == 0 {
        metadata::check_common(kind, &object, &mut problems);
    }
    refuse(kind, new, &problems.into_errors())
}

/// Definitions of kinds have rules of their own, down to their names.
fn check_definition(kind: &ResourceKind, live: Option<&Value>, new: &Value) -> Result<(), ApiError> {
    custom::definition::readable(new)?;
    let mut problems = ValidationErrors::default();
    if let Some(live) = live {
        let (before, after) = (FieldCursor::root(live), FieldCursor::root(new));
        metadata::check_common_update(&before, &after, &mut problems);
        metadata::check_common_update(&before, &after, &mut problems);
    }
    problems.extend(custom::definition::mistakes(live, new));
    refuse(kind, new, &problems.into_errors())?;
    custom::definition::refuse(new)
}

/// A change of an object on its way to the store.
pub(crate) fn check_update(kind: &ResourceKind, live: &Value, new: &Value) -> Result<(), ApiError> {
    if kind.has_resource_name(custom::DEFINITIONS) {
        return check_definition(kind, Some(live), new);
    }
    let (before, after) = (FieldCursor::root(live), FieldCursor::root(new));
    let mut problems = ValidationErrors::default();
    // once for all kinds, and once by the kind itself
    metadata::check_common(kind, &after, &mut problems);
    metadata::check_common_update(&before, &after, &mut problems);
    metadata::check_update(&before, &after, &mut problems);
    check_changed(kind, &before, &after, &mut problems);
    problems.extend(custom::mistakes(kind, Some(live), new));
    refuse(kind, new, &problems.into_errors())
}

/// Validates the addresses that a service requests.
pub(crate) fn service_addresses(service: &Value) -> Vec<FieldError> {
    let mut problems = ValidationErrors::default();
    service::check_addresses(&FieldCursor::root(service).at("spec"), None, &mut problems);
    problems.into_errors()
}

fn check_created(kind: &ResourceKind, new: &FieldCursor, problems: &mut ValidationErrors) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => workload::check_deployment(new, problems),
        ("apps", "ReplicaSet") => workload::check_replica_set(new, problems),
        ("apps", "StatefulSet") => workload::check_stateful_set(new, WriteKind::New, problems),
        ("apps", "DaemonSet") => workload::check_daemon_set(new, problems),
        ("", "Pod") => {
            pod::check_pod(new, problems);
            pod::check_new(new, problems);
        }
        ("", "Service") => service::check(new, None, problems),
        ("", "ConfigMap") => config::check_config_map(new, problems),
        ("", "Secret") => config::check_secret(new, problems),
        ("networking.k8s.io", "Ingress") => {
            ingress::check(new, problems);
            ingress::check_new(new, problems);
        }
        ("networking.k8s.io", "IngressClass") => ingress::check_class(new, problems),
        ("networking.k8s.io", "NetworkPolicy") => policy::check_network_policy(new, problems),
        ("policy", "PodDisruptionBudget") => policy::check_budget(new, problems),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::check(new, problems),
        ("batch", "Job") => batch::check_job(new, problems),
        ("batch", "CronJob") => batch::check_cron_job(new, None, problems),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => {
            access::check_role(new, kind.namespaced, problems);
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            access::check_binding(new, kind.namespaced, problems);
        }
        _ => check_created_rest(kind, new, problems),
    }
}

fn check_created_rest(kind: &ResourceKind, new: &FieldCursor, problems: &mut ValidationErrors) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "PersistentVolumeClaim") => storage::check_claim_spec(&new.at("spec"), problems),
        ("", "PersistentVolume") => storage::check_volume(new, problems),
        ("storage.k8s.io", "StorageClass") => storage::check_class(new, problems),
        ("", "ResourceQuota") => limits::check_quota(new, problems),
        ("", "LimitRange") => limits::check_limit_range(new, problems),
        ("scheduling.k8s.io", "PriorityClass") => limits::check_priority(new, problems),
        ("", "Endpoints") => discovery::check_endpoints(new, problems),
        ("discovery.k8s.io", "EndpointSlice") => discovery::check_slice(new, problems),
        ("coordination.k8s.io", "Lease") => discovery::check_lease(new, problems),
        ("", "Event") => discovery::check_event(new, "involvedObject", problems),
        ("", "PodTemplate") => pod::check_template(&new.at("template"), problems),
        _ => {}
    }
}

fn check_changed(
    kind: &ResourceKind,
    live: &FieldCursor,
    new: &FieldCursor,
    problems: &mut ValidationErrors,
) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => {
            workload::check_deployment(new, problems);
            workload::check_update(live, new, problems);
        }
        ("apps", "ReplicaSet") => {
            workload::check_replica_set(new, problems);
            workload::check_update(live, new, problems);
        }
        ("apps", "StatefulSet") => {
            workload::check_stateful_set(new, WriteKind::Changed, problems);
            workload::check_stateful_set_update(live, new, problems);
        }
        ("apps", "DaemonSet") => {
            workload::check_update(live, new, problems);
            workload::check_daemon_set(new, problems);
        }
        ("", "Pod") => {
            metadata::check(kind, new, problems);
            pod::check_pod(new, problems);
            pod::check_update(live, new, problems);
        }
        ("", "Service") => {
            service::check_update(live, new, problems);
            service::check(new, Some(live), problems);
        }
        ("", "PodTemplate") => pod::check_template(&new.at("template"), problems),
        ("", "ConfigMap") => {
            config::check_sealed(live, new, &["data", "binaryData"], problems);
            metadata::check(kind, new, problems);
            config::check_config_map(new, problems);
        }
        ("", "Secret") => {
            config::check_secret_update(live, new, problems);
            metadata::check(kind, new, problems);
            config::check_secret(new, problems);
        }
        ("networking.k8s.io", "Ingress") => {
            metadata::check(kind, new, problems);
            ingress::check(new, problems);
        }
        ("networking.k8s.io", "IngressClass") => {
            problems.check_unchanged(
                &live.at("spec.controller"),
                &new.at("spec.controller"),
                "field is immutable",
            );
        }
        ("networking.k8s.io", "NetworkPolicy") => policy::check_network_policy(new, problems),
        ("policy", "PodDisruptionBudget") => policy::check_budget(new, problems),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::check(new, problems),
        ("batch", "Job") => {
            metadata::check(kind, new, problems);
            batch::check_job(new, problems);
            batch::check_job_update(live, new, problems);
        }
        ("batch", "CronJob") => batch::check_cron_job(new, Some(live), problems),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => {
            metadata::check(kind, new, problems);
            access::check_role(new, kind.namespaced, problems);
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            metadata::check(kind, new, problems);
            access::check_binding(new, kind.namespaced, problems);
            access::check_binding_update(live, new, problems);
        }
        ("", "PersistentVolumeClaim") => {
            metadata::check(kind, new, problems);
            storage::check_claim_spec(&new.at("spec"), problems);
            storage::check_claim_update(live, new, problems);
        }
        ("", "Namespace") => {
            metadata::check(kind, new, problems);
            metadata::check_spec_finalizers(new, problems);
        }
        ("", "PersistentVolume") => {
            // the server does it twice
            for _ in 0..2 {
                metadata::check(kind, new, problems);
                storage::check_volume(new, problems);
            }
            storage::check_volume_update(live, new, problems);
        }
        ("storage.k8s.io", "StorageClass") => {
            metadata::check(kind, new, problems);
            storage::check_class(new, problems);
            storage::check_class_update(live, new, problems);
        }
        ("", "ResourceQuota") => {
            limits::check_quota(new, problems);
            limits::check_quota_update(live, new, problems);
        }
        ("", "LimitRange") => {
            metadata::check(kind, new, problems);
            limits::check_limit_range(new, problems);
        }
        ("scheduling.k8s.io", "PriorityClass") => limits::check_priority_update(live, new, problems),
        ("", "Endpoints") => discovery::check_endpoints(new, problems),
        ("discovery.k8s.io", "EndpointSlice") => {
            metadata::check(kind, new, problems);
            discovery::check_slice(new, problems);
            let field = "addressType";
            problems.check_unchanged(&live.at(field), &new.at(field), "field is immutable");
        }
        ("coordination.k8s.io", "Lease") => discovery::check_lease(new, problems),
        _ => {}
    }
}

fn refuse(kind: &ResourceKind, new: &Value, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    if kind.has_resource_name("events.events.k8s.io") {
        // the server holds events of both groups as those of the older one
        let older = ResourceKind { group: String::new(), ..kind.clone() };
        return Err(ApiError::invalid(&older, object::name(new), errors));
    }
    Err(ApiError::invalid(kind, object::name(new), errors))
}
