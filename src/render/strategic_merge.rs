//! Strategic merge patch: maps merge, null deletes, lists of named items merge by name.
//!
//! Merge keys are those of the Kubernetes API (`patchMergeKey` and `patchStrategy` of its Go types). Lists of other kinds are
//! replaced, as kubectl does. Directives are those of kubectl: `$patch`, `$retainKeys`, `$setElementOrder/…`,
//! `$deleteFromPrimitiveList/…`.
//!
//! Lists and maps may be as long as a file, so a merge visits each item once and finds items by key in a table.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

/// The merge key of a list.
struct ListMergeKey {
    key: &'static str,
    /// An item replaces the one with its key, because exactly one of their fields may be set.
    replaces_whole: bool,
}

/// Fields that have exactly one handler.
const HANDLER_FIELDS: [&str; 5] = ["livenessProbe", "readinessProbe", "startupProbe", "postStart", "preStop"];

fn is_handler(field: &str) -> bool {
    ["exec", "grpc", "httpGet", "sleep", "tcpSocket"].contains(&field)
}

/// Which lists merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListMergeRules {
    /// The lists of workloads and their pods.
    Workload,
    Service,
    /// No list merges: the kind is unknown.
    ReplaceAll,
}

/// Built-in groups, and workload kinds of others with Kubernetes pods.
const KNOWN_GROUPS: [&str; 7] =
    ["", "apps", "batch", "policy", "admissionregistration.k8s.io", "storage.k8s.io", "apps.kruise.io"];

impl ListMergeRules {
    pub fn of(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Service") => Self::Service,
            _ if KNOWN_GROUPS.contains(&group) => Self::Workload,
            _ => Self::ReplaceAll,
        }
    }

    fn merge_key(self, field: &str) -> Option<ListMergeKey> {
        let by = |key| Some(ListMergeKey { key, replaces_whole: false });
        let whole = |key| Some(ListMergeKey { key, replaces_whole: true });
        match (self, field) {
            (_, "ownerReferences") => by("uid"),
            (Self::ReplaceAll, _) => None,
            (Self::Service, "ports") => by("port"),
            (_, "ports") => by("containerPort"),
            (
                _,
                "containers"
                | "initContainers"
                | "ephemeralContainers"
                | "imagePullSecrets"
                | "secrets"
                | "schedulingGates"
                | "webhooks"
                | "matchConditions"
                | "variables"
                | "drivers",
            ) => by("name"),
            (_, "volumeMounts") => by("mountPath"),
            (_, "volumeDevices") => by("devicePath"),
            (_, "hostAliases") => by("ip"),
            (_, "topologySpreadConstraints") => by("topologyKey"),
            (_, "env" | "volumes" | "resourceClaims") => whole("name"),
            _ => None,
        }
    }

    /// Lists of strings that are joined, not replaced.
    fn is_joined(field: &str) -> bool {
        field == "finalizers"
    }
}

/// An invalid patch, with the path in it: `spec.template`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategicMergeError {
    pub path: String,
    pub message: String,
}

impl StrategicMergeError {
    fn new(message: String) -> Self {
        Self { path: String::new(), message }
    }

    fn below(mut self, key: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.path = format!("{key}{dot}{}", self.path);
        self
    }
}

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Whether a map has `$patch: delete`.
pub fn is_delete_directive(map: &Map<String, Value>) -> bool {
    map.get(PATCH).is_some_and(|directive| directive == "delete")
}

