//! The order of merged items: `$setElementOrder`, and the order without it.

use serde_json::Value;

use super::lists::{self, fields_of, items_of};
use super::{JsonFields, ORDER, PATCH, StrategicError, drop_directives, lookup};
use crate::decoding::go_value;
use crate::schema::FieldDeclaration;

/// Merges every list that has a wanted order, and takes it out of the patch.
pub(super) fn apply(
    live: &mut JsonFields,
    patch: &mut JsonFields,
    at: Option<FieldDeclaration<'_>>,
) -> Result<(), StrategicError> {
    let directives: Vec<String> = patch.keys().filter(|name| name.starts_with(ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.shift_remove(&directive) else { continue };
        let order = items_of(&order)?;
        let name = directive.strip_prefix(ORDER).unwrap_or_default();
        let known = live.get(name).map(items_of).transpose()?.cloned();
        let sent = patch.get(name).map(items_of).transpose()?.cloned();
        let (list, item) = lookup(at, name)?;
        let key = list.and_then(FieldDeclaration::patch_merge_key);
        check(sent.as_deref().unwrap_or_default(), order, key)?;
        let change = patch.get_mut(name).and_then(Value::as_array_mut);
        let merged = match (&known, change) {
            (None, None) => continue,
            (Some(known), None) => known.clone(),
            (None, Some(change)) => {
                change.retain_mut(drop_directives);
                change.clone()
            }
            (Some(known), Some(change)) => match list.is_some_and(|list| list.has_patch_strategy("merge")) {
                true => lists::merge(known.clone(), change, list, item, false)?,
                false => change.clone(),
            },
        };
        let (named, rest) = lists::split(merged, order, key)?;
        let known = known.unwrap_or_default();
        lists::are_maps(&known, sent.as_deref().unwrap_or_default())?;
        let ordered = interleave(named, rest, order, &known, key)?;
        live.insert(name.to_owned(), Value::Array(ordered));
        patch.shift_remove(name);
    }
    Ok(())
}

/// The items of the patch are in the wanted order, and nothing else is among them.
fn check(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), StrategicError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter().peekable();
    let is_deleted =
        |item: &Value| key.is_some() && item.get(PATCH).is_some_and(|directive| directive == "delete");
    for item in patch.iter().filter(|item| !is_deleted(item)) {
        // a directive names no item, but must come before the last wanted one
        if item.get(PATCH).is_some() && wanted.peek().is_some() {
            continue;
        }
        loop {
            let Some(next) = wanted.next() else {
                let list = |items: &[Value]| go_value(&Value::Array(items.to_vec()));
                let (patch, order) = (list(patch), list(order));
                return Err(StrategicError::Other(format!(
                    "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
                )));
            };
            if same_key(item, next, key)? {
                break;
            }
        }
    }
    Ok(())
}

fn same_key(left: &Value, right: &Value, key: Option<&str>) -> Result<bool, StrategicError> {
    let Some(key) = key else { return Ok(left == right) };
    let value = |item: &Value| match fields_of(item)?.get(key) {
        Some(value) => Ok(value.clone()),
        None => Err(StrategicError::no_merge_key(item, key)),
    };
    Ok(value(left)? == value(right)?)
}

/// One list of two: the named items in their order, the rest in its own; where the known order does not decide, named
/// items come first.
pub(super) fn interleave(
    named: Vec<Value>,
    rest: Vec<Value>,
    order: &[Value],
    known: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, StrategicError> {
    let mut named = sorted(named, order, key)?.into_iter().peekable();
    let mut rest = sorted(rest, known, key)?.into_iter().peekable();
    let mut all = Vec::new();
    loop {
        let rest_first = match (rest.peek(), named.peek()) {
            (None, None) => return Ok(all),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(left), Some(right)) => {
                matches!((order_index(known, left, key), order_index(known, right, key)), (Some(left), Some(right)) if left < right)
            }
        };
        all.extend(if rest_first { rest.next() } else { named.next() });
    }
}

/// Sorts by `order`; items to delete come last. Items that are not in `order` move to the front, as on the server.
fn sorted(items: Vec<Value>, order: &[Value], key: Option<&str>) -> Result<Vec<Value>, StrategicError> {
    let (items, deleted): (Vec<Value>, Vec<Value>) = match key {
        None => (items, Vec::new()),
        Some(key) => {
            for item in items.iter().chain(order) {
                if !fields_of(item)?.contains_key(key) {
                    return Err(StrategicError::no_merge_key(item, key));
                }
            }
            items.into_iter().partition(|item| item.get(PATCH).is_none_or(|directive| directive != "delete"))
        }
    };
    let mut placed: Vec<(Option<usize>, Value)> = Vec::with_capacity(items.len());
    for item in items {
        let own = order_index(order, &item, key);
        let passes = |(other, _): &&(Option<usize>, Value)| match (own, *other) {
            (Some(own), Some(other)) => own < other,
            _ => true,
        };
        let passed = placed.iter().rev().take_while(passes).count();
        placed.insert(placed.len() - passed, (own, item));
    }
    Ok(placed.into_iter().map(|(_, item)| item).chain(deleted).collect())
}

fn order_index(order: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    order.iter().position(|one| match key {
        Some(key) => one.get(key).is_some() && one.get(key) == item.get(key),
        None => one == item,
    })
}
