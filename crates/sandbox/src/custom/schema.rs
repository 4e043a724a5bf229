//! Reads OpenAPI v3 schemas of CustomResourceDefinitions.

use serde_json::{Map, Value};

/// The boolean of a schema, false when absent.
pub(super) fn is(schema: &Value, flag: &str) -> bool {
    schema.get(flag) == Some(&Value::Bool(true))
}

pub(super) fn text<'s>(schema: &'s Value, field: &str) -> &'s str {
    schema.get(field).and_then(Value::as_str).unwrap_or("")
}

pub(super) fn number(schema: &Value, field: &str) -> Option<i64> {
    schema.get(field).and_then(Value::as_i64)
}

/// A list of the schema, empty when absent.
pub(super) fn list<'s>(schema: &'s Value, field: &str) -> &'s [Value] {
    schema.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The declared fields with their schemas.
pub(super) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

pub(super) fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.as_object()?.get(name)
}

/// Does the schema have `additionalProperties`?
pub(super) fn allows_more(schema: &Value) -> bool {
    schema.get("additionalProperties").is_some_and(|more| !more.is_null())
}

/// The schema of other fields than the declared ones.
pub(super) fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|more| more.is_object())
}

pub(super) fn items(schema: &Value) -> Option<&Value> {
    schema.get("items").filter(|items| items.is_object())
}

/// The types that a schema allows; none means any.
pub(super) fn types(schema: &Value) -> Vec<&str> {
    if is(schema, "x-kubernetes-int-or-string") {
        return vec!["integer", "string"];
    }
    Some(text(schema, "type")).filter(|one| !one.is_empty()).into_iter().collect()
}

/// The default; `null` is none.
pub(super) fn default(schema: &Value) -> Option<&Value> {
    schema.get("default").filter(|value| !value.is_null())
}

/// Does this schema or one below it satisfy the test?
pub(super) fn any(schema: &Value, test: &dyn Fn(&Value) -> bool) -> bool {
    let below = |name: &str| {
        let values: Vec<&Value> = match schema.get(name) {
            Some(Value::Array(list)) => list.iter().collect(),
            Some(one @ Value::Object(_)) => vec![one],
            _ => Vec::new(),
        };
        values.into_iter().any(|one| any(one, test))
    };
    let within = |name: &str| {
        let map: Option<&Map<String, Value>> = schema.get(name).and_then(Value::as_object);
        map.into_iter().flat_map(Map::values).any(|one| any(one, test))
    };
    test(schema)
        || ["items", "allOf", "anyOf", "oneOf", "not", "additionalProperties"].into_iter().any(below)
        || ["properties", "patternProperties", "definitions"].into_iter().any(within)
}

/// Removes empty keywords (`properties: {}`, `required: []`), as the server does.
pub(super) fn drop_empty(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.retain(|name, value| match name.as_str() {
        "properties" | "patternProperties" | "definitions" | "dependencies" => {
            value.as_object().is_none_or(|map| !map.is_empty())
        }
        "required" | "enum" | "allOf" | "anyOf" | "oneOf" => {
            value.as_array().is_none_or(|list| !list.is_empty())
        }
        "nullable" | "exclusiveMinimum" | "exclusiveMaximum" | "uniqueItems" => *value != Value::Bool(false),
        _ => true,
    });
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("properties", Value::Object(below)) => below.values_mut().for_each(drop_empty),
            ("allOf" | "anyOf" | "oneOf", Value::Array(below)) => below.iter_mut().for_each(drop_empty),
            ("items" | "additionalProperties" | "not", below) => drop_empty(below),
            _ => {}
        }
    }
}
