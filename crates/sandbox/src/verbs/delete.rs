//! `delete` and `deletecollection`.

use serde_json::{Value, json};

use super::object_key;
use crate::api_error::ApiError;
use crate::cluster::SandboxState;
use crate::custom;
use crate::object;
use crate::registry::ResourceKind;
use crate::store::ParsedObject;
use crate::wire::delete_options::{DeletionPropagation, RequestDeleteOptions};
use crate::wire::query::QueryParameters;
use crate::wire::route::RequestTarget;

/// The result of a delete.
#[derive(Debug)]
pub(crate) enum DeletedObject {
    Removed(ParsedObject),
    /// Finalizers, a grace period or content hold it: marked for deletion.
    Marked(ParsedObject),
}

pub(crate) fn delete(
    state: &mut SandboxState,
    target: &RequestTarget,
    options: &RequestDeleteOptions,
) -> Result<DeletedObject, ApiError> {
    let kind = &target.kind;
    let live = super::get(state, target)?;
    check_preconditions(kind, &live, options)?;
    if kind.has_resource_name("namespaces")
        && matches!(target.name.as_str(), "default" | "kube-system" | "kube-public")
    {
        return Err(ApiError::forbidden(kind, &target.name, "this namespace may not be deleted"));
    }
    if kind.has_resource_name(custom::DEFINITIONS) && !object::is_deleting(&live) {
        let marked = custom::definition::terminate(&live, &state.clock.timestamp());
        if options.dry_run {
            return Ok(DeletedObject::Marked(marked.into()));
        }
        return Ok(DeletedObject::Marked(super::create::store(state, kind, marked, false)?));
    }
    let mut marked = (*live).clone();
    let wanted = finalizers(&live, options.propagation);
    let changes = wanted != object::finalizers(&live);
    match wanted.is_empty() {
        true => drop(object::take(&mut marked, &["metadata", "finalizers"])),
        false => object::set(&mut marked, &["metadata", "finalizers"], wanted),
    }
    let grace = grace_seconds(kind, &live, options);
    if grace == 0 && is_removable(kind, &marked) {
        if kind.has_resource_name("pods") {
            mark_for_deletion(state, kind, &mut marked, 0);
            if !options.dry_run {
                state.store.remove(&object_key(kind, &target.namespace, &target.name));
            }
            return Ok(DeletedObject::Removed(marked.into()));
        }
        if options.dry_run {
            return Ok(DeletedObject::Removed(live));
        }
        let removed = state.store.remove(&object_key(kind, &target.namespace, &target.name));
        after_removal(state, kind, &live);
        return Ok(DeletedObject::Removed(removed.unwrap_or(live)));
    }
    let before = object::integer(&live, GRACE);
    if object::is_deleting(&live) && grace >= before && !changes {
        return Ok(DeletedObject::Marked(live));
    }
    mark_for_deletion(
        state,
        kind,
        &mut marked,
        if object::is_deleting(&live) { grace.min(before) } else { grace },
    );
    if options.dry_run {
        return Ok(DeletedObject::Marked(marked.into()));
    }
    let put = state.store.put(&kind.resource(), marked);
    if grace == 0 && kind.has_resource_name("pods") && object::is_deleting(&live) && is_removable(kind, &put)
    {
        // a pod that was given time is given none any more
        state.store.remove(&object_key(kind, &target.namespace, &target.name));
        return Ok(DeletedObject::Removed(put));
    }
    Ok(DeletedObject::Marked(put))
}

/// The finalizers of the object, and those of the propagation.
fn finalizers(live: &Value, propagation: DeletionPropagation) -> Vec<Value> {
    const KINDS: [(&str, DeletionPropagation); 2] =
        [("orphan", DeletionPropagation::Orphan), ("foregroundDeletion", DeletionPropagation::Foreground)];
    let own = object::finalizers(live);
    let mut kept: Vec<Value> = own.to_vec();
    for (name, asking) in KINDS {
        let is_there = own.iter().any(|one| one == name);
        let is_wanted =
            propagation == asking || (propagation == DeletionPropagation::Unspecified && is_there);
        if is_there && !is_wanted {
            kept.retain(|one| one != name);
        } else if is_wanted && !is_there {
            kept.push(json!(name));
        }
    }
    kept
}