/// Merges `upper` over `lower`. New list items come after existing ones.
pub fn merge(
    lower: &mut Map<String, Value>,
    upper: &Map<String, Value>,
    lists: ListMergeRules,
) -> Result<(), StrategicMergeError> {
    match upper.get(PATCH).map(|directive| directive.as_str().unwrap_or_default()) {
        None | Some("merge") => {}
        Some("replace") => {
            lower.clear();
        }
        Some("delete") => {
            lower.clear();
            return Ok(());
        }
        Some(other) => {
            return Err(StrategicMergeError::new(format!(
                "$patch is merge, replace or delete, not {other:?}"
            ))
            .below(PATCH));
        }
    }
    if let Some(kept) = upper.get(RETAIN) {
        let kept = texts(kept).map_err(|wrong| wrong.below(RETAIN))?;
        lower.retain(|key, _| kept.contains(key.as_str()));
    }
    for (key, value) in upper {
        if key.starts_with('$') {
            directive(lower, key, value).map_err(|wrong| wrong.below(key))?;
        } else if !removes_field(value) {
            merge_field(lower, key, value, lists).map_err(|wrong| wrong.below(key))?;
        }
    }
    // Removes all at once: each single removal shifts the rest.
    if upper.values().any(removes_field) {
        lower.retain(|key, _| !upper.get(key).is_some_and(removes_field) || key.starts_with('$'));
    }
    // The order applies to the merged items.
    for (key, order) in upper {
        if let Some(field) = key.strip_prefix(ORDER) {
            let keyed = lists.merge_key(field);
            if let Some(Value::Array(items)) = lower.get_mut(field) {
                set_order(items, order, keyed.as_ref()).map_err(|wrong| wrong.below(key))?;
            }
        }
    }
    Ok(())
}

/// Whether a patch value removes its field.
fn removes_field(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(is_delete_directive)
}

fn merge_field(
    lower: &mut Map<String, Value>,
    key: &str,
    value: &Value,
    lists: ListMergeRules,
) -> Result<(), StrategicMergeError> {
    match value {
        Value::Object(upper) => {
            let place = lower.entry(key).or_insert_with(|| Value::Object(Map::new()));
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            if let Value::Object(place) = place {
                if HANDLER_FIELDS.contains(&key) && upper.keys().any(|key| is_handler(key)) {
                    place.retain(|key, _| !is_handler(key) || upper.contains_key(key));
                }
                merge(place, upper, lists)?;
            }
        }
        Value::Array(upper) => {
            let place = lower.entry(key).or_insert_with(|| Value::Array(Vec::new()));
            if !place.is_array() {
                *place = Value::Array(Vec::new());
            }
            if let Value::Array(place) = place {
                merge_list(place, upper, key, lists)?;
            }
        }
        scalar => {
            lower.insert(key.to_owned(), scalar.clone());
        }
    }
    Ok(())
}

fn merge_list(
    lower: &mut Vec<Value>,
    upper: &[Value],
    field: &str,
    lists: ListMergeRules,
) -> Result<(), StrategicMergeError> {
    let marks = |item: &Value| item.get(PATCH).is_some_and(|directive| directive == "replace");
    let replaced = upper.iter().any(marks);
    match lists.merge_key(field) {
        Some(keyed) => {
            if replaced {
                lower.clear();
            }
            let items = upper.iter().filter(|item| !marks(item));
            merge_items(lower, items, &keyed, lists)
        }
        None if ListMergeRules::is_joined(field) && !replaced => {
            let mut known: HashSet<&Value> = lower.iter().collect();
            let joined: Vec<Value> = upper.iter().filter(|item| known.insert(item)).cloned().collect();
            lower.extend(joined);
            Ok(())
        }
        None => {
            *lower = upper.iter().filter(|item| !marks(item)).cloned().collect();
            Ok(())
        }
    }
}

