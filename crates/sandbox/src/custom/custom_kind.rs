//! Turns the versions of a CustomResourceDefinition into kinds.

use std::sync::Arc;

use serde_json::{Value, json};

use super::custom_kind_info::{CustomKindInfo, PrinterColumn};
use super::{rules, schema};
use crate::object;
use crate::registry::{CustomMergeTypes, ResourceKind, ScalePaths, Subresource};

/// Group and plural name.
pub(crate) fn names_of(definition: &Value) -> (String, String) {
    let text = |path: &[&str]| object::text(definition, path).unwrap_or("").to_owned();
    (text(&["spec", "group"]), text(&["spec", "names", "plural"]))
}

/// One kind for each served version, the preferred version first; none before the definition is
/// established.
pub(crate) fn kinds_of(definition: &Value) -> Vec<ResourceKind> {
    if !object::condition_is_true(definition, "Established") {
        return Vec::new();
    }
    let mut versions: Vec<&Value> = object::list(definition, &["spec", "versions"])
        .iter()
        .filter(|version| version["served"] == true)
        .collect();
    versions.sort_by_key(|version| std::cmp::Reverse(priority(schema::text(version, "name"))));
    let merge = Arc::new(CustomMergeTypes::of(definition));
    versions.into_iter().map(|version| kind_of(definition, version, &merge)).collect()
}

/// Versions in the order of preference: `v2` before `v1` before `v1beta1` before anything else.
pub(crate) fn priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let text = std::cmp::Reverse(version.to_owned());
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0, text) };
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    let (major, rest) = rest.split_at(digits);
    let Ok(major) = major.parse::<u64>() else { return (0, 0, 0, text) };
    let minor = |mark: &str| rest.strip_prefix(mark).and_then(|minor| minor.parse::<u64>().ok());
    match (rest, minor("beta"), minor("alpha")) {
        ("", _, _) => (3, major, 0, text),
        (_, Some(minor), _) => (2, major, minor, text),
        (_, _, Some(minor)) => (1, major, minor, text),
        _ => (0, 0, 0, text),
    }
}

fn kind_of(definition: &Value, version: &Value, merge: &Arc<CustomMergeTypes>) -> ResourceKind {
    let (group, plural) = names_of(definition);
    let names = object::value_at(definition, &["status", "acceptedNames"]).unwrap_or(&Value::Null);
    let subresources = object::value_at(version, &["subresources"]).unwrap_or(&Value::Null);
    let shape =
        object::value_at(version, &["schema", "openAPIV3Schema"]).cloned().unwrap_or_else(|| json!({}));
    ResourceKind {
        releases: 0..=u32::MAX,
        version: schema::text(version, "name").to_owned(),
        kind: schema::text(names, "kind").to_owned(),
        singular: schema::text(names, "singular").to_owned(),
        short_names: words(&names["shortNames"]),
        categories: words(&names["categories"]),
        namespaced: definition["spec"]["scope"] == "Namespaced",
        verbs: VERBS.to_vec(),
        subresources: subresources_of(subresources, names),
        storage_hash: hash(definition, &plural),
        has_generation: true,
        scale_paths: subresources.get("scale").map(|scale| ScalePaths {
            spec_replicas: schema::text(scale, "specReplicasPath").to_owned(),
            status_replicas: schema::text(scale, "statusReplicasPath").to_owned(),
            selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
        }),
        definition: Some(Arc::new(custom_kind_info(definition, version, &group, &shape))),
        group,
        plural,
        schema: Some(Arc::new(shape)),
        merge: Some(Arc::clone(merge)),
    }
}

/// The order in which discovery lists the verbs of custom kinds.
const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

fn subresources_of(declared: &Value, names: &Value) -> Vec<Subresource> {
    let one = |name: &str, group: &str, version: &str, kind: &str| Subresource {
        name: name.to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        verbs: vec!["get", "patch", "update"],
    };
    let has = |name: &str| declared.get(name).is_some_and(|one| !one.is_null());
    let status = has("status").then(|| one("status", "", "", schema::text(names, "kind")));
    let scale = has("scale").then(|| one("scale", "autoscaling", "v1", "Scale"));
    status.into_iter().chain(scale).collect()
}

/// Any text that is the same for the same storage.
fn hash(definition: &Value, plural: &str) -> String {
    use base64::Engine as _;
    let stored = object::list(definition, &["spec", "versions"]).iter().find(|one| one["storage"] == true);
    let text = format!("{plural}/{}", stored.map_or("", |version| schema::text(version, "name")));
    let sum = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    base64::engine::general_purpose::STANDARD.encode(sum.to_be_bytes())
}

fn custom_kind_info(definition: &Value, version: &Value, group: &str, shape: &Value) -> CustomKindInfo {
    let name = schema::text(version, "name");
    let names = &definition["status"]["acceptedNames"];
    let warning = version["deprecationWarning"]
        .as_str()
        .map(str::to_owned)
        .unwrap_or_else(|| format!("{group}/{name} {} is deprecated", schema::text(names, "kind")));
    CustomKindInfo {
        api_version: format!("{group}/{name}"),
        list_kind: schema::text(names, "listKind").to_owned(),
        columns: columns(version),
        selectable: schema::list(version, "selectableFields")
            .iter()
            .map(|field| schema::text(field, "jsonPath").trim_start_matches('.').to_owned())
            .collect(),
        warning: schema::is(version, "deprecated").then_some(warning),
        terminating: object::is_deleting(definition),
        is_only_version: schema::list(&definition["spec"], "versions").len() == 1,
        has_no_defaults: !schema::any(shape, &|one| schema::default(one).is_some()),
        rules: rules::RuleNode::of(&format!("{}.{group}", schema::text(names, "plural")), shape)
            .map(Arc::new),
    }
}

fn columns(version: &Value) -> Vec<PrinterColumn> {
    schema::list(version, "additionalPrinterColumns")
        .iter()
        .map(|column| {
            let path = schema::text(column, "jsonPath");
            let description = match schema::text(column, "description") {
                "" => format!("Custom resource definition column (in JSONPath format): {path}"),
                said => said.to_owned(),
            };
            PrinterColumn {
                name: schema::text(column, "name").to_owned(),
                kind: schema::text(column, "type").to_owned(),
                format: schema::text(column, "format").to_owned(),
                description,
                priority: schema::number(column, "priority").unwrap_or(0),
                path: path.to_owned(),
            }
        })
        .collect()
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_the_order_of_preference() {
        let mut versions = ["foo1", "v1", "v1alpha2", "v10", "v2", "v1beta1", "v1beta2", "a"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha2", "a", "foo1"]);
    }
}
