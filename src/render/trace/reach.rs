//! Compares renders to find the fields that an altered value reaches.

use std::collections::BTreeMap;

use serde_json::Value;

pub use super::field_locations::child_path;
use super::trace_recorder::{TracedObject, TracedObjectKey};

/// How a field depends on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldDependency {
    /// The field equals the value.
    Copied,
    /// The field is computed from the value.
    Derived,
    /// The value decides whether the field exists.
    Conditional,
}

#[derive(Clone, Copy, Debug)]
pub struct ValueAlteration<'v> {
    pub old: &'v Value,
    pub new: &'v Value,
    /// The value may select layers; then fields depend on it without containing it.
    pub selects_layers: bool,
}

/// The changed fields with their dependency.
pub fn changed_fields(
    before: &[TracedObject],
    after: &[TracedObject],
    altered: ValueAlteration<'_>,
) -> BTreeMap<(TracedObjectKey, String), FieldDependency> {
    let ValueAlteration { old, new, selects_layers: chooses } = altered;
    let mut found = BTreeMap::new();
    for made in before {
        let other = after.iter().find(|other| other.key == made.key);
        if other.is_some_and(|other| other.object.body == made.object.body) {
            continue;
        }
        let (was, is) = (made.object.body.fields(), other.map(|other| other.object.body.fields()));
        let mut differing = Vec::new();
        compare(&was, is.as_ref(), "", &mut differing);
        for (path, was, is) in differing {
            let how = match is {
                Some(is) if is_same_value(was, old) && is_same_value(is, new) => FieldDependency::Copied,
                Some(is) if !chooses || text(is).contains(&text(new)) => FieldDependency::Derived,
                _ => FieldDependency::Conditional,
            };
            found.insert((made.key.clone(), path), how);
        }
    }
    found
}

/// A number and its text count as equal.
fn is_same_value(field: &Value, value: &Value) -> bool {
    field == value || !value.is_null() && text(field) == text(value)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

type LeafDifference<'v> = (String, &'v Value, Option<&'v Value>);

/// Leaves of `one` that differ in `other`.
fn compare<'v>(one: &'v Value, other: Option<&'v Value>, path: &str, found: &mut Vec<LeafDifference<'v>>) {
    if other == Some(one) {
        return;
    }
    match one {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                compare(value, other.and_then(|other| other.get(key)), &child_path(path, key), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                let other = other.and_then(|other| other.get(index));
                compare(item, other, &format!("{path}[{index}]"), found);
            }
        }
        _ => found.push((path.to_owned(), one, other)),
    }
}

pub fn leaves(value: &Value) -> impl Iterator<Item = (String, &Value)> {
    let mut found = Vec::new();
    compare(value, None, "", &mut found);
    found.into_iter().map(|(path, leaf, _)| (path, leaf))
}

/// Whether `inner` is `outer` or lies below it.
pub fn contains_path(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
