//! Strategic merge: maps merge, null deletes, lists of things with names merge by name.
//!
//! The merge keys are those of the Kubernetes API (`patchMergeKey` and `patchStrategy` of its Go types);
//! lists of other kinds are replaced, as kubectl replaces them. Directives are those of kubectl: `$patch`,
//! `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`.

use serde_json::{Map, Value};

/// How the items of a list are told apart.
struct Keyed {
    key: &'static str,
    /// Items of one key replace each other whole: of their fields exactly one may be set.
    whole: bool,
}

/// Fields that have exactly one handler.
const HANDLED: [&str; 5] = ["livenessProbe", "readinessProbe", "startupProbe", "postStart", "preStop"];

fn is_handler(field: &str) -> bool {
    ["exec", "grpc", "httpGet", "sleep", "tcpSocket"].contains(&field)
}

/// Which lists merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// Those of workloads and their pods.
    OfPods,
    OfService,
    /// None: nothing is known of the kind.
    Replaced,
}

/// Groups of Kubernetes itself, and the workloads of others that hold the pods of Kubernetes.
const KNOWN_GROUPS: [&str; 7] =
    ["", "apps", "batch", "policy", "admissionregistration.k8s.io", "storage.k8s.io", "apps.kruise.io"];

impl Lists {
    pub fn of(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Service") => Self::OfService,
            _ if KNOWN_GROUPS.contains(&group) => Self::OfPods,
            _ => Self::Replaced,
        }
    }

    fn keyed(self, field: &str) -> Option<Keyed> {
        let by = |key| Some(Keyed { key, whole: false });
        let whole = |key| Some(Keyed { key, whole: true });
        match (self, field) {
            (_, "ownerReferences") => by("uid"),
            (Self::Replaced, _) => None,
            (Self::OfService, "ports") => by("port"),
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

    /// Lists of texts that are joined, not replaced.
    fn joins(field: &str) -> bool {
        field == "finalizers"
    }
}

/// What a patch asks for and cannot have, and where in the patch: `spec.template`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub path: String,
    pub message: String,
}

impl Wrong {
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

/// Whether a map is a mark that says `$patch: delete`.
pub fn deletes(map: &Map<String, Value>) -> bool {
    map.get(PATCH).is_some_and(|directive| directive == "delete")
}

/// Merges `upper` over `lower`: maps merge, null deletes, lists merge by key or are replaced. New items
/// come after those that were there.
pub fn merge(lower: &mut Map<String, Value>, upper: &Map<String, Value>, lists: Lists) -> Result<(), Wrong> {
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
            return Err(Wrong::new(format!("$patch is merge, replace or delete, not {other:?}")).below(PATCH));
        }
    }
    if let Some(kept) = upper.get(RETAIN) {
        let kept = texts(kept).map_err(|wrong| wrong.below(RETAIN))?;
        lower.retain(|key, _| kept.contains(&key.as_str()));
    }
    for (key, value) in upper {
        if key.starts_with('$') {
            directive(lower, key, value).map_err(|wrong| wrong.below(key))?;
        } else {
            field(lower, key, value, lists).map_err(|wrong| wrong.below(key))?;
        }
    }
    // After the items of the patch have come in.
    for (key, order) in upper {
        if let Some(field) = key.strip_prefix(ORDER) {
            let keyed = lists.keyed(field);
            if let Some(Value::Array(items)) = lower.get_mut(field) {
                set_order(items, order, keyed.as_ref()).map_err(|wrong| wrong.below(key))?;
            }
        }
    }
    Ok(())
}

