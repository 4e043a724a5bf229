//! Strategic merge of pod templates: lists of things with names merge by name.
//!
//! The merge keys are those of the Kubernetes API (`patchMergeKey` in `k8s.io/api/core/v1`).

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

/// The lists of a PodTemplateSpec that merge; every other list is replaced.
fn keyed(field: &str) -> Option<Keyed> {
    let by = |key| Some(Keyed { key, whole: false });
    let whole = |key| Some(Keyed { key, whole: true });
    match field {
        "containers" | "initContainers" | "ephemeralContainers" | "imagePullSecrets" => by("name"),
        "ports" => by("containerPort"),
        "volumeMounts" => by("mountPath"),
        "volumeDevices" => by("devicePath"),
        "hostAliases" => by("ip"),
        "topologySpreadConstraints" => by("topologyKey"),
        "env" | "volumes" => whole("name"),
        _ => None,
    }
}

/// Merges `upper` over `lower`: maps merge, null deletes, lists merge by key or are replaced. New items
/// come after those that were there.
pub fn merge(lower: &mut Map<String, Value>, upper: &Map<String, Value>) {
    for (key, value) in upper {
        match (lower.get_mut(key), value) {
            (_, Value::Null) => {
                lower.shift_remove(key);
            }
            (Some(Value::Object(lower)), Value::Object(upper)) => {
                if HANDLED.contains(&key.as_str()) && upper.keys().any(|key| is_handler(key)) {
                    lower.retain(|key, _| !is_handler(key) || upper.contains_key(key));
                }
                merge(lower, upper);
            }
            (Some(Value::Array(lower)), Value::Array(upper)) => match keyed(key) {
                Some(keyed) => merge_items(lower, upper, &keyed),
                None => lower.clone_from(upper),
            },
            (Some(place), value) => *place = value.clone(),
            (None, value) => {
                lower.insert(key.clone(), value.clone());
            }
        }
    }
}

fn merge_items(lower: &mut Vec<Value>, upper: &[Value], keyed: &Keyed) {
    for item in upper {
        let key = item.get(keyed.key);
        let place = lower.iter_mut().find(|place| key.is_some() && place.get(keyed.key) == key);
        match (place, item) {
            (Some(Value::Object(place)), Value::Object(item)) if !keyed.whole => merge(place, item),
            (Some(place), item) => place.clone_from(item),
            (None, item) => lower.push(item.clone()),
        }
    }
}

/// A directive of the strategic patch format (`$patch: delete`), which is not understood here.
pub fn directive(value: &Value) -> Option<&str> {
    match value {
        Value::Object(map) => {
            map.iter().find_map(
                |(key, value)| if key.starts_with('$') { Some(key.as_str()) } else { directive(value) },
            )
        }
        Value::Array(items) => items.iter().find_map(directive),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(lower: Value, upper: Value, expected: &Value) {
        let (Value::Object(mut merged), Value::Object(upper)) = (lower, upper) else { panic!("maps") };
        merge(&mut merged, &upper);
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
        assert_eq!(directive(&json!({"a": [{"$patch": "delete"}]})), Some("$patch"));
        assert_eq!(directive(&json!({"a": [{"b": "$patch"}]})), None);
    }
}
