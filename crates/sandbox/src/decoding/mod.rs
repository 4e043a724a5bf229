//! Decodes request bodies: syntax, object type, field names and field types.
//!
//! Built-in kinds are decoded by their definition, as the server reads them into its Go types. Undeclared fields are
//! dropped and reported; a value of a wrong type fails the request. [`FieldValidation`] decides whether a report is
//! an error, a warning or ignored. Messages are the server's, Go types included.
//!
//! For custom kinds only syntax and duplicate keys are checked here; their schema is checked later. The module never
//! reads stored objects and never fills defaults.

mod body;
mod document;
mod field_validation;
mod fields;
mod go_type_names;
mod json;
mod patched_object;
mod scalar;
#[cfg(test)]
mod tests;
mod type_name;

pub(crate) use body::{delete_options, json_value, noun, object, patch_map, patch_operations, patch_yaml};
pub(crate) use field_validation::{FieldValidation, ResponseWarnings};
pub(crate) use json::MAX_DEPTH;
pub(crate) use patched_object::{from_json, from_map, go_value};
pub(crate) use type_name::TypeName;
