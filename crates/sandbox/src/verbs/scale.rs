//! The `scale` subresource: replicas of a workload, whatever its kind.

use serde_json::{Value, json};

use super::update::{Update, check_identity};
use super::{Caller, get};
use crate::cluster::State;
use crate::object;
use crate::registry::ResourceKind;
use crate::status::{ApiError, FieldError};
use crate::wire::route::Target;

pub(crate) fn read_scale(state: &State, target: &Target) -> Result<Value, ApiError> {
    scale_of(target, &*get(state, target)?)
}

fn scale_of(target: &Target, workload: &Value) -> Result<Value, ApiError> {
    let (spec, status) = paths(target);
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": object::name(workload), "uid": object::uid(workload), "resourceVersion": object::revision(workload).to_string(),
            "creationTimestamp": workload["metadata"]["creationTimestamp"],
        },
        "spec": {}, "status": {"replicas": object::integer(workload, &words(&status))},
    });
    if target.kind.namespaced {
        object::set(&mut scale, &["metadata", "namespace"], object::namespace(workload));
    }
    if target.kind.is_custom() {
        if object::at(workload, &words(&spec)).is_none() {
            return Err(ApiError::internal(&format!("the spec replicas field {spec:?} does not exist")));
        }
        let selector = target.kind.scale_paths.as_ref().and_then(|paths| paths.selector.as_deref());
        if let Some(selector) = selector.and_then(|path| object::text(workload, &words(path))) {
            scale["status"]["selector"] = json!(selector);
        }
    }
    let replicas = object::integer(workload, &words(&spec));
    if replicas != 0 {
        scale["spec"]["replicas"] = json!(replicas);
    }
    let labels = object::at(workload, &["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    if let Some(labels) = labels.filter(|_| !target.kind.is_custom()) {
        let pairs: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or(""))).collect();
        scale["status"]["selector"] = json!(pairs.join(","));
    }
    Ok(scale)
}

/// Changes the replicas by `change`, which turns the present scale into the wanted one.
pub(crate) fn write_scale(
    state: &mut State,
    target: &Target,
    change: impl FnOnce(&mut Value) -> Result<(), ApiError>,
    caller: &Caller,
) -> Result<Value, ApiError> {
    let live = get(state, target)?;
    let mut scale = scale_of(target, &live)?;
    change(&mut scale)?;
    check_identity(target, &mut scale)?;
    check_replicas(target, &scale)?;
    let mut new = (*live).clone();
    let replicas = object::at(&scale, &["spec", "replicas"]).cloned().unwrap_or_else(|| json!(0));
    object::set(&mut new, &words(&paths(target).0), replicas);
    if let Some(revision) = object::text(&scale, &["metadata", "resourceVersion"]) {
        object::set(&mut new, &["metadata", "resourceVersion"], revision);
    }
    let update = Update { live, new, subresource: target.subresource.clone() };
    let stored = update.tracked(state, &target.kind, caller)?;
    scale_of(target, &stored)
}

/// A mistake is one of the scale, whatever has it.
fn check_replicas(target: &Target, scale: &Value) -> Result<(), ApiError> {
    let replicas = &scale["spec"]["replicas"];
    if replicas.as_i64().is_none_or(|replicas| replicas >= 0) {
        return Ok(());
    }
    let mistake = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
    let scale = ResourceKind {
        group: "autoscaling".to_owned(),
        kind: "Scale".to_owned(),
        ..ResourceKind::clone(&target.kind)
    };
    Err(ApiError::invalid(&scale, &target.name, &[mistake]))
}

fn paths(target: &Target) -> (String, String) {
    match &target.kind.scale_paths {
        Some(paths) => (paths.spec_replicas.clone(), paths.status_replicas.clone()),
        None => (".spec.replicas".to_owned(), ".status.replicas".to_owned()),
    }
}

fn words(path: &str) -> Vec<&str> {
    path.split('.').filter(|word| !word.is_empty()).collect()
}
