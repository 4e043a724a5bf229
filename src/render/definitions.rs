//! Reads scope, status subresource and plural of custom kinds from the CustomResourceDefinitions of an app.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::object_document::ObjectDocument;
use crate::model::{GroupVersionKind, KindInfo, KindsByName, RenderedObject, unusual_plural};

/// The kinds that an app defines, in every version.
#[derive(Debug, Default)]
pub struct AppDefinedKinds {
    kinds: BTreeMap<GroupVersionKind, KindInfo>,
}

impl AppDefinedKinds {
    pub fn of(documents: &[ObjectDocument]) -> Self {
        let mut kinds = BTreeMap::new();
        for document in documents {
            read(&document.object, &mut kinds);
        }
        Self { kinds }
    }

    /// Reads rendered objects.
    pub fn of_objects(objects: &[RenderedObject]) -> KindsByName {
        let mut kinds = BTreeMap::new();
        for object in objects.iter().filter(|object| object.defines().is_some()) {
            if let Value::Object(fields) = object.body.fields() {
                read(&fields, &mut kinds);
            }
        }
        kinds.into_iter().map(|(kind, facts)| (kind.name(), facts)).collect()
    }

    pub fn get(&self, kind: &GroupVersionKind) -> Option<KindInfo> {
        self.kinds.get(kind).cloned()
    }
}

fn read(object: &Map<String, Value>, kinds: &mut BTreeMap<GroupVersionKind, KindInfo>) {
    if object.get("kind").is_none_or(|kind| kind != "CustomResourceDefinition") {
        return;
    }
    let Some(spec) = object.get("spec") else { return };
    let text = |pointer| spec.pointer(pointer).and_then(Value::as_str);
    let (Some(group), Some(kind), Some(scope)) = (text("/group"), text("/names/kind"), text("/scope")) else {
        return;
    };
    let namespaced = scope == "Namespaced";
    let plural = text("/names/plural").and_then(|plural| unusual_plural(kind, plural));
    let has_status =
        |version: &Value| version.pointer("/subresources/status").is_some_and(|it| !it.is_null());
    // In v1beta1 all versions may share one status subresource.
    let shared = has_status(spec);
    let versions = spec.get("versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for version in versions {
        if let Some(name) = version.get("name").and_then(Value::as_str) {
            let facts =
                KindInfo { namespaced, has_status: shared || has_status(version), plural: plural.clone() };
            kinds.insert(GroupVersionKind::new(group, name, kind), facts);
        }
    }
    if let (Some(version), true) = (text("/version"), versions.is_empty()) {
        kinds.insert(
            GroupVersionKind::new(group, version, kind),
            KindInfo { namespaced, has_status: shared, plural },
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Location;

    #[test]
    fn definition_gives_scope_and_status_by_version() {
        let check = |spec: Value, version: &str, expected: Option<(bool, bool)>| {
            let object = json!({"kind": "CustomResourceDefinition", "spec": spec});
            let Value::Object(object) = object else { panic!("a map") };
            let found = AppDefinedKinds::of(&[ObjectDocument::new(object, Location::new("a.yaml", 1, 1))]);
            let facts = found.get(&GroupVersionKind::new("x.io", version, "Till"));
            assert_eq!(facts.map(|it| (it.namespaced, it.has_status)), expected);
        };
        let spec = |scope: &str, versions: Value| json!({"group": "x.io", "names": {"kind": "Till"}, "scope": scope, "versions": versions});
        let two = json!([{"name": "v1", "subresources": {"status": {}}}, {"name": "v2", "subresources": {}}]);
        check(spec("Namespaced", two.clone()), "v1", Some((true, true)));
        check(spec("Cluster", two.clone()), "v2", Some((false, false)));
        check(spec("Cluster", two), "v3", None);
        let old = json!({"group": "x.io", "names": {"kind": "Till"}, "scope": "Cluster", "version": "v1",
                         "subresources": {"status": {}}});
        check(old, "v1", Some((false, true)));
        check(json!({"group": "x.io"}), "v1", None);
    }
}
