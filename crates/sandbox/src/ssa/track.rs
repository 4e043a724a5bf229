//! Records the ownership of every write that is not an apply: the writer owns what it changed.

use serde_json::Value;

use super::managed::{Managed, write_to};
use super::validate::{Duplicates, Invalid, validate};
use super::write::Write;
use crate::object;

/// Records a create, update or patch in the managed fields of `new`.
///
/// `before` is the live object, or for a create what the kind writes of itself.
pub(crate) fn track(before: &Value, new: &mut Value, write: &Write<'_>) {
    // what cannot be understood is not tracked
    let entries = tracked(before, new, write).unwrap_or_default();
    write_to(new, entries);
}

/// The entries after a write.
pub(super) fn tracked(before: &Value, new: &Value, write: &Write<'_>) -> Result<Vec<Value>, Invalid> {
    let managed = said(before, new, &write.writer.subresource);
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
fn said<'a>(before: &'a Value, new: &'a Value, subresource: &str) -> Managed<'a> {
    let known = || Managed::of(before).unwrap_or_default();
    match Managed::of(new) {
        _ if !subresource.is_empty() => known(),
        _ if Managed::is_reset(new) => Managed::default(),
        Some(sent) if !sent.is_empty() => sent,
        _ => known(),
    }
}

pub(super) fn update<'a>(
    before: &'a Value,
    new: &'a Value,
    managed: Managed<'a>,
    write: &Write<'a>,
) -> Result<Managed<'a>, Invalid> {
    validate(new, write.of, Duplicates::Allowed)?;
    write.check_stored(before)?;
    let mut managed = write.update(before, new, managed);
    managed.cap_updaters();
    Ok(managed)
}
