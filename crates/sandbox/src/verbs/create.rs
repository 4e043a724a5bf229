//! `create`.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{WriteCaller, object_key, ownership};
use crate::api_error::{ApiError, FieldError};
use crate::cluster::SandboxState;
use crate::registry::ResourceKind;
use crate::ssa::ManagerOperation;
use crate::store::ParsedObject;
use crate::{custom, defaults, faults, object, validation};

pub(crate) fn create(
    state: &mut SandboxState,
    kind: &ResourceKind,
    namespace: &str,
    mut new: Value,
    caller: &WriteCaller,
) -> Result<ParsedObject, ApiError> {
    prepare(state, kind, namespace, &mut new)?;
    if kind.is_custom() {
        object::drop_nulls_of_metadata(&mut new);
    } else {
        object::drop_nulls(&mut new);
    }
    dedupe_owners(&mut new, caller);
    let empty = ownership::empty_lists(&new);
    defaults::fill(state, kind, &mut new)?;
    let now = state.clock.timestamp();
    let writer = caller.writer(kind, ManagerOperation::Update, "");
    if state.options.tracks_fields(kind) {
        ownership::track_with_empty_lists(&empty, kind, &writer, &defaults::skeleton(kind), &mut new, &now);
    }
    default_and_validate(state, kind, &mut new, caller.dry_run)?;
    store(state, kind, new, caller.dry_run)
}

/// Of a `generateName`, in a name that is made of it.
const LONGEST_PREFIX: usize = 58;

/// Identity and placement of an object that does not exist yet.
pub(crate) fn prepare(
    state: &mut SandboxState,
    kind: &ResourceKind,
    namespace: &str,
    new: &mut Value,
) -> Result<(), ApiError> {
    check_type(kind, new)?;
    check_namespace(state, kind, namespace, new)?;
    if object::name(new).is_empty()
        && let Some(prefix) = object::text(new, &["metadata", "generateName"]).map(str::to_owned)
    {
        // what is too long is cut, so that the suffix stays
        let kept: String = prefix.chars().take(LONGEST_PREFIX).collect();
        let name = format!("{kept}{}", state.seed.suffix());
        object::set(new, &["metadata", "name"], name);
    }
    custom::refuse_new(kind, object::name(new))?;
    // what is no number is none
    if object::revision(new) > 0 {
        return Err(ApiError::stored_object_error(
            "resourceVersion should not be set on objects to be created".to_owned(),
        ));
    }
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        object::take(new, &["metadata", field]);
    }
    // what exists already will be refused, and draws nothing from the seed
    let exists = state.store.object_at(&object_key(kind, namespace, object::name(new))).is_some();
    let uid = if exists { "unborn".to_owned() } else { state.seed.uid() };
    if kind.has_resource_name("limitranges") && object::name(new).is_empty() {
        // the one kind that needs no name
        object::set(new, &["metadata", "name"], uid.as_str());
    }
    object::set(new, &["metadata", "uid"], uid);
    object::set(new, &["metadata", "creationTimestamp"], state.clock.timestamp());
    // other kinds keep the sent value
    if kind.has_generation {
        object::set(new, &["metadata", "generation"], 1);
    }
    if kind.has_status() {
        object::take(new, &["status"]);
    }
    Ok(())
}

/// Drops duplicate owner references with a warning.
pub(super) fn dedupe_owners(new: &mut Value, caller: &WriteCaller) {
    let mut seen: HashSet<String> = HashSet::new();
    let (mut told, mut twice) = (HashSet::new(), Vec::new());
    let owners = new.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    let Some(owners) = owners.filter(|owners| owners.len() > 1) else { return };
    owners.retain(|owner| {
        let uid = object::text(owner, &["uid"]).unwrap_or("").to_owned();
        let is_new = seen.insert(uid.clone());
        if !is_new && told.insert(uid.clone()) {
            twice.push(uid);
        }
        is_new
    });
    if !twice.is_empty() {
        caller.warnings.add(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        ));
    }
}

