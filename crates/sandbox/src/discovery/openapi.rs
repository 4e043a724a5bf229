//! `/openapi/v3`: only what kubectl asks before it writes — which kinds take `fieldValidation`.
//! There are no schemas in it.

use serde_json::{Value, json};

use crate::registry::{Registry, ResourceKind};

fn prefix(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The documents that there are.
pub(crate) fn index(registry: &Registry) -> Value {
    let mut paths = json!({});
    for (group, versions) in registry.groups() {
        for version in versions {
            let prefix = prefix(group, version);
            paths[&prefix] = json!({"serverRelativeURL": format!("/openapi/v3/{prefix}")});
        }
    }
    json!({"paths": paths})
}

/// The document of one group and version; `None` when it is not served.
pub(crate) fn document(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut paths = json!({});
    for kind in registry.all().filter(|kind| kind.group == group && kind.version == version) {
        paths[item_path(kind)] = item(kind);
    }
    let served = paths.as_object().is_some_and(|paths| !paths.is_empty());
    served.then(|| {
        json!({"openapi": "3.0.0", "info": {"title": "sandbox", "version": version},
            "paths": paths, "components": {"schemas": {}}})
    })
}

fn item_path(kind: &ResourceKind) -> String {
    let prefix = prefix(&kind.group, &kind.version);
    let home = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
    format!("/{prefix}/{home}{}/{{name}}", kind.plural)
}

fn item(kind: &ResourceKind) -> Value {
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"]
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
        .collect();
    let operation = json!({"parameters": parameters, "responses": {},
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind}});
    json!({"patch": operation, "put": operation})
}
