//! Finds nulls that the server would store as empty values, drops absent fields, and finds non-strings in string maps.
//!
//! The server drops a null field of a struct. In a map or a list, a null becomes an empty value: `podSelector: {matchLabels:
//! {db: }}` would store `db: ""`, and dropping the key would select every pod. So it is a mistake. In free JSON a null is a
//! value. The meaning in a custom kind is known only to its server, so such nulls are sent as written, as kubectl does.

use serde_json::{Map, Value};

use super::field_types::{SchemaFieldType, fields_of_kind, fields_of_metadata, type_of_field};
use crate::model::GroupVersionKind;

/// Keys, and list indices as numbers.
pub type ValuePath = Vec<String>;

/// A value that the server would change, or refuse without its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidValue {
    Null(ValuePath),
    /// A non-string in a map of strings.
    NotAText(ValuePath),
}

const MOST_MISTAKES: usize = 20;

pub fn find_invalid_values(object: &Map<String, Value>, kind: &GroupVersionKind) -> Vec<InvalidValue> {
    let mut search = InvalidValueSearch { path: ValuePath::new(), found: Vec::new() };
    match (fields_of_kind(kind), object.get("metadata")) {
        (Some(SchemaFieldType::Struct(place)), _) => search.fields(object, place),
        (_, Some(metadata)) => {
            search.below("metadata".to_owned(), |it| it.value(metadata, &fields_of_metadata()))
        }
        (_, None) => {}
    }
    search.found
}

struct InvalidValueSearch {
    path: ValuePath,
    found: Vec<InvalidValue>,
}

impl InvalidValueSearch {
    fn value(&mut self, value: &Value, of: &SchemaFieldType) {
        match (value, of) {
            (Value::Object(map), SchemaFieldType::Struct(place)) => self.fields(map, *place),
            (Value::Object(map), SchemaFieldType::Map(of)) => {
                map.iter().for_each(|(key, value)| self.entry(key.clone(), value, (of, true)));
            }
            (Value::Array(items), SchemaFieldType::List(of)) => {
                let items = items.iter().enumerate();
                items.for_each(|(index, item)| self.entry(index.to_string(), item, (of, false)));
            }
            _ => {}
        }
    }

    fn fields(&mut self, map: &Map<String, Value>, place: usize) {
        for (name, value) in map {
            self.below(name.clone(), |it| it.value(value, type_of_field(place, name)));
        }
    }

    /// An entry of a map, or an element of a list.
    fn entry(&mut self, key: String, value: &Value, (of, is_map): (&SchemaFieldType, bool)) {
        self.below(key, |it| match value {
            Value::Null if *of != SchemaFieldType::Open => it.found.push(InvalidValue::Null(it.path.clone())),
            // For a list the server names the item.
            _ if is_map && *of == SchemaFieldType::Text && !value.is_string() => {
                it.found.push(InvalidValue::NotAText(it.path.clone()));
            }
            _ => it.value(value, of),
        });
    }

    fn below(&mut self, step: String, search: impl FnOnce(&mut Self)) {
        if self.found.len() < MOST_MISTAKES {
            self.path.push(step);
            search(self);
            self.path.pop();
        }
    }
}

/// Drops null fields of structs. In a custom kind, only those of its metadata.
pub fn drop_null_fields(object: &mut Map<String, Value>, kind: &GroupVersionKind) {
    match (fields_of_kind(kind), object.get_mut("metadata")) {
        (Some(SchemaFieldType::Struct(place)), _) => drop_fields(object, place),
        (_, Some(metadata)) => drop_below(metadata, &fields_of_metadata()),
        (_, None) => {}
    }
}

fn drop_fields(map: &mut Map<String, Value>, place: usize) {
    map.retain(|name, value| !value.is_null() || *type_of_field(place, name) == SchemaFieldType::Open);
    map.iter_mut().for_each(|(name, value)| drop_below(value, type_of_field(place, name)));
}

