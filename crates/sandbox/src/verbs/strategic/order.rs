//! Merges lists in the order of `$setElementOrder`.

use serde_json::Value;

use super::directives::{ORDER, PATCH, drop_directives};
use super::interleave::interleave;
use super::json_fields::{JsonFields, fields_of, items_of};
use super::maps::lookup;
use super::{StrategicError, lists};
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
