//! Compares renders to find the fields that an altered value reaches.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Key, Made};

/// How a field depends on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// The field equals the value.
    Copied,
    /// The field is computed from the value.
    Made,
    /// The value decides whether the field exists.
    Switched,
}

#[derive(Clone, Copy, Debug)]
pub struct Altered<'v> {
    pub old: &'v Value,
    pub new: &'v Value,
    /// The value may select layers; then fields depend on it without containing it.
    pub chooses: bool,
}

/// The changed fields with their dependency.
pub fn changed(before: &[Made], after: &[Made], altered: Altered<'_>) -> BTreeMap<(Key, String), How> {
    let Altered { old, new, chooses } = altered;
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
                Some(is) if same(was, old) && same(is, new) => How::Copied,
                Some(is) if !chooses || text(is).contains(&text(new)) => How::Made,
                _ => How::Switched,
            };
            found.insert((made.key.clone(), path), how);
        }
    }
    found
}

/// A number and its text count as equal.
fn same(field: &Value, value: &Value) -> bool {
    field == value || !value.is_null() && text(field) == text(value)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

type Difference<'v> = (String, &'v Value, Option<&'v Value>);

/// Leaves of `one` that differ in `other`.
fn compare<'v>(one: &'v Value, other: Option<&'v Value>, path: &str, found: &mut Vec<Difference<'v>>) {
    if other == Some(one) {
        return;
    }
    match one {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                compare(value, other.and_then(|other| other.get(key)), &below(path, key), found);
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
pub fn holds(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

pub fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
