//! Compares the fields of two objects.

use std::collections::BTreeMap;

use serde_json::Value;
use similar::TextDiff;

use super::comparison::FieldChange;
use crate::model::{SecretValues, shortened};
use crate::render::trace::reach::child_path;

/// Of one value, in characters.
const LONGEST_VALUE: usize = 1000;
/// Of a text whose lines are compared: its bytes, and its lines.
const MOST_COMPARED: (usize, usize) = (256 << 10, 4000);
/// Lines around a changed one, and lines of a field in all.
const CONTEXT_LINES: usize = 2;
const MOST_LINES: usize = 80;

/// A field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDifference<'v> {
    /// Items of lists by their names, where each has its own: `containers[web].image`.
    pub path: String,
    /// List items by index, for the trace.
    pub place: String,
    pub before: Option<&'v Value>,
    pub after: Option<&'v Value>,
}

/// The differing fields: first in the order of the new object, then removed ones.
pub fn field_differences<'v>(before: &'v Value, after: &'v Value) -> Vec<FieldDifference<'v>> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    walk(before, String::new(), String::new(), &mut old);
    walk(after, String::new(), String::new(), &mut new);
    let mut left: BTreeMap<&str, (&str, &Value)> =
        old.iter().map(|(path, place, value)| (path.as_str(), (place.as_str(), *value))).collect();
    let mut changes = Vec::new();
    for (path, place, value) in &new {
        let known = left.remove(path.as_str()).map(|(_, known)| known);
        if known != Some(*value) {
            changes.push(FieldDifference {
                path: path.clone(),
                place: place.clone(),
                before: known,
                after: Some(value),
            });
        }
    }
    let gone = old.iter().filter(|(path, ..)| left.contains_key(path.as_str()));
    changes.extend(gone.map(|(path, place, value)| FieldDifference {
        path: path.clone(),
        place: place.clone(),
        before: Some(value),
        after: None,
    }));
    changes
}

/// Flattens an object into fields. A list of scalars is one field, because an insertion would change all later items.
fn walk<'v>(value: &'v Value, path: String, place: String, found: &mut Vec<(String, String, &'v Value)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                walk(value, child_path(&path, key), child_path(&place, key), found);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            let names = item_names(items);
            for (index, item) in items.iter().enumerate() {
                let name = names.get(index).map_or_else(|| index.to_string(), |name| (*name).to_owned());
                walk(item, format!("{path}[{name}]"), format!("{place}[{index}]"), found);
            }
        }
        _ => found.push((path, place, value)),
    }
}

/// Where each item has a name of its own.
fn item_names(items: &[Value]) -> Vec<&str> {
    let names: Vec<&str> = items.iter().filter_map(|item| item.get("name")?.as_str()).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() == items.len() { names } else { Vec::new() }
}

pub(super) fn field_change(change: &FieldDifference<'_>, secrets: &SecretValues) -> FieldChange {
    let text = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        secrets.hide(&text, false, ToOwned::to_owned)
    };
    let (before, after) = (change.before.map(text), change.after.map(text));
    let (path, place) = (change.path.clone(), change.place.clone());
    let mut told = FieldChange { path, place, before: None, after: None, lines: Vec::new(), set_by: None };
    if let (Some(before), Some(after)) = (&before, &after)
        && (before.contains('\n') || after.contains('\n'))
        && before != after
    {
        told.lines = changed_lines(before, after);
        return told;
    }
    told.before = before.map(|text| shortened(text, LONGEST_VALUE));
    told.after = after.map(|text| shortened(text, LONGEST_VALUE));
    // The difference is behind the cut, or in masked values.
    if told.before == told.after {
        told.after = told.after.map(|text| format!("{text} (another value)"));
    }
    told
}

fn changed_lines(before: &str, after: &str) -> Vec<String> {
    let size = |text: &str| text.lines().count();
    let is_large = |text: &str| text.len() > MOST_COMPARED.0 || size(text) > MOST_COMPARED.1;
    if is_large(before) || is_large(after) {
        return vec![format!("-{} lines", size(before)), format!("+{} lines", size(after))];
    }
    let difference = TextDiff::from_lines(before, after);
    let unified = difference.unified_diff().context_radius(CONTEXT_LINES).to_string();
    let all: Vec<&str> = unified.lines().filter(|line| !line.starts_with('\\')).collect();
    let mut lines: Vec<String> =
        all.iter().take(MOST_LINES).map(|line| shortened((*line).to_owned(), LONGEST_VALUE)).collect();
    if all.len() > MOST_LINES {
        lines.push(format!("@@ and {} more lines @@", all.len() - MOST_LINES));
    }
    lines
}
