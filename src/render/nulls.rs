//! Nulls in objects: which are a mistake, which the server drops, and which it keeps.
//!
//! A null where a struct has a field is no field: the server drops it. In a map of texts or quantities, and as an element of
//! a list, it becomes an empty value: `podSelector: {matchLabels: {db: }}` would store `db: ""`, and without the key every pod
//! would be selected. So it is a mistake that names the key. What a custom kind makes of a null only its server knows: such
//! an object is sent as it is written, as kubectl sends it.

use serde_json::{Map, Value};

use crate::model::Kind;

/// Maps with free keys in the kinds of Kubernetes, by the names of their fields. Source: `additionalProperties` of the API's
/// schema; a test holds the table to it.
const MAPS: [&str; 24] = [
    "allocatable",
    "annotations",
    "attachmentMetadata",
    "binaryData",
    "capacity",
    "data",
    "default",
    "defaultRequest",
    "hard",
    "labels",
    "limits",
    "matchLabels",
    "max",
    "maxLimitRequestRatio",
    "min",
    "nodeSelector",
    "options",
    "overhead",
    "podFixed",
    "requests",
    "stringData",
    "used",
    "userAnnotations",
    "volumeAttributes",
];

/// Fields that are such maps in some kinds, and structs in others.
const MAPS_OF_KINDS: [(&str, &[&str]); 2] = [
    ("parameters", &["StorageClass", "VolumeAttributesClass"]),
    ("selector", &["Service", "ReplicationController"]),
];

/// Kinds that hold JSON of any shape.
const OPEN: [&str; 3] = ["CustomResourceDefinition", "ControllerRevision", "ResourceClaim"];

/// The way to a value: keys, and places in lists as numbers.
pub type Path = Vec<String>;

/// The first null that would become an empty value.
pub fn mistaken(object: &Map<String, Value>, kind: &Kind) -> Option<Path> {
    if !kind.is_built_in() || OPEN.contains(&&*kind.kind) {
        let metadata = object.get("metadata")?.as_object()?;
        return ["labels", "annotations"].into_iter().find_map(|field| {
            let entries = metadata.get(field)?.as_object()?;
            let (key, _) = entries.iter().find(|(_, value)| value.is_null())?;
            Some(vec!["metadata".to_owned(), field.to_owned(), key.clone()])
        });
    }
    let mut path = Vec::new();
    in_map(object, kind, false, &mut path).then_some(path)
}

/// `is_free`: its keys are free, so a null is a value. Leaves the way to the first null in `path`.
fn in_map(map: &Map<String, Value>, kind: &Kind, is_free: bool, path: &mut Path) -> bool {
    map.iter().any(|(key, value)| {
        path.push(key.clone());
        let found = match value {
            Value::Null => is_free,
            Value::Object(below) => in_map(below, kind, is_map(key, kind, path), path),
            Value::Array(items) => in_list(items, kind, path),
            _ => false,
        };
        if !found {
            path.pop();
        }
        found
    })
}

fn in_list(items: &[Value], kind: &Kind, path: &mut Path) -> bool {
    items.iter().enumerate().any(|(index, item)| {
        path.push(index.to_string());
        let found = match item {
            Value::Null => true,
            Value::Object(map) => in_map(map, kind, false, path),
            Value::Array(items) => in_list(items, kind, path),
            _ => false,
        };
        if !found {
            path.pop();
        }
        found
    })
}

fn is_map(field: &str, kind: &Kind, path: &[String]) -> bool {
    // The selector of a Service is a map; that of a claim template in the same list of documents is not.
    let is_own = || path.first().is_some_and(|first| first == "spec" || first == field) && path.len() <= 2;
    MAPS.contains(&field)
        || MAPS_OF_KINDS
            .iter()
            .any(|(name, kinds)| *name == field && kinds.contains(&&*kind.kind) && is_own())
}

/// Takes out the nulls that are no values. Those of a custom kind stay, but in its metadata.
pub fn drop_absent(object: &mut Map<String, Value>, kind: &Kind) {
    if kind.is_built_in() {
        drop_in(object);
        return;
    }
    object.retain(|_, value| !value.is_null());
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        drop_in(metadata);
    }
}

fn drop_in(map: &mut Map<String, Value>) {
    map.retain(|_, value| !value.is_null());
    map.values_mut().for_each(drop_below);
}

