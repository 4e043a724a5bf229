//! `get` and `list`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::key;
use crate::cluster::State;
use crate::custom;
use crate::registry::ResourceKind;
use crate::selectors::Selector;
use crate::status::ApiError;
use crate::store::{Object, ObjectName, Place, Stored};
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

/// A list, or a page of it: objects as bytes, and the list's own metadata.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) metadata: Value,
    pub(crate) items: Vec<Stored>,
}

/// A list as its client sees it, parsed.
pub(crate) fn list(state: &State, target: &Target, query: &Query) -> Result<Value, ApiError> {
    let Page { metadata, items } = page(state, target, query)?;
    let items: Vec<Value> = items.iter().map(|object| item(&target.kind, &object.parse())).collect();
    Ok(json!({
        "kind": target.kind.list_kind(),
        "apiVersion": target.kind.api_version(),
        "metadata": metadata,
        "items": items,
    }))
}

/// A list: whole, or the page that `limit` and `continue` name.
///
/// A page continues after the last name of the one before, in the present state; real servers
/// continue in the state of the first page.
pub(crate) fn page(state: &State, target: &Target, query: &Query) -> Result<Page, ApiError> {
    let selector = selector(&target.kind, query)?;
    let limit = query.number("limit")?.filter(|limit| *limit > 0).map(|limit| limit as usize);
    let after = continue_after(query.text("continue"))?;
    check_revision(state, query)?;
    let namespace = (!target.namespace.is_empty()).then_some(target.namespace.as_str());
    let mut found = state
        .store
        .list_stored(&target.kind.resource(), namespace)
        .filter(|(place, _)| after.as_ref().is_none_or(|after| *place > after))
        .filter(|(_, object)| selector.is_empty() || selector.matches_text(&object.text()));
    let page: Vec<(&Place, &Stored)> = found.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
    let remaining = found.count();
    let mut metadata = json!({"resourceVersion": state.store.revision().to_string()});
    if target.kind.is_custom() {
        metadata["continue"] = json!("");
    }
    if remaining > 0
        && let Some((last, _)) = page.last()
    {
        metadata["continue"] = json!(URL_SAFE_NO_PAD.encode(last.text()));
        if selector.is_empty() {
            metadata["remainingItemCount"] = json!(remaining);
        }
    }
    Ok(Page { metadata, items: page.into_iter().map(|(_, object)| object.clone()).collect() })
}

pub(crate) fn selector(kind: &ResourceKind, query: &Query) -> Result<Selector, ApiError> {
    Selector::parse(kind, query.text("labelSelector"), query.text("fieldSelector"))
}

/// Items of built-in lists carry no kind of their own; custom ones do.
fn item(kind: &ResourceKind, object: &Object) -> Value {
    let mut item = (*custom::present(kind, object)).clone();
    if !kind.is_custom()
        && let Some(fields) = item.as_object_mut()
    {
        fields.shift_remove("kind");
        fields.shift_remove("apiVersion");
    }
    item
}

fn continue_after(token: &str) -> Result<Option<Place>, ApiError> {
    if token.is_empty() {
        return Ok(None);
    }
    let decoded = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded {
        Some(place) => Ok(Some(Place::read(&place))),
        None => Err(ApiError::bad_request("invalid continue token: continue key is not valid")),
    }
}

/// A revision from the future cannot be served.
fn check_revision(state: &State, query: &Query) -> Result<(), ApiError> {
    let asked = query.number("resourceVersion")?.unwrap_or(0);
    let current = state.store.revision();
    if asked <= current {
        return Ok(());
    }
    let mut error = ApiError::new(
        http::StatusCode::GATEWAY_TIMEOUT,
        "Timeout",
        format!("Timeout: Too large resource version: {asked}, current: {current}"),
    );
    error.details = Some(json!({"causes": [{"reason": "ResourceVersionTooLarge",
        "message": "Too large resource version"}], "retryAfterSeconds": 1}));
    Err(error)
}