fn drop_below(value: &mut Value, of: &SchemaFieldType) {
    match (value, of) {
        (Value::Object(map), SchemaFieldType::Struct(place)) => drop_fields(map, *place),
        (Value::Object(map), SchemaFieldType::Map(of)) => {
            map.values_mut().for_each(|value| drop_below(value, of))
        }
        (Value::Array(items), SchemaFieldType::List(of)) => {
            items.iter_mut().for_each(|item| drop_below(item, of))
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(version: &str, kind: &str, object: Value, expected: Option<&str>) {
        let Value::Object(object) = object else { panic!("a map") };
        let found = find_invalid_values(&object, &GroupVersionKind::from_api_version(version, kind));
        let found: Vec<String> = found.iter().map(shown).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{kind} {object:?}");
    }

    fn shown(mistake: &InvalidValue) -> String {
        match mistake {
            InvalidValue::Null(path) => path.join("."),
            InvalidValue::NotAText(path) => format!("not a text: {}", path.join(".")),
        }
    }

    #[test]
    fn every_invalid_value_is_found() {
        let object =
            json!({"metadata": {"labels": {"a": null, "b": 1}}, "data": {"c": null, "d": "x", "e": true}});
        let found = find_invalid_values(
            object.as_object().unwrap(),
            &GroupVersionKind::from_api_version("v1", "ConfigMap"),
        );
        let found: Vec<String> = found.iter().map(shown).collect();
        assert_eq!(
            found,
            ["metadata.labels.a", "not a text: metadata.labels.b", "data.c", "not a text: data.e"]
        );
        let many: Map<String, Value> = (0..1000).map(|at| (at.to_string(), Value::Null)).collect();
        let object = json!({"data": many});
        let found = find_invalid_values(
            object.as_object().unwrap(),
            &GroupVersionKind::from_api_version("v1", "ConfigMap"),
        );
        assert_eq!(found.len(), MOST_MISTAKES);
    }

    #[test]
    fn null_in_map_or_list_is_invalid() {
        let pods = json!({"spec": {"podSelector": {"matchLabels": {"db": null}}}});
        check("networking.k8s.io/v1", "NetworkPolicy", pods, Some("spec.podSelector.matchLabels.db"));
        check("v1", "Secret", json!({"data": {"raw": null}}), Some("data.raw"));
        check("v1", "ConfigMap", json!({"metadata": {"labels": {"a": null}}}), Some("metadata.labels.a"));
        check("v1", "Service", json!({"spec": {"selector": {"a": null}}}), Some("spec.selector.a"));
        check("storage.k8s.io/v1", "StorageClass", json!({"parameters": {"a": null}}), Some("parameters.a"));
        let list = json!({"spec": {"containers": [{"args": ["a", null]}]}});
        check("v1", "Pod", list, Some("spec.containers.0.args.1"));
        let limits = json!({"spec": {"containers": [{"resources": {"limits": {"cpu": null}}}]}});
        check("v1", "Pod", limits, Some("spec.containers.0.resources.limits.cpu"));
        let annotations = json!({"metadata": {"annotations": {"a": null}}});
        check("x.io/v1", "Menu", annotations, Some("metadata.annotations.a"));
        let schema =
            json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"a": null}}}}]}});
        let path = "spec.versions.0.schema.openAPIV3Schema.properties.a";
        check("apiextensions.k8s.io/v1", "CustomResourceDefinition", schema, Some(path));
    }

    #[test]
    fn null_struct_field_is_dropped() {
        check("v1", "ConfigMap", json!({"data": null, "metadata": {"labels": null}}), None);
        let selector =
            json!({"spec": {"selector": {"matchLabels": null, "matchExpressions": null}, "replicas": null}});
        check("apps/v1", "Deployment", selector, None);
        let class = json!({"spec": {"parameters": {"namespace": null}}});
        check("networking.k8s.io/v1", "IngressClass", class, None);
        let schema =
            json!({"enum": [null], "default": {"a": null}, "items": {"example": [null], "format": null}});
        let schema = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        check("apiextensions.k8s.io/v1", "CustomResourceDefinition", schema, None);
        check("x.io/v1", "Menu", json!({"spec": {"a": null, "b": [null], "labels": {"c": null}}}), None);
    }

    #[test]
    fn string_map_accepts_only_strings() {
        check("v1", "ConfigMap", json!({"data": {"a": "x", "b": true}}), Some("not a text: data.b"));
        check("v1", "ConfigMap", json!({"binaryData": {"b": 1}}), Some("not a text: binaryData.b"));
        let selector = json!({"spec": {"selector": {"matchLabels": {"on": true}}}});
        check("apps/v1", "Deployment", selector, Some("not a text: spec.selector.matchLabels.on"));
        let annotations = json!({"metadata": {"annotations": {"a": {}}}});
        check("x.io/v1", "Menu", annotations, Some("not a text: metadata.annotations.a"));
        check("v1", "ResourceQuota", json!({"spec": {"hard": {"pods": 3, "cpu": 0.5}}}), None);
        check("x.io/v1", "Menu", json!({"spec": {"labels": {"a": true}}}), None);
    }

    #[test]
    fn nulls_in_open_fields_stay() {
        let check = |version: &str, kind: &str, object: Value, expected: Value| {
            let Value::Object(mut object) = object else { panic!("a map") };
            drop_null_fields(&mut object, &GroupVersionKind::from_api_version(version, kind));
            assert_eq!(Value::Object(object), expected);
        };
        let object = || json!({"metadata": {"creationTimestamp": null}, "spec": {"a": null, "b": [{"c": null}]}, "x": null});
        let expected = json!({"metadata": {}, "spec": {"a": null, "b": [{"c": null}]}, "x": null});
        check("x.io/v1", "Menu", object(), expected);
        let pod =
            json!({"metadata": {"labels": null}, "spec": {"nodeName": null, "containers": [{"env": null}]}});
        check("v1", "Pod", pod, json!({"metadata": {}, "spec": {"containers": [{}]}}));
        let revision = json!({"revision": null, "data": {"a": null, "b": [null]}});
        check("apps/v1", "ControllerRevision", revision, json!({"data": {"a": null, "b": [null]}}));
        let definition = |schema: Value| json!({"spec": {"conversion": null, "versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        let mut kept =
            definition(json!({"properties": {"default": {"default": {"a": null}, "enum": [null]}}}));
        let mut written = kept.clone();
        written["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["default"]["title"] =
            Value::Null;
        kept["spec"].as_object_mut().unwrap().remove("conversion");
        check("apiextensions.k8s.io/v1", "CustomResourceDefinition", written, kept);
    }
}
