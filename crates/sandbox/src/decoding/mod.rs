//! Reading what clients send: syntax, the type of the object, its fields and their types.
//!
//! Built-in kinds are read by their definition, as the server reads them into its own types: what is not declared is
//! dropped and complained about, a value of a wrong type refuses the request. What becomes of the complaints is for
//! `fieldValidation` to say ([`FieldValidation`]): a refusal, a warning, nothing. Mistakes are told in the server's
//! words, Go types included.
//!
//! Of custom kinds only syntax and duplicate keys are told here; their schema knows the rest. Never looks at stored
//! objects, never fills defaults.

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
