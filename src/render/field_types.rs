//! The field types of built-in kinds, from the OpenAPI schema of the newest supported server.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::model::Kind;

const SCHEMA: &[u8] = include_bytes!("../../crates/sandbox/schema/kubernetes-1.36.json.gz");
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
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
struct Types {
    structs: Vec<HashMap<String, Type>>,
    /// By group and kind, then by version.
    kinds: HashMap<(String, String), BTreeMap<String, usize>>,
    metadata: Option<usize>,
}

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let schema = serde_json::from_reader(flate2::read::GzDecoder::new(SCHEMA));
    schema.map(|schema: Schema| schema.types()).unwrap_or_default()
});

/// The struct of a kind. An unknown version reads as a known one. `None`: a custom or removed kind.
pub fn of_kind(kind: &Kind) -> Option<Type> {
    if !kind.is_built_in() {
        return None;
    }
    let versions = TYPES.kinds.get(&(kind.group.to_string(), kind.kind.to_string()))?;
    let found = versions.get(&*kind.version).or_else(|| versions.values().next_back());
    found.copied().map(Type::Struct)
}

/// The fields of `metadata` in every kind.
pub fn of_metadata() -> Type {
    TYPES.metadata.map_or(Type::Open, Type::Struct)
}

/// A field of a struct.
pub fn of_field(place: usize, name: &str) -> &'static Type {
    TYPES.structs.get(place).and_then(|fields| fields.get(name)).unwrap_or(&Type::Open)
}

#[derive(Deserialize)]
struct Schema {
    definitions: BTreeMap<String, Definition>,
}

#[derive(Deserialize)]
struct Definition {
    #[serde(default)]
    properties: BTreeMap<String, Property>,
    #[serde(default, rename = "x-kubernetes-group-version-kind")]
    kinds: Vec<KindName>,
    #[serde(flatten)]
    value: Property,
}

#[derive(Deserialize)]
struct KindName {
    group: String,
    version: String,
    kind: String,
}

#[derive(Deserialize)]
struct Property {
    #[serde(rename = "type")]
    of: Option<String>,
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

impl Schema {
    fn types(&self) -> Types {
        let structs = self.definitions.iter().filter(|(_, definition)| !definition.properties.is_empty());
        let places: BTreeMap<&str, usize> =
            structs.clone().enumerate().map(|(place, (name, _))| (name.as_str(), place)).collect();
        let mut types = Types { metadata: places.get(METADATA).copied(), ..Types::default() };
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

    fn type_of(&self, property: &Property, places: &BTreeMap<&str, usize>) -> Type {
        let reference =
            property.reference.as_deref().or_else(|| property.all_of.first()?.reference.as_deref());
        if let Some(reference) = reference {
            return self.type_of_name(reference.rsplit('/').next().unwrap_or_default(), places);
        }
        match (property.of.as_deref(), &property.items, &property.values) {
            (_, Some(items), _) => Type::List(self.type_of(items, places).into()),
            (_, _, Some(values)) => Type::Map(self.type_of(values, places).into()),
            (Some("string"), ..) => Type::Text,
            (Some("integer" | "number" | "boolean"), ..) => Type::Scalar,
            _ if !property.one_of.is_empty() => Type::Scalar,
            _ => Type::Open,
        }
    }

    fn type_of_name(&self, name: &str, places: &BTreeMap<&str, usize>) -> Type {
        // Some fields of CustomResourceDefinition schemas allow a boolean or a list too, and have no type.
        let mut suffixes = ["OrArray", "OrBool", "OrStringArray"].into_iter();
        let name = suffixes.find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
        match (places.get(name), self.definitions.get(name)) {
            (Some(place), _) => Type::Struct(*place),
            // Times are written as strings, but have their own type.
            (None, Some(definition)) => match self.type_of(&definition.value, places) {
                Type::Text => Type::Scalar,
                other => other,
            },
            (None, None) => Type::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(version: &str, kind: &str, path: &[&str]) -> Option<Type> {
        let start = of_kind(&Kind::from_api_version(version, kind))?;
        Some(path.iter().fold(start, |found, field| match found {
            Type::Struct(place) => of_field(place, field).clone(),
            Type::List(of) | Type::Map(of) => *of,
            other => panic!("{other:?} has no {field}"),
        }))
    }

    #[test]
    fn fields_have_the_types_of_the_schema() {
        let texts = || Some(Type::Map(Type::Text.into()));
        assert_eq!(find("v1", "Service", &["spec", "selector"]), texts());
        assert_eq!(find("v1", "ConfigMap", &["data"]), texts());
        assert_eq!(find("v1", "ConfigMap", &["metadata", "labels"]), texts());
        assert_eq!(find("storage.k8s.io/v1", "StorageClass", &["parameters"]), texts());
        let limits = ["spec", "containers", "0", "resources", "limits"];
        assert_eq!(find("v1", "Pod", &limits), Some(Type::Map(Type::Scalar.into())));
        assert_eq!(
            find("v1", "Pod", &["spec", "containers", "0", "args"]),
            Some(Type::List(Type::Text.into()))
        );
        assert_eq!(find("v1", "Pod", &["metadata", "creationTimestamp"]), Some(Type::Scalar));
        assert_eq!(find("v1", "Service", &["spec", "ports", "0", "targetPort"]), Some(Type::Scalar));
        assert_eq!(find("v1", "Service", &["spec", "fieldOfTomorrow"]), Some(Type::Open));
        assert_eq!(find("apps/v1", "ControllerRevision", &["data"]), Some(Type::Open));
        let opaque = ["spec", "devices", "config", "0", "opaque", "parameters"];
        assert_eq!(find("resource.k8s.io/v1", "ResourceClaim", &opaque), Some(Type::Open));
        let schema = ["spec", "versions", "0", "schema", "openAPIV3Schema"];
        for (below, expected) in [
            (&["default"][..], Type::Open),
            (&["properties", "default", "items", "description"], Type::Text),
            (&["properties", "a", "enum"], Type::List(Type::Open.into())),
            (&["properties", "a", "items", "additionalProperties", "example"], Type::Open),
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
        assert!(matches!(of_metadata(), Type::Struct(_)));
    }
}
