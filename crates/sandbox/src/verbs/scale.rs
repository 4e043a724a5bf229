//! The `scale` subresource: replicas of a workload, whatever its kind.

use std::sync::Arc;

use serde_json::{Value, json};

use super::patch::{PatchRequest, apply_patch, check_config_type, merge_config};
use super::update::{ObjectUpdate, check_identity, uid_conflict};
use super::{WriteCaller, get, ownership};
use crate::api_error::{ApiError, FieldError};
use crate::cluster::SandboxState;
use crate::custom;
use crate::decoding::TypeName;
use crate::object;
use crate::registry::ResourceKind;
use crate::ssa::{self, ManagerOperation};
use crate::wire::route::RequestTarget;

const REPLICAS: &[&str] = &["spec", "replicas"];
const MANAGED: &[&str] = &["metadata", "managedFields"];

/// The replicas of a scale whose workload has none.
const NO_REPLICAS: i64 = i32::MIN as i64;

#[derive(Debug)]
pub(crate) enum ScaleChange {
    Replace(Value),
    Patch(PatchRequest),
}

pub(crate) fn read_scale(state: &SandboxState, target: &RequestTarget) -> Result<Value, ApiError> {
    let workload = get(state, target)?;
    let scale = scale_of(target, &workload)?;
    if object::value_at(&scale, REPLICAS).and_then(Value::as_i64) == Some(NO_REPLICAS) {
        let path = spec_path(target);
        return Err(ApiError::internal(&format!("the spec replicas field {path:?} does not exist")));
    }
    Ok(scale)
}

fn scale_of(target: &RequestTarget, workload: &Value) -> Result<Value, ApiError> {
    let kind = &target.kind;
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": object::name(workload), "uid": object::uid(workload), "resourceVersion": object::revision(workload).to_string(),
            "creationTimestamp": workload["metadata"]["creationTimestamp"],
        },
        "spec": {}, "status": {"replicas": 0},
    });
    if kind.namespaced {
        object::set(&mut scale, &["metadata", "namespace"], object::namespace(workload));
    }
    let replicas = match &kind.scale_paths {
        Some(paths) => {
            let found = custom::scale::read(workload, paths).map_err(ApiError::stored_object_error)?;
            scale["status"]["replicas"] = json!(found.present);
            if !found.selector.is_empty() {
                scale["status"]["selector"] = json!(found.selector);
            }
            found.wanted.unwrap_or(NO_REPLICAS)
        }
        None => {
            scale["status"]["replicas"] = json!(object::integer(workload, &["status", "replicas"]));
            let labels =
                object::value_at(workload, &["spec", "selector", "matchLabels"]).and_then(Value::as_object);
            if let Some(labels) = labels {
                let pair =
                    |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or(""));
                let pairs: Vec<String> = labels.iter().map(pair).collect();
                scale["status"]["selector"] = json!(pairs.join(","));
            }
            object::integer(workload, REPLICAS)
        }
    };
    if replicas != 0 {
        scale["spec"]["replicas"] = json!(replicas);
    }
    Ok(scale)
}

/// Changes the replicas: converts the workload to its scale, writes that like any object, and copies replicas and
/// owners back to the workload.
pub(crate) fn write_scale(
    state: &mut SandboxState,
    target: &RequestTarget,
    change: ScaleChange,
    caller: &WriteCaller,
) -> Result<Value, ApiError> {
    let live = get(state, target)?;
    let kind = &target.kind;
    let paths = kind.replica_paths();
    let unread = || ApiError::stored_object_error("failed to decode managed fields".to_owned());
    let mut before = scale_of(target, &live)?;
    set_owners(&mut before, ssa::owners_of_scale(&live, &paths).ok_or_else(unread)?);
    let is_put = matches!(change, ScaleChange::Replace(_));
    let mut scale = scale_after_change(target, &before, change, caller, &state.clock.timestamp())?;
    check_identity(target, &mut scale)?;
    check_replicas(target, &scale)?;
    check_uid(target, &live, &scale, is_put)?;

    let mut new = (*live).clone();
    let replicas = object::value_at(&scale, REPLICAS).cloned().unwrap_or_else(|| json!(0));
    object::set(&mut new, &path_segments(&spec_path(target)), replicas);
    if let Some(revision) = object::text(&scale, &["metadata", "resourceVersion"]) {
        object::set(&mut new, &["metadata", "resourceVersion"], revision);
    }
    if state.options.release.tracks_subresources() {
        let owners = ssa::owners_of_workload(&live, &scale, &paths, &kind.api_version());
        set_owners(&mut new, owners.ok_or_else(unread)?);
    }
    drop(paths);
    let update = ObjectUpdate { live, new, subresource: target.subresource.clone() };
    let stored = update.store_applied(state, kind, caller)?;
    scale_of(target, &stored)
}

