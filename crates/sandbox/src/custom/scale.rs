//! Reads the fields of an object that its scale subresource uses.

use serde_json::Value;

use crate::registry::ScalePaths;
use crate::ssa::go_format;

#[derive(Debug, PartialEq)]
pub(crate) struct ScaleCounts {
    /// `None` when the object has no value.
    pub(crate) wanted: Option<i64>,
    pub(crate) present: i64,
    pub(crate) selector: String,
}

/// The counts of an object; a text about a place that holds something else.
pub(crate) fn read(object: &Value, paths: &ScalePaths) -> Result<ScaleCounts, String> {
    let selector = match &paths.selector {
        Some(path) => text(object, path)?,
        None => None,
    };
    Ok(ScaleCounts {
        wanted: count(object, &paths.spec_replicas)?,
        present: count(object, &paths.status_replicas)?.unwrap_or(0),
        selector: selector.unwrap_or("").to_owned(),
    })
}

/// An integer, if it is there.
pub(super) fn count(object: &Value, path: &str) -> Result<Option<i64>, String> {
    let Some(found) = find(object, path)? else { return Ok(None) };
    found.as_i64().map(Some).ok_or_else(|| wrong(path, found, "int64"))
}

pub(super) fn text<'o>(object: &'o Value, path: &str) -> Result<Option<&'o str>, String> {
    let Some(found) = find(object, path)? else { return Ok(None) };
    found.as_str().map(Some).ok_or_else(|| wrong(path, found, "string"))
}

fn find<'o>(object: &'o Value, path: &str) -> Result<Option<&'o Value>, String> {
    let words: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let mut value = object;
    for (at, word) in words.iter().enumerate() {
        if value.is_null() {
            return Ok(None);
        }
        let Some(fields) = value.as_object() else {
            let passed: Vec<&str> = words.iter().take(at + 1).copied().collect();
            return Err(wrong(&format!(".{}", passed.join(".")), value, "map[string]interface {}"));
        };
        let Some(field) = fields.get(*word) else { return Ok(None) };
        value = field;
    }
    Ok(Some(value))
}

fn wrong(path: &str, found: &Value, wanted: &str) -> String {
    let (shown, is) = (go_format::plain(found), go_format::type_name(found));
    format!("{path} accessor error: {shown} is of the type {is}, expected {wanted}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrong_replica_types_are_reported() {
        let check = |object: Value, expected: Result<Option<i64>, &str>| {
            assert_eq!(count(&object, ".spec.replicas"), expected.map_err(str::to_owned));
        };
        check(json!({"spec": {"replicas": 3}}), Ok(Some(3)));
        check(json!({"spec": {}}), Ok(None));
        check(json!({"spec": null}), Ok(None));
        let text = "x is of the type string, expected int64";
        check(json!({"spec": {"replicas": "x"}}), Err(&format!(".spec.replicas accessor error: {text}")));
        let list = "[1 2] is of the type []interface {}, expected map[string]interface {}";
        check(json!({"spec": [1, 2]}), Err(&format!(".spec.replicas accessor error: {list}")));
    }
}
