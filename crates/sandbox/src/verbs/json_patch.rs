//! JSON patches, with the server's deviations from RFC 6902.
//!
//! `replace` and `test` accept a missing field as null. An operation without a value has the value null. Text before
//! the first slash of a path is ignored.

use serde_json::Value;

use crate::api_error::ApiError;
use crate::decoding::MAX_DEPTH;
use crate::object;

/// The bytes that a patch may copy in total: copies of copies grow without bound.
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// Patches `object`; it is half patched when the patch does not fit.
pub(super) fn apply(object: &mut Value, operations: &[Value]) -> Result<(), ApiError> {
    let mut growth = PatchGrowth::default();
    for operation in operations {
        if apply_operation(object, operation, &mut growth).is_none() {
            return Err(match growth.is_too_deep {
                true => ApiError::not_simulated(format!("objects of more than {MAX_DEPTH} levels")),
                false => ApiError::rejected_patch(),
            });
        }
    }
    Ok(())
}

/// How much a patch copies and how deep it nests.
#[derive(Default)]
struct PatchGrowth {
    copied: usize,
    is_too_deep: bool,
}

impl PatchGrowth {
    fn copy(&mut self, value: &Value) -> Option<Value> {
        self.copied += value.to_string().len();
        (self.copied <= MAX_COPIED_BYTES).then(|| value.clone())
    }

    /// A value on its way to a place below `parents`.
    fn check_depth(&mut self, parents: &[String], value: Value) -> Option<Value> {
        self.is_too_deep = parents.len() + 1 + object::depth(&value) > MAX_DEPTH;
        (!self.is_too_deep).then_some(value)
    }
}

/// `None`: it does not fit.
fn apply_operation(object: &mut Value, operation: &Value, growth: &mut PatchGrowth) -> Option<()> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let said = operation.get("value").unwrap_or(&Value::Null);
    let (parents, last) = split_pointer(text("path")?)?;
    match text("op")? {
        "add" => {
            let value = growth.check_depth(&parents, said.clone())?;
            add(find_parent(object, &parents)?, &last, value)
        }
        "remove" => remove(find_parent(object, &parents)?, &last).map(drop),
        "replace" => {
            let value = growth.check_depth(&parents, said.clone())?;
            match find_parent(object, &parents)? {
                Value::Object(fields) => {
                    fields.insert(last, value);
                }
                Value::Array(items) => {
                    let place = list_index(&last, items.len())?;
                    *items.get_mut(place)? = value;
                }
                _ => return None,
            }
            Some(())
        }
        "move" => {
            let (parents_from, from) = split_pointer(text("from")?)?;
            let moved = remove(find_parent(object, &parents_from)?, &from)?;
            add(find_parent(object, &parents)?, &last, growth.check_depth(&parents, moved)?)
        }
        "copy" => {
            let (parents_from, from) = split_pointer(text("from")?)?;
            let copied = growth.copy(get(find_parent(object, &parents_from)?, &from)?)?;
            add(find_parent(object, &parents)?, &last, growth.check_depth(&parents, copied)?)
        }
        "test" => {
            let found = get(find_parent(object, &parents)?, &last)?;
            (found == said).then_some(())
        }
        _ => None,
    }
}

/// The steps to the parent, and the last one.
fn split_pointer(path: &str) -> Option<(Vec<String>, String)> {
    let steps = path.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
    let mut steps: Vec<String> = steps.collect();
    let last = steps.pop()?;
    Some((steps, last))
}

fn find_parent<'o>(object: &'o mut Value, steps: &[String]) -> Option<&'o mut Value> {
    let found = steps.iter().try_fold(object, |at, step| match at {
        Value::Object(fields) => fields.get_mut(step),
        Value::Array(items) => {
            let place = list_index(step, items.len())?;
            items.get_mut(place)
        }
        _ => None,
    })?;
    (found.is_object() || found.is_array()).then_some(found)
}