fn drop_below(value: &mut Value) {
    match value {
        Value::Object(map) => drop_in(map),
        Value::Array(items) => items.iter_mut().for_each(drop_below),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(version: &str, kind: &str, object: Value, expected: Option<&str>) {
        let Value::Object(object) = object else { panic!("a map") };
        let found = mistaken(&object, &Kind::from_api_version(version, kind)).map(|path| path.join("."));
        assert_eq!(found.as_deref(), expected, "{kind} {object:?}");
    }

    #[test]
    fn null_in_a_map_or_list_is_a_mistake() {
        let pods = json!({"spec": {"podSelector": {"matchLabels": {"db": null}}}});
        check("networking.k8s.io/v1", "NetworkPolicy", pods, Some("spec.podSelector.matchLabels.db"));
        check("v1", "Secret", json!({"data": {"raw": null}}), Some("data.raw"));
        check("v1", "ConfigMap", json!({"metadata": {"labels": {"a": null}}}), Some("metadata.labels.a"));
        check("v1", "Service", json!({"spec": {"selector": {"a": null}}}), Some("spec.selector.a"));
        let list = json!({"spec": {"containers": [{"args": ["a", null]}]}});
        check("v1", "Pod", list, Some("spec.containers.0.args.1"));
        let limits = json!({"spec": {"containers": [{"resources": {"limits": {"cpu": null}}}]}});
        check("v1", "Pod", limits, Some("spec.containers.0.resources.limits.cpu"));
        check(
            "x.io/v1",
            "Menu",
            json!({"metadata": {"annotations": {"a": null}}}),
            Some("metadata.annotations.a"),
        );
    }

    /// Every map with free keys in the schema of Kubernetes is in the tables, but those that only servers write.
    #[test]
    fn tables_hold_every_map_of_the_schema() {
        const OF_SERVERS: [&str; 11] = [
            "allocatedResourceStatuses",
            "allocatedResources",
            "attributes",
            "consumedCapacity",
            "counters",
            "deprecatedTopology",
            "disruptedPods",
            "extra",
            "nodeAllocatableResourceMappings",
            "resources",
            "properties",
        ];
        let packed = &include_bytes!("../../crates/sandbox/schema/kubernetes-1.36.json.gz")[..];
        let schema: Value = serde_json::from_reader(flate2::read::GzDecoder::new(packed)).unwrap();
        let mut missing = std::collections::BTreeSet::new();
        for (name, definition) in schema["definitions"].as_object().unwrap() {
            let fields = definition["properties"].as_object().into_iter().flatten();
            let maps = fields.filter(|(_, field)| field.get("additionalProperties").is_some());
            // Definitions are a schema of their own.
            for (field, _) in maps.filter(|_| !name.contains("apiextensions")) {
                let is_known = MAPS.contains(&field.as_str())
                    || OF_SERVERS.contains(&field.as_str())
                    || MAPS_OF_KINDS.iter().any(|(known, _)| known == field);
                if !is_known {
                    missing.insert(field.clone());
                }
            }
        }
        assert_eq!(missing, std::collections::BTreeSet::new());
    }

    #[test]
    fn null_field_of_a_struct_is_no_field() {
        check("v1", "ConfigMap", json!({"data": null, "metadata": {"labels": null}}), None);
        let selector =
            json!({"spec": {"selector": {"matchLabels": null, "matchExpressions": null}, "replicas": null}});
        check("apps/v1", "Deployment", selector, None);
        let class = json!({"spec": {"parameters": {"namespace": null}}});
        check("networking.k8s.io/v1", "IngressClass", class, None);
        check("storage.k8s.io/v1", "StorageClass", json!({"parameters": {"a": null}}), Some("parameters.a"));
        let schema = json!({"spec": {"versions": [{"schema": {"enum": [null], "default": {"a": null}}}]}});
        check("apiextensions.k8s.io/v1", "CustomResourceDefinition", schema, None);
        check("x.io/v1", "Menu", json!({"spec": {"a": null, "b": [null], "labels": {"c": null}}}), None);
    }

    #[test]
    fn nulls_of_custom_kinds_stay() {
        let check = |version: &str, object: Value, expected: Value| {
            let Value::Object(mut object) = object else { panic!("a map") };
            drop_absent(&mut object, &Kind::from_api_version(version, "Menu"));
            assert_eq!(Value::Object(object), expected);
        };
        let object = || json!({"metadata": {"creationTimestamp": null}, "spec": {"a": null, "b": [{"c": null}]}, "x": null});
        check("x.io/v1", object(), json!({"metadata": {}, "spec": {"a": null, "b": [{"c": null}]}}));
        check("v1", object(), json!({"metadata": {}, "spec": {"b": [{}]}}));
    }
}
