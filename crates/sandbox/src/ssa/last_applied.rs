//! Applies of kubectl to objects that it applied client-side before.
//!
//! Such an object carries its last configuration in an annotation. kubectl may take a field without conflict when the
//! annotation sets it and the object still has the annotation's value.

use serde_json::{Map, Value};

use super::compare::FieldComparison;
use super::conflict::ApplyConflicts;
use super::encode::write_value;
use super::field_write::FieldWrite;
use super::fieldset::FieldSet;
use super::path::display;
use super::validate::{DuplicateItems, validate};
use crate::object;

/// The only manager that annotations speak for.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const MOST_BYTES: usize = 256 * 1024;

/// Are the conflicts only about what kubectl itself had set?
pub(super) fn allow_own_conflicts(
    conflicts: ApplyConflicts,
    live: &Value,
    write: &FieldWrite<'_>,
) -> Result<(), ApplyConflicts> {
    let Some(allowed) = unchanged_paths(live, write) else { return Err(conflicts) };
    match conflicts.without_paths(&allowed) {
        Some(rest) => Err(rest),
        None => Ok(()),
    }
}

/// The paths that the last configuration set and whose values are unchanged.
fn unchanged_paths(live: &Value, write: &FieldWrite<'_>) -> Option<Vec<String>> {
    let text = object::annotation(live, ANNOTATION).filter(|text| !text.is_empty())?;
    validate(live, write.merge_type, DuplicateItems::Refused).ok()?;
    let config: Value = serde_json::from_str(text).ok()?;
    if config.get("apiVersion").and_then(Value::as_str) != Some(&write.writer.api_version) {
        return None;
    }
    validate(&config, write.merge_type, DuplicateItems::Refused).ok()?;
    let comparison = FieldComparison::of(&config, live, write.merge_type);
    let own = FieldSet::of(&config, write.merge_type)
        .difference(&comparison.modified)
        .difference(&comparison.added)
        .difference(&comparison.removed);
    let mut paths = Vec::new();
    own.for_each_path(&mut |path| paths.push(display(path)));
    paths.sort();
    Some(paths)
}

/// Does the annotation of an object have to follow this apply?
pub(super) fn must_update_annotation(object: &Value) -> bool {
    object::annotation(object, ANNOTATION).is_some_and(|text| !text.is_empty())
}

/// Updates an existing annotation to the applied configuration.
pub(super) fn update_annotation(object: &mut Value, config: &Value) {
    if !must_update_annotation(object) {
        return;
    }
    let mut config = config.clone();
    for (whose, keeps) in [(&mut *object, true), (&mut config, false)] {
        let Some(Value::Object(annotations)) = whose.pointer_mut("/metadata/annotations") else { continue };
        // annotations are texts once they are read as such
        for text in annotations.values_mut().filter(|text| text.is_null()) {
            *text = Value::from("");
        }
        annotations.retain(|name, _| keeps || name != ANNOTATION);
    }
    object::take(&mut config, &["metadata", "managedFields"]);
    let mut text = String::new();
    write_value(&config, &mut text);
    text.push('\n');
    object::set(object, &["metadata", "annotations", ANNOTATION], text);
    let annotations = object::value_at(object, &["metadata", "annotations"]).and_then(Value::as_object);
    if annotations.is_some_and(|annotations| size_of(annotations) > MOST_BYTES) {
        object::take(object, &["metadata", "annotations", ANNOTATION]);
    }
}

fn size_of(annotations: &Map<String, Value>) -> usize {
    annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum()
}
