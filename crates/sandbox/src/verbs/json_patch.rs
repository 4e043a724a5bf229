//! JSON patches, with the liberties that the server takes.
//!
//! A replaced or tested field that is not there is null, a patch may add nothing at all, and only what stands between
//! the slashes of a path counts.

use serde_json::Value;

use crate::status::ApiError;

/// Patches `object`; it is half patched when the patch does not fit.
pub(super) fn apply(object: &mut Value, operations: &[Value]) -> Result<(), ApiError> {
    operations.iter().try_for_each(|operation| step(object, operation).ok_or_else(ApiError::rejected_patch))
}

/// `None`: it does not fit.
fn step(object: &mut Value, operation: &Value) -> Option<()> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let value = operation.get("value").cloned().unwrap_or(Value::Null);
    let (parents, last) = split(text("path")?)?;
    match text("op")? {
        "add" => add(find(object, &parents)?, &last, value),
        "remove" => remove(find(object, &parents)?, &last).map(drop),
        "replace" => {
            let parent = find(object, &parents)?;
            match parent {
                Value::Object(fields) => {
                    fields.insert(last, value);
                }
                Value::Array(items) => {
                    let place = place(&last, items.len())?;
                    *items.get_mut(place)? = value;
                }
                _ => return None,
            }
            Some(())
        }
        "move" => {
            let (parents_from, from) = split(text("from")?)?;
            let moved = remove(find(object, &parents_from)?, &from)?;
            add(find(object, &parents)?, &last, moved)
        }
        "copy" => {
            let (parents_from, from) = split(text("from")?)?;
            let copied = get(find(object, &parents_from)?, &from)?;
            add(find(object, &parents)?, &last, copied)
        }
        "test" => {
            let found = get(find(object, &parents)?, &last)?;
            (found == value).then_some(())
        }
        _ => None,
    }
}

/// The steps to the parent, and the last one.
fn split(path: &str) -> Option<(Vec<String>, String)> {
    let steps = path.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
    let mut steps: Vec<String> = steps.collect();
    let last = steps.pop()?;
    Some((steps, last))
}

fn find<'o>(object: &'o mut Value, steps: &[String]) -> Option<&'o mut Value> {
    let found = steps.iter().try_fold(object, |at, step| match at {
        Value::Object(fields) => fields.get_mut(step),
        Value::Array(items) => {
            let place = place(step, items.len())?;
            items.get_mut(place)
        }
        _ => None,
    })?;
    (found.is_object() || found.is_array()).then_some(found)
}

/// A place in a list; negative ones count from its end.
fn place(step: &str, length: usize) -> Option<usize> {
    let place: i64 = step.parse().ok()?;
    if place >= 0 { usize::try_from(place).ok() } else { length.checked_sub(usize::try_from(-place).ok()?) }
}

fn get(parent: &Value, last: &str) -> Option<Value> {
    match parent {
        Value::Object(fields) => Some(fields.get(last).cloned().unwrap_or(Value::Null)),
        Value::Array(items) => items.get(place(last, items.len())?).cloned(),
        _ => None,
    }
}

fn add(parent: &mut Value, last: &str, value: Value) -> Option<()> {
    match parent {
        Value::Object(fields) => {
            fields.insert(last.to_owned(), value);
        }
        Value::Array(items) => {
            let place = if last == "-" { items.len() } else { place(last, items.len() + 1)? };
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
            let place = place(last, items.len()).filter(|place| *place < items.len())?;
            Some(items.remove(place))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(operations: &Value, expected: Option<Value>) {
        let mut object = json!({"a": {"b": "c"}, "l": [1, 2]});
        let patched = apply(&mut object, operations.as_array().unwrap());
        assert_eq!(patched.ok().map(|()| object), expected, "{operations}");
    }

    #[test]
    fn operations() {
        check(
            &json!([{"op": "add", "path": "/l/-", "value": 3}]),
            Some(json!({"a": {"b": "c"}, "l": [1, 2, 3]})),
        );
        check(&json!([{"op": "add", "path": "/l/3", "value": 3}]), None);
        check(&json!([{"op": "remove", "path": "/l/-1"}]), Some(json!({"a": {"b": "c"}, "l": [1]})));
        check(
            &json!([{"op": "move", "from": "/a/b", "path": "/x~1y"}]),
            Some(json!({"a": {}, "l": [1, 2], "x/y": "c"})),
        );
        check(
            &json!([{"op": "replace", "path": "/a/x", "value": 1}]),
            Some(json!({"a": {"b": "c", "x": 1}, "l": [1, 2]})),
        );
        check(&json!([{"op": "replace", "path": "/l/9", "value": 1}]), None);
        check(&json!([{"op": "remove", "path": "/a/x"}]), None);
        check(
            &json!([{"op": "test", "path": "/x", "value": null}]),
            Some(json!({"a": {"b": "c"}, "l": [1, 2]})),
        );
        check(&json!([{"op": "test", "path": "/a/b", "value": null}]), None);
        check(&json!([{"op": "add", "path": "", "value": {}}]), None);
        check(&json!([{}]), None);
    }
}
