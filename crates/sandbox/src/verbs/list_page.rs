//! `list`, in pages that all show one state.

use std::ops::Bound;

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::cluster::SandboxState;
use crate::custom;
use crate::registry::ResourceKind;
use crate::selectors::RequestSelector;
use crate::store::{ObjectPath, ParsedObject, StoredObject};
use crate::wire::list_options::{self, ListOptions, ListedRevision};
use crate::wire::query::QueryParameters;
use crate::wire::route::RequestTarget;

/// A list, or a page of it: objects as bytes, and the list's own metadata.
#[derive(Debug)]
pub(crate) struct ListPage {
    pub(crate) metadata: Value,
    pub(crate) items: Vec<StoredObject>,
}

/// A list as its client sees it, parsed.
pub(crate) fn list(
    state: &SandboxState,
    target: &RequestTarget,
    query: &QueryParameters,
) -> Result<Value, ApiError> {
    let ListPage { metadata, items } = page(state, target, query)?;
    let items: Vec<Value> = items.iter().map(|object| list_item(&target.kind, &object.parse())).collect();
    Ok(json!({
        "kind": target.kind.list_kind(),
        "apiVersion": target.kind.api_version(),
        "metadata": metadata,
        "items": items,
    }))
}

/// Items of built-in lists carry no kind of their own; custom ones do.
fn list_item(kind: &ResourceKind, object: &ParsedObject) -> Value {
    let mut item = std::sync::Arc::unwrap_or_clone(custom::in_version(kind, object));
    if !kind.is_custom()
        && let Some(fields) = item.as_object_mut()
    {
        fields.shift_remove("kind");
        fields.shift_remove("apiVersion");
    }
    item
}

pub(crate) fn request_selector(
    kind: &ResourceKind,
    query: &QueryParameters,
) -> Result<RequestSelector, ApiError> {
    RequestSelector::parse(kind, query.text("labelSelector"), query.text("fieldSelector"))
}

/// A list: whole, or the page that `limit` and `continue` name.
pub(crate) fn page(
    state: &SandboxState,
    target: &RequestTarget,
    query: &QueryParameters,
) -> Result<ListPage, ApiError> {
    let selector = request_selector(&target.kind, query)?;
    let options = ListOptions::parse(query)?;
    let resource = target.kind.resource();
    let namespace = (!target.namespace.is_empty()).then_some(target.namespace.as_str());
    let current = state.store.revision();
    let (ListedRevision::NotOlderThan(asked)
    | ListedRevision::Exact(asked)
    | ListedRevision::Continued(asked)) = options.moment;
    if asked > current {
        return Err(future_revision_error(asked, current));
    }
    let revision = if let ListedRevision::NotOlderThan(_) = options.moment { current } else { asked };
    let start = match namespace {
        Some(namespace) if !options.start.is_empty() => format!("{namespace}/{}", options.start),
        _ => options.start.clone(),
    };
    let is_custom = target.kind.is_custom();
    let slice = PageSelection { namespace, selector: &selector, limit: options.limit, revision, is_custom };
    if !state.store.is_changed_since(&resource, revision) {
        let pairs = selector.required_labels();
        if pairs.is_empty() {
            return Ok(slice.of(state.store.list_stored_from(&resource, namespace, &start)));
        }
        return Ok(slice.of(state.store.list_labelled_from(&resource, namespace, &start, &pairs)));
    }
    let earlier =
        state.store.list_at_revision(&resource, namespace, revision).map_err(|_| match options.moment {
            ListedRevision::Continued(_) => expired_page(&options.start),
            _ => ApiError::expired_list(),
        })?;
    let from = (Bound::Included(start.as_str()), Bound::Unbounded);
    Ok(slice.of(earlier.range::<str, _>(from)))
}

/// The selection of a page from the objects at its start.
struct PageSelection<'s> {
    namespace: Option<&'s str>,
    selector: &'s RequestSelector,
    limit: usize,
    revision: u64,
    /// Lists of custom kinds always have `continue`.
    is_custom: bool,
}

impl PageSelection<'_> {
    fn of<'o>(&self, objects: impl Iterator<Item = (&'o ObjectPath, &'o StoredObject)>) -> ListPage {
        let everything = self.selector.is_empty();
        let mut found =
            objects.filter(|(_, object)| everything || self.selector.matches_text(&object.text()));
        let page: Vec<(&ObjectPath, &StoredObject)> = found.by_ref().take(self.limit).collect();
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if self.is_custom {
            metadata["continue"] = json!("");
        }
        let remaining = if everything { found.count() } else { usize::from(found.next().is_some()) };
        if remaining > 0
            && let Some((last, _)) = page.last()
        {
            let key = if self.namespace.is_some() { last.name() } else { last.text() };
            let revision = i64::try_from(self.revision).unwrap_or(i64::MAX);
            metadata["continue"] = json!(list_options::token(revision, key));
            if everything {
                metadata["remainingItemCount"] = json!(remaining);
            }
        }
        ListPage { metadata, items: page.into_iter().map(|(_, object)| object.clone()).collect() }
    }
}

/// The revision of the first page was compacted; the new token continues at the current one.
fn expired_page(start: &str) -> ApiError {
    let mut error = ApiError::expired_list();
    "The provided continue parameter is too old to display a consistent list result. You can start a new \
     list without the continue parameter, or use the continue token in this response to retrieve the \
     remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
     that were created, modified, or deleted between the time the first chunk was returned and now may show \
     up in the list."
        .clone_into(&mut error.message);
    error.continue_token = Some(list_options::token_from(-1, start));
    error
}

/// A revision from the future cannot be served.
pub(crate) fn future_revision_error(asked: u64, current: u64) -> ApiError {
    let mut error = ApiError::new(
        http::StatusCode::GATEWAY_TIMEOUT,
        "Timeout",
        format!("Timeout: Too large resource version: {asked}, current: {current}"),
    );
    error.details = Some(Box::new(json!({"causes": [{"reason": "ResourceVersionTooLarge",
        "message": "Too large resource version"}], "retryAfterSeconds": 1})));
    error
}
