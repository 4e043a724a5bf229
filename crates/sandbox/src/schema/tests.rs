//! The embedded definitions and their merge types.

use serde_json::{Value, json};

use super::{built_in, custom_merge_type};
use crate::ssa::types::{ListRelation, MergeSchema, ScalarType, TypeDefinition, TypeId};

/// The type at a path of a kind: `*` is an item or a value of a map, any other step is a field.
fn at<'s>(schema: &'s MergeSchema, root: TypeId, path: &str) -> &'s TypeDefinition {
    let mut found = schema.get(root).unwrap();
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let next = match step {
            "*" => found.list.as_ref().map(|list| list.element).or_else(|| found.map.as_ref()?.element),
            field => found.map.as_ref().and_then(|map| Some(map.fields.get(field)?.of)),
        };
        found = schema.get(next.unwrap_or_else(|| panic!("no {step} of {path}"))).unwrap();
    }
    found
}

/// In few words: `text`, `any`, `atomic map`, `set`, `keyed name protocol=TCP`.
fn say(definition: &TypeDefinition) -> String {
    let scalar = definition.scalar.map(|scalar| match scalar {
        ScalarType::Numeric => "number".to_owned(),
        ScalarType::Text => "text".to_owned(),
        ScalarType::Boolean => "boolean".to_owned(),
        ScalarType::Untyped => "any".to_owned(),
    });
    let list = definition.list.as_ref().map(|list| match &list.relation {
        ListRelation::Atomic => "atomic list".to_owned(),
        ListRelation::Set => "set".to_owned(),
        ListRelation::Map(keys) => keys.iter().fold("keyed".to_owned(), |said, key| match &key.default {
            Some(Value::String(default)) => format!("{said} {}={default}", key.field),
            Some(default) => format!("{said} {}={default}", key.field),
            None => format!("{said} {}", key.field),
        }),
    });
    let map = definition.map.as_ref().map(|map| {
        let shape = if map.fields.is_empty() { "map" } else { "struct" };
        let open = if !map.fields.is_empty() && map.element.is_some() { "open " } else { "" };
        format!("{}{open}{shape}", if map.atomic { "atomic " } else { "" })
    });
    scalar.into_iter().chain(list).chain(map).collect::<Vec<_>>().join(", ")
}

fn check(kind: &str, expected: &[(&str, &str)]) {
    let (api_version, kind) = kind.rsplit_once('/').unwrap();
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let root = built_in().merge_type(group, version, kind).unwrap();
    for (path, said) in expected {
        assert_eq!(say(at(built_in().merge_schema(), root, path)), *said, "{kind} {path}");
    }
}

fn check_custom(schema: &Value, expected: &[(&str, &str)]) {
    let (types, root) = custom_merge_type(Some(schema));
    for (path, said) in expected {
        assert_eq!(say(at(&types, root, path)), *said, "{path}");
    }
}

#[test]
fn the_file_is_that_of_a_real_server() {
    assert_eq!(built_in().server()["minor"], "36");
    assert!(built_in().all().len() > 500);
    assert_eq!(built_in().parameters("patch")["fieldValidation"], "string");
}

#[test]
fn built_in_merge_types_match_a_real_server() {
    check(
        "apps/v1/Deployment",
        &[
            ("", "struct"),
            ("apiVersion", "text"),
            ("metadata", "struct"),
            ("metadata.creationTimestamp", "any"),
            ("metadata.finalizers", "set"),
            ("metadata.labels", "map"),
            ("metadata.labels.*", "text"),
            ("metadata.ownerReferences", "keyed uid="),
            ("metadata.ownerReferences.*", "atomic struct"),
            ("metadata.managedFields", "atomic list"),
            ("spec.replicas", "number"),
            ("spec.paused", "boolean"),
            ("spec.selector", "atomic struct"),
            ("spec.strategy", "struct"),
            ("spec.strategy.rollingUpdate.maxSurge", "any, atomic list, map"),
            ("spec.template.spec.containers", "keyed name="),
            ("spec.template.spec.containers.*.ports", "keyed containerPort=0 protocol=TCP"),
            ("spec.template.spec.containers.*.args", "atomic list"),
            ("spec.template.spec.containers.*.resources.limits", "map"),
            ("spec.template.spec.containers.*.resources.limits.*", "any"),
            ("spec.template.spec.containers.*.volumeMounts", "keyed mountPath="),
            ("spec.template.spec.nodeSelector", "atomic map"),
            ("spec.template.spec.tolerations", "atomic list"),
            ("spec.template.spec.topologySpreadConstraints", "keyed topologyKey= whenUnsatisfiable="),
            ("status.conditions", "keyed type="),
        ],
    );
    check("v1/Service", &[("spec.ports", "keyed port=0 protocol=TCP"), ("spec.selector", "atomic map")]);
    check("v1/Secret", &[("data", "map"), ("data.*", "text"), ("type", "text")]);
    check("v1/Node", &[("spec.podCIDRs", "set"), ("status.addresses", "keyed type=")]);
}

