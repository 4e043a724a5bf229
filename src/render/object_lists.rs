//! Splits lists of objects (`List`, `RoleList` …), as `kubectl get -o yaml` prints them, into items.

use serde_json::{Value, json};

use crate::manifest::yaml::{YamlNode, YamlNodeKind};

/// The items of a list, or the object itself. Items of a typed list may omit apiVersion and kind.
pub fn list_items(object: Value) -> Vec<Value> {
    let Some(single) = item_kind(&object) else { return vec![object] };
    let (single, version) = (single.to_owned(), object.get("apiVersion").cloned().unwrap_or_default());
    let Value::Object(mut list) = object else { return Vec::new() };
    let Some(Value::Array(items)) = list.remove("items") else { return Vec::new() };
    let complete = |mut item: Value| {
        if let (Value::Object(map), false) = (&mut item, single.is_empty()) {
            map.entry("apiVersion").or_insert_with(|| version.clone());
            map.entry("kind").or_insert_with(|| json!(single));
        }
        item
    };
    items.into_iter().map(complete).collect()
}

/// The items, each with its YAML node.
pub fn items_with_nodes(root: &YamlNode) -> Vec<(Value, &YamlNode)> {
    let object = root.to_json();
    match root.get("items").and_then(YamlNode::as_seq).filter(|_| item_kind(&object).is_some()) {
        Some(of_items) => list_items(object).into_iter().zip(of_items).collect(),
        None => vec![(object, root)],
    }
}

pub fn item_nodes(root: YamlNode) -> Vec<YamlNode> {
    let is_list = root.get("kind").and_then(YamlNode::as_str).is_some_and(|kind| kind.ends_with("List"));
    if !is_list || root.get("items").and_then(YamlNode::as_seq).is_none() {
        return vec![root];
    }
    let YamlNodeKind::Map(entries) = root.kind else { return Vec::new() };
    match entries.into_iter().find(|entry| entry.key == "items").map(|entry| entry.value.kind) {
        Some(YamlNodeKind::Seq(items)) => items,
        _ => Vec::new(),
    }
}

/// The kind of the items of a list; empty for a list of any kind.
fn item_kind(object: &Value) -> Option<&str> {
    object.get("items").filter(|items| items.is_array())?;
    object.get("kind")?.as_str()?.strip_suffix("List")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(object: Value, expected: &Value) {
        assert_eq!(&Value::Array(list_items(object)), expected);
    }

    #[test]
    fn lists_are_split_into_items() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        check(json!({"apiVersion": "v1", "kind": "List", "items": [map, map]}), &json!([map, map]));
        check(json!({"apiVersion": "v1", "kind": "List", "items": []}), &json!([]));
        let bare = json!({"metadata": {"name": "a"}});
        check(json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": [bare]}), &json!([map]));
        check(map.clone(), &json!([map]));
        let custom = json!({"apiVersion": "x/v1", "kind": "AllowList", "spec": {"items": []}});
        check(custom.clone(), &json!([custom]));
    }
}