/// A place in a list; negative ones count from its end.
fn list_index(step: &str, length: usize) -> Option<usize> {
    let place: i64 = step.parse().ok()?;
    let size = usize::try_from(place.unsigned_abs()).ok()?;
    if place >= 0 { Some(size) } else { length.checked_sub(size) }
}

fn get<'v>(parent: &'v Value, last: &str) -> Option<&'v Value> {
    match parent {
        Value::Object(fields) => Some(fields.get(last).unwrap_or(&Value::Null)),
        Value::Array(items) => items.get(list_index(last, items.len())?),
        _ => None,
    }
}

fn add(parent: &mut Value, last: &str, value: Value) -> Option<()> {
    match parent {
        Value::Object(fields) => {
            fields.insert(last.to_owned(), value);
        }
        Value::Array(items) => {
            let place = if last == "-" { items.len() } else { list_index(last, items.len() + 1)? };
            if place > items.len() {
                return None;
            }
            items.insert(place, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(parent: &mut Value, last: &str) -> Option<Value> {
    match parent {
        Value::Object(fields) => fields.shift_remove(last),
        Value::Array(items) => {
            let place = list_index(last, items.len()).filter(|place| *place < items.len())?;
            Some(items.remove(place))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(operations: &Value, expected: Option<&Value>) {
        let mut object = json!({"a": {"b": "c"}, "l": [1, 2]});
        let patched = apply(&mut object, operations.as_array().unwrap());
        assert_eq!(patched.ok().map(|()| &object), expected, "{operations}");
    }

    #[test]
    fn operations() {
        check(
            &json!([{"op": "add", "path": "/l/-", "value": 3}]),
            Some(&json!({"a": {"b": "c"}, "l": [1, 2, 3]})),
        );
        check(&json!([{"op": "add", "path": "/l/3", "value": 3}]), None);
        check(&json!([{"op": "remove", "path": "/l/-1"}]), Some(&json!({"a": {"b": "c"}, "l": [1]})));
        check(
            &json!([{"op": "move", "from": "/a/b", "path": "/x~1y"}]),
            Some(&json!({"a": {}, "l": [1, 2], "x/y": "c"})),
        );
        check(
            &json!([{"op": "replace", "path": "/a/x", "value": 1}]),
            Some(&json!({"a": {"b": "c", "x": 1}, "l": [1, 2]})),
        );
        check(&json!([{"op": "replace", "path": "/l/9", "value": 1}]), None);
        check(&json!([{"op": "remove", "path": "/a/x"}]), None);
        check(
            &json!([{"op": "test", "path": "/x", "value": null}]),
            Some(&json!({"a": {"b": "c"}, "l": [1, 2]})),
        );
        check(&json!([{"op": "test", "path": "/a/b", "value": null}]), None);
        check(&json!([{"op": "add", "path": "", "value": {}}]), None);
        check(&json!([{}]), None);
        check(&json!([{"op": "remove", "path": "/l/-9223372036854775808"}]), None);
    }

    fn refusal(operation: &Value, times: usize) -> u16 {
        let mut object = json!({"a": {"b": "c"}, "l": [1]});
        apply(&mut object, &vec![operation.clone(); times]).map_or_else(|error| error.code, |()| 200)
    }

    /// Each of them doubles the list: forty are no larger than a usual request.
    #[test]
    fn copies_of_copies_end() {
        let copy = json!({"op": "copy", "from": "/l", "path": "/l/-"});
        assert_eq!((refusal(&copy, 10), refusal(&copy, 40)), (200, 422));
    }

    #[test]
    fn deep_objects_are_not_simulated() {
        let at = |levels: usize| json!({"op": "add", "path": "/a/x", "value": nested(levels)});
        assert_eq!((refusal(&at(MAX_DEPTH - 2), 1), refusal(&at(MAX_DEPTH - 1), 1)), (200, 501));
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, _| json!([inner]))
    }
}