/// Sets defaults, admits and validates.
pub(super) fn default_and_validate(
    state: &mut SandboxState,
    kind: &ResourceKind,
    new: &mut Value,
    dry_run: bool,
) -> Result<(), ApiError> {
    if faults::apply_webhooks(&state.webhooks, kind, new) {
        defaults::fill(state, kind, new)?;
    }
    defaults::admit(state, kind, new);
    defaults::allocate(state, kind, new, dry_run)?;
    validation::check_new(kind, new)?;
    let (name, namespace) = (object::name(new), object::namespace(new));
    if state.store.object_at(&object_key(kind, namespace, name)).is_some() {
        return Err(ApiError::already_exists(kind, name));
    }
    super::quota::check_limits(state, kind, new)?;
    defaults::normalize_stored(kind, new);
    Ok(())
}

pub(super) fn store(
    state: &mut SandboxState,
    kind: &ResourceKind,
    new: Value,
    dry_run: bool,
) -> Result<ParsedObject, ApiError> {
    if dry_run {
        return Ok(new.into());
    }
    let stored = state.store.put(&kind.resource(), new);
    if kind.has_resource_name("customresourcedefinitions.apiextensions.k8s.io") {
        state.registry.define(&stored);
        state.store.wake(object::name(&stored));
    }
    Ok(stored)
}

/// The body is of the kind that the path names; its type is written in front.
pub(super) fn check_type(kind: &ResourceKind, new: &mut Value) -> Result<(), ApiError> {
    let api_version = kind.api_version();
    let Some(fields) = new.as_object_mut() else {
        return Err(ApiError::bad_request("the object provided is not a map"));
    };
    let said = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or("");
    custom::check_type(kind, &api_version, said("apiVersion"), said("kind"), fields)?;
    let wrong = (!said("kind").is_empty() && said("kind") != kind.kind)
        || (!said("apiVersion").is_empty() && said("apiVersion") != api_version);
    if wrong {
        return Err(ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: the API version in the data ({}) does not match the expected API version ({api_version})",
            said("kind"),
            said("apiVersion"),
            kind.kind,
            said("apiVersion"),
        )));
    }
    let mut typed = serde_json::Map::new();
    typed.insert("kind".to_owned(), json!(kind.kind));
    typed.insert("apiVersion".to_owned(), json!(api_version));
    for (name, value) in std::mem::take(fields) {
        typed.entry(name).or_insert(value);
    }
    if !typed.get("metadata").is_some_and(Value::is_object) {
        typed.insert("metadata".to_owned(), json!({}));
    }
    *fields = typed;
    Ok(())
}

fn check_namespace(
    state: &SandboxState,
    kind: &ResourceKind,
    namespace: &str,
    new: &mut Value,
) -> Result<(), ApiError> {
    if !kind.namespaced {
        object::take(new, &["metadata", "namespace"]);
        return Ok(());
    }
    let said = object::namespace(new);
    if !said.is_empty() && said != namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(why));
    }
    if namespace.is_empty() {
        let missing = [FieldError::required("metadata.namespace", "")];
        return Err(ApiError::invalid(kind, object::name(new), &missing));
    }
    object::set(new, &["metadata", "namespace"], namespace);
    let home = state
        .registry
        .resource("namespaces")
        .and_then(|one| state.store.object_at(&object_key(one, "", namespace)));
    match home {
        None => Err(ApiError::namespace_not_found(namespace)),
        Some(home) if object::is_deleting(home) => {
            let mut error = ApiError::forbidden(
                kind,
                object::name(new),
                &format!(
                    "unable to create new content in namespace {namespace} because it is being terminated"
                ),
            );
            if let Some(details) = &mut error.details {
                details["causes"] = json!([{"reason": "NamespaceTerminating",
                    "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"}]);
            }
            Err(error)
        }
        Some(_) => Ok(()),
    }
}
