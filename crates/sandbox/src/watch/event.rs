//! Watch events as bytes.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::partial;
use crate::registry::ResourceKind;
use crate::selectors::Selector;
use crate::status::ApiError;
use crate::store::{Change, ChangeKind};
use crate::wire::negotiate::Shape;

/// What a watch with this selector sees of a change. An object that stops matching is deleted for
/// it (in its old state, with the new revision), one that starts matching is added.
pub(super) fn seen(
    change: &Change,
    selector: &Selector,
    namespace: Option<&str>,
) -> Option<(&'static str, Value)> {
    let home = crate::object::namespace(&change.object);
    if namespace.is_some_and(|wanted| wanted != home) {
        return None;
    }
    let is = selector.matches(&change.object);
    let was = change.previous.as_ref().is_some_and(|previous| selector.matches(previous));
    match (change.kind, was, is) {
        (ChangeKind::Added, _, true) | (ChangeKind::Modified, false, true) => {
            Some(("ADDED", (*change.object).clone()))
        }
        (ChangeKind::Modified, true, true) => Some(("MODIFIED", (*change.object).clone())),
        (ChangeKind::Deleted, true, _) => Some(("DELETED", (*change.object).clone())),
        (ChangeKind::Modified, true, false) => {
            let mut last = change.previous.as_deref().cloned().unwrap_or_default();
            crate::object::set(&mut last, &["metadata", "resourceVersion"], change.revision.to_string());
            Some(("DELETED", last))
        }
        _ => None,
    }
}

pub(super) fn line(kind: &str, object: &Value, shape: Shape) -> Bytes {
    let object = if shape == Shape::Metadata { partial::of(object) } else { object.clone() };
    let mut text = json!({"type": kind, "object": object}).to_string();
    text.push('\n');
    Bytes::from(text)
}

/// A bookmark: only a revision, and the mark that ends the initial events of a streaming list.
pub(super) fn bookmark(kind: &ResourceKind, revision: u64, ends_initial: bool, shape: Shape) -> Bytes {
    let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version(),
        "metadata": {"resourceVersion": revision.to_string()}});
    if ends_initial {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    line("BOOKMARK", &object, shape)
}

pub(super) fn error(error: &ApiError) -> Bytes {
    line("ERROR", &error.status(), Shape::Whole)
}
