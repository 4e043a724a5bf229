//! `patch`: server-side apply, merge patch, JSON patch, strategic merge patch.

use serde_json::{Value, json};

use super::update::{self, ObjectUpdate};
use super::{WriteCaller, create, ownership, strategic};
use crate::api_error::ApiError;
use crate::cluster::SandboxState;
use crate::custom;
use crate::decoding::{self, TypeName};
use crate::defaults;
use crate::object;
use crate::registry::ResourceKind;
use crate::schema;
use crate::ssa::{self, ApplyError, ManagerOperation};
use crate::store::ParsedObject;
use crate::wire::route::RequestTarget;

#[derive(Debug)]
pub(crate) enum PatchRequest {
    Apply {
        config: Value,
        force: bool,
    },
    /// The complaints are those about the patch itself.
    Merge {
        change: Value,
        complaints: Vec<String>,
    },
    Json {
        operations: Vec<Value>,
        complaints: Vec<String>,
    },
    Strategic {
        change: Value,
        complaints: Vec<String>,
    },
}

/// The object afterwards, and whether it was created.
pub(crate) fn patch(
    state: &mut SandboxState,
    target: &RequestTarget,
    patch: PatchRequest,
    caller: &WriteCaller,
) -> Result<(ParsedObject, bool), ApiError> {
    let kind = &target.kind;
    let live = super::read::live_object(state, kind, &target.namespace, &target.name);
    match (patch, live) {
        (PatchRequest::Apply { config, force }, live) => apply(state, target, config, force, live, caller),
        (_, None) => Err(ApiError::not_found(kind, &target.name)),
        (patch, Some(live)) => {
            let unknown = |object: &Value| custom::unknown_fields(kind, object);
            let new = apply_patch(&live, patch, TypeName::of(kind), unknown, caller)?;
            patch_existing(state, target, live, new, caller)
        }
    }
}

/// Patches an object (any patch except an apply) and checks that its kind is unchanged.
pub(crate) fn apply_patch(
    live: &Value,
    patch: PatchRequest,
    kind: TypeName<'_>,
    unknown: impl Fn(&Value) -> Vec<String>,
    caller: &WriteCaller,
) -> Result<Value, ApiError> {
    let (validation, warnings) = (caller.validation, &caller.warnings);
    let mut new = live.clone();
    let complaints = match patch {
        PatchRequest::Merge { change, complaints } => {
            ::json_patch::merge(&mut new, &change);
            complaints
        }
        PatchRequest::Json { operations, complaints } => {
            super::json_patch::apply(&mut new, &operations)?;
            complaints
        }
        PatchRequest::Strategic { mut change, complaints } => {
            let declared = schema::built_in().kind(kind.group, kind.version, kind.kind);
            let declared = declared.ok_or_else(ApiError::unsupported_patch)?;
            let merged = strategic::merge(live, &mut change, declared)?;
            let mut new = decoding::from_map(&merged, &change, declared, complaints, validation, warnings)?;
            for field in ["kind", "apiVersion"] {
                new[field] = live[field].clone();
            }
            return Ok(new);
        }
        PatchRequest::Apply { .. } => {
            return Err(ApiError::not_simulated("server-side apply for this request"));
        }
    };
    const MANAGED: &[&str] = &["metadata", "managedFields"];
    let is_reset = object::value_at(&new, MANAGED).and_then(Value::as_array).is_some_and(Vec::is_empty);
    let mut decoded = decoding::from_json(&new, kind, unknown, complaints, validation, warnings)?;
    if is_reset {
        // an empty list has a meaning here: it resets the ownership
        object::set(&mut decoded, MANAGED, json!([]));
    }
    Ok(decoded)
}

fn patch_existing(
    state: &mut SandboxState,
    target: &RequestTarget,
    live: ParsedObject,
    mut new: Value,
    caller: &WriteCaller,
) -> Result<(ParsedObject, bool), ApiError> {
    update::check_identity(target, &mut new)?;
    update::check_uid(&target.kind, &live, &new)?;
    if target.subresource.is_empty() {
        custom::check_patched_type(&target.kind, &new)?;
    }
    let update = ObjectUpdate { live, new, subresource: target.subresource.clone() };
    Ok((update.store_tracked(state, &target.kind, caller)?, false))
}

