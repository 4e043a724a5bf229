//! `get`.

use http::StatusCode;

use super::{key, page};
use crate::cluster::State;
use crate::custom;
use crate::registry::ResourceKind;
use crate::status::ApiError;
use crate::store::{Object, ObjectName, Stored};
use crate::wire::query::Query;
use crate::wire::route::Target;

pub(crate) fn get(state: &State, target: &Target) -> Result<Object, ApiError> {
    live(state, &target.kind, &target.namespace, &target.name)
        .ok_or_else(|| ApiError::not_found(&target.kind, &target.name))
}

/// An object in the version of its kind.
pub(super) fn live(state: &State, kind: &ResourceKind, namespace: &str, name: &str) -> Option<Object> {
    state.store.at(&key(kind, namespace, name)).map(|object| custom::present(kind, object))
}

/// An object's bytes.
pub(crate) fn stored(state: &State, target: &Target) -> Result<Stored, ApiError> {
    let name = ObjectName::new(&target.namespace, &target.name);
    let found = state.store.stored(&target.kind.resource(), &name).cloned();
    found.ok_or_else(|| ApiError::not_found(&target.kind, &target.name))
}

/// The `resourceVersion` of a get: present objects are never older than any in the past.
pub(crate) fn check_revision(state: &State, query: &Query) -> Result<(), ApiError> {
    let asked = query.revision().map_err(|why| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", format!("resourceVersion: {why}"))
    })?;
    let current = state.store.revision();
    if asked > current { Err(page::too_large(asked, current)) } else { Ok(()) }
}
