//! Collects the definitions that a document refers to.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::registry::ResourceKind;
use crate::schema::built_in;

const REFERENCE: &str = "#/components/schemas/";
const KINDS: &str = "x-kubernetes-group-version-kind";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// A reference to a definition.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("{REFERENCE}{name}")})
}

pub(super) fn name_of(kind: &ResourceKind) -> String {
    match built_in().name_of(&kind.group, &kind.version, &kind.kind) {
        Some(name) if !kind.is_custom() => name.to_owned(),
        _ => {
            let mut parts: Vec<&str> = kind.group.split('.').collect();
            parts.reverse();
            format!("{}.{}.{}", parts.join("."), kind.version, kind.kind)
        }
    }
}

/// Every definition that the paths refer to, and those that these refer to.
pub(super) fn referenced_schemas(
    kinds: &[&ResourceKind],
    paths: &Map<String, Value>,
    group: &str,
    version: &str,
) -> BTreeMap<String, Value> {
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    for kind in kinds.iter().filter(|kind| kind.is_custom()) {
        let name = name_of(kind);
        let list = name.strip_suffix(&kind.kind).unwrap_or_default().to_owned() + &kind.list_kind();
        found.insert(list, list_of(kind, &name));
        found.insert(name, custom_schema(kind));
    }
    let mut wanted = Vec::new();
    paths.values().chain(found.values()).for_each(|value| references(value, &mut wanted));
    while let Some(name) = wanted.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let Some(schema) = built_in().all().get(&name) else { continue };
        references(schema, &mut wanted);
        found.insert(name, own_group_schema(schema, group, version));
    }
    found
}

/// Request options are kinds of every group; a document lists only those of its own group.
fn own_group_schema(schema: &Value, group: &str, version: &str) -> Value {
    let mut schema = schema.clone();
    if let Some(kinds) = schema.get_mut(KINDS).and_then(Value::as_array_mut)
        && kinds.len() > 1
    {
        kinds.retain(|kind| kind["group"] == group && kind["version"] == version);
    }
    schema
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str);
            found.extend(name.and_then(|name| name.strip_prefix(REFERENCE)).map(str::to_owned));
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn custom_schema(kind: &ResourceKind) -> Value {
    let mut schema = match kind.schema.as_deref() {
        Some(schema) if schema.is_object() => schema.clone(),
        _ => json!({"type": "object"}),
    };
    let declares = schema.get("properties").is_some_and(Value::is_object);
    if declares {
        declare_type(&mut schema["properties"], "ObjectMeta");
    }
    schema[KINDS] = json!([{"group": kind.group, "version": kind.version, "kind": kind.kind}]);
    schema
}

fn list_of(kind: &ResourceKind, name: &str) -> Value {
    let mut fields = json!({"items": {"type": "array", "items": reference(name)}});
    declare_type(&mut fields, "ListMeta");
    json!({"type": "object", "required": ["items"], "properties": fields,
        KINDS: [{"group": kind.group, "version": kind.version, "kind": kind.list_kind()}]})
}

fn declare_type(fields: &mut Value, meta: &str) {
    fields["apiVersion"] = json!({"type": "string"});
    fields["kind"] = json!({"type": "string"});
    fields["metadata"] = json!({"allOf": [reference(&format!("{META}.{meta}"))]});
}
