//! What the server refuses: names, required fields, fields that never change.

mod immutable;
mod names;
mod required;

use serde_json::Value;

use crate::custom;
use crate::object;
use crate::registry::ResourceKind;
use crate::status::{ApiError, FieldError};

/// The name of a new object.
pub(crate) fn name(kind: &ResourceKind, new: &Value) -> Result<(), ApiError> {
    refuse(kind, new, &names::check(kind, new))
}

/// An object on its way to the store; `live` is what it replaces.
pub(crate) fn check(kind: &ResourceKind, live: Option<&Value>, new: &Value) -> Result<(), ApiError> {
    if kind.is(custom::DEFINITIONS) {
        custom::definition::readable(new)?;
        refuse(kind, new, &custom::definition::mistakes(live, new))?;
        return custom::definition::refuse(new);
    }
    let mut errors = required::check(kind, new);
    errors.extend(custom::mistakes(kind, live, new));
    if let Some(live) = live {
        errors.extend(immutable::check(kind, live, new));
        errors.extend(immutable::finalizers(live, new));
    }
    refuse(kind, new, &errors)
}

fn refuse(kind: &ResourceKind, new: &Value, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(kind, object::name(new), errors))
}
