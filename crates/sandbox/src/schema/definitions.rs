//! The embedded OpenAPI definitions, looked up by name or by kind.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{LazyLock, OnceLock};

use flate2::read::GzDecoder;
use serde_json::{Map, Value};

use super::FieldDeclaration;
use super::convert::MergeTypeConverter;
use crate::ssa::types::{MergeSchema, TypeId};

static FILE: &[u8] = include_bytes!("../../schema/kubernetes-1.36.json.gz");

static BUILT_IN: LazyLock<SchemaDefinitions> =
    LazyLock::new(|| SchemaDefinitions::read(FILE).unwrap_or_default());

/// The definitions of the built-in kinds.
pub(crate) fn built_in() -> &'static SchemaDefinitions {
    &BUILT_IN
}

/// Definitions that refer to each other by name.
#[derive(Debug, Default)]
pub(crate) struct SchemaDefinitions {
    content: Value,
    /// Names of definitions by group, version and kind.
    kinds: HashMap<String, String>,
    merge: OnceLock<BuiltInMergeTypes>,
}

#[derive(Debug, Default)]
struct BuiltInMergeTypes {
    schema: MergeSchema,
    types: HashMap<String, TypeId>,
}

static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

impl SchemaDefinitions {
    fn read(file: &[u8]) -> Option<Self> {
        let mut text = Vec::new();
        GzDecoder::new(file).read_to_end(&mut text).ok()?;
        let content: Value = serde_json::from_slice(&text).ok()?;
        let mut kinds = HashMap::new();
        for (name, schema) in content["definitions"].as_object()? {
            for kind in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
                let said = |field: &str| kind[field].as_str().unwrap_or_default();
                kinds.insert(kind_index_key(said("group"), said("version"), said("kind")), name.clone());
            }
        }
        Some(Self { content, kinds, merge: OnceLock::new() })
    }

    /// Every definition by its name.
    pub(crate) fn all(&self) -> &Map<String, Value> {
        self.content["definitions"].as_object().unwrap_or(&NONE)
    }

    /// The query parameters of every action (`patch`, `list`, …) with their JSON types.
    pub(crate) fn parameters(&self, action: &str) -> &Map<String, Value> {
        self.content["parameters"][action].as_object().unwrap_or(&NONE)
    }

    /// `gitVersion`, `major` and `minor` of the server that was read.
    pub(crate) fn server(&self) -> &Value {
        &self.content["server"]
    }

    pub(crate) fn name_of(&self, group: &str, version: &str, kind: &str) -> Option<&str> {
        // What old releases serve only in this version has the same fields there.
        let version = match (group, version, kind) {
            ("batch", "v1beta1", "CronJob") | ("policy", "v1beta1", "PodDisruptionBudget") => "v1",
            _ => version,
        };
        self.kinds.get(&kind_index_key(group, version, kind)).map(String::as_str)
    }

    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<FieldDeclaration<'_>> {
        self.named(self.name_of(group, version, kind)?)
    }

    pub(crate) fn named(&self, name: &str) -> Option<FieldDeclaration<'_>> {
        self.all()
            .get_key_value(name)
            .map(|(name, schema)| FieldDeclaration::definition_of(self.all(), name, schema))
    }

    /// The schema that contains the merge types of all built-in kinds.
    pub(crate) fn merge_schema(&self) -> &MergeSchema {
        &self.merge().schema
    }

    /// How a kind merges.
    pub(crate) fn merge_type(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        self.merge().types.get(self.name_of(group, version, kind)?).copied()
    }

    fn merge(&self) -> &BuiltInMergeTypes {
        self.merge.get_or_init(|| {
            let mut converter = MergeTypeConverter::new(self.all());
            let types = self.all().keys().map(|name| (name.clone(), converter.named(name))).collect();
            BuiltInMergeTypes { schema: converter.schema, types }
        })
    }
}

fn kind_index_key(group: &str, version: &str, kind: &str) -> String {
    format!("{group}/{version}/{kind}")
}
