//! Merges an applied configuration into the live object. Values of the configuration win; maps merge by field, keyed
//! lists by item.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::list_items::ListItems;
use super::path::PathElement;
use super::type_ref::{MergeShape, TypeRef};
use super::types::{ListRelation, ListType, MapType};
use super::values::{WalkDepth, fields, items};

/// The live object with all values of the configuration. Nothing is removed; managed fields are left out.
pub(super) fn merge(live: Option<&Value>, config: &Value, of: TypeRef<'_>) -> Value {
    merged(live, config, Some(of), WalkDepth::Object)
}

fn merged(live: Option<&Value>, config: &Value, of: Option<TypeRef<'_>>, depth: WalkDepth) -> Value {
    let Some(of) = of else { return config.clone() };
    match of.shape_of(config) {
        None | Some(MergeShape::Scalar(_)) => config.clone(),
        Some(MergeShape::List(list)) => {
            let (before, wanted) = (items(live), items(Some(config)));
            // empty lists keep their own kind of emptiness
            if list.relation == ListRelation::Atomic || (before.is_empty() && wanted.is_empty()) {
                return config.clone();
            }
            Value::Array(merge_lists(before, wanted, of, list))
        }
        Some(MergeShape::Map(map)) => {
            let (before, wanted) = (fields(live), fields(Some(config)));
            let is_empty = before.is_none_or(Map::is_empty) && wanted.is_none_or(Map::is_empty);
            if map.atomic || is_empty {
                return config.clone();
            }
            Value::Object(merge_maps(before, wanted, of, map, depth))
        }
    }
}

fn merge_maps(
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
    of: TypeRef<'_>,
    map: &MapType,
    depth: WalkDepth,
) -> Map<String, Value> {
    let sizes = live.map_or(0, Map::len).max(config.map_or(0, Map::len));
    let mut out = Map::with_capacity(sizes);
    let both = |name: &String, before: Option<&Value>, after: &Value| {
        merged(before, after, of.field(map, name), depth.inside(name))
    };
    for (name, before) in live.into_iter().flatten().filter(|(name, _)| !depth.hides(name)) {
        let value = match config.and_then(|config| config.get(name)) {
            Some(after) => both(name, Some(before), after),
            None => without_managed_fields(before, depth.inside(name)),
        };
        out.insert(name.clone(), value);
    }
    for (name, after) in config.into_iter().flatten().filter(|(name, _)| !depth.hides(name)) {
        if !live.is_some_and(|live| live.contains_key(name)) {
            out.insert(name.clone(), both(name, None, after));
        }
    }
    out
}

fn without_managed_fields(value: &Value, depth: WalkDepth) -> Value {
    match value {
        Value::Object(fields) if depth == WalkDepth::Metadata => {
            let kept = fields.iter().filter(|(name, _)| !depth.hides(name));
            Value::Object(kept.map(|(name, field)| (name.clone(), field.clone())).collect())
        }
        other => other.clone(),
    }
}

/// Items of the live list keep their positions. Items of both lists, and new items, take the order of the
/// configuration.
fn merge_lists<'a>(
    live: &'a [Value],
    config: &'a [Value],
    of: TypeRef<'a>,
    list: &'a ListType,
) -> Vec<Value> {
    let (live, config) = (ListItems::of(of, list, live), ListItems::of(of, list, config));
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let mut shared: VecDeque<&PathElement<'_>> =
        config.iter().map(|(step, _)| step).filter(|step| live.contains_step(step)).collect();
    let mut next_shared = shared.pop_front();
    let mut done: BTreeSet<&PathElement<'_>> = BTreeSet::new();
    let (mut left, mut right) = (0, 0);
    loop {
        let (before, after) = (live.get(left), config.get(right));
        if before.is_none() && after.is_none() {
            return out;
        }
        if let (Some((step, _)), Some((wanted, item))) = (before, after) {
            if step == wanted {
                done.insert(step);
                out.push(merge_item(step, item, &live, of, list));
                left += 1;
                right += 1;
                next_shared = shared.pop_front();
                continue;
            }
            if config.contains_step(step) && next_shared.is_some_and(|next| next != step) {
                // shared, but another one comes first
                left += 1;
                continue;
            }
        }
        if let Some((step, item)) = before {
            if !config.contains_step(step) {
                out.push((*item).clone());
                left += 1;
                continue;
            }
            if done.contains(step) {
                left += 1;
            }
        }
        if let Some((wanted, item)) = after {
            done.insert(wanted);
            out.push(merge_item(wanted, item, &live, of, list));
            right += 1;
            if next_shared == Some(wanted) {
                next_shared = shared.pop_front();
            }
        }
    }
}

fn merge_item(
    step: &PathElement<'_>,
    item: &Value,
    live: &ListItems<'_>,
    of: TypeRef<'_>,
    list: &ListType,
) -> Value {
    let mut same = live.with_step(step);
    // an item that the live list holds twice merges with neither
    let before = same.next().filter(|_| same.next().is_none());
    merged(before, item, Some(of.item(list)), WalkDepth::Below)
}
