//! Sets of fields as in `managedFields` (FieldsV1).
//!
//! A set is a tree: `f:name` is a field, `k:{…}` a list item by its keys, `v:…` an item that is a plain value. A key
//! without children, or with `.` below it, belongs to the set itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The manager that a server names for fields from before the first apply.
pub const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Managers that stand for unknown writers: people, tools and controllers alike. Servers use `ancient-changes` if
/// there were too many.
pub const UNKNOWN_MANAGERS: [&str; 2] = [BEFORE_FIRST_APPLY, "ancient-changes"];

/// The entries of `managedFields`.
pub fn managed_entries(object: &Value) -> &[Value] {
    object.pointer("/metadata/managedFields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text of an entry; empty if missing.
pub fn entry_text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The fields of an entry.
pub fn entry_fields(entry: &Value) -> OwnedFieldSet {
    entry.get("fieldsV1").map(OwnedFieldSet::parse).unwrap_or_default()
}

/// Whether this writer of `spec.replicas` is an autoscaler. People scale with kubectl, and old servers do not report
/// the subresource.
pub fn is_autoscaler(manager: &str, subresource: &str) -> bool {
    manager == "kube-controller-manager" || subresource == "scale" && !manager.starts_with("kubectl")
}

/// Whether this is the Apply entry of a manager.
pub fn is_apply_entry(entry: &Value, manager: &str) -> bool {
    entry_text(entry, "manager") == manager
        && entry_text(entry, "operation") == "Apply"
        && entry_text(entry, "subresource").is_empty()
}

/// A new Apply entry with these fields.
pub fn new_apply_entry(manager: &str, object: &Value, fields: &OwnedFieldSet) -> Value {
    json!({
        "manager": manager, "operation": "Apply", "apiVersion": object.get("apiVersion"), "fieldsType": "FieldsV1",
        "fieldsV1": fields.to_value(),
    })
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedFieldSet {
    pub(super) owned: bool,
    /// The whole value, not only its existence.
    pub(super) owns_subtree: bool,
    pub(super) children: BTreeMap<String, OwnedFieldSet>,
}

impl OwnedFieldSet {
    pub fn parse(fields: &Value) -> Self {
        Self { children: Self::parse_children(fields), ..Self::default() }
    }

    fn parse_children(fields: &Value) -> BTreeMap<String, Self> {
        let entries = fields.as_object().into_iter().flatten().filter(|(key, _)| *key != ".");
        entries
            .map(|(key, value)| {
                let owned = value.as_object().is_none_or(|map| map.is_empty() || map.contains_key("."));
                let below = Self::parse_children(value);
                (key.clone(), Self { owned, owns_subtree: owned && below.is_empty(), children: below })
            })
            .collect()
    }

    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, child) in &self.children {
            let mut value = child.to_value();
            if let (true, Value::Object(map)) = (child.owned && !child.children.is_empty(), &mut value) {
                map.insert(".".to_owned(), Value::Object(Map::new()));
            }
            map.insert(key.clone(), value);
        }
        Value::Object(map)
    }

    pub fn is_empty(&self) -> bool {
        !self.owned && self.children.is_empty()
    }

    /// Whether the set contains every field of an object, without those that no set ever contains.
    pub fn covers(&self, object: &Value) -> bool {
        let never = ["apiVersion", "kind", "status"];
        let of_metadata = ["name", "namespace", "creationTimestamp"];
        let fields = object.as_object().into_iter().flatten();
        fields.filter(|(name, _)| !never.contains(&name.as_str())).all(|(name, value)| {
            let child = self.children.get(&format!("f:{name}"));
            match value.as_object().filter(|_| name == "metadata") {
                None => is_never_owned(value) || child.is_some_and(|child| child.has(value)),
                Some(metadata) => metadata
                    .iter()
                    .filter(|(name, _)| !of_metadata.contains(&name.as_str()))
                    .all(|(name, value)| child.is_some_and(|child| child.has_field(name, value))),
            }
        })
    }

    fn has_field(&self, name: &str, value: &Value) -> bool {
        is_never_owned(value) || self.children.get(&format!("f:{name}")).is_some_and(|child| child.has(value))
    }

    fn has(&self, value: &Value) -> bool {
        match value {
            _ if self.owns_subtree => true,
            Value::Object(map) => map.iter().all(|(name, value)| self.has_field(name, value)),
            Value::Array(items) => {
                let keys: Vec<(ItemKey, &Self)> = self
                    .children
                    .iter()
                    .filter_map(|(key, child)| Some((ItemKey::parse(key)?, child)))
                    .collect();
                let has =
                    |item: &Value| keys.iter().any(|(key, child)| key.matches_item(item) && child.has(item));
                items.iter().all(has)
            }
            _ => self.owned,
        }
    }

    /// Visits each value of the set in an object, in order, with its key. A missing value is null.
    pub fn values<'a>(&'a self, object: &'a Value, tell: &mut impl FnMut(&'a str, &'a Value)) {
        for (key, child) in &self.children {
            let value = match key.split_once(':') {
                Some(("f", name)) => object.get(name),
                _ => ItemKey::parse(key)
                    .and_then(|key| object.as_array()?.iter().find(|item| key.matches_item(item))),
            };
            let value = value.unwrap_or(&Value::Null);
            if child.owns_subtree {
                tell(key, value);
            } else {
                tell(key, &Value::Null);
                child.values(value, tell);
            }
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.owned |= other.owned;
        self.owns_subtree |= other.owns_subtree;
        for (key, child) in &other.children {
            self.children.entry(key.clone()).or_default().add(child);
        }
    }

    /// Removes everything that another set contains. A map without fields is no field.
    pub fn subtract(&mut self, other: &Self) {
        self.owned &= !other.owned;
        self.owns_subtree &= !other.owned;
        for (key, theirs) in &other.children {
            if let Some(child) = self.children.get_mut(key) {
                child.subtract(theirs);
                let is_bare = child.children.is_empty() && key.starts_with("f:") && !child.owns_subtree;
                if is_bare || child.is_empty() {
                    self.children.remove(key);
                }
            }
        }
    }

    /// Whether it contains a field, or something below it.
    pub fn has_path(&self, path: &[&str]) -> bool {
        match path.split_first() {
            None => true,
            Some((first, rest)) => {
                self.children.get(&format!("f:{first}")).is_some_and(|child| child.has_path(rest))
            }
        }
    }

    /// Removes a field and everything below it.
    pub fn remove_path(&mut self, path: &[&str]) {
        self.split_off(path);
    }

    /// Removes a field and returns it as a set.
    pub fn split_off(&mut self, path: &[&str]) -> Self {
        let mut off = Self::default();
        let Some((first, rest)) = path.split_first() else { return off };
        let key = format!("f:{first}");
        if rest.is_empty() {
            off.children.extend(self.children.remove_entry(&key));
        } else if let Some(child) = self.children.get_mut(&key) {
            let below = child.split_off(rest);
            if child.is_empty() {
                self.children.remove(&key);
            }
            if !below.is_empty() {
                off.children.insert(key, below);
            }
        }
        off
    }

    /// Removes the fields of the set from an object.
    pub fn remove_from(&self, object: &mut Value) {
        for (key, child) in &self.children {
            match (key.strip_prefix("f:"), &mut *object) {
                (Some(name), Value::Object(map)) => child.cut_field(map, name),
                (None, Value::Array(items)) => match ItemKey::parse(key) {
                    Some(ItemKey::Keys(keys)) => {
                        let is_it =
                            |item: &Value| keys.iter().all(|(key, value)| item.get(key) == Some(value));
                        if child.owned {
                            items.retain(|item| !is_it(item));
                        } else if let Some(item) = items.iter_mut().find(|item| is_it(item)) {
                            child.remove_from(item);
                        }
                    }
                    Some(ItemKey::Value(value)) => items.retain(|item| *item != value),
                    None => {}
                },
                _ => {}
            }
        }
    }

    fn cut_field(&self, map: &mut Map<String, Value>, name: &str) {
        if self.owns_subtree && self.children.is_empty() {
            map.shift_remove(name);
            return;
        }
        let Some(value) = map.get_mut(name) else { return };
        self.remove_from(value);
        let is_bare = match value {
            Value::Object(map) => map.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if self.owned && is_bare {
            map.shift_remove(name);
        }
    }
}

/// Null and empty lists have no entry in `managedFields`.
pub(super) fn is_never_owned(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Servers drop empty values.
pub(super) fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty_value),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Also an empty text: built-in kinds drop it.
pub(super) fn is_blank_value(value: &Value) -> bool {
    is_empty_value(value) || value.as_str() == Some("")
}

/// The value of a key that an item leaves out: the protocol of a port, or an empty name.
pub(super) fn default_of_key(key: &str) -> Value {
    Value::String(if key == "protocol" { "TCP" } else { "" }.to_owned())
}

/// The key of a list item in a set.
pub(super) enum ItemKey {
    Keys(Map<String, Value>),
    Value(Value),
}

impl ItemKey {
    pub fn parse(key: &str) -> Option<Self> {
        match key.split_once(':')? {
            ("k", keys) => serde_json::from_str(keys).ok().map(Self::Keys),
            ("v", value) => serde_json::from_str(value).ok().map(Self::Value),
            _ => None,
        }
    }

    /// The index of the item. An item with all keys precedes one that relies on a default.
    pub fn find(&self, items: &[Value]) -> Option<usize> {
        let position = |takes_defaults: bool| {
            items.iter().position(|item| match self {
                Self::Keys(keys) => {
                    let says = |(key, value): (&String, &Value)| match item.get(key) {
                        Some(known) => known == value,
                        None => takes_defaults && default_of_key(key) == *value,
                    };
                    keys.iter().all(says)
                }
                Self::Value(value) => value == item,
            })
        };
        position(false).or_else(|| position(true))
    }

    /// As in a conflict: `[port=83,protocol="TCP"]`.
    pub fn conflict_notation(&self) -> String {
        match self {
            Self::Keys(keys) => {
                let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("[{}]", keys.join(","))
            }
            Self::Value(value) => format!("[={value}]"),
        }
    }

    /// A key with a default may be missing in the item.
    pub fn matches_item(&self, item: &Value) -> bool {
        match self {
            Self::Keys(keys) => {
                keys.iter().all(|(key, value)| item.get(key).is_none_or(|known| known == value))
            }
            Self::Value(value) => value == item,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(fields: &Value) -> OwnedFieldSet {
        OwnedFieldSet::parse(fields)
    }

    #[test]
    fn a_set_is_written_as_it_was_read() {
        let check = |fields: Value| assert_eq!(set(&fields).to_value(), fields);
        check(json!({}));
        check(json!({"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:name": {}}}}}}}));
        check(json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"example.com/a\"": {}}}}));
    }

    #[test]
    fn sets_are_added_and_subtracted() {
        let one = json!({"f:a": {}, "f:b": {".": {}, "f:c": {}}});
        let other = json!({"f:b": {"f:c": {}, "f:d": {}}});
        let mut sum = set(&one);
        sum.add(&set(&other));
        assert_eq!(sum.to_value(), json!({"f:a": {}, "f:b": {".": {}, "f:c": {}, "f:d": {}}}));
        sum.subtract(&set(&one));
        assert_eq!(sum.to_value(), json!({"f:b": {"f:d": {}}}));
        sum.remove_path(&["b", "d"]);
        assert!(sum.is_empty(), "{sum:?}");
    }

    #[test]
    fn map_without_remaining_fields_is_removed() {
        let mut labels =
            set(&json!({"f:labels": {".": {}, "f:a": {}}, "f:items": {"k:{\"name\":\"a\"}": {".": {}}}}));
        labels.subtract(&set(
            &json!({"f:labels": {"f:a": {}}, "f:items": {"k:{\"name\":\"a\"}": {"f:x": {}}}}),
        ));
        assert_eq!(labels.to_value(), json!({"f:items": {"k:{\"name\":\"a\"}": {}}}));
    }

    #[test]
    fn set_covers_the_applied_object() {
        fn check(fields: &Value, object: &Value, expected: bool) {
            assert_eq!(set(fields).covers(object), expected, "{fields} {object}");
        }
        let object = json!({"apiVersion": "v1", "kind": "Service", "status": {}, "metadata": {"name": "a", "namespace": "b",
            "labels": {"x": "y"}}, "spec": {"ports": [{"port": 80}], "selector": {"app": "a"}, "externalIPs": [], "x": null}});
        let ports = json!({"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}});
        let labels = json!({"f:labels": {"f:x": {}}});
        let spec = json!({"f:ports": ports, "f:selector": {}, "f:externalIPs": {}});
        check(&json!({"f:metadata": labels, "f:spec": spec}), &object, true);
        check(&json!({"f:spec": spec}), &object, false);
        check(&json!({"f:metadata": labels, "f:spec": {"f:ports": ports}}), &object, false);
        // An item owned as a whole; a list owned as a whole; a set of plain values.
        let list = |items: Value| json!({"spec": {"list": items}});
        check(
            &json!({"f:spec": {"f:list": {"k:{\"name\":\"a\"}": {}}}}),
            &list(json!([{"name": "a", "b": 1}])),
            true,
        );
        check(&json!({"f:spec": {"f:list": {}}}), &list(json!([1, 2])), true);
        let of_values = json!({"f:spec": {"f:list": {".": {}, "v:1": {}}}});
        check(&of_values, &list(json!([1])), true);
        check(&of_values, &list(json!([1, 2])), false);
        check(&json!({"f:spec": {}}), &json!({"spec": {}}), true);
        // An empty list has no owner.
        check(&json!({"f:spec": {"f:x": {}}}), &json!({"spec": {"x": 1, "volumes": []}}), true);
    }

    #[test]
    fn fields_of_a_set_are_removed() {
        let check = |fields: Value, object: Value, expected: &Value| {
            let mut object = object;
            set(&fields).remove_from(&mut object);
            assert_eq!(&object, expected, "{fields}");
        };
        let spec = || json!({"spec": {"replicas": 3, "paused": true}});
        check(json!({"f:spec": {"f:paused": {}}}), spec(), &json!({"spec": {"replicas": 3}}));
        check(json!({"f:spec": {"f:none": {}}, "f:none": {"f:a": {}}}), spec(), &spec());
        let labels = || json!({"metadata": {"labels": {"a": "1", "b": "2"}}});
        let both = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}, "f:b": {}}}});
        check(both, labels(), &json!({"metadata": {}}));
        let one = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}});
        check(one, labels(), &json!({"metadata": {"labels": {"b": "2"}}}));
        let ports = || json!({"ports": [{"port": 80, "protocol": "TCP", "name": "http"}, {"port": 81, "protocol": "TCP"}]});
        let field = json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:name": {}}}});
        check(
            field,
            ports(),
            &json!({"ports": [{"port": 80, "protocol": "TCP"}, {"port": 81, "protocol": "TCP"}]}),
        );
        let item = json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}});
        check(item, ports(), &json!({"ports": [{"port": 81, "protocol": "TCP"}]}));
        let value = json!({"f:metadata": {"f:finalizers": {"v:\"x\"": {}}}});
        check(
            value,
            json!({"metadata": {"finalizers": ["x", "y"]}}),
            &json!({"metadata": {"finalizers": ["y"]}}),
        );
    }
}
