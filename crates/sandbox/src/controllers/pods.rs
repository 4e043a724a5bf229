//! Creates, deletes and lists the pods of a controller, stored or virtual.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::controller_context::ControllerContext;
use super::event_component::EventComponent;
use crate::api_error::ApiError;
use crate::object;
use crate::store::{ParsedObject, StoreKey};

/// Creates a pod for a controller and records an event.
pub(super) fn create(
    context: &mut ControllerContext<'_>,
    owner: &Value,
    kind: &str,
    pod: Value,
) -> Result<ParsedObject, ApiError> {
    let namespace = object::namespace(owner).to_owned();
    let made = context.try_create("pods", &namespace, pod);
    let source = component_of(kind);
    match &made {
        Ok(pod) => {
            let message = format!("Created pod: {}", object::name(pod));
            context.event(owner, source, "Normal", "SuccessfulCreate", &message);
        }
        Err(error) => {
            let message = format!("Error creating: {error}");
            context.event(owner, source, "Warning", "FailedCreate", &message);
        }
    }
    made
}

fn component_of(kind: &str) -> EventComponent {
    match kind {
        "DaemonSet" => EventComponent::DaemonSet,
        "Job" => EventComponent::Job,
        "StatefulSet" => EventComponent::StatefulSet,
        _ => EventComponent::ReplicaSet,
    }
}

pub(super) fn is_finished(pod: &Value) -> bool {
    matches!(object::text(pod, &["status", "phase"]), Some("Succeeded" | "Failed"))
}

/// Is the pod counted as a replica?
pub(super) fn is_active(pod: &Value) -> bool {
    !object::is_deleting(pod) && !is_finished(pod)
}

pub(super) fn is_ready(pod: &Value) -> bool {
    object::condition_is_true(pod, "Ready")
}

/// When the pod counts as available; `None` while it is not ready.
fn available_at(context: &ControllerContext<'_>, pod: &Value, min_ready: Duration) -> Option<Instant> {
    if !is_ready(pod) {
        return None;
    }
    let since = context.memory.pod_runs.get(object::uid(pod)).and_then(|run| run.ready_since);
    Some(since.unwrap_or(context.now) + min_ready)
}

pub(super) fn is_available(context: &ControllerContext<'_>, pod: &Value, min_ready: Duration) -> bool {
    available_at(context, pod, min_ready).is_some_and(|at| at <= context.now)
}

/// How many are available; their controller is called again when more will be.
pub(super) fn count_available(
    context: &mut ControllerContext<'_>,
    owner: &StoreKey,
    pods: &[ParsedObject],
    min_ready: Duration,
) -> i64 {
    let mut available = 0;
    for pod in pods {
        match available_at(context, pod, min_ready) {
            Some(at) if at <= context.now => available += 1,
            Some(at) => context.requeue_at(owner, at),
            None => {}
        }
    }
    available
}

/// A pod from a template, controlled by `owner`.
pub(super) fn from_template(owner: &Value, api_version: &str, kind: &str) -> Value {
    let template = object::value_at(owner, &["spec", "template"]).cloned().unwrap_or_default();
    let mut metadata = json!({"generateName": format!("{}-", object::name(owner))});
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = object::value_at(&template, &["metadata", field]) {
            metadata[field] = value.clone();
        }
    }
    metadata["ownerReferences"] = json!([object::controller_reference(owner, api_version, kind)]);
    json!({"metadata": metadata, "spec": template["spec"]})
}
