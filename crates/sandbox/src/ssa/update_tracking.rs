//! Records the ownership of every write that is not an apply: the writer owns what it changed.

use serde_json::Value;

use super::field_write::FieldWrite;
use super::managed_fields::{ManagedFields, write_to};
use super::validate::{DuplicateItems, SchemaViolations, validate};
use crate::object;

/// Records a create, update or patch in the managed fields of `new`.
///
/// `before` is the live object, or for a create what the kind writes of itself.
pub(crate) fn track(before: &Value, new: &mut Value, write: &FieldWrite<'_>) {
    // what cannot be understood is not tracked
    let entries = entries_after_write(before, new, write).unwrap_or_default();
    write_to(new, entries);
}

/// The entries after a write.
pub(super) fn entries_after_write(
    before: &Value,
    new: &Value,
    write: &FieldWrite<'_>,
) -> Result<Vec<Value>, SchemaViolations> {
    let managed = initial_owners(before, new, &write.writer.subresource);
    let is_create = object::uid(before).is_empty();
    // an object whose ownership was reset is tracked again from the next apply on
    if managed.is_empty() && !is_create {
        return Ok(Vec::new());
    }
    if write.unknown_version(&managed).is_some() {
        return Ok(Vec::new());
    }
    Ok(update(before, new, managed, write)?.encode())
}

/// The owners that a write starts from: those that the client sent, when it may and did.
fn initial_owners<'a>(before: &'a Value, new: &'a Value, subresource: &str) -> ManagedFields<'a> {
    let known = || ManagedFields::of(before).unwrap_or_default();
    match ManagedFields::of(new) {
        _ if !subresource.is_empty() => known(),
        _ if ManagedFields::resets_ownership(new) => ManagedFields::default(),
        Some(sent) if !sent.is_empty() => sent,
        _ => known(),
    }
}

pub(super) fn update<'a>(
    before: &'a Value,
    new: &'a Value,
    managed: ManagedFields<'a>,
    write: &FieldWrite<'a>,
) -> Result<ManagedFields<'a>, SchemaViolations> {
    validate(new, write.merge_type, DuplicateItems::Allowed)?;
    write.check_stored(before)?;
    let mut managed = write.update(before, new, managed);
    managed.merge_oldest_updaters();
    Ok(managed)
}
