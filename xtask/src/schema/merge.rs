//! Merges the OpenAPI documents into one set of definitions.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

use super::server::OpenApiDocuments;

const KINDS: &str = "x-kubernetes-group-version-kind";

/// Prose, of no use to a machine.
const PROSE: &[&str] = &["description", "example", "externalDocs", "title"];

/// Every definition once, without prose.
pub fn definitions(documents: &OpenApiDocuments) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut merged = BTreeMap::new();
    for (document, content) in documents {
        let schemas = content["components"]["schemas"].as_object();
        for (name, schema) in schemas.with_context(|| format!("{document} has no definitions"))? {
            let schema = without_prose(schema);
            let Some(known) = merged.get_mut(name) else {
                merged.insert(name.clone(), schema);
                continue;
            };
            add_kinds(known, &schema);
            ensure!(same_but_kinds(known, &schema), "{name} differs in {document}");
        }
    }
    Ok(merged)
}

/// The query parameters of each action with their types. They are the same for all resources; deployments stand for
/// the rest.
pub fn parameters(documents: &OpenApiDocuments) -> Option<Value> {
    let paths = documents.get("apis/apps/v1")?["paths"].as_object()?;
    let mut actions = BTreeMap::new();
    for path in ["deployments", "deployments/{name}"] {
        let item = paths.get(&format!("/apis/apps/v1/namespaces/{{namespace}}/{path}"))?.as_object()?;
        let shared = item.get("parameters");
        for (_, operation) in item.iter().filter(|(method, _)| *method != "parameters") {
            let own = operation.get("parameters");
            let all = own.into_iter().chain(shared).filter_map(Value::as_array).flatten();
            let queries: BTreeMap<&str, &Value> = all
                .filter(|one| one["in"] == "query")
                .filter_map(|one| Some((one["name"].as_str()?, &one["schema"]["type"])))
                .collect();
            actions.insert(operation["x-kubernetes-action"].as_str()?, json!(queries));
        }
    }
    Some(json!(actions))
}

/// A schema without prose. Fields may have the names of prose, so only the places of schemas count.
fn without_prose(schema: &Value) -> Value {
    let Some(schema) = schema.as_object() else { return schema.clone() };
    let keywords = schema.iter().filter(|(keyword, _)| !PROSE.contains(&keyword.as_str()));
    let kept = keywords.map(|(keyword, value)| {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                let fields = fields.iter().map(|(name, field)| (name.clone(), without_prose(field)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => all.iter().map(without_prose).collect(),
            ("items" | "additionalProperties" | "not", one) => without_prose(one),
            (_, value) => value.clone(),
        };
        (keyword.clone(), value)
    });
    Value::Object(kept.collect())
}

/// Options and watch events are kinds of every group; each document lists its own.
fn add_kinds(known: &mut Value, schema: &Value) {
    let more = schema[KINDS].as_array().into_iter().flatten();
    let Some(kinds) = known.get_mut(KINDS).and_then(Value::as_array_mut) else { return };
    for kind in more {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
}

fn same_but_kinds(left: &Value, right: &Value) -> bool {
    let rest = |schema: &Value| {
        let mut schema = schema.clone();
        schema.as_object_mut().map(|fields| fields.remove(KINDS));
        schema
    };
    rest(left) == rest(right)
}
