//! The field types of built-in kinds, from the OpenAPI schema of the newest supported server.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::model::GroupVersionKind;

const SCHEMA: &[u8] = include_bytes!("../../crates/sandbox/schema/kubernetes-1.36.json.gz");
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaFieldType {
    /// The index of a struct.
    Struct(usize),
    /// A map with free keys.
    Map(Box<Self>),
    List(Box<Self>),
    Text,
    /// A number, a boolean, a time or a quantity.
    Scalar,
    /// JSON of any shape, which the server stores unchanged; also a field that the schema lacks.
    Open,
}

#[derive(Debug, Default)]
struct SchemaTypes {
    structs: Vec<HashMap<String, SchemaFieldType>>,
    /// By group and kind, then by version.
    kinds: HashMap<(String, String), BTreeMap<String, usize>>,
    metadata: Option<usize>,
}

static TYPES: LazyLock<SchemaTypes> = LazyLock::new(|| {
    let schema = serde_json::from_reader(flate2::read::GzDecoder::new(SCHEMA));
    schema.map(|schema: KubernetesSchema| schema.types()).unwrap_or_default()
});

/// The struct of a kind. An unknown version reads as a known one. `None`: a custom or removed kind.
pub fn fields_of_kind(kind: &GroupVersionKind) -> Option<SchemaFieldType> {
    if !kind.is_built_in() {
        return None;
    }
    let versions = TYPES.kinds.get(&(kind.group.to_string(), kind.kind.to_string()))?;
    let found = versions.get(&*kind.version).or_else(|| versions.values().next_back());
    found.copied().map(SchemaFieldType::Struct)
}

/// The fields of `metadata` in every kind.
pub fn fields_of_metadata() -> SchemaFieldType {
    TYPES.metadata.map_or(SchemaFieldType::Open, SchemaFieldType::Struct)
}

/// A field of a struct.
pub fn type_of_field(place: usize, name: &str) -> &'static SchemaFieldType {
    TYPES.structs.get(place).and_then(|fields| fields.get(name)).unwrap_or(&SchemaFieldType::Open)
}

#[derive(Deserialize)]
struct KubernetesSchema {
    definitions: BTreeMap<String, SchemaDefinition>,
}

#[derive(Deserialize)]
struct SchemaDefinition {
    #[serde(default)]
    properties: BTreeMap<String, SchemaProperty>,
    #[serde(default, rename = "x-kubernetes-group-version-kind")]
    kinds: Vec<KindName>,
    #[serde(flatten)]
    value: SchemaProperty,
}

#[derive(Deserialize)]
struct KindName {
    group: String,
    version: String,
    kind: String,
}

#[derive(Deserialize)]
struct SchemaProperty {
    #[serde(rename = "type")]
    type_name: Option<String>,
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(default, rename = "allOf")]
    all_of: Vec<Self>,
    #[serde(default, rename = "oneOf")]
    one_of: Vec<Self>,
    items: Option<Box<Self>>,
    #[serde(rename = "additionalProperties")]
    values: Option<Box<Self>>,
}

impl KubernetesSchema {
    fn types(&self) -> SchemaTypes {
        let structs = self.definitions.iter().filter(|(_, definition)| !definition.properties.is_empty());
        let places: BTreeMap<&str, usize> =
            structs.clone().enumerate().map(|(place, (name, _))| (name.as_str(), place)).collect();
        let mut types = SchemaTypes { metadata: places.get(METADATA).copied(), ..SchemaTypes::default() };
        for (place, (_, definition)) in structs.enumerate() {
            let fields = definition.properties.iter();
            types.structs.push(fields.map(|(name, it)| (name.clone(), self.type_of(it, &places))).collect());
            for KindName { group, version, kind } in &definition.kinds {
                let versions = types.kinds.entry((group.clone(), kind.clone())).or_default();
                versions.insert(version.clone(), place);
            }
        }
        types
    }

    fn type_of(&self, property: &SchemaProperty, places: &BTreeMap<&str, usize>) -> SchemaFieldType {
        let reference =
            property.reference.as_deref().or_else(|| property.all_of.first()?.reference.as_deref());
        if let Some(reference) = reference {
            return self.type_of_name(reference.rsplit('/').next().unwrap_or_default(), places);
        }
        match (property.type_name.as_deref(), &property.items, &property.values) {
            (_, Some(items), _) => SchemaFieldType::List(self.type_of(items, places).into()),
            (_, _, Some(values)) => SchemaFieldType::Map(self.type_of(values, places).into()),
            (Some("string"), ..) => SchemaFieldType::Text,
            (Some("integer" | "number" | "boolean"), ..) => SchemaFieldType::Scalar,
            _ if !property.one_of.is_empty() => SchemaFieldType::Scalar,
            _ => SchemaFieldType::Open,
        }
    }

