//! Defaults inside a schema obey that schema.

use serde_json::Value;

use crate::api_error::FieldError;
use crate::custom::schema::{self, is};
use crate::custom::{check, prune};

/// The defaults of the schema at `path` that break it.
pub(super) fn mistakes(shape: &Value, path: &str, is_root: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(shape, path, is_root, false, &mut errors);
    errors
}

fn walk(shape: &Value, path: &str, is_resource: bool, in_meta: bool, errors: &mut Vec<FieldError>) {
    let is_resource = is_resource || is(shape, "x-kubernetes-embedded-resource");
    let in_meta = in_meta && !is_resource;
    if let Some(default) = schema::default(shape) {
        of_default(shape, default, &format!("{path}.default"), in_meta, errors);
    }
    if let Some(items) = schema::items(shape) {
        walk(items, &format!("{path}.items"), false, in_meta, errors);
    }
    for (name, below) in schema::properties(shape) {
        let meta = is_resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        walk(below, &format!("{path}.properties[{name}]"), false, in_meta || meta, errors);
    }
}

fn of_default(shape: &Value, default: &Value, place: &str, in_meta: bool, errors: &mut Vec<FieldError>) {
    if !in_meta {
        let mut pruned = default.clone();
        prune::prune_value(&mut pruned, shape);
        if pruned != *default {
            errors.push(FieldError::invalid(place, default, "must not have unknown fields"));
        }
        let embedded = check::embedded(shape, default, place);
        if !embedded.is_empty() {
            return errors.extend(embedded);
        }
    }
    errors.extend(check::value(place, shape, default));
}
