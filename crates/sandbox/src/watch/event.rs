//! Encodes watch events.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::clock::SandboxClock;
use crate::registry::ResourceKind;
use crate::selectors::RequestSelector;
use crate::store::{ObjectStore, StoreChange, StoreChangeKind, StoredObject};
use crate::table::IncludeObject;
use crate::wire::content_negotiation::ResponseShape;
use crate::{custom, partial_metadata, spliced_json, table};

/// The event of a change for a watch with this selector. An object that stops matching becomes DELETED (old state, new
/// revision), one that starts matching becomes ADDED.
pub(super) fn for_change(
    store: &ObjectStore,
    kind: &ResourceKind,
    change: &StoreChange,
    selector: &RequestSelector,
    shape: ResponseShape,
) -> Option<Bytes> {
    let matches = |object: &StoredObject| selector.is_empty() || selector.matches_text(&object.text());
    let is = matches(&change.object);
    let was = change.previous.as_ref().is_some_and(&matches);
    let own = |name: &str| {
        let encode = || encode_stored(name, kind, &change.object, shape);
        if !custom::has_single_view(kind) {
            return encode();
        }
        store.shared_event(&kind.resource(), change, shape == ResponseShape::Metadata, encode)
    };
    match (change.kind, was, is) {
        (StoreChangeKind::Added, _, true) => Some(own("ADDED")),
        (StoreChangeKind::Modified, true, true) => Some(own("MODIFIED")),
        (StoreChangeKind::Deleted, true, _) => Some(own("DELETED")),
        (StoreChangeKind::Modified, false, true) => Some(encode_stored("ADDED", kind, &change.object, shape)),
        (StoreChangeKind::Modified, true, false) => {
            let last = change.previous.as_ref().map(StoredObject::parse)?;
            let mut last = (*custom::in_version(kind, &last)).clone();
            crate::object::set(&mut last, &["metadata", "resourceVersion"], change.revision.to_string());
            Some(encode_value("DELETED", &last, shape))
        }
        _ => None,
    }
}

/// One event, from the bytes of an object.
pub(super) fn encode_stored(
    name: &str,
    kind: &ResourceKind,
    object: &StoredObject,
    shape: ResponseShape,
) -> Bytes {
    let text = object.text();
    if shape == ResponseShape::Metadata {
        return frame_event(name, &spliced_json::metadata_object(&text));
    }
    frame_event(name, &spliced_json::whole_object(kind, &text))
}

fn encode_value(name: &str, object: &Value, shape: ResponseShape) -> Bytes {
    let object = if shape == ResponseShape::Metadata {
        partial_metadata::partial_object(object)
    } else {
        object.clone()
    };
    frame_event(name, object.to_string().as_bytes())
}

fn frame_event(name: &str, object: &[u8]) -> Bytes {
    [b"{\"type\":\"", name.as_bytes(), b"\",\"object\":", object, b"}\n"].concat().into()
}

/// A bookmark: only a revision, and the mark that ends the initial events of a streaming list.
pub(super) fn bookmark(
    kind: &ResourceKind,
    revision: u64,
    ends_initial: bool,
    shape: ResponseShape,
) -> Bytes {
    let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version(),
        "metadata": {"resourceVersion": revision.to_string()}});
    if ends_initial {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    encode_value("BOOKMARK", &object, shape)
}

pub(super) fn error(error: &ApiError) -> Bytes {
    encode_value("ERROR", &error.status(), ResponseShape::Whole)
}

/// An event whose object is shown as a table; only the first table of a watch names its columns.
pub(super) fn as_table(
    line: &Bytes,
    kind: &ResourceKind,
    clock: &SandboxClock,
    include: IncludeObject,
    first: bool,
) -> Bytes {
    let Ok(event) = serde_json::from_slice::<Value>(line) else { return line.clone() };
    if event["type"] == "ERROR" {
        return line.clone();
    }
    let table = table::event_table(clock, kind, &event["object"], include, first);
    frame_event(event["type"].as_str().unwrap_or(""), table.to_string().as_bytes())
}
