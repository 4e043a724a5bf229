//! Encodes watch events.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::registry::ResourceKind;
use crate::selectors::Selector;
use crate::status::ApiError;
use crate::store::{Change, ChangeKind, Store, Stored};
use crate::table::Include;
use crate::wire::negotiate::Shape;
use crate::{custom, partial, spliced, table};

/// The event of a change for a watch with this selector. An object that stops matching becomes DELETED (old state, new
/// revision), one that starts matching becomes ADDED.
pub(super) fn of(
    store: &Store,
    kind: &ResourceKind,
    change: &Change,
    selector: &Selector,
    shape: Shape,
) -> Option<Bytes> {
    let matches = |object: &Stored| selector.is_empty() || selector.matches_text(&object.text());
    let is = matches(&change.object);
    let was = change.previous.as_ref().is_some_and(&matches);
    let own = |name: &str| {
        let encode = || line(name, kind, &change.object, shape);
        if !custom::is_seen_alike(kind) {
            return encode();
        }
        store.shared_line(&kind.resource(), change, shape == Shape::Metadata, encode)
    };
    match (change.kind, was, is) {
        (ChangeKind::Added, _, true) => Some(own("ADDED")),
        (ChangeKind::Modified, true, true) => Some(own("MODIFIED")),
        (ChangeKind::Deleted, true, _) => Some(own("DELETED")),
        (ChangeKind::Modified, false, true) => Some(line("ADDED", kind, &change.object, shape)),
        (ChangeKind::Modified, true, false) => {
            let last = change.previous.as_ref().map(Stored::parse)?;
            let mut last = (*custom::present(kind, &last)).clone();
            crate::object::set(&mut last, &["metadata", "resourceVersion"], change.revision.to_string());
            Some(line_of("DELETED", &last, shape))
        }
        _ => None,
    }
}

/// One event, from the bytes of an object.
pub(super) fn line(name: &str, kind: &ResourceKind, object: &Stored, shape: Shape) -> Bytes {
    let text = object.text();
    if shape == Shape::Metadata {
        return framed(name, &spliced::metadata(&text));
    }
    framed(name, &spliced::whole(kind, &text))
}

fn line_of(name: &str, object: &Value, shape: Shape) -> Bytes {
    let object = if shape == Shape::Metadata { partial::of(object) } else { object.clone() };
    framed(name, object.to_string().as_bytes())
}

fn framed(name: &str, object: &[u8]) -> Bytes {
    [b"{\"type\":\"", name.as_bytes(), b"\",\"object\":", object, b"}\n"].concat().into()
}

/// A bookmark: only a revision, and the mark that ends the initial events of a streaming list.
pub(super) fn bookmark(kind: &ResourceKind, revision: u64, ends_initial: bool, shape: Shape) -> Bytes {
    let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version(),
        "metadata": {"resourceVersion": revision.to_string()}});
    if ends_initial {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    line_of("BOOKMARK", &object, shape)
}

pub(super) fn error(error: &ApiError) -> Bytes {
    line_of("ERROR", &error.status(), Shape::Whole)
}

/// An event whose object is shown as a table; only the first table of a watch names its columns.
pub(super) fn tabled(
    line: &Bytes,
    kind: &ResourceKind,
    clock: &Clock,
    include: Include,
    first: bool,
) -> Bytes {
    let Ok(event) = serde_json::from_slice::<Value>(line) else { return line.clone() };
    if event["type"] == "ERROR" {
        return line.clone();
    }
    let table = table::of_event(clock, kind, &event["object"], include, first);
    framed(event["type"].as_str().unwrap_or(""), table.to_string().as_bytes())
}
