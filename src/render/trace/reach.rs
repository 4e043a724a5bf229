//! Which fields of which objects a value reaches.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Key, Made};

/// How a field depends on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It is the value.
    Copied,
    /// It is made of it.
    Made,
    /// Whether the field is there at all depends on it.
    Switched,
}

/// What was altered.
#[derive(Clone, Copy, Debug)]
pub struct Altered<'v> {
    pub old: &'v Value,
    pub new: &'v Value,
    /// It may say which layers there are, and then fields depend on it without holding it.
    pub chooses: bool,
}

/// The fields that came out differently, each with how.
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

/// A number that became a text is still that number.
fn same(field: &Value, value: &Value) -> bool {
    field == value || !value.is_null() && text(field) == text(value)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

type Difference<'v> = (String, &'v Value, Option<&'v Value>);

/// The leaves of one that the other does not have alike.
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

/// The leaves of an object: what is explained.
pub fn leaves(value: &Value) -> impl Iterator<Item = (String, &Value)> {
    let mut found = Vec::new();
    compare(value, None, "", &mut found);
    found.into_iter().map(|(path, leaf, _)| (path, leaf))
}

/// Whether a path is another, or leads into it.
pub fn holds(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

pub fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
