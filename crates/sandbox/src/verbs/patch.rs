//! `patch`: server-side apply, merge patch, JSON patch, strategic merge patch.

use serde_json::{Value, json};

use super::update::Update;
use super::{Caller, create, key, strategic};
use crate::cluster::State;
use crate::object;
use crate::ssa::{self, ApplyError, Operation, Schema};
use crate::status::{ApiError, FieldError};
use crate::store::Object;
use crate::wire::route::Target;

#[derive(Debug)]
pub(crate) enum Patch {
    Apply { config: Value, force: bool },
    Merge(Value),
    Json(json_patch::Patch),
    Strategic(Value),
}

/// The object afterwards, and whether it was created.
pub(crate) fn patch(
    state: &mut State,
    target: &Target,
    patch: Patch,
    caller: &Caller,
) -> Result<(Object, bool), ApiError> {
    let kind = &target.kind;
    let live = state.store.at(&key(kind, &target.namespace, &target.name)).cloned();
    match (patch, live) {
        (Patch::Apply { config, force }, live) => apply(state, target, config, force, live, caller),
        (_, None) => Err(ApiError::not_found(kind, &target.name)),
        (Patch::Merge(change), Some(live)) => {
            let mut new = (*live).clone();
            json_patch::merge(&mut new, &change);
            changed(state, target, live, new, caller)
        }
        (Patch::Strategic(change), Some(live)) => {
            let mut new = (*live).clone();
            strategic::merge(&mut new, &change, Schema::of(kind));
            changed(state, target, live, new, caller)
        }
        (Patch::Json(operations), Some(live)) => {
            let mut new = (*live).clone();
            for operation in &operations.0 {
                json_step(kind, &target.name, &mut new, operation)?;
            }
            changed(state, target, live, new, caller)
        }
    }
}

fn changed(
    state: &mut State,
    target: &Target,
    live: Object,
    new: Value,
    caller: &Caller,
) -> Result<(Object, bool), ApiError> {
    let update = Update { live, new, subresource: target.subresource.clone() };
    Ok((update.tracked(state, &target.kind, caller)?, false))
}

/// One JSON patch operation. Unlike RFC 6902, the server lets `test null` pass on a missing path.
fn json_step(
    kind: &crate::registry::ResourceKind,
    name: &str,
    object: &mut Value,
    operation: &json_patch::PatchOperation,
) -> Result<(), ApiError> {
    if let json_patch::PatchOperation::Test(test) = operation
        && test.value.is_null()
        && object.pointer(test.path.as_str()).is_none_or(Value::is_null)
    {
        return Ok(());
    }
    json_patch::patch(object, std::slice::from_ref(operation)).map_err(|error| {
        let mut refused = ApiError::invalid(kind, name, &[]);
        refused.message = format!("the server rejected our request due to an error in our request: {error}");
        refused
    })
}

fn apply(
    state: &mut State,
    target: &Target,
    mut config: Value,
    force: bool,
    live: Option<Object>,
    caller: &Caller,
) -> Result<(Object, bool), ApiError> {
    let kind = &target.kind;
    check_config(target, &mut config)?;
    if live.is_none() && !target.subresource.is_empty() {
        return Err(ApiError::not_found(kind, &target.name));
    }
    let writer = caller.writer(kind, Operation::Apply, &target.subresource);
    let now = state.clock.timestamp();
    let sent_uid = object::uid(&config).to_owned();
    let sent_revision = object::text(&config, &["metadata", "resourceVersion"]).unwrap_or("").to_owned();
    let merged = ssa::apply(live.as_deref(), &config, Schema::of(kind), &writer, force, &now)
        .map_err(|error| refused(target, error))?;
    match live {
        Some(live) => {
            let mut new = merged;
            if !sent_revision.is_empty() {
                object::set(&mut new, &["metadata", "resourceVersion"], sent_revision);
            }
            let update = Update { live, new, subresource: target.subresource.clone() };
            Ok((update.settled(state, kind, caller)?, false))
        }
        None if !sent_uid.is_empty() => {
            let why = format!(
                "uid mismatch: the provided object specified uid {sent_uid}, and no existing object was found"
            );
            Err(ApiError::conflict(kind, &target.name, &why))
        }
        None => {
            let mut new = merged;
            create::prepare(state, kind, &target.namespace, &mut new)?;
            create::complete(state, kind, &mut new, caller.dry_run)?;
            Ok((create::store(state, kind, new, caller.dry_run)?, true))
        }
    }
}

fn check_config(target: &Target, config: &mut Value) -> Result<(), ApiError> {
    let kind = &target.kind;
    let said = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or("").to_owned();
    if said("apiVersion").is_empty() || said("kind").is_empty() {
        return Err(ApiError::bad_request(
            "invalid object type: apiVersion and kind must be set in an applied configuration",
        ));
    }
    create::check_type(kind, config)?;
    if object::at(config, &["metadata", "managedFields"]).is_some() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let name = object::name(config);
    if !name.is_empty() && name != target.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    let namespace = object::namespace(config);
    if !namespace.is_empty() && namespace != target.namespace {
        return Err(ApiError::bad_request(format!(
            "the namespace of the provided object does not match the namespace sent on the request: {namespace} != {}",
            target.namespace
        )));
    }
    object::set(config, &["metadata", "name"], target.name.as_str());
    if kind.namespaced {
        object::set(config, &["metadata", "namespace"], target.namespace.as_str());
    }
    Ok(())
}

fn refused(target: &Target, error: ApplyError) -> ApiError {
    match error {
        ApplyError::Duplicate(duplicate) => {
            let field = duplicate.list.trim_start_matches('.');
            let mistake = FieldError {
                field: field.to_owned(),
                reason: "FieldValueDuplicate",
                message: format!("duplicate entries for key {}", duplicate.item),
            };
            ApiError::invalid(&target.kind, &target.name, &[mistake])
        }
        ApplyError::Conflicts(conflicts) => {
            let causes: Vec<Value> = conflicts
                .iter()
                .map(|(manager, path)| {
                    json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": path})
                })
                .collect();
            ApiError::apply_conflict(conflict_message(&conflicts), &causes)
        }
    }
}

fn conflict_message(conflicts: &[(String, String)]) -> String {
    if let [(manager, path)] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
    }
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (manager, path) in conflicts {
        match groups.last_mut() {
            Some((last, paths)) if *last == manager => paths.push(path),
            _ => groups.push((manager, vec![path])),
        }
    }
    let said: Vec<String> = groups
        .iter()
        .map(|(manager, paths)| {
            let lines: Vec<String> = paths.iter().map(|path| format!("- {path}")).collect();
            format!("conflicts with {manager}:\n{}", lines.join("\n"))
        })
        .collect();
    format!("Apply failed with {} conflicts: {}", conflicts.len(), said.join("\n"))
}
