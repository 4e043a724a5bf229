//! Brings an object into a canonical form, so that equal objects have equal hashes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::nulls;
use crate::model::GroupVersionKind;

/// Fields that only servers write; manifests from `kubectl get -o yaml` have them. An apply with `resourceVersion` or `uid`
/// is refused for ever; the others are never recorded as applied.
const SERVER_FIELDS: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Drops absent fields, status and server-written fields, and turns stringData of a Secret into data. The API server stores
/// the same object. `keeps_status`: the kind has no status subresource, so the server stores the status.
pub fn canonicalize(object: &mut Map<String, Value>, kind: &GroupVersionKind, keeps_status: bool) {
    if !keeps_status {
        object.remove("status");
    }
    nulls::drop_null_fields(object, kind);
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|name, _| !SERVER_FIELDS.contains(&name.as_str()));
    }
    if is_secret(object)
        && let Some(Value::Object(texts)) = object.shift_remove("stringData")
    {
        let data = object.entry("data").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(data) = data {
            // As in the API server, stringData wins.
            data.extend(texts.into_iter().map(|(key, text)| (key, encoded(&text))));
        }
    }
}

pub fn is_secret(object: &Map<String, Value>) -> bool {
    object.get("kind").is_some_and(|kind| kind == "Secret")
        && object.get("apiVersion").is_some_and(|version| version == "v1")
}

fn encoded(text: &Value) -> Value {
    text.as_str().map_or_else(|| text.clone(), |text| Value::String(STANDARD.encode(text)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(object: Value, expected: &Value) {
        let Value::Object(mut object) = object else { panic!("an object") };
        canonicalize(&mut object, &GroupVersionKind::new("", "v1", "Pod"), false);
        assert_eq!(&Value::Object(object), expected);
    }

    #[test]
    fn nulls_and_status_are_dropped() {
        check(
            json!({"kind": "Pod", "status": {"x": 1}, "spec": {"nodeName": null, "containers": [{"env": null}]}}),
            &json!({"kind": "Pod", "spec": {"containers": [{}]}}),
        );
    }

    #[test]
    fn server_written_fields_are_dropped() {
        check(
            json!({"kind": "A", "metadata": {"name": "a", "uid": "x", "resourceVersion": "7", "generation": 1,
                "selfLink": "/a", "creationTimestamp": null, "managedFields": [], "labels": {"uid": "y"}}}),
            &json!({"kind": "A", "metadata": {"name": "a", "labels": {"uid": "y"}}}),
        );
    }

    #[test]
    fn string_data_becomes_data() {
        check(
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA=="}, "stringData": {"a": "foob", "b": "foobar", "c": ""}}),
            &json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "Zm9vYg==", "b": "Zm9vYmFy", "c": ""}}),
        );
    }
}