/// The scale after a change, with its owners.
fn scale_after_change(
    target: &RequestTarget,
    before: &Value,
    change: ScaleChange,
    caller: &WriteCaller,
    now: &str,
) -> Result<Value, ApiError> {
    let kind = scale_kind(&target.kind);
    let mut new = match change {
        ScaleChange::Patch(PatchRequest::Apply { config, force }) => {
            return scale_after_apply(target, before, config, force, caller, now);
        }
        ScaleChange::Patch(patch) => apply_patch(before, patch, TypeName::SCALE, |_| Vec::new(), caller)?,
        ScaleChange::Replace(new) => new,
    };
    // a scale without replicas has none
    if object::value_at(&new, REPLICAS).and_then(Value::as_i64) == Some(0) {
        object::take(&mut new, REPLICAS);
    }
    let writer = caller.writer(&kind, ManagerOperation::Update, &target.subresource);
    ownership::track(&kind, &writer, before, &mut new, now);
    Ok(new)
}

fn scale_after_apply(
    target: &RequestTarget,
    before: &Value,
    mut config: Value,
    force: bool,
    caller: &WriteCaller,
    now: &str,
) -> Result<Value, ApiError> {
    let is_custom = target.kind.is_custom();
    let of_scale = RequestTarget { kind: Arc::new(scale_kind(&target.kind)), ..target.clone() };
    check_config_type(&of_scale.kind, &config)?;
    if is_custom && object::value_at(before, MANAGED).is_none() {
        let why =
            format!("failed to create manager for existing fields: {}", conversion_error("live", "", ""));
        return Err(ApiError::stored_object_error(why));
    }
    let said = |field| object::text(&config, &["metadata", field]).unwrap_or_default().to_owned();
    let (namespace, name) = (said("namespace"), said("name"));
    let Some(mut scale) = merge_config(&of_scale, Some(before), &mut config, force, caller, now)? else {
        return Ok(before.clone());
    };
    if is_custom {
        // real servers come as far as conflicts, and cannot write what an apply changed
        let rest = |scale: &Value| {
            let mut rest = scale.clone();
            object::take(&mut rest, MANAGED);
            rest
        };
        if rest(&scale) == rest(before) {
            return Ok(before.clone());
        }
        return Err(ApiError::stored_object_error(conversion_error("new", &namespace, &name)));
    }
    if let Some(replicas) = object::value_at(&scale, REPLICAS).cloned() {
        let count = as_i32(&replicas).ok_or_else(|| {
            let what = format!("failed to convert new object ({namespace}/{name}; autoscaling/v1, Kind=Scale) to proper version");
            let why = "unable to convert unstructured object to autoscaling/v1, Kind=Scale: cannot convert float64 to int32";
            ApiError::stored_object_error(format!("{what}: {why}"))
        })?;
        object::set(&mut scale, REPLICAS, count);
    }
    Ok(scale)
}

/// A number as the server's 32 bits keep it; `None` for a broken one.
fn as_i32(number: &Value) -> Option<i32> {
    let float = number.as_f64().filter(|float| float.fract() == 0.0);
    let whole = number.as_i64().or_else(|| float.map(|float| float as i64))?;
    Some(whole as i32)
}

fn conversion_error(which: &str, namespace: &str, name: &str) -> String {
    format!(
        "failed to convert {which} object ({namespace}/{name}; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
    )
}

fn set_owners(object: &mut Value, owners: Vec<Value>) {
    object::take(object, MANAGED);
    if !owners.is_empty() {
        object::set(object, MANAGED, owners);
    }
}

/// Another object is not scaled; custom kinds take no offence at patches.
fn check_uid(target: &RequestTarget, live: &Value, scale: &Value, is_put: bool) -> Result<(), ApiError> {
    let (sent, found) = (object::uid(scale), object::uid(live));
    if sent.is_empty() || sent == found {
        return Ok(());
    }
    if is_put {
        return Err(uid_conflict(&target.kind, live, sent, found));
    }
    if target.kind.is_custom() {
        return Ok(());
    }
    let kind = &*target.kind;
    let kind = ResourceKind { plural: format!("{}/scale", kind.plural), ..kind.clone() };
    let why = format!("Precondition failed: UID in precondition: {sent}, UID in object meta: {found}");
    Err(ApiError::conflict(&kind, &target.name, &why))
}

/// A mistake of a built-in kind is one of the scale; custom kinds find their own.
fn check_replicas(target: &RequestTarget, scale: &Value) -> Result<(), ApiError> {
    let replicas = &scale["spec"]["replicas"];
    if target.kind.is_custom() {
        if replicas.as_i64() != Some(NO_REPLICAS) {
            return Ok(());
        }
        let path = spec_path(target);
        return Err(ApiError::bad_request(format!("the spec replicas field {path:?} cannot be empty")));
    }
    if replicas.as_i64().is_none_or(|replicas| replicas >= 0) {
        return Ok(());
    }
    let mistake = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
    Err(ApiError::invalid(&scale_kind(&target.kind), &target.name, &[mistake]))
}

fn scale_kind(of: &ResourceKind) -> ResourceKind {
    ResourceKind {
        group: TypeName::SCALE.group.to_owned(),
        version: TypeName::SCALE.version.to_owned(),
        kind: TypeName::SCALE.kind.to_owned(),
        schema: None,
        merge: None,
        definition: None,
        scale_paths: None,
        ..of.clone()
    }
}

fn spec_path(target: &RequestTarget) -> String {
    let paths = target.kind.scale_paths.as_ref();
    paths.map_or(".spec.replicas", |paths| &paths.spec_replicas).to_owned()
}

fn path_segments(path: &str) -> Vec<&str> {
    path.split('.').filter(|word| !word.is_empty()).collect()
}
