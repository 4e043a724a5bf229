//! Objects as `PartialObjectMetadata`.

use serde_json::{Value, json};

pub(crate) fn partial_object(object: &Value) -> Value {
    let kind = object["kind"].as_str().unwrap_or("");
    // a bookmark or a whole object alike; errors stay what they are
    if kind == "Status" {
        return object.clone();
    }
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

pub(crate) fn partial_list(list: &Value) -> Value {
    let items: Vec<Value> = crate::object::list(list, &["items"]).iter().map(partial_object).collect();
    json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": list["metadata"],
        "items": items})
}
