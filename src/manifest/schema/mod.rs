//! JSON Schemas (draft-07) of the native kinds, for editors.
//!
//! Each kind has a YAML file in this folder: the schema of its spec, with descriptions and examples. This module adds the parts that all
//! kinds share. The readers in [`super::kinds`] are the authority; tests hold the schemas equal to them: the same fields, the same
//! verdict on wrong types and missing fields, and every example is valid.
//!
//! Planned fields are in no schema. Null is not either, which readers treat as absent.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use super::OWN_VERSION;
use super::hub::Hub;
use super::kinds::ManifestKind;
use super::yaml;
use crate::model::Diagnostic;

/// The address of the schemas, before the folder of the version.
pub const BASE_URL: &str = "https://tutti.dev/schemas/";
/// The folder of the version in it.
pub const VERSION: &str = "v1alpha1";

const DEFINITIONS: &str = include_str!("definitions.yaml");

const KINDS: &[(ManifestKind, &str)] = &[
    (ManifestKind::Instance, include_str!("instance.yaml")),
    (ManifestKind::Cluster, include_str!("cluster.yaml")),
    (ManifestKind::Rings, include_str!("rings.yaml")),
    (ManifestKind::AppSet, include_str!("appset.yaml")),
    (ManifestKind::Component, include_str!("component.yaml")),
    (ManifestKind::Objects, include_str!("objects.yaml")),
    (ManifestKind::Project, include_str!("project.yaml")),
    (ManifestKind::Route, include_str!("route.yaml")),
    (ManifestKind::Approval, include_str!("approval.yaml")),
    (ManifestKind::Trigger, include_str!("trigger.yaml")),
    (ManifestKind::Notification, include_str!("notification.yaml")),
    (ManifestKind::Server, include_str!("server.yaml")),
    (ManifestKind::Policy, include_str!("policy.yaml")),
    (ManifestKind::Window, include_str!("window.yaml")),
    (ManifestKind::Analysis, include_str!("analysis.yaml")),
    (ManifestKind::ApprovalRule, include_str!("approval_rule.yaml")),
    (ManifestKind::Approvers, include_str!("approvers.yaml")),
];

/// The kinds that have a schema.
pub fn kinds() -> impl Iterator<Item = ManifestKind> {
    KINDS.iter().map(|(kind, _)| *kind)
}

/// Its path below [`BASE_URL`].
pub fn path(kind: ManifestKind) -> String {
    format!("{VERSION}/{}.json", kind.name().to_lowercase())
}

/// The apiVersions that a kind is read in, the native one first.
pub fn versions(kind: ManifestKind, hub: &Hub) -> Vec<String> {
    let foreign = hub.versions(kind).into_iter().map(ToOwned::to_owned);
    std::iter::once(OWN_VERSION.to_owned()).chain(foreign).collect()
}

/// The schema of a kind; `None` when it has none. Errors come from a broken schema file, which tests exclude.
pub fn schema_of(kind: ManifestKind, hub: &Hub) -> Result<Option<Value>, Vec<Diagnostic>> {
    let Some((_, text)) = KINDS.iter().find(|(known, _)| *known == kind) else { return Ok(None) };
    let mut parts = yaml::parse_values(kind.name(), text)?;
    let mut definitions = yaml::parse_values("definitions", DEFINITIONS)?;
    if let Some(Value::Object(own)) = parts.remove("definitions") {
        definitions.extend(own);
    }
    let mut part = |name: &str| parts.remove(name).unwrap_or(Value::Null);
    let name = part("name");
    let mut metadata = json!({
        "name": {"$ref": format!("#/definitions/{}", name.as_str().unwrap_or("subdomain")),
            "description": "Name of the manifest, unique within its kind; for an app, among all apps of its namespace."},
        "labels": {"$ref": "#/definitions/labels", "description": "Labels of the manifest."},
        "annotations": {"$ref": "#/definitions/annotations"},
    });
    if part("namespaced") == true {
        metadata["namespace"] = json!({"$ref": "#/definitions/label", "description": "Namespace of the app; if empty, `defaults.namespace` of the Instance, for a Route that of the app in its folder."});
    }
    let mut spec = part("spec");
    spec["description"] = json!("Desired state.");
    let mut required = vec!["apiVersion", "kind", "metadata"];
    if part("optionalSpec") != true {
        required.push("spec");
    }
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": format!("{BASE_URL}{}", path(kind)),
        "title": kind.name(),
        "description": part("description"),
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": {
            "apiVersion": {"enum": versions(kind, hub), "description": "Version of the kind; the first is the native one."},
            "kind": {"const": kind.name(), "description": "Kind of the manifest."},
            "metadata": {
                "type": "object",
                "description": "Name, labels and annotations.",
                "additionalProperties": false,
                "required": ["name"],
                "properties": metadata,
            },
            "spec": spec,
        },
        "examples": part("examples"),
    });
    schema["definitions"] = Value::Object(used_definitions(&schema, definitions));
    Ok(Some(schema))
}

/// The definitions that a schema uses, and those that they use.
fn used_definitions(schema: &Value, mut all: Map<String, Value>) -> Map<String, Value> {
    let mut found = Map::new();
    let mut wanted = references(schema);
    while let Some(name) = wanted.pop() {
        if let Some(definition) = all.remove(&name) {
            wanted.extend(references(&definition));
            found.insert(name, definition);
        }
    }
    found.sort_keys();
    found
}

fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => {
            let own =
                map.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix("#/definitions/"));
            own.map(ToOwned::to_owned).into_iter().chain(map.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