    fn type_of_name(&self, name: &str, places: &BTreeMap<&str, usize>) -> SchemaFieldType {
        // Some fields of CustomResourceDefinition schemas allow a boolean or a list too, and have no type.
        let mut suffixes = ["OrArray", "OrBool", "OrStringArray"].into_iter();
        let name = suffixes.find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
        match (places.get(name), self.definitions.get(name)) {
            (Some(place), _) => SchemaFieldType::Struct(*place),
            // Times are written as strings, but have their own type.
            (None, Some(definition)) => match self.type_of(&definition.value, places) {
                SchemaFieldType::Text => SchemaFieldType::Scalar,
                other => other,
            },
            (None, None) => SchemaFieldType::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(version: &str, kind: &str, path: &[&str]) -> Option<SchemaFieldType> {
        let start = fields_of_kind(&GroupVersionKind::from_api_version(version, kind))?;
        Some(path.iter().fold(start, |found, field| match found {
            SchemaFieldType::Struct(place) => type_of_field(place, field).clone(),
            SchemaFieldType::List(of) | SchemaFieldType::Map(of) => *of,
            other => panic!("{other:?} has no {field}"),
        }))
    }

    #[test]
    fn fields_have_the_types_of_the_schema() {
        let texts = || Some(SchemaFieldType::Map(SchemaFieldType::Text.into()));
        assert_eq!(find("v1", "Service", &["spec", "selector"]), texts());
        assert_eq!(find("v1", "ConfigMap", &["data"]), texts());
        assert_eq!(find("v1", "ConfigMap", &["metadata", "labels"]), texts());
        assert_eq!(find("storage.k8s.io/v1", "StorageClass", &["parameters"]), texts());
        let limits = ["spec", "containers", "0", "resources", "limits"];
        assert_eq!(find("v1", "Pod", &limits), Some(SchemaFieldType::Map(SchemaFieldType::Scalar.into())));
        assert_eq!(
            find("v1", "Pod", &["spec", "containers", "0", "args"]),
            Some(SchemaFieldType::List(SchemaFieldType::Text.into()))
        );
        assert_eq!(find("v1", "Pod", &["metadata", "creationTimestamp"]), Some(SchemaFieldType::Scalar));
        assert_eq!(
            find("v1", "Service", &["spec", "ports", "0", "targetPort"]),
            Some(SchemaFieldType::Scalar)
        );
        assert_eq!(find("v1", "Service", &["spec", "fieldOfTomorrow"]), Some(SchemaFieldType::Open));
        assert_eq!(find("apps/v1", "ControllerRevision", &["data"]), Some(SchemaFieldType::Open));
        let opaque = ["spec", "devices", "config", "0", "opaque", "parameters"];
        assert_eq!(find("resource.k8s.io/v1", "ResourceClaim", &opaque), Some(SchemaFieldType::Open));
        let schema = ["spec", "versions", "0", "schema", "openAPIV3Schema"];
        for (below, expected) in [
            (&["default"][..], SchemaFieldType::Open),
            (&["properties", "default", "items", "description"], SchemaFieldType::Text),
            (&["properties", "a", "enum"], SchemaFieldType::List(SchemaFieldType::Open.into())),
            (&["properties", "a", "items", "additionalProperties", "example"], SchemaFieldType::Open),
        ] {
            let path = [&schema, below].concat();
            let found = find("apiextensions.k8s.io/v1", "CustomResourceDefinition", &path);
            assert_eq!(found, Some(expected), "{path:?}");
        }
    }

    #[test]
    fn other_versions_read_as_a_known_one() {
        assert!(find("autoscaling/v2beta2", "HorizontalPodAutoscaler", &[]).is_some());
        assert_eq!(find("policy/v1beta1", "PodSecurityPolicy", &[]), None);
        assert_eq!(find("x.io/v1", "Service", &[]), None);
        assert!(matches!(fields_of_metadata(), SchemaFieldType::Struct(_)));
    }
}
