//! Objects inside objects (`x-kubernetes-embedded-resource`) have a type.

use serde_json::Value;

use super::super::schema::{self, is};
use crate::api_error::FieldError;

/// Validates the embedded resources of an object, which is a resource itself.
pub(super) fn below(schema: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    children(schema, object, "", &mut errors);
    errors
}

/// Validates a value and its embedded resources.
pub(crate) fn mistakes(schema: &Value, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, value, path, &mut errors);
    errors
}

fn walk(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if is(schema, "x-kubernetes-embedded-resource") && value.is_object() {
        of_resource(value, path, errors);
    }
    children(schema, value, path, errors);
}

fn children(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(declared) = schema::property(schema, name) {
                    let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    walk(declared, field, &below, errors);
                } else if let Some(more) = schema::additional(schema) {
                    walk(more, field, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(below) = schema::items(schema) else { return };
            for (at, item) in items.iter().enumerate() {
                walk(below, item, &format!("{path}[{at}]"), errors);
            }
        }
        _ => {}
    }
}

fn of_resource(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for field in ["apiVersion", "kind"] {
        let place = format!("{path}.{field}");
        match value.get(field) {
            None => errors.push(FieldError::required(place, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(place, &Value::from(""), "must not be empty"));
            }
            Some(Value::String(_)) => {}
            Some(other) => errors.push(FieldError::invalid(place, other, "must be a string")),
        }
    }
}
