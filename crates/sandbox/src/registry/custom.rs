//! CustomResourceDefinitions as kinds.

use std::sync::Arc;

use serde_json::{Value, json};

use super::merge::CustomMerge;
use super::{ResourceKind, ScalePaths};
use crate::object;

pub(super) fn names_of(definition: &Value) -> (String, String) {
    let text = |path: &[&str]| object::text(definition, path).unwrap_or("").to_owned();
    (text(&["spec", "group"]), text(&["spec", "names", "plural"]))
}

/// One kind for each served version.
pub(super) fn kinds_of(definition: &Value) -> Vec<ResourceKind> {
    let (group, plural) = names_of(definition);
    let names = object::at(definition, &["spec", "names"]).unwrap_or(&Value::Null);
    let merge = Arc::new(CustomMerge::of(definition));
    object::list(definition, &["spec", "versions"])
        .iter()
        .filter(|version| version["served"] == true)
        .map(|version| ResourceKind {
            group: group.clone(),
            version: version["name"].as_str().unwrap_or("").to_owned(),
            kind: names["kind"].as_str().unwrap_or("").to_owned(),
            plural: plural.clone(),
            singular: names["singular"].as_str().unwrap_or("").to_owned(),
            short_names: words(&names["shortNames"]),
            categories: words(&names["categories"]),
            namespaced: definition["spec"]["scope"] == "Namespaced",
            has_status: version["subresources"].get("status").is_some(),
            has_scale: version["subresources"].get("scale").is_some(),
            has_generation: true,
            schema: Some(Arc::new(
                object::at(version, &["schema", "openAPIV3Schema"]).cloned().unwrap_or_else(|| json!({})),
            )),
            merge: Some(Arc::clone(&merge)),
            scale_paths: version["subresources"].get("scale").map(|scale| ScalePaths {
                spec_replicas: scale["specReplicasPath"].as_str().unwrap_or("").to_owned(),
                status_replicas: scale["statusReplicasPath"].as_str().unwrap_or("").to_owned(),
                selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
            }),
        })
        .collect()
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
