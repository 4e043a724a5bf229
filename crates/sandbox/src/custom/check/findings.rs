//! The errors of one value, and the path to it.

use serde_json::Value;

use super::super::message_text::value_text;
use crate::api_error::FieldError;

/// Errors, and the number of checks that passed: of alternatives that all fail, the one with the most passed checks is
/// reported.
#[derive(Debug, Default)]
pub(super) struct SchemaFindings {
    pub(super) errors: Vec<FieldError>,
    pub(super) matches: usize,
}

impl SchemaFindings {
    pub(super) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// Equal errors are kept once.
    pub(super) fn add(&mut self, error: FieldError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        other.errors.into_iter().for_each(|error| self.add(error));
        self.matches += other.matches;
    }
}

/// A place: `base` is the whole's path, `name` the path within what is checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct FindingPath<'p> {
    pub(super) base: &'p str,
    pub(super) name: &'p str,
}

impl FindingPath<'_> {
    fn field(self) -> String {
        match (self.base, self.name.trim_start_matches('.')) {
            ("", "") => "<nil>".to_owned(),
            ("", name) => name.to_owned(),
            (base, "") => base.to_owned(),
            (base, name) => format!("{base}.{name}"),
        }
    }

    pub(super) fn invalid(self, value: &Value, rule: &str) -> FieldError {
        let message = format!("Invalid value: {}: {} in body {rule}", value_text(value), self.name);
        FieldError { field: self.field(), reason: "FieldValueInvalid", message }
    }

    /// The value has another type (or format) than `wanted`.
    pub(super) fn wrong_type(self, wanted: &str, found: &str) -> FieldError {
        let message =
            format!("Invalid value: {found:?}: {} in body must be of type {wanted}: {found:?}", self.name);
        FieldError { field: self.field(), reason: "FieldValueTypeInvalid", message }
    }

    /// A mistake that the server cannot place.
    pub(super) fn general(self, why: &str) -> FieldError {
        let field = if self.base.is_empty() { "<nil>" } else { self.base };
        FieldError {
            field: field.to_owned(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: \"\": {why}"),
        }
    }

    pub(super) fn required(self, name: &str) -> FieldError {
        let name = format!("{}.{name}", self.name);
        FieldError::required(FindingPath { name: &name, ..self }.field(), "")
    }

    pub(super) fn too_many(self, found: usize, most: i64) -> FieldError {
        let items = if most == 1 { "item" } else { "items" };
        FieldError {
            field: self.field(),
            reason: "FieldValueTooMany",
            message: format!("Too many: {found}: must have at most {most} {items}"),
        }
    }

    pub(super) fn too_long(self, most: i64) -> FieldError {
        let bytes = if most == 1 { "byte" } else { "bytes" };
        FieldError {
            field: self.field(),
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {most} {bytes}"),
        }
    }

    pub(super) fn not_supported(self, value: &Value, supported: &[Value]) -> FieldError {
        let said: Vec<String> = supported
            .iter()
            .map(|one| match one {
                Value::String(text) => format!("{text:?}"),
                other => format!("{:?}", other.to_string()),
            })
            .collect();
        FieldError {
            field: self.field(),
            reason: "FieldValueNotSupported",
            message: format!(
                "Unsupported value: {}: supported values: {}",
                value_text(value),
                said.join(", ")
            ),
        }
    }
}
