//! Lists that merge.

use serde_json::Value;

use super::StrategicError;
use super::directives::PATCH;
use super::error::go_type;
use super::interleave::interleave;
use super::json_fields::fields_of;
use super::maps::merge_map;
use crate::decoding::go_value;
use crate::schema::FieldDeclaration;

/// Merges the items of `patch` into `live`; with `deletes` it takes them out.
pub(super) fn merge(
    live: Vec<Value>,
    patch: &mut [Value],
    list: Option<FieldDeclaration<'_>>,
    item: Option<FieldDeclaration<'_>>,
    deletes: bool,
) -> Result<Vec<Value>, StrategicError> {
    if live.is_empty() && patch.is_empty() {
        return Ok(live);
    }
    if !are_maps(&live, patch)? {
        return Ok(match deletes {
            true => live.into_iter().filter(|one| !patch.contains(one)).collect(),
            false => merge_sets(&live, patch),
        });
    }
    let Some(key) = list.and_then(FieldDeclaration::patch_merge_key) else {
        let name = item.and_then(FieldDeclaration::definition).and_then(|name| name.rsplit('.').next());
        let why = format!("cannot merge lists without merge key for {}", name.unwrap_or(""));
        return Err(StrategicError::Other(why));
    };
    let (live, replaces) = apply_directives(live, patch, key)?;
    let plain: Vec<Value> = patch.iter().filter(|item| item.get(PATCH).is_none()).cloned().collect();
    if replaces {
        return interleave(Vec::new(), plain.clone(), &[], &plain, Some(key));
    }
    let merged = merge_items(live.clone(), patch, key, item)?;
    let (named, rest) = split(merged, &plain, Some(key))?;
    interleave(named, rest, &plain, &live, Some(key))
}

/// Are the items maps? They are all of one type.
pub(super) fn are_maps(live: &[Value], patch: &[Value]) -> Result<bool, StrategicError> {
    let mut all = live.iter().chain(patch);
    let Some(first) = all.next() else {
        return Err(StrategicError::Other("no elements in any of the given slices".to_owned()));
    };
    if first.is_array() {
        return Err(StrategicError::ListOfLists);
    }
    if all.any(|one| go_type(one) != go_type(first)) {
        let list = |items: &[Value]| go_value(&Value::Array(items.to_vec()));
        let said = format!("[{} {}]", list(live), list(patch));
        return Err(StrategicError::Other(format!("list element types are not identical: {said}")));
    }
    Ok(first.is_object())
}

/// A set: what the patch names comes in its order, and before what it does not know.
fn merge_sets(live: &[Value], patch: &[Value]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for one in live.iter().chain(patch) {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
    let (named, rest): (Vec<Value>, Vec<Value>) = all.into_iter().partition(|one| patch.contains(one));
    interleave(named, rest, patch, live, None).unwrap_or_default()
}

/// Obeys the directives among the items of a patch. Does it replace the list?
fn apply_directives(
    mut live: Vec<Value>,
    patch: &[Value],
    key: &str,
) -> Result<(Vec<Value>, bool), StrategicError> {
    let mut replaces = false;
    for item in patch {
        let Some(directive) = item.get(PATCH) else { continue };
        match directive.as_str() {
            Some("delete") => {
                let Some(value) = item.get(key) else { return Err(StrategicError::no_merge_key(item, key)) };
                live.retain(|one| one.get(key) != Some(value));
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                let why = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Other(why.to_owned()));
            }
            _ => {
                let fields = item.as_object().cloned().unwrap_or_default();
                return Err(StrategicError::unknown_directive(directive, &fields));
            }
        }
    }
    Ok((live, replaces))
}

fn merge_items(
    mut live: Vec<Value>,
    patch: &mut [Value],
    key: &str,
    declared: Option<FieldDeclaration<'_>>,
) -> Result<Vec<Value>, StrategicError> {
    for change in patch.iter_mut().filter(|item| item.get(PATCH).is_none()) {
        let Some(value) = change.get(key).cloned() else {
            return Err(StrategicError::no_merge_key(change, key));
        };
        match live.iter_mut().find(|one| one.get(key) == Some(&value)) {
            Some(known) => {
                let (Value::Object(fields), Some(change)) = (known.take(), change.as_object_mut()) else {
                    continue;
                };
                *known = Value::Object(merge_map(fields, change, declared)?);
            }
            None => live.push(change.clone()),
        }
    }
    Ok(live)
}

/// The items that `names` names, and the others.
pub(super) fn split(
    items: Vec<Value>,
    names: &[Value],
    key: Option<&str>,
) -> Result<(Vec<Value>, Vec<Value>), StrategicError> {
    let Some(key) = key else {
        return Ok(items.into_iter().partition(|one| names.contains(one)));
    };
    let (mut named, mut rest) = (Vec::new(), Vec::new());
    for item in items {
        let fields = fields_of(&item)?;
        let Some(value) = fields.get(key) else { return Err(StrategicError::no_merge_key(&item, key)) };
        if let Some(place) = names.iter().position(|name| !name.is_object()) {
            return Err(StrategicError::Other(format!("value for key {place} is not a map")));
        }
        match names.iter().any(|name| name.get(key) == Some(value)) {
            true => named.push(item),
            false => rest.push(item),
        }
    }
    Ok((named, rest))
}
