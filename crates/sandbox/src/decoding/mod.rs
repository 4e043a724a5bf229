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
mod fields;
mod json;
mod names;
mod patched;
mod scalar;
#[cfg(test)]
mod tests;
mod type_name;
mod validation;

pub(crate) use body::{any_json, delete_options, noun, object, patch_map, patch_operations, patch_yaml};
pub(crate) use json::DEEPEST;
pub(crate) use patched::{from_json, from_map, in_go};
pub(crate) use type_name::TypeName;
pub(crate) use validation::{FieldValidation, Warnings};
