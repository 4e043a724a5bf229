//! `delete` and `deletecollection`.

use serde_json::{Value, json};

use super::key;
use crate::cluster::State;
use crate::custom;
use crate::object;
use crate::registry::ResourceKind;
use crate::status::ApiError;
use crate::store::Object;
use crate::wire::delete_options::{DeleteOptions, Propagation};
use crate::wire::query::Query;
use crate::wire::route::Target;

/// How a delete ended.
#[derive(Debug)]
pub(crate) enum Deleted {
    Gone(Object),
    /// Finalizers, a grace period or content hold it: marked for deletion.
    Lingers(Object),
}

pub(crate) fn delete(
    state: &mut State,
    target: &Target,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    let kind = &target.kind;
    let live = super::get(state, target)?;
    check_preconditions(kind, &live, options)?;
    if kind.is("namespaces") && matches!(target.name.as_str(), "default" | "kube-system" | "kube-public") {
        return Err(ApiError::forbidden(kind, &target.name, "this namespace may not be deleted"));
    }
    if kind.is(custom::DEFINITIONS) && !object::is_deleting(&live) {
        let marked = custom::definition::terminate(&live, &state.clock.timestamp());
        if options.dry_run {
            return Ok(Deleted::Lingers(marked.into()));
        }
        return Ok(Deleted::Lingers(super::create::store(state, kind, marked, false)?));
    }
    let mut marked = (*live).clone();
    let added = match options.propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some("foregroundDeletion"),
        Propagation::Orphan => Some("orphan"),
    };
    if let Some(added) = added
        && !object::finalizers(&live).contains(&json!(added))
        && !object::is_deleting(&live)
    {
        let mut finalizers = object::finalizers(&live).to_vec();
        finalizers.push(json!(added));
        object::set(&mut marked, &["metadata", "finalizers"], finalizers);
    }
    let grace = grace(kind, &live, options);
    if grace == 0 && may_vanish(kind, &marked) {
        if options.dry_run {
            return Ok(Deleted::Gone(live));
        }
        let removed = state.store.remove(&key(kind, &target.namespace, &target.name));
        forget(state, kind, &live);
        return Ok(Deleted::Gone(removed.unwrap_or(live)));
    }
    if object::is_deleting(&live) && !(grace == 0 && object::integer(&live, GRACE) > 0) {
        return Ok(Deleted::Lingers(live));
    }
    mark(state, kind, &mut marked, grace);
    if options.dry_run {
        return Ok(Deleted::Lingers(marked.into()));
    }
    Ok(Deleted::Lingers(state.store.put(&kind.resource(), marked)))
}

const GRACE: &[&str] = &["metadata", "deletionGracePeriodSeconds"];

fn mark(state: &State, kind: &ResourceKind, marked: &mut Value, grace: i64) {
    object::set_default(marked, &["metadata", "deletionTimestamp"], state.clock.timestamp());
    object::set(marked, GRACE, grace);
    if kind.has_generation {
        let counted = object::generation(marked) + 1;
        object::set(marked, &["metadata", "generation"], counted);
    }
    if kind.is("namespaces") {
        object::set(marked, &["status", "phase"], "Terminating");
    }
}

/// Pods that run are given time to end; everything else goes at once.
fn grace(kind: &ResourceKind, live: &Value, options: &DeleteOptions) -> i64 {
    let running = object::at(live, &["spec", "nodeName"]).is_some()
        && !matches!(object::text(live, &["status", "phase"]), Some("Succeeded" | "Failed"));
    if !kind.is("pods") || !running {
        return 0;
    }
    options.grace_seconds.unwrap_or_else(|| {
        object::at(live, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(30)
    })
}

/// Nothing holds the object any more.
pub(super) fn may_vanish(kind: &ResourceKind, value: &Value) -> bool {
    let held = kind.is("namespaces") && !object::list(value, &["spec", "finalizers"]).is_empty();
    object::finalizers(value).is_empty() && !held && object::integer(value, GRACE) == 0
}

/// What follows from an object that is gone.
pub(super) fn forget(state: &mut State, kind: &ResourceKind, gone: &Value) {
    if kind.is(custom::DEFINITIONS) {
        state.registry.undefine(gone);
    }
}

fn check_preconditions(kind: &ResourceKind, live: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
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
    state: &mut State,
    target: &Target,
    query: &Query,
    options: &DeleteOptions,
) -> Result<Value, ApiError> {
    let found = super::list(state, target, query)?;
    for item in object::list(&found, &["items"]) {
        let one = Target {
            namespace: object::namespace(item).to_owned(),
            name: object::name(item).to_owned(),
            ..target.clone()
        };
        delete(state, &one, options)?;
    }
    Ok(found)
}
