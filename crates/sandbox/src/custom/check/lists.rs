//! Lists that are sets or maps hold nothing twice.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::super::message_text::value_text;
use super::super::schema::{self, list, text};
use crate::api_error::FieldError;
use crate::object;

pub(super) fn mistakes(schema: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, object, "", &mut errors);
    errors
}

fn walk(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
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
            match text(schema, "x-kubernetes-list-type") {
                "set" => doubles(path, items, errors),
                "map" => map_doubles(schema, path, items, errors),
                _ => {}
            }
            if let Some(below) = schema::items(schema) {
                for (at, item) in items.iter().enumerate() {
                    walk(below, item, &format!("{path}[{at}]"), errors);
                }
            }
        }
        _ => {}
    }
}

/// Each duplicate value is reported once.
fn doubles(path: &str, items: &[Value], errors: &mut Vec<FieldError>) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        let count = counts.entry(object::sorted(item).to_string()).or_default();
        *count += 1;
        if *count == 2 {
            errors.push(FieldError {
                field: format!("{path}[{at}]"),
                reason: "FieldValueDuplicate",
                message: format!("Duplicate value: {}", value_text(item)),
            });
        }
    }
}

fn map_doubles(schema: &Value, path: &str, items: &[Value], errors: &mut Vec<FieldError>) {
    let stranger = items.iter().position(|item| !item.is_object() && !item.is_null());
    if let Some((at, item)) = stranger.and_then(|at| items.get(at).map(|item| (at, item))) {
        let why = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(format!("{path}[{at}]"), item, why));
        return;
    }
    let keys: Vec<Value> = items.iter().map(|item| keys_of(schema, item)).collect();
    doubles(path, &keys, errors);
}

fn keys_of(schema: &Value, item: &Value) -> Value {
    let mut keys = Map::new();
    for key in list(schema, "x-kubernetes-list-map-keys").iter().filter_map(Value::as_str) {
        if let Some(value) = item.get(key) {
            keys.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(keys)
}
