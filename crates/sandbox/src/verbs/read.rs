//! `get`.

use http::StatusCode;

use super::{list_page, object_key};
use crate::api_error::ApiError;
use crate::cluster::SandboxState;
use crate::custom;
use crate::registry::ResourceKind;
use crate::store::{NamespacedName, ParsedObject, StoredObject};
use crate::wire::query::QueryParameters;
use crate::wire::route::RequestTarget;

pub(crate) fn get(state: &SandboxState, target: &RequestTarget) -> Result<ParsedObject, ApiError> {
    live_object(state, &target.kind, &target.namespace, &target.name)
        .ok_or_else(|| ApiError::not_found(&target.kind, &target.name))
}

/// An object in the version of its kind.
pub(super) fn live_object(
    state: &SandboxState,
    kind: &ResourceKind,
    namespace: &str,
    name: &str,
) -> Option<ParsedObject> {
    state.store.object_at(&object_key(kind, namespace, name)).map(|object| custom::in_version(kind, object))
}

/// An object's bytes.
pub(crate) fn stored_object(state: &SandboxState, target: &RequestTarget) -> Result<StoredObject, ApiError> {
    let name = NamespacedName::new(&target.namespace, &target.name);
    let found = state.store.stored_object(&target.kind.resource(), &name).cloned();
    found.ok_or_else(|| ApiError::not_found(&target.kind, &target.name))
}

/// The `resourceVersion` of a get: present objects are never older than any in the past.
pub(crate) fn check_revision(state: &SandboxState, query: &QueryParameters) -> Result<(), ApiError> {
    let asked = query.revision().map_err(|why| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", format!("resourceVersion: {why}"))
    })?;
    let current = state.store.revision();
    if asked > current { Err(list_page::future_revision_error(asked, current)) } else { Ok(()) }
}