fn apply(
    state: &mut SandboxState,
    target: &RequestTarget,
    mut config: Value,
    force: bool,
    live: Option<ParsedObject>,
    caller: &WriteCaller,
) -> Result<(ParsedObject, bool), ApiError> {
    let kind = &target.kind;
    let now = state.clock.timestamp();
    if kind.has_resource_name("services") && !state.options.release.defaults_service_ports() {
        check_ports(&config)?;
    }
    let merged = merge_config(target, live.as_deref(), &mut config, force, caller, &now)?;
    let sent_uid = object::uid(&config).to_owned();
    let sent_revision = object::text(&config, &["metadata", "resourceVersion"]).unwrap_or("").to_owned();
    let merged = match (merged, &live) {
        (Some(merged), _) => merged,
        // nothing to write
        (None, Some(live)) if sent_uid.is_empty() && sent_revision.is_empty() => {
            return Ok((ParsedObject::clone(live), false));
        }
        (None, live) => live.as_deref().cloned().unwrap_or_default(),
    };
    match live {
        Some(live) => {
            let mut new = merged;
            if !sent_revision.is_empty() {
                object::set(&mut new, &["metadata", "resourceVersion"], sent_revision);
            }
            let update = ObjectUpdate { live, new, subresource: target.subresource.clone() };
            Ok((update.store_applied(state, kind, caller)?, false))
        }
        None if !sent_uid.is_empty() => {
            let why = format!(
                "uid mismatch: the provided object specified uid {sent_uid}, and no existing object was found"
            );
            Err(ApiError::conflict(kind, &target.name, &why))
        }
        None => {
            let mut new = merged;
            // unlike a create, an apply may say one
            object::take(&mut new, &["metadata", "resourceVersion"]);
            create::prepare(state, kind, &target.namespace, &mut new)?;
            defaults::fill_applied(state, kind, &mut new)?;
            create::default_and_validate(state, kind, &mut new, caller.dry_run)?;
            Ok((create::store(state, kind, new, caller.dry_run)?, true))
        }
    }
}

/// Old releases know no default of the one key of a port that people leave out.
fn check_ports(config: &Value) -> Result<(), ApiError> {
    let ports = object::list(config, &["spec", "ports"]);
    match ports.iter().position(|port| port.get("protocol").is_none()) {
        None => Ok(()),
        Some(place) => Err(ApiError::stored_object_error(format!(
            "failed to create typed patch object: .spec.ports: element {place}: associative list with keys has an element that omits key field \"protocol\" (and doesn't have default value)"
        ))),
    }
}

/// A configuration merged into an object, which is not stored yet; `None` when it stays as it is.
pub(super) fn merge_config(
    target: &RequestTarget,
    live: Option<&Value>,
    config: &mut Value,
    force: bool,
    caller: &WriteCaller,
    now: &str,
) -> Result<Option<Value>, ApiError> {
    let kind = &target.kind;
    let said = (object::namespace(config).to_owned(), object::name(config).to_owned());
    check_config(target, config)?;
    if live.is_none() && !target.subresource.is_empty() {
        return Err(ApiError::not_found(kind, &target.name));
    }
    let writer = caller.writer(kind, ManagerOperation::Apply, &target.subresource);
    // only an object without managers is compared with it
    let is_managed = live.is_none_or(|live| !object::list(live, &["metadata", "managedFields"]).is_empty());
    let skeleton = if is_managed { Value::Null } else { defaults::skeleton(kind) };
    let before = ssa::ApplyBase { object: live, skeleton: &skeleton };
    let mut merged = ownership::apply(kind, &writer, before, config, force, now)
        .map_err(|error| apply_error(target, (&said.0, &said.1), &error))?;
    if let Some(merged) = &mut merged {
        if kind.is_custom() {
            // the rest is what its schema makes of it
            object::drop_nulls_of_metadata(merged);
        } else {
            ssa::normalize_nulls(merged, kind.merge_type());
        }
    }
    Ok(merged)
}

pub(super) fn check_config_type(kind: &ResourceKind, config: &Value) -> Result<(), ApiError> {
    let said = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or("");
    let (version, said_kind) = (said("apiVersion"), said("kind"));
    if version == kind.api_version() && said_kind == kind.kind {
        return Ok(());
    }
    let slash = if version.contains('/') { "" } else { "/" };
    Err(ApiError::bad_request(format!("invalid object type: {slash}{version}, Kind={said_kind}")))
}

fn check_config(target: &RequestTarget, config: &mut Value) -> Result<(), ApiError> {
    let kind = &target.kind;
    check_config_type(kind, config)?;
    create::check_type(kind, config)?;
    if object::value_at(config, &["metadata", "managedFields"]).is_some() {
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
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object::set(config, &["metadata", "name"], target.name.as_str());
    if kind.namespaced {
        object::set(config, &["metadata", "namespace"], target.namespace.as_str());
    }
    Ok(())
}

fn apply_error(target: &RequestTarget, (namespace, name): (&str, &str), error: &ApplyError) -> ApiError {
    match error {
        ApplyError::Config(invalid) => ApiError::untyped(&target.kind, namespace, name, &invalid.to_string()),
        ApplyError::Conflicts(conflicts) => {
            let causes: Vec<Value> = conflicts
                .manager_paths()
                .map(|(manager, path)| {
                    json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": path})
                })
                .collect();
            ApiError::apply_conflict(conflicts.to_string(), &causes)
        }
        ApplyError::Live(invalid) => {
            let RequestTarget { namespace, name, kind, .. } = target;
            let (group, version, kind) = (&kind.group, &kind.version, &kind.kind);
            ApiError::stored_object_error(format!(
                "failed to create typed live object ({namespace}/{name}; {group}/{version}, Kind={kind}): {invalid}"
            ))
        }
        ApplyError::ManagedFields | ApplyError::Version(_) => {
            ApiError::stored_object_error(error.to_string())
        }
    }
}
