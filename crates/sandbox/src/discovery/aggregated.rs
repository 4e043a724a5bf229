//! `/api` and `/apis` as one `APIGroupDiscoveryList` (`apidiscovery.k8s.io/v2`).

use serde_json::{Value, json};

use crate::registry::{KindRegistry, ResourceKind};

/// The core group alone, or all the others.
pub(crate) fn group_list(registry: &KindRegistry, core: bool) -> &str {
    registry.discovery(core, || list_of(registry, core).to_string())
}

fn list_of(registry: &KindRegistry, core: bool) -> Value {
    let items: Vec<Value> = registry
        .groups()
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> =
                versions.iter().map(|version| version_of(registry, group, version)).collect();
            let mut metadata = json!({});
            if !group.is_empty() {
                metadata["name"] = json!(group);
            }
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn version_of(registry: &KindRegistry, group: &str, version: &str) -> Value {
    let resources: Vec<Value> = registry
        .all()
        .filter(|kind| kind.group == group && kind.version == version)
        .map(|kind| resource(kind))
        .collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn resource(kind: &ResourceKind) -> Value {
    // built-in kinds name no group and version of their own
    let response = |group: &str, version: &str, name: &str| match kind.is_custom() && group.is_empty() {
        true => json!({"group": kind.group, "version": kind.version, "kind": name}),
        false => json!({"group": group, "version": version, "kind": name}),
    };
    let mut row = json!({
        "resource": kind.plural,
        "responseKind": response("", "", &kind.kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        row["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        row["categories"] = json!(kind.categories);
    }
    let below: Vec<Value> = kind
        .subresources
        .iter()
        .map(|one| {
            json!({"subresource": one.name, "responseKind": response(&one.group, &one.version, &one.kind),
                "verbs": one.verbs})
        })
        .collect();
    if !below.is_empty() {
        row["subresources"] = json!(below);
    }
    row
}