fn field(lower: &mut Map<String, Value>, key: &str, value: &Value, lists: Lists) -> Result<(), Wrong> {
    match value {
        Value::Null => {
            lower.shift_remove(key);
        }
        Value::Object(upper) if deletes(upper) => {
            lower.shift_remove(key);
        }
        Value::Object(upper) => {
            let place = lower.entry(key).or_insert_with(|| Value::Object(Map::new()));
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            if let Value::Object(place) = place {
                if HANDLED.contains(&key) && upper.keys().any(|key| is_handler(key)) {
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
                list(place, upper, key, lists)?;
            }
        }
        scalar => {
            lower.insert(key.to_owned(), scalar.clone());
        }
    }
    Ok(())
}

fn list(lower: &mut Vec<Value>, upper: &[Value], field: &str, lists: Lists) -> Result<(), Wrong> {
    let marks = |item: &Value| item.get(PATCH).is_some_and(|directive| directive == "replace");
    let replaced = upper.iter().any(marks);
    match lists.keyed(field) {
        Some(keyed) => {
            if replaced {
                lower.clear();
            }
            let items = upper.iter().filter(|item| !marks(item));
            merge_items(lower, items, &keyed, lists)
        }
        None if Lists::joins(field) && !replaced => {
            for item in upper {
                if !lower.contains(item) {
                    lower.push(item.clone());
                }
            }
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
    keyed: &Keyed,
    lists: Lists,
) -> Result<(), Wrong> {
    for (index, item) in upper.enumerate() {
        let wrong = |wrong: Wrong| wrong.below(&format!("[{index}]"));
        let Value::Object(map) = item else {
            lower.push(item.clone());
            continue;
        };
        let key = map.get(keyed.key);
        if key.is_none() && map.contains_key(PATCH) {
            return Err(wrong(Wrong::new(format!("$patch: delete wants the {} of the item", keyed.key))));
        }
        let fits = |place: &Value| key.is_some() && place.get(keyed.key) == key;
        if deletes(map) {
            lower.retain(|place| !fits(place));
            continue;
        }
        match lower.iter_mut().find(|place| fits(place)) {
            Some(Value::Object(place)) if !keyed.whole => merge(place, map, lists).map_err(wrong)?,
            place => {
                let mut made = Map::new();
                merge(&mut made, map, lists).map_err(wrong)?;
                match place {
                    Some(place) => *place = Value::Object(made),
                    None => lower.push(Value::Object(made)),
                }
            }
        }
    }
    Ok(())
}

/// All but the order of lists, which comes last.
fn directive(lower: &mut Map<String, Value>, key: &str, value: &Value) -> Result<(), Wrong> {
    if let Some(field) = key.strip_prefix(DELETE_FROM) {
        let Value::Array(gone) = value else { return Err(Wrong::new("a list was expected".to_owned())) };
        if let Some(Value::Array(items)) = lower.get_mut(field) {
            items.retain(|item| !gone.contains(item));
        }
        return Ok(());
    }
    if key == PATCH || key == RETAIN || key.starts_with(ORDER) {
        return Ok(());
    }
    Err(Wrong::new(format!("{key} is no directive of a strategic merge")))
}

/// Those that are named in their order, each before the items that stood behind it and are not named.
fn set_order(items: &mut [Value], order: &Value, keyed: Option<&Keyed>) -> Result<(), Wrong> {
    let Value::Array(order) = order else { return Err(Wrong::new("a list was expected".to_owned())) };
    let place = |item: &Value| {
        order.iter().position(|wanted| match keyed {
            Some(keyed) => wanted.get(keyed.key).is_some() && wanted.get(keyed.key) == item.get(keyed.key),
            None => wanted == item,
        })
    };
    let mut named: Vec<(usize, Value)> =
        items.iter().filter_map(|item| Some((place(item)?, item.clone()))).collect();
    named.sort_by_key(|(place, _)| *place);
    let mut named = named.into_iter().map(|(_, item)| item);
    for item in items.iter_mut() {
        if place(item).is_some()
            && let Some(next) = named.next()
        {
            *item = next;
        }
    }
    Ok(())
}

fn texts(value: &Value) -> Result<Vec<&str>, Wrong> {
    let texts = value.as_array().and_then(|items| items.iter().map(Value::as_str).collect());
    texts.ok_or_else(|| Wrong::new("a list of texts was expected".to_owned()))
}

/// A directive of the strategic patch format (`$patch: delete`), which a pod template has no place for.
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
        merge(&mut merged, &upper, Lists::OfPods).unwrap();
        assert_eq!(&Value::Object(merged), expected);
    }

    #[test]
    fn named_things_merge_by_name() {
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
    fn of_several_ways_only_one_is_left() {
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
    fn directives_are_found() {
        assert_eq!(first_directive(&json!({"a": [{"$patch": "delete"}]})), Some("$patch"));
        assert_eq!(first_directive(&json!({"a": [{"b": "$patch"}]})), None);
    }

    #[test]
    fn directives_are_those_of_kubectl() {
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

    fn check_wrong(upper: Value, path: &str, message: &str) {
        let Value::Object(upper) = upper else { panic!("a map") };
        let wrong = merge(&mut Map::new(), &upper, Lists::OfPods).expect_err("a mistake");
        assert_eq!((wrong.path.as_str(), wrong.message.as_str()), (path, message));
    }

    #[test]
    fn a_directive_that_is_none_is_named_with_its_place() {
        check_wrong(
            json!({"spec": {"$patch": "remove"}}),
            "spec.$patch",
            "$patch is merge, replace or delete, not \"remove\"",
        );
        check_wrong(json!({"a": {"$x": 1}}), "a.$x", "$x is no directive of a strategic merge");
        check_wrong(
            json!({"spec": {"env": [{"value": "x", "$patch": "delete"}]}}),
            "spec.env.[0]",
            "$patch: delete wants the name of the item",
        );
    }

    #[test]
    fn lists_of_other_kinds_are_replaced() {
        let lower = json!({"ports": [{"port": 80, "name": "http"}, {"port": 81}], "env": [{"name": "A"}]});
        let upper = json!({"ports": [{"port": 80, "name": "web"}], "env": [{"name": "B"}]});
        let merged = |group: &str, kind: &str| {
            let (Value::Object(mut lower), Value::Object(upper)) = (lower.clone(), upper.clone()) else {
                panic!("maps")
            };
            merge(&mut lower, &upper, Lists::of(group, kind)).unwrap();
            Value::Object(lower)
        };
        assert_eq!(merged("", "Service")["ports"], json!([{"port": 80, "name": "web"}, {"port": 81}]));
        assert_eq!(merged("example.com", "Thing"), upper);
        assert_eq!(merged("apps", "Deployment")["env"], json!([{"name": "A"}, {"name": "B"}]));
    }
}
