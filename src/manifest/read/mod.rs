//! Converts nodes to types, field by field.
//!
//! A [`ReadContext`] collects the mistakes of one document. [`ManifestFields`] takes the fields of one map and reports unknown ones. A reader returns
//! `None` after it reported a mistake; the caller continues with the other fields, so that one pass finds all mistakes.

mod context;
mod fields;
mod names;
#[cfg(test)]
pub mod requested_fields;
mod text;
mod value;

pub use context::ReadContext;
pub use fields::ManifestFields;
pub use names::{NameRule, is_label_key, is_label_value, likely_typo_of, nearest, suggest};
pub use text::{is_quantity, parse_duration};
pub use value::ManifestValue;

use super::codes;
