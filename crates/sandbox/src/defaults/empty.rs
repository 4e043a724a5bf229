//! Empty lists and maps of built-in kinds, which the server's types do not write.

use serde_json::Value;

/// Maps with free keys; an empty struct such as `emptyDir: {}` says something and stays.
const MAPS: &[&str] = &[
    "annotations",
    "binaryData",
    "data",
    "hard",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "overhead",
    "parameters",
    "requests",
];

pub(super) fn drop_from(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(drop_from);
            fields.retain(|name, field| match field {
                Value::Array(items) => !items.is_empty() || name == "rules",
                Value::Object(below) => !below.is_empty() || !MAPS.contains(&name.as_str()),
                _ => true,
            });
        }
        Value::Array(items) => items.iter_mut().for_each(drop_from),
        _ => {}
    }
}
