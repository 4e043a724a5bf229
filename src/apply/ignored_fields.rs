//! Handles ignored fields (`spec.ignore`): Git sets them until another manager does.
//!
//! Our entry of `managedFields` shows which of them are still ours. The others are not sent.

use serde_json::Value;

use super::managed_fields::{ItemKey, OwnedFieldSet};
use crate::model::{FieldPath, FieldPathStep};

/// The ignored fields that one entry owns. `others`: the sets of all other entries.
pub fn owned_ignored_fields(
    owned: &OwnedFieldSet,
    others: &[OwnedFieldSet],
    paths: &[FieldPath],
) -> OwnedFieldSet {
    let others: Vec<&OwnedFieldSet> = others.iter().collect();
    let mut ours = OwnedFieldSet::default();
    for path in paths {
        if let Some(part) = select_owned(Some(owned), &others, path.steps()) {
            ours.add(&part);
        }
    }
    ours
}

/// A list is taken as a whole, because only its items show which one is meant.
fn select_owned(
    owned: Option<&OwnedFieldSet>,
    others: &[&OwnedFieldSet],
    steps: &[FieldPathStep],
) -> Option<OwnedFieldSet> {
    let Some((FieldPathStep::Field(name), rest)) = steps.split_first() else { return owned.cloned() };
    if owned.is_some_and(|owned| owned.owns_subtree) {
        return owned.cloned();
    }
    let key = format!("f:{name}");
    let below = owned.and_then(|owned| owned.children.get(&key));
    let others: Vec<&OwnedFieldSet> = others.iter().filter_map(|other| other.children.get(&key)).collect();
    let below = if !rest.is_empty() && others.iter().any(|other| other.owns_subtree) {
        // Another manager owns the whole value, so no part of it can be ignored separately.
        Some(OwnedFieldSet { owned: true, owns_subtree: true, ..OwnedFieldSet::default() })
    } else {
        select_owned(below, &others, rest)
    };
    below.map(|below| OwnedFieldSet { children: [(key, below)].into(), ..OwnedFieldSet::default() })
}

/// Removes a field and everything below it from a set of fields.
pub fn remove_path(set: &mut OwnedFieldSet, object: &Value, path: &FieldPath) {
    forget_steps(set, object, path.steps());
}

fn forget_steps(set: &mut OwnedFieldSet, value: &Value, steps: &[FieldPathStep]) {
    let Some((step, rest)) = steps.split_first() else { return };
    let found = match step {
        FieldPathStep::Field(name) => Some((format!("f:{name}"), value.get(name))),
        step => {
            let item = value.as_array().and_then(|items| items.iter().find(|item| step.is_item(item)));
            item.and_then(|item| Some((set.find_item_key(item)?.to_owned(), Some(item))))
        }
    };
    let Some((key, value)) = found else { return };
    if rest.is_empty() {
        set.children.remove(&key);
    } else if let Some(child) = set.children.get_mut(&key) {
        forget_steps(child, value.unwrap_or(&Value::Null), rest);
        if child.is_empty() {
            set.children.remove(&key);
        }
    }
}

/// Removes the fields of a path that `ours` does not contain from an object.
pub fn remove_unowned(object: &mut Value, path: &FieldPath, ours: &OwnedFieldSet) {
    leave_out_steps(object, path.steps(), Some(ours));
}

/// Returns whether the value is empty afterwards.
fn leave_out_steps(value: &mut Value, steps: &[FieldPathStep], ours: Option<&OwnedFieldSet>) -> bool {
    if ours.is_some_and(|ours| ours.owns_subtree) {
        return false;
    }
    let Some((step, rest)) = steps.split_first() else {
        return !ours.is_some_and(|ours| ours.keep(value));
    };
    match (step, value) {
        (FieldPathStep::Field(name), Value::Object(map)) => {
            let Some(below) = map.get_mut(name) else { return false };
            let ours = ours.and_then(|ours| ours.children.get(&format!("f:{name}")));
            if !leave_out_steps(below, rest, ours) {
                return false;
            }
            map.shift_remove(name);
            map.is_empty()
        }
        (FieldPathStep::Item(_) | FieldPathStep::Value(_), Value::Array(items)) => {
            let Some(index) = items.iter().position(|item| step.is_item(item)) else { return false };
            let Some(item) = items.get_mut(index) else { return false };
            let ours = ours.and_then(|ours| ours.children.get(ours.find_item_key(item)?));
            if !leave_out_steps(item, rest, ours) {
                return false;
            }
            items.remove(index);
            items.is_empty()
        }
        _ => false,
    }
}

impl OwnedFieldSet {
    /// The key of this list item in the set.
    pub(super) fn find_item_key(&self, item: &Value) -> Option<&str> {
        let is_it = |key: &&String| ItemKey::parse(key).is_some_and(|key| key.matches_item(item));
        self.children.keys().find(is_it).map(String::as_str)
    }

