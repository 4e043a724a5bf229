//! Maps, which merge field by field.

use serde_json::Value;

use super::StrategicError;
use super::directives::{DELETE, ORDER, PATCH, RETAIN, drop_directives};
use super::json_fields::JsonFields;
use super::{lists, order};
use crate::object;
use crate::schema::FieldDeclaration;

/// Merges the patch into `live`. Processed directives are removed from the patch, as on the server: error messages show
/// the rest.
pub(crate) fn merge(
    live: &Value,
    patch: &mut Value,
    declared: FieldDeclaration<'_>,
) -> Result<Value, StrategicError> {
    let live = live.as_object().cloned().unwrap_or_default();
    let Some(patch) = patch.as_object_mut() else { return Ok(Value::Object(live)) };
    merge_map(live, patch, Some(declared)).map(Value::Object)
}

pub(super) fn merge_map(
    mut live: JsonFields,
    patch: &mut JsonFields,
    at: Option<FieldDeclaration<'_>>,
) -> Result<JsonFields, StrategicError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.shift_remove(PATCH);
                Ok(patch.clone())
            }
            Some("delete") => Ok(JsonFields::new()),
            _ => Err(StrategicError::unknown_directive(directive, patch)),
        };
    }
    retain(&mut live, patch)?;
    order::apply(&mut live, patch, at)?;
    for (key, change) in patch {
        let (key, deletes) = match key.strip_prefix(DELETE) {
            Some(list) => (list, true),
            None => (key.as_str(), false),
        };
        if change.is_null() {
            live.shift_remove(key);
            continue;
        }
        let known = live.get_mut(key).map(Value::take);
        let merged = match (known, change) {
            (Some(Value::Object(known)), Value::Object(change)) => {
                let (below, _) = lookup(at, key)?;
                merge_map(known, change, below).map(|fields| Some(Value::Object(fields)))?
            }
            (Some(Value::Array(known)), Value::Array(change)) => {
                let (below, item) = lookup(at, key)?;
                let list = match below.is_some_and(|below| below.has_patch_strategy("merge")) || deletes {
                    true => lists::merge(known, change, below, item, deletes)?,
                    false => change.clone(),
                };
                Some(Value::Array(list))
            }
            (known, _) if deletes => known,
            (_, change) => {
                // in a value that is taken over nulls say nothing
                object::drop_nulls(change);
                drop_directives(change).then(|| change.clone())
            }
        };
        match merged {
            Some(merged) => {
                live.insert(key.to_owned(), merged);
            }
            None => {
                live.shift_remove(key);
            }
        }
    }
    Ok(live)
}

/// The declaration of a field and of its items; below what is not declared nothing is.
pub(super) fn lookup<'d>(
    at: Option<FieldDeclaration<'d>>,
    key: &str,
) -> Result<(Option<FieldDeclaration<'d>>, Option<FieldDeclaration<'d>>), StrategicError> {
    let Some(at) = at else { return Ok((None, None)) };
    match at.field(key) {
        Some(field) => Ok((Some(field), field.item())),
        // a map with free keys
        None if at.fields().is_none() => Ok((at.value(), at.value().and_then(FieldDeclaration::item))),
        None => Err(StrategicError::no_field(at, key)),
    }
}

/// Drops the fields that `$retainKeys` does not name.
fn retain(live: &mut JsonFields, patch: &mut JsonFields) -> Result<(), StrategicError> {
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
