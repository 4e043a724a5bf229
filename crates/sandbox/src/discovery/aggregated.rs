//! `/api` and `/apis` as one `APIGroupDiscoveryList` (`apidiscovery.k8s.io/v2`).

use serde_json::{Value, json};

use super::{VERBS, subresources};
use crate::registry::{Registry, ResourceKind};

/// The core group alone, or all the others.
pub(crate) fn group_list(registry: &Registry, core: bool) -> Value {
    let items: Vec<Value> = registry
        .groups()
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> =
                versions.iter().map(|version| version_of(registry, group, version)).collect();
            let mut metadata = json!({"creationTimestamp": null});
            if !group.is_empty() {
                metadata["name"] = json!(group);
            }
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn version_of(registry: &Registry, group: &str, version: &str) -> Value {
    let resources: Vec<Value> = registry
        .all()
        .filter(|kind| kind.group == group && kind.version == version)
        .map(|kind| resource(kind))
        .collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn resource(kind: &ResourceKind) -> Value {
    let mut row = json!({
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": VERBS,
    });
    if !kind.short_names.is_empty() {
        row["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        row["categories"] = json!(kind.categories);
    }
    let below: Vec<Value> = subresources(kind)
        .into_iter()
        .map(|(name, subresource)| {
            let (group, version, served) = subresource.serves;
            json!({"subresource": name, "verbs": subresource.verbs,
                "responseKind": {"group": group, "version": version, "kind": served}})
        })
        .collect();
    if !below.is_empty() {
        row["subresources"] = json!(below);
    }
    row
}