const GRACE: &[&str] = &["metadata", "deletionGracePeriodSeconds"];

fn mark_for_deletion(state: &SandboxState, kind: &ResourceKind, marked: &mut Value, grace: i64) {
    let was_marked = object::is_deleting(marked);
    if kind.has_resource_name("pods") {
        let ends = deletion_timestamp(state, marked, grace);
        object::set(marked, &["metadata", "deletionTimestamp"], ends);
    }
    object::set_default(marked, &["metadata", "deletionTimestamp"], state.clock.timestamp());
    if !kind.has_resource_name("namespaces") {
        object::set(marked, GRACE, grace);
    }
    if kind.has_generation && !was_marked {
        let counted = object::generation(marked) + 1;
        object::set(marked, &["metadata", "generation"], counted);
    }
    if kind.has_resource_name("namespaces") {
        object::set(marked, &["status", "phase"], "Terminating");
    }
}

/// The end of a pod's grace period, which is its `deletionTimestamp`.
fn deletion_timestamp(state: &SandboxState, pod: &Value, grace: i64) -> String {
    const LONGEST: i64 = 100 * 365 * 24 * 3600;
    let now = state.clock.seconds();
    let told = object::text(pod, &["metadata", "deletionTimestamp"]);
    let began = told.and_then(|told| state.clock.seconds_since(told)).map_or(now, |since| {
        now.saturating_sub(since).saturating_sub(object::integer(pod, GRACE).min(LONGEST))
    });
    state.clock.timestamp_at(began.saturating_add(grace.min(LONGEST)))
}

/// Pods that run are given time to end; everything else goes at once.
fn grace_seconds(kind: &ResourceKind, live: &Value, options: &RequestDeleteOptions) -> i64 {
    let running = object::value_at(live, &["spec", "nodeName"]).is_some()
        && !matches!(object::text(live, &["status", "phase"]), Some("Succeeded" | "Failed"));
    if !kind.has_resource_name("pods") || !running {
        return 0;
    }
    // less than nothing is as little as there is
    let asked = options.grace_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    asked.unwrap_or_else(|| {
        object::value_at(live, &["spec", "terminationGracePeriodSeconds"])
            .and_then(Value::as_i64)
            .unwrap_or(30)
    })
}

/// Nothing holds the object any more.
pub(super) fn is_removable(kind: &ResourceKind, value: &Value) -> bool {
    let held =
        kind.has_resource_name("namespaces") && !object::list(value, &["spec", "finalizers"]).is_empty();
    object::finalizers(value).is_empty() && !held && object::integer(value, GRACE) == 0
}

/// Updates the state after an object was removed.
pub(super) fn after_removal(state: &mut SandboxState, kind: &ResourceKind, gone: &Value) {
    if kind.has_resource_name(custom::DEFINITIONS) {
        state.registry.undefine(gone);
        state.store.wake(object::name(gone));
    }
}

fn check_preconditions(
    kind: &ResourceKind,
    live: &Value,
    options: &RequestDeleteOptions,
) -> Result<(), ApiError> {
    let name = object::name(live);
    if let Some(wanted) = options.uid.as_deref()
        && wanted != object::uid(live)
    {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            object::uid(live)
        );
        return Err(ApiError::precondition(kind, name, &why));
    }
    let found = object::text(live, &["metadata", "resourceVersion"]).unwrap_or("");
    if let Some(wanted) = options.resource_version.as_deref()
        && wanted != found
    {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). The object might have been modified"
        );
        return Err(ApiError::precondition(kind, name, &why));
    }
    Ok(())
}

/// Deletes what the selectors find and answers the list of it.
pub(crate) fn delete_collection(
    state: &mut SandboxState,
    target: &RequestTarget,
    query: &QueryParameters,
    options: &RequestDeleteOptions,
) -> Result<Value, ApiError> {
    let found = super::list(state, target, query)?;
    for item in object::list(&found, &["items"]) {
        let one = RequestTarget {
            namespace: object::namespace(item).to_owned(),
            name: object::name(item).to_owned(),
            ..target.clone()
        };
        delete(state, &one, options)?;
    }
    Ok(found)
}
