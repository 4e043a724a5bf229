//! Validates objects against the schema of their kind: types, bounds, patterns, formats, junctors, sets and maps.
//!
//! Messages, their order and their quirks are the server's: a number out of its type's range has no field. Values
//! that an update leaves unchanged are not checked.

mod embedded;
mod findings;
mod formats;
mod junctors;
mod lists;
mod numbers;
mod scale;
mod value;

use serde_json::Value;

use crate::api_error::FieldError;
use crate::registry::ResourceKind;

pub(super) use embedded::mistakes as embedded;

/// Everything that is wrong with an object.
pub(super) fn object(
    kind: &ResourceKind,
    schema: &Value,
    live: Option<&Value>,
    new: &Value,
) -> Vec<FieldError> {
    // only a write to the status subresource changes the status of such kinds
    let of_status = live.filter(|live| kind.has_status() && live.get("status") != new.get("status"));
    let mut errors = match (of_status, super::schema::property(schema, "status"), new.get("status")) {
        (Some(live), Some(below), Some(status)) => {
            value::check("status", "", below, status, live.get("status")).errors
        }
        (Some(_), _, _) => Vec::new(),
        (None, _, _) => value::check("", "", schema, new, live).errors,
    };
    errors.extend(scale::mistakes(kind, new));
    errors.extend(embedded::below(schema, new));
    // lists that held duplicates before may hold them still
    let were_unique = live.is_none_or(|live| lists::mistakes(schema, live).is_empty());
    if were_unique {
        errors.extend(lists::mistakes(schema, new));
    }
    errors
}

/// A value anywhere against a schema; `base` is where it stands in the whole.
pub(super) fn value(base: &str, schema: &Value, new: &Value) -> Vec<FieldError> {
    value::check(base, "", schema, new, None).errors
}

/// Is it a format of texts that the server knows?
pub(super) fn knows_format(format: &str) -> bool {
    formats::is_checked(format)
}

#[cfg(test)]
mod tests;
