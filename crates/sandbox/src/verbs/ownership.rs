//! Connects writes to server-side apply: merge type and reset fields of the kind.

use serde_json::Value;

use crate::registry::ResourceKind;
use crate::ssa::{self, ApplyBase, ApplyError, FieldWrite, ManagedWriter};

/// Records in `new` who owns what after a write.
pub(super) fn track(kind: &ResourceKind, writer: &ManagedWriter, before: &Value, new: &mut Value, now: &str) {
    with_field_write(kind, writer, now, |write| ssa::track(before, new, write));
}

/// The fields that are empty lists, which the server's types forget when they are stored, but not before.
pub(super) fn empty_lists(new: &Value) -> Vec<String> {
    let fields = new.as_object().into_iter().flatten();
    fields
        .filter(|(_, field)| field.as_array().is_some_and(Vec::is_empty))
        .map(|(name, _)| name.clone())
        .collect()
}

/// As [`track`], of an object that was sent with these empty lists.
pub(super) fn track_with_empty_lists(
    empty: &[String],
    kind: &ResourceKind,
    writer: &ManagedWriter,
    before: &Value,
    new: &mut Value,
    now: &str,
) {
    let forgotten: Vec<&String> = empty.iter().filter(|name| new.get(name) == Some(&Value::Null)).collect();
    for name in &forgotten {
        new[name.as_str()] = Value::Array(Vec::new());
    }
    track(kind, writer, before, new, now);
    for name in forgotten {
        new[name.as_str()] = Value::Null;
    }
}

/// Merges a configuration; `None` when the object stays as it is.
pub(super) fn apply(
    kind: &ResourceKind,
    writer: &ManagedWriter,
    live: ApplyBase<'_>,
    config: &Value,
    force: bool,
    now: &str,
) -> Result<Option<Value>, ApplyError> {
    with_field_write(kind, writer, now, |write| ssa::apply(live, config, write, force))
}

fn with_field_write<T>(
    kind: &ResourceKind,
    writer: &ManagedWriter,
    now: &str,
    write: impl FnOnce(&FieldWrite<'_>) -> T,
) -> T {
    let filter =
        ssa::reset_filter(&kind.group, &kind.kind, &writer.subresource, kind.has_status(), kind.is_custom());
    write(&FieldWrite {
        writer,
        merge_type: kind.merge_type(),
        types: kind,
        filter: &filter,
        untracked: ssa::untracked(),
        now,
    })
}
