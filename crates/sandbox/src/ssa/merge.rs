//! An applied configuration merged into the live object: the configuration wins, keyed lists merge
//! item by item, and shared items take the configuration's order.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::path::{Path, PathElement, display};
use super::schema::{ListKind, Schema};

/// A configuration that names one list item twice.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{list}: duplicate entries for key {item}")]
pub(crate) struct DuplicateItem {
    pub(crate) list: String,
    pub(crate) item: String,
}

pub(super) fn merge(live: &Value, config: &Value, schema: Schema<'_>) -> Result<Value, DuplicateItem> {
    merge_at(Some(live), config, schema, &mut Vec::new())
}

fn merge_at(
    live: Option<&Value>,
    config: &Value,
    schema: Schema<'_>,
    path: &mut Path,
) -> Result<Value, DuplicateItem> {
    match config {
        Value::Object(fields) if !schema.is_atomic_map() => {
            let mut out = live.and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, field) in fields {
                path.push(PathElement::Field(name.clone()));
                let merged = merge_at(out.get(name), field, schema.field(name), path)?;
                path.pop();
                out.insert(name.clone(), merged);
            }
            Ok(Value::Object(out))
        }
        Value::Array(items) if !matches!(schema.list_kind(), ListKind::Atomic) => {
            let live = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            merge_list(live, items, schema, path).map(Value::Array)
        }
        leaf => Ok(leaf.clone()),
    }
}

fn merge_list(
    live: &[Value],
    config: &[Value],
    schema: Schema<'_>,
    path: &mut Path,
) -> Result<Vec<Value>, DuplicateItem> {
    let elements = |items: &[Value]| -> Vec<PathElement> {
        items.iter().enumerate().map(|(at, item)| schema.element(at, item)).collect()
    };
    let (live_elements, config_elements) = (elements(live), elements(config));
    let mut wanted = BTreeSet::new();
    if let Some(twice) = config_elements.iter().find(|element| !wanted.insert(*element)) {
        return Err(DuplicateItem { list: display(path), item: twice.to_string() });
    }
    let known: BTreeSet<&PathElement> = live_elements.iter().collect();
    let mut out = Vec::new();
    let mut next = 0;
    let mut take = |next: &mut usize, out: &mut Vec<Value>| -> Result<(), DuplicateItem> {
        let element = &config_elements[*next];
        let mut same =
            live_elements.iter().zip(live).filter(|(one, _)| *one == element).map(|(_, item)| item);
        // an item that the live list holds twice merges with neither
        let before = same.next().filter(|_| same.next().is_none());
        path.push(element.clone());
        out.push(merge_at(before, &config[*next], schema.item(), path)?);
        path.pop();
        *next += 1;
        Ok(())
    };
    for (element, item) in live_elements.iter().zip(live) {
        if !wanted.contains(element) {
            out.push(item.clone());
            continue;
        }
        // Shared items stand where the live list has the one that the configuration wants next,
        // after the configuration's new items before it; the others wait for their turn.
        let next_shared = config_elements[next..].iter().position(|one| known.contains(one));
        if let Some(ahead) = next_shared
            && config_elements[next + ahead] == *element
        {
            for _ in 0..=ahead {
                take(&mut next, &mut out)?;
            }
        }
    }
    while next < config_elements.len() {
        take(&mut next, &mut out)?;
    }
    Ok(out)
}

/// Removes the paths of a set from a value. Maps and lists that become empty turn null, which the
/// last step of an apply drops.
pub(super) fn remove(value: &Value, gone: &super::FieldSet, schema: Schema<'_>) -> Value {
    match value {
        Value::Object(fields) if !schema.is_atomic_map() => {
            let kept: Map<String, Value> = fields
                .iter()
                .filter_map(|(name, field)| {
                    let element = PathElement::Field(name.clone());
                    (!gone.has(&element))
                        .then(|| (name.clone(), step(field, gone, schema.field(name), &element)))
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        Value::Array(items) if !matches!(schema.list_kind(), ListKind::Atomic) => {
            let kept: Vec<Value> = items
                .iter()
                .enumerate()
                .map(|(at, item)| (schema.element(at, item), item))
                .filter(|(element, _)| !gone.has(element))
                .map(|(element, item)| step(item, gone, schema.item(), &element))
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        Value::Object(_) | Value::Array(_) => Value::Null,
        leaf => leaf.clone(),
    }
}

fn step(value: &Value, gone: &super::FieldSet, schema: Schema<'_>, element: &PathElement) -> Value {
    gone.below(element).map_or_else(|| value.clone(), |below| remove(value, below, schema))
}