#[test]
fn free_form_fields_have_deduced_types() {
    let json = "any, atomic list, map";
    check(
        "apps/v1/ControllerRevision",
        &[("data", "any, atomic list, atomic map"), ("data.*", "any, atomic list, atomic map")],
    );
    check(
        "apiextensions.k8s.io/v1/CustomResourceDefinition",
        &[("spec.versions.*.schema.openAPIV3Schema.default", json), ("spec.versions", "atomic list")],
    );
}

#[test]
fn custom_kinds_merge_by_their_schema() {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 1},
            "port": {"x-kubernetes-int-or-string": true},
            "when": {"type": "string", "format": "date-time"},
            "raw": {"type": "string", "format": "byte"},
            "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "plain": {"type": "array", "items": {"type": "string"}},
            "rules": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["host", "way"],
                "items": {"type": "object", "properties": {
                    "host": {"type": "string"}, "way": {"type": "string", "default": "in"}}}},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"inner": {"type": "object", "properties": {"a": {"type": "string"}}}}},
            "free": {"type": "object"},
            "one": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "object": {"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true},
        }},
    }});
    check_custom(
        &schema,
        &[
            ("", "struct"),
            ("kind", "text"),
            ("metadata.finalizers", "set"),
            ("spec", "struct"),
            ("spec.size", "number"),
            ("spec.port", "any, atomic list, map"),
            ("spec.when", "any"),
            ("spec.raw", "text"),
            ("spec.names", "set"),
            ("spec.plain", "atomic list"),
            ("spec.rules", "keyed host way=in"),
            ("spec.open", "open struct"),
            ("spec.open.inner", "open struct"),
            ("spec.free.*", "any, atomic list, map"),
            ("spec.one", "atomic map"),
            ("spec.object.metadata.labels", "map"),
        ],
    );
}

#[test]
fn a_custom_kind_without_schema_is_deduced() {
    let (types, root) = custom_merge_type(None);
    assert_eq!(say(at(&types, root, "")), "map");
    assert_eq!(say(at(&types, root, "*")), "any, atomic list, map");
}

#[test]
fn definitions_are_walked_like_objects() {
    let deployment = built_in().kind("apps", "v1", "Deployment").unwrap();
    let spec = deployment.field("spec").unwrap();
    assert_eq!(spec.definition(), Some("io.k8s.api.apps.v1.DeploymentSpec"));
    assert!(spec.field("nosuch").is_none());
    assert!(spec.requires("selector") && !spec.requires("replicas"));
    let replicas = spec.field("replicas").unwrap();
    assert_eq!((replicas.json_type(), replicas.format()), (Some("integer"), Some("int32")));
    assert!(spec.field("strategy").unwrap().has_patch_strategy("retainKeys"));
    let pod = spec.field("template").and_then(|template| template.field("spec")).unwrap();
    let containers = pod.field("containers").unwrap();
    assert_eq!(containers.patch_merge_key(), Some("name"));
    assert!(containers.has_patch_strategy("merge"));
    let port = containers.item().and_then(|one| one.field("ports")?.item()?.field("protocol")).unwrap();
    assert_eq!(port.default(), Some(&json!("TCP")));
    let labels = deployment.field("metadata").and_then(|metadata| metadata.field("labels")).unwrap();
    assert_eq!(labels.value().and_then(|value| value.json_type()), Some("string"));
}
