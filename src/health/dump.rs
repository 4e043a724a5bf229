//! Objects from a dump, as `kubectl get -o json` and similar tools print.

use serde_json::Value;

/// The objects of a dump: one object, a list (`kind: List` or any `…List` with `items`), or an array of either. Items
/// of a typed list without apiVersion and kind take them from the list.
pub fn read_dump(dump: Value) -> Vec<Value> {
    match dump {
        Value::Array(values) => values.into_iter().flat_map(read_dump).collect(),
        Value::Object(mut map) if map.get("items").is_some_and(Value::is_array) && is_list(&map) => {
            let api_version = map.get("apiVersion").cloned();
            let kind = map.get("kind").and_then(Value::as_str).and_then(|kind| kind.strip_suffix("List"));
            let kind = kind.filter(|kind| !kind.is_empty()).map(|kind| Value::String(kind.to_owned()));
            let Some(Value::Array(items)) = map.remove("items") else { return Vec::new() };
            let complete = |mut item: Value| {
                if let (Value::Object(item), Some(api_version), Some(kind)) = (&mut item, &api_version, &kind)
                {
                    item.entry("apiVersion").or_insert_with(|| api_version.clone());
                    item.entry("kind").or_insert_with(|| kind.clone());
                }
                item
            };
            items.into_iter().map(complete).collect()
        }
        // An empty document between two `---`.
        Value::Null => Vec::new(),
        other => vec![other],
    }
}

/// A custom kind may have its own field `items`.
fn is_list(map: &serde_json::Map<String, Value>) -> bool {
    map.get("kind").and_then(Value::as_str).is_none_or(|kind| kind.ends_with("List"))
}
