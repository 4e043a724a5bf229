//! `/openapi/v3`: one document for each group and version, with its paths and definitions, without prose.
//!
//! `kubectl` reads the parameters of a path before it writes. It reads definitions for `explain` and for client-side
//! applies. Custom kinds are published with the schema of their CustomResourceDefinition. There is no `/openapi/v2`.

mod operation;
mod paths;
mod schemas;

use serde_json::{Map, Value, json};

use crate::registry::{KindRegistry, ResourceKind};
use crate::schema::built_in;

/// The documents that there are.
pub(crate) fn index(registry: &KindRegistry) -> Value {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let prefix = paths::prefix(group, version);
            let entry = json!({"serverRelativeURL": format!("/openapi/v3/{prefix}")});
            paths.insert(prefix, entry);
        }
    }
    json!({"paths": paths})
}

/// The document of one group and version; `None` when it is not served.
pub(crate) fn document(registry: &KindRegistry, group: &str, version: &str) -> Option<Value> {
    let kinds: Vec<&ResourceKind> = registry
        .all()
        .filter(|kind| kind.group == group && kind.version == version)
        .map(AsRef::as_ref)
        .collect();
    if kinds.is_empty() {
        return None;
    }
    let server = built_in().server();
    let text = |field: &str| server[field].as_str().unwrap_or_default();
    let version_of_server = format!("{}.{}", text("major"), text("minor"));
    let paths: Map<String, Value> = kinds.iter().flat_map(|kind| paths::kind_paths(kind)).collect();
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version_of_server},
        "paths": paths,
        "components": {"schemas": schemas::referenced_schemas(&kinds, &paths, group, version)},
    }))
}
