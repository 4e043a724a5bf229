//! Custom resources: what a CustomResourceDefinition declares, and what follows for its objects.
//!
//! A definition is validated as the server does ([`definition`]) and becomes kinds ([`kinds_of`]).
//! Objects lose the fields that their schema does not declare ([`prune`]), get its defaults
//! ([`fill`]), and are checked against it ([`check`]), with the server's words.
//!
//! Needs the schema as it was sent: JSON, never a typed copy of it. Never evaluates rules
//! (`x-kubernetes-validations`) and never calls a conversion webhook: definitions that have either
//! are refused.

mod check;
mod declared;
pub(crate) mod definition;
mod fill;
mod present;
mod prune;
mod schema;
mod show;

use serde_json::Value;

pub(crate) use declared::{Column, Declared, kinds_of, names_of};
pub(crate) use fill::fill;
pub(crate) use present::{is_seen_alike, present, present_text};
pub(crate) use prune::unknown_fields;

use crate::registry::ResourceKind;
use crate::status::{ApiError, FieldError};

pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// What is wrong with an object of a custom kind; `live` is what it replaces.
pub(crate) fn mistakes(kind: &ResourceKind, live: Option<&Value>, new: &Value) -> Vec<FieldError> {
    match &kind.schema {
        Some(schema) => check::object(kind, schema, live, new),
        None => Vec::new(),
    }
}

/// Objects of a definition that is going away can be deleted, not made.
pub(crate) fn refuse_new(kind: &ResourceKind, name: &str) -> Result<(), ApiError> {
    match &kind.declared {
        Some(declared) if declared.terminating => Err(ApiError::forbidden(
            kind,
            name,
            "create not allowed while custom resource definition is terminating",
        )),
        _ => Ok(()),
    }
}
