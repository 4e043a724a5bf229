//! `get` and `list`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::key;
use crate::cluster::State;
use crate::registry::ResourceKind;
use crate::selectors::Selector;
use crate::status::ApiError;
use crate::store::{Object, ObjectName};
use crate::wire::query::Query;
use crate::wire::route::Target;

pub(crate) fn get(state: &State, target: &Target) -> Result<Object, ApiError> {
    state
        .store
        .at(&key(&target.kind, &target.namespace, &target.name))
        .cloned()
        .ok_or_else(|| ApiError::not_found(&target.kind, &target.name))
}

/// A list as its client sees it: whole, or the page that `limit` and `continue` name.
///
/// A page continues after the last name of the one before, in the present state; real servers
/// continue in the state of the first page.
pub(crate) fn list(state: &State, target: &Target, query: &Query) -> Result<Value, ApiError> {
    let selector = selector(&target.kind, query)?;
    let limit = query.number("limit")?.filter(|limit| *limit > 0).map(|limit| limit as usize);
    let after = continue_after(query.text("continue"))?;
    check_revision(state, query)?;
    let namespace = (!target.namespace.is_empty()).then_some(target.namespace.as_str());
    let mut found = state
        .store
        .list(&target.kind.resource(), namespace)
        .filter(|object| after.as_ref().is_none_or(|after| ObjectName::of(object) > *after))
        .filter(|object| selector.matches(object));
    let mut items: Vec<Object> = found.by_ref().take(limit.unwrap_or(usize::MAX)).cloned().collect();
    let remaining = found.count();
    let mut metadata = json!({"resourceVersion": state.store.revision().to_string()});
    if remaining > 0
        && let Some(last) = items.last()
    {
        let last = ObjectName::of(last);
        metadata["continue"] = json!(URL_SAFE_NO_PAD.encode(format!("{}/{}", last.namespace, last.name)));
        if selector.is_empty() {
            metadata["remainingItemCount"] = json!(remaining);
        }
    }
    let items: Vec<Value> = items.drain(..).map(|object| item(&target.kind, &object)).collect();
    Ok(json!({
        "kind": format!("{}List", target.kind.kind),
        "apiVersion": target.kind.api_version(),
        "metadata": metadata,
        "items": items,
    }))
}

pub(crate) fn selector(kind: &ResourceKind, query: &Query) -> Result<Selector, ApiError> {
    Selector::parse(kind, query.text("labelSelector"), query.text("fieldSelector"))
}

/// Items of built-in lists carry no kind of their own; custom ones do.
fn item(kind: &ResourceKind, object: &Object) -> Value {
    let mut item = (**object).clone();
    if !kind.is_custom()
        && let Some(fields) = item.as_object_mut()
    {
        fields.shift_remove("kind");
        fields.shift_remove("apiVersion");
    }
    item
}

fn continue_after(token: &str) -> Result<Option<ObjectName>, ApiError> {
    if token.is_empty() {
        return Ok(None);
    }
    let decoded = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let name = decoded.as_deref().and_then(|text| text.split_once('/'));
    let (namespace, name) =
        name.ok_or_else(|| ApiError::bad_request("invalid continue token: continue key is not valid"))?;
    Ok(Some(ObjectName::new(namespace, name)))
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
