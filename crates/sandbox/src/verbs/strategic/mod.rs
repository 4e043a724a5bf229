//! Strategic merge patches: merge patches that know the fields of a kind.
//!
//! Lists merge by the key that the kind's definition names, or as sets; what a patch cannot say by values it says by
//! directives: `$patch` (delete or replace a map or an item), `$deleteFromPrimitiveList/…`, `$setElementOrder/…` and
//! `$retainKeys`. Directives are looked at where something is merged; in what is taken over whole they stay, and the
//! decoder complains of them. Custom kinds have no such patches.
//!
//! Needs the declaration of the kind. Answers the patched map, which is still to be decoded.

mod error;
mod lists;
mod order;
#[cfg(test)]
mod tests;

pub(super) use error::StrategicError;

use serde_json::{Map, Value};

use crate::schema::Declaration;

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

type Fields = Map<String, Value>;

/// `live` as the patch wants it.
pub(super) fn merge(live: &Value, patch: &Value, declared: Declaration<'_>) -> Result<Value, StrategicError> {
    let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
    merge_map(fields(live), fields(patch), Some(declared)).map(Value::Object)
}

fn merge_map(
    mut live: Fields,
    mut patch: Fields,
    at: Option<Declaration<'_>>,
) -> Result<Fields, StrategicError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.shift_remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Fields::new()),
            _ => Err(StrategicError::unknown_directive(directive, &patch)),
        };
    }
    retain(&mut live, &mut patch)?;
    order::apply(&mut live, &mut patch, at)?;
    for (key, change) in patch {
        let (key, deletes) = match key.strip_prefix(DELETE) {
            Some(list) => (list.to_owned(), true),
            None => (key, false),
        };
        if change.is_null() {
            live.shift_remove(&key);
            continue;
        }
        let known = live.get_mut(&key).map(Value::take);
        let merged = match (known, change) {
            (Some(Value::Object(known)), Value::Object(change)) => {
                let (below, _) = lookup(at, &key)?;
                merge_map(known, change, below).map(|fields| Some(Value::Object(fields)))?
            }
            (Some(Value::Array(known)), Value::Array(change)) => {
                let (below, item) = lookup(at, &key)?;
                let list = match below.is_some_and(|below| below.has_patch_strategy("merge")) || deletes {
                    true => lists::merge(known, change, below, item, deletes)?,
                    false => change,
                };
                Some(Value::Array(list))
            }
            (known, _) if deletes => known,
            (_, change) => without_directives(without_nulls(change)),
        };
        match merged {
            Some(merged) => {
                live.insert(key, merged);
            }
            None => {
                live.shift_remove(&key);
            }
        }
    }
    Ok(live)
}

/// The declaration of a field and of its items; below what is not declared nothing is.
fn lookup<'d>(
    at: Option<Declaration<'d>>,
    key: &str,
) -> Result<(Option<Declaration<'d>>, Option<Declaration<'d>>), StrategicError> {
    let Some(at) = at else { return Ok((None, None)) };
    match at.field(key) {
        Some(field) => Ok((Some(field), field.item())),
        // a map with free keys
        None if at.fields().is_none() => Ok((at.value(), at.value().and_then(Declaration::item))),
        None => Err(StrategicError::no_field(at, key)),
    }
}

/// Drops the fields that `$retainKeys` does not name.
fn retain(live: &mut Fields, patch: &mut Fields) -> Result<(), StrategicError> {
    let Some(kept) = patch.shift_remove(RETAIN) else { return Ok(()) };
    let Value::Array(kept) = kept else { return Err(StrategicError::RetainKeys) };
    let is_kept = |name: &str| kept.iter().any(|one| one == name);
    let unkept = patch.iter().any(|(name, value)| {
        !value.is_null() && !name.starts_with(DELETE) && !name.starts_with(ORDER) && !is_kept(name)
    });
    if unkept {
        return Err(StrategicError::RetainKeys);
    }
    live.retain(|name, _| is_kept(name));
    Ok(())
}

/// A value that is taken over: nulls say nothing.
fn without_nulls(mut value: Value) -> Value {
    discard_nulls(&mut value);
    value
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// A value that is taken over: maps with a directive are none.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => {
            let kept =
                fields.into_iter().filter_map(|(name, field)| Some((name, without_directives(field)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}
