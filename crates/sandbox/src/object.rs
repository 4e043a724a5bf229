//! Reads and changes Kubernetes objects that are held as JSON.
//!
//! Objects of every kind pass through here, so nothing is typed. A missing field reads as `None` or zero.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

pub(crate) fn value_at<'v>(object: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, field| value.get(field)).filter(|value| !value.is_null())
}

pub(crate) fn text<'v>(object: &'v Value, path: &[&str]) -> Option<&'v str> {
    value_at(object, path).and_then(Value::as_str)
}

/// The integer at a path, zero when absent.
pub(crate) fn integer(object: &Value, path: &[&str]) -> i64 {
    value_at(object, path).and_then(Value::as_i64).unwrap_or(0)
}

/// The seconds at a path, at most a hundred years, so that times do not overflow.
pub(crate) fn seconds(object: &Value, path: &[&str]) -> Duration {
    const LONGEST: u64 = 100 * 365 * 24 * 3600;
    Duration::from_secs(u64::try_from(integer(object, path)).unwrap_or(0).min(LONGEST))
}

/// The list at a path, empty when absent.
pub(crate) fn list<'v>(object: &'v Value, path: &[&str]) -> &'v [Value] {
    value_at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The value at a path; missing maps on the way are created.
pub(crate) fn value_mut<'v>(object: &'v mut Value, path: &[&str]) -> &'v mut Value {
    path.iter().fold(object, |value, field| {
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        &mut value[*field]
    })
}

pub(crate) fn set(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    *value_mut(object, path) = value.into();
}

/// Sets the value at a path when nothing is there, which is what defaulting means.
pub(crate) fn set_default(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    if value_at(object, path).is_none() {
        set(object, path, value);
    }
}

/// Takes the value at a path out of the object.
pub(crate) fn take(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(object, |value, field| value.get_mut(field))?;
    parent.as_object_mut()?.shift_remove(*last)
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"]).unwrap_or("")
}

/// The name of a reference, or of anything that has one at its top.
pub(crate) fn name_of(reference: &Value) -> &str {
    text(reference, &["name"]).unwrap_or("")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"]).unwrap_or("")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"]).unwrap_or("")
}

pub(crate) fn revision(object: &Value) -> u64 {
    text(object, &["metadata", "resourceVersion"]).and_then(|text| text.parse().ok()).unwrap_or(0)
}

pub(crate) fn generation(object: &Value) -> i64 {
    integer(object, &["metadata", "generation"])
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    value_at(object, &["metadata", "deletionTimestamp"]).is_some()
}

pub(crate) fn finalizers(object: &Value) -> &[Value] {
    list(object, &["metadata", "finalizers"])
}

pub(crate) fn drop_finalizer(object: &mut Value, finalizer: &str) {
    if let Some(Value::Array(finalizers)) = object.pointer_mut("/metadata/finalizers") {
        finalizers.retain(|one| one != finalizer);
    }
    if finalizers(object).is_empty() {
        take(object, &["metadata", "finalizers"]);
    }
}

pub(crate) fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    text(object, &["metadata", "annotations", key])
}

/// The owner that manages the object (`controller: true`).
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    list(object, &["metadata", "ownerReferences"])
        .iter()
        .find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

pub(crate) fn controller_reference(owner: &Value, api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true})
}

/// How many maps and lists are inside each other.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Removes null fields of maps, at every depth: the server never stores them.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Removes null fields of the metadata, which is of the server's own types in every kind.
pub(crate) fn drop_nulls_of_metadata(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata") {
        drop_nulls(metadata);
    }
}

/// The condition of a type in `status.conditions`.
pub(crate) fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    list(object, &["status", "conditions"]).iter().find(|one| one["type"] == kind)
}

pub(crate) fn condition_is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|one| one["status"] == "True")
}

/// A list item is the first of its name.
pub(crate) fn find_by<'v>(items: &'v [Value], field: &str, value: &str) -> Option<&'v Value> {
    items.iter().find(|item| item[field] == value)
}

/// JSON with the fields of maps in order, as the server marshals them.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, &Value> = fields.iter().collect();
            Value::Object(fields.into_iter().map(|(name, field)| (name.clone(), sorted(field))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wait_ends_the_clock() {
        let check = |said: Value, expected: u64| {
            assert_eq!(seconds(&json!({"s": said}), &["s"]), Duration::from_secs(expected));
        };
        check(json!(30), 30);
        check(json!(-1), 0);
        check(json!(i64::MAX), 100 * 365 * 24 * 3600);
    }
}