fn merge_items<'v>(
    lower: &mut Vec<Value>,
    upper: impl Iterator<Item = &'v Value>,
    keyed: &ListMergeKey,
    lists: ListMergeRules,
) -> Result<(), StrategicMergeError> {
    // A deleted item leaves a gap, so that indices stay valid.
    let mut items: Vec<Option<Value>> = lower.drain(..).map(Some).collect();
    let mut places: HashMap<Value, Vec<usize>> = HashMap::new();
    for (place, item) in items.iter().enumerate() {
        if let Some(key) = item.as_ref().and_then(|item| item.get(keyed.key)) {
            places.entry(key.clone()).or_default().push(place);
        }
    }
    for (index, item) in upper.enumerate() {
        let wrong = |wrong: StrategicMergeError| wrong.below(&format!("[{index}]"));
        let Value::Object(map) = item else {
            items.push(Some(item.clone()));
            continue;
        };
        let key = map.get(keyed.key);
        if key.is_none() && map.contains_key(PATCH) {
            return Err(wrong(StrategicMergeError::new(format!(
                "$patch: delete needs the {} of the item",
                keyed.key
            ))));
        }
        if is_delete_directive(map) {
            for place in key.and_then(|key| places.remove(key)).into_iter().flatten() {
                items[place] = None;
            }
            continue;
        }
        let place = key.and_then(|key| places.get(key)?.first().copied());
        match place.and_then(|place| items[place].as_mut()) {
            Some(Value::Object(place)) if !keyed.replaces_whole => merge(place, map, lists).map_err(wrong)?,
            place => {
                let mut made = Map::new();
                merge(&mut made, map, lists).map_err(wrong)?;
                if let Some(place) = place {
                    *place = Value::Object(made);
                    continue;
                }
                if let Some(key) = made.get(keyed.key) {
                    places.entry(key.clone()).or_default().push(items.len());
                }
                items.push(Some(Value::Object(made)));
            }
        }
    }
    lower.extend(items.into_iter().flatten());
    Ok(())
}

/// All directives but the order of lists, which comes last.
fn directive(lower: &mut Map<String, Value>, key: &str, value: &Value) -> Result<(), StrategicMergeError> {
    if let Some(field) = key.strip_prefix(DELETE_FROM) {
        let Value::Array(gone) = value else {
            return Err(StrategicMergeError::new("a list was expected".to_owned()));
        };
        if let Some(Value::Array(items)) = lower.get_mut(field) {
            let gone: HashSet<&Value> = gone.iter().collect();
            items.retain(|item| !gone.contains(item));
        }
        return Ok(());
    }
    if key == PATCH || key == RETAIN || key.starts_with(ORDER) {
        return Ok(());
    }
    Err(StrategicMergeError::new(format!("{key} is not a directive of a strategic merge")))
}

/// Sorts the named items into their order; unnamed items keep their places.
fn set_order(
    items: &mut [Value],
    order: &Value,
    keyed: Option<&ListMergeKey>,
) -> Result<(), StrategicMergeError> {
    let Value::Array(order) = order else {
        return Err(StrategicMergeError::new("a list was expected".to_owned()));
    };
    let key = |item| keyed.map_or(Some(item), |keyed| Value::get(item, keyed.key));
    let mut places: HashMap<&Value, usize> = HashMap::new();
    for (place, wanted) in order.iter().enumerate() {
        if let Some(Entry::Vacant(first)) = key(wanted).map(|key| places.entry(key)) {
            first.insert(place);
        }
    }
    let place = |item| places.get(key(item)?).copied();
    let of_items: Vec<Option<usize>> = items.iter().map(place).collect();
    let mut named: Vec<(usize, Value)> =
        items.iter().zip(&of_items).filter_map(|(item, place)| Some(((*place)?, item.clone()))).collect();
    named.sort_by_key(|(place, _)| *place);
    let slots = items.iter_mut().zip(of_items).filter_map(|(item, place)| place.map(|_| item));
    for (slot, (_, item)) in slots.zip(named) {
        *slot = item;
    }
    Ok(())
}

fn texts(value: &Value) -> Result<HashSet<&str>, StrategicMergeError> {
    let texts = value.as_array().and_then(|items| items.iter().map(Value::as_str).collect());
    texts.ok_or_else(|| StrategicMergeError::new("a list of texts was expected".to_owned()))
}

