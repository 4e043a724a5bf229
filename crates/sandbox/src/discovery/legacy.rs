//! `/api`, `/apis`, `/apis/<group>`, `/apis/<group>/<version>`.

use serde_json::{Value, json};

use crate::object;
use crate::registry::{KindRegistry, ResourceKind};

pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]})
}

pub(crate) fn groups(registry: &KindRegistry) -> Value {
    let groups: Vec<Value> = registry
        .groups()
        .iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| group_entry(group, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

pub(crate) fn group(registry: &KindRegistry, name: &str) -> Value {
    let groups = registry.groups();
    let versions = groups.iter().find(|(group, _)| *group == name).map(|(_, versions)| versions.as_slice());
    let mut out = json!({"kind": "APIGroup", "apiVersion": "v1"});
    if let Value::Object(fields) = group_entry(name, versions.unwrap_or_default()) {
        for (field, value) in fields {
            out[field] = value;
        }
    }
    out
}

fn group_entry(group: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    json!({"name": group, "versions": versions, "preferredVersion": preferred})
}

pub(crate) fn resources(registry: &KindRegistry, group: &str, version: &str) -> Value {
    let kinds: Vec<&ResourceKind> = registry
        .all()
        .filter(|kind| kind.group == group && kind.version == version)
        .map(AsRef::as_ref)
        .collect();
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let resources: Vec<Value> = kinds.iter().flat_map(|kind| resource_entries(kind)).collect();
    let mut list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
        "resources": resources});
    if group.is_empty() {
        object::take(&mut list, &["apiVersion"]);
    }
    list
}

fn resource_entries(kind: &ResourceKind) -> Vec<Value> {
    let mut row = json!({"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": kind.verbs});
    if !kind.short_names.is_empty() {
        row["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        row["categories"] = json!(kind.categories);
    }
    if kind.storage_hash != "-" {
        row["storageVersionHash"] = json!(kind.storage_hash);
    }
    let mut rows = vec![row];
    for one in &kind.subresources {
        let mut row = json!({"name": format!("{}/{}", kind.plural, one.name), "singularName": "",
            "namespaced": kind.namespaced, "kind": one.kind, "verbs": one.verbs});
        if !one.group.is_empty() {
            row["group"] = json!(one.group);
            row["version"] = json!(one.version);
        }
        rows.push(row);
    }
    rows
}