    /// Removes everything from the value that the set does not contain. Returns whether anything is left.
    fn keep(&self, value: &mut Value) -> bool {
        match value {
            _ if self.owns_subtree => true,
            Value::Object(map) => {
                map.retain(|name, value| {
                    self.children.get(&format!("f:{name}")).is_some_and(|below| below.keep(value))
                });
                self.owned || !map.is_empty()
            }
            Value::Array(items) => {
                items.retain_mut(|item| {
                    let below = self.find_item_key(item).and_then(|key| self.children.get(key));
                    below.is_some_and(|below| below.keep(item))
                });
                self.owned || !items.is_empty()
            }
            _ => self.owned,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> FieldPath {
        FieldPath::parse(text).expect("a path")
    }

    /// The body that is sent, with this entry of ours and this one of another manager.
    fn sent(body: &Value, ours: &Value, theirs: &Value, ignored: &str) -> Value {
        let (paths, mut sent) = ([path(ignored)], body.clone());
        let kept = owned_ignored_fields(&OwnedFieldSet::parse(ours), &[OwnedFieldSet::parse(theirs)], &paths);
        remove_unowned(&mut sent, &paths[0], &kept);
        sent
    }

    #[test]
    fn lost_ignored_fields_are_not_sent() {
        let body = json!({"data": {"a": "1", "b": "2"}});
        let all = json!({"f:data": {"f:a": {}, "f:b": {}}});
        let only_a = json!({"f:data": {"f:a": {}}});
        let check = |ours: &Value, ignored: &str, expected: Value| {
            assert_eq!(sent(&body, ours, &json!({}), ignored), expected, "{ignored} {ours}");
        };
        check(&all, "/data/b", body.clone());
        check(&only_a, "/data/b", json!({"data": {"a": "1"}}));
        // Field by field: fields below the path that are still ours are sent.
        check(&only_a, "/data", json!({"data": {"a": "1"}}));
        check(&json!({}), "/data", json!({}));
        check(&only_a, "/data/c", body.clone());
        check(&only_a, "/spec/c", body.clone());
    }

    #[test]
    fn list_items_are_ignored_by_their_keys() {
        let container = |name: &str| json!({"name": name, "image": "web:1"});
        let body = json!({"containers": [container("app"), container("proxy")]});
        let entry = |app: Value| {
            json!({"f:containers": {"k:{\"name\":\"app\"}": app,
            "k:{\"name\":\"proxy\"}": {".": {}, "f:name": {}, "f:image": {}}}})
        };
        let all = entry(json!({".": {}, "f:name": {}, "f:image": {}}));
        let without = entry(json!({".": {}, "f:name": {}}));
        let check = |ours: &Value, ignored: &str, expected: Value| {
            assert_eq!(sent(&body, ours, &json!({}), ignored), expected, "{ignored} {ours}");
        };
        check(&all, "/containers/name=app/image", body.clone());
        let left = json!({"containers": [{"name": "app"}, container("proxy")]});
        check(&without, "/containers/name=app/image", left);
        check(&without, "/containers/name=proxy/image", body.clone());
        // A field that is no key still selects the item, and our items stay.
        check(&without, "/containers/image=web:1/name", body.clone());
    }

    #[test]
    fn values_owned_as_a_whole_are_sent_whole() {
        let body = json!({"spec": {"selector": {"app": "web", "tier": "a"}}});
        let selector = json!({"f:spec": {"f:selector": {}}});
        assert_eq!(sent(&body, &selector, &json!({}), "/spec/selector/tier"), body);
        assert_eq!(sent(&body, &json!({}), &selector, "/spec/selector/tier"), body);
        assert_eq!(sent(&body, &json!({}), &selector, "/spec/selector"), json!({}));
    }

    #[test]
    fn ignored_paths_are_removed_from_field_sets() {
        let object = json!({"data": {"b": "2"}, "spec": {"containers": [{"name": "app", "image": "x"}]}});
        let check = |before: Value, ignored: &str, expected: Value| {
            let mut set = OwnedFieldSet::parse(&before);
            remove_path(&mut set, &object, &path(ignored));
            assert_eq!(set.to_value(), expected, "{ignored}");
        };
        check(json!({"f:data": {"f:a": {}, "f:b": {}}}), "/data/b", json!({"f:data": {"f:a": {}}}));
        check(json!({"f:data": {"f:b": {}}}), "/data/b", json!({}));
        let app = |fields: Value| json!({"f:spec": {"f:containers": {"k:{\"name\":\"app\"}": fields}}});
        let named = json!({".": {}, "f:name": {}});
        check(
            app(json!({".": {}, "f:name": {}, "f:image": {}})),
            "/spec/containers/name=app/image",
            app(named.clone()),
        );
        check(app(named.clone()), "/spec/containers/name=app/image", app(named.clone()));
        check(app(named), "/spec/containers/name=app", json!({}));
    }
}