/// The first directive in a value; a pod template may not have any.
pub fn first_directive(value: &Value) -> Option<&str> {
    match value {
        Value::Object(map) => map.iter().find_map(|(key, value)| {
            if key.starts_with('$') { Some(key.as_str()) } else { first_directive(value) }
        }),
        Value::Array(items) => items.iter().find_map(first_directive),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(lower: Value, upper: Value, expected: &Value) {
        let (Value::Object(mut merged), Value::Object(upper)) = (lower, upper) else { panic!("maps") };
        merge(&mut merged, &upper, ListMergeRules::Workload).unwrap();
        assert_eq!(&Value::Object(merged), expected);
    }

    #[test]
    fn named_items_merge_by_name() {
        check(
            json!({"containers": [{"name": "a", "image": "x", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}),
            json!({"containers": [{"name": "b"}, {"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}]}),
            &json!({"containers": [
                {"name": "a", "image": "x", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}]},
                {"name": "b"},
            ]}),
        );
        check(json!({"args": ["a", "b"]}), json!({"args": ["c"]}), &json!({"args": ["c"]}));
        check(json!({"nodeName": "x", "a": 1}), json!({"nodeName": null}), &json!({"a": 1}));
    }

    #[test]
    fn exclusive_fields_replace_each_other() {
        check(
            json!({"env": [{"name": "A", "value": "1"}]}),
            json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}),
            &json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}),
        );
        check(
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "configMap": {"name": "c"}}]}),
            &json!({"volumes": [{"name": "v", "configMap": {"name": "c"}}]}),
        );
        check(
            json!({"livenessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": 5}}),
            json!({"livenessProbe": {"httpGet": {"path": "/"}}}),
            &json!({"livenessProbe": {"httpGet": {"path": "/"}, "periodSeconds": 5}}),
        );
    }

    #[test]
    fn first_directive_is_found() {
        assert_eq!(first_directive(&json!({"a": [{"$patch": "delete"}]})), Some("$patch"));
        assert_eq!(first_directive(&json!({"a": [{"b": "$patch"}]})), None);
    }

    #[test]
    fn directives_match_kubectl() {
        let pod = json!({"containers": [{"name": "a"}, {"name": "b", "args": ["x"]}], "tolerations": [1, 2]});
        check(
            pod.clone(),
            json!({"containers": [{"name": "a", "$patch": "delete"}]}),
            &json!({"containers": [{"name": "b", "args": ["x"]}], "tolerations": [1, 2]}),
        );
        check(
            pod.clone(),
            json!({"containers": [{"$patch": "replace"}, {"name": "c"}], "tolerations": null}),
            &json!({"containers": [{"name": "c"}]}),
        );
        check(
            pod.clone(),
            json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}],
                "containers": [{"name": "c"}, {"name": "b", "$retainKeys": ["name"]}]}),
            &json!({"containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}], "tolerations": [1, 2]}),
        );
        check(
            pod,
            json!({"$deleteFromPrimitiveList/tolerations": [1], "$retainKeys": ["tolerations"]}),
            &json!({"tolerations": [2]}),
        );
        check(
            json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}, "a": {"b": 1}}),
            json!({"strategy": {"$patch": "replace", "type": "Recreate"}, "a": {"$patch": "delete"}}),
            &json!({"strategy": {"type": "Recreate"}}),
        );
        check(
            json!({}),
            json!({"a": {"b": null, "c": {"d": null}}, "finalizers": ["x", "x"]}),
            &json!({"a": {"c": {}}, "finalizers": ["x"]}),
        );
    }

    #[test]
    fn duplicate_items_merge_in_order() {
        check(
            json!({"containers": [{"name": "a", "x": 1}, {"y": 1}, {"name": "a", "x": 2}, {"name": "b"}]}),
            json!({"containers": [{"name": "a", "x": 3}, {"y": 2}, {"name": "c"}, {"name": "c", "z": 1}]}),
            &json!({"containers": [
                {"name": "a", "x": 3}, {"y": 1}, {"name": "a", "x": 2}, {"name": "b"}, {"y": 2}, {"name": "c", "z": 1},
            ]}),
        );
        check(
            json!({"env": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}),
            json!({"env": [{"name": "a", "$patch": "delete"}, {"name": "a", "value": "x"}, {"name": "b", "value": "y"}]}),
            &json!({"env": [{"name": "b", "value": "y"}, {"name": "a", "value": "x"}]}),
        );
        check(
            json!({"a": [1, 2, 3, 4, 1], "tolerations": [4, 3, 2, 1]}),
            json!({"$setElementOrder/a": [3, 1, 3, 1], "$setElementOrder/tolerations": [1, 2]}),
            &json!({"a": [3, 2, 1, 4, 1], "tolerations": [4, 3, 1, 2]}),
        );
    }

    /// Quadratic time would mean thousands of millions of comparisons.
    #[test]
    fn merge_time_is_linear() {
        const LENGTH: usize = 50_000;
        let named = |from: usize, key: &str| -> Vec<Value> {
            (from..from + LENGTH).map(|number| json!({"name": format!("v{number}"), (key): "x"})).collect()
        };
        let texts = |from: usize| -> Vec<String> {
            (from..from + LENGTH).map(|number| format!("v{number}")).collect()
        };
        let nulls = |value: Value| -> Map<String, Value> {
            texts(0).into_iter().map(|text| (text, value.clone())).collect()
        };
        let mut lower = json!({
            "containers": named(0, "image"), "env": named(0, "value"), "gone": nulls(json!(1)),
            "finalizers": texts(0), "fewer": texts(0), "volumes": named(0, "x"), "retained": nulls(json!(1)),
        });
        let deletes: Vec<Value> =
            named(0, "x").into_iter().map(|item| json!({"name": item["name"], "$patch": "delete"})).collect();
        let order: Vec<Value> = named(0, "x").into_iter().rev().collect();
        let upper = json!({
            "containers": named(LENGTH / 2, "image"), "$setElementOrder/containers": order,
            "env": named(LENGTH / 2, "value"), "gone": nulls(Value::Null), "finalizers": texts(LENGTH / 2),
            "$deleteFromPrimitiveList/fewer": texts(1), "volumes": deletes,
            "retained": {"$retainKeys": texts(1)},
        });
        let (Value::Object(lower), Value::Object(upper)) = (&mut lower, upper) else { panic!("maps") };
        merge(lower, &upper, ListMergeRules::Workload).unwrap();
        let length = |field: &str| match &lower[field] {
            Value::Array(items) => items.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        };
        let lengths = ["containers", "env", "gone", "finalizers", "fewer", "volumes", "retained"].map(length);
        assert_eq!(lengths, [LENGTH * 3 / 2, LENGTH * 3 / 2, 0, LENGTH * 3 / 2, 1, 0, LENGTH - 1]);
        assert_eq!(lower["containers"][0]["name"], format!("v{}", LENGTH - 1));
    }

    fn check_wrong(upper: Value, path: &str, message: &str) {
        let Value::Object(upper) = upper else { panic!("a map") };
        let wrong = merge(&mut Map::new(), &upper, ListMergeRules::Workload).expect_err("an error");
        assert_eq!((wrong.path.as_str(), wrong.message.as_str()), (path, message));
    }

    #[test]
    fn unknown_directive_is_reported_with_path() {
        check_wrong(
            json!({"spec": {"$patch": "remove"}}),
            "spec.$patch",
            "$patch is merge, replace or delete, not \"remove\"",
        );
        check_wrong(json!({"a": {"$x": 1}}), "a.$x", "$x is not a directive of a strategic merge");
        check_wrong(
            json!({"spec": {"env": [{"value": "x", "$patch": "delete"}]}}),
            "spec.env.[0]",
            "$patch: delete needs the name of the item",
        );
    }

    #[test]
    fn lists_of_unknown_kinds_are_replaced() {
        let lower = json!({"ports": [{"port": 80, "name": "http"}, {"port": 81}], "env": [{"name": "A"}]});
        let upper = json!({"ports": [{"port": 80, "name": "web"}], "env": [{"name": "B"}]});
        let merged = |group: &str, kind: &str| {
            let (Value::Object(mut lower), Value::Object(upper)) = (lower.clone(), upper.clone()) else {
                panic!("maps")
            };
            merge(&mut lower, &upper, ListMergeRules::of(group, kind)).unwrap();
            Value::Object(lower)
        };
        assert_eq!(merged("", "Service")["ports"], json!([{"port": 80, "name": "web"}, {"port": 81}]));
        assert_eq!(merged("example.com", "Thing"), upper);
        assert_eq!(merged("apps", "Deployment")["env"], json!([{"name": "A"}, {"name": "B"}]));
    }
}
