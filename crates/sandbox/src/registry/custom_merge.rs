//! The merge types of a custom kind, one for each version.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::object;
use crate::schema;
use crate::ssa::types::{MergeSchema, TypeId};
use crate::ssa::{ReplicaPaths, TypeRef};

type MergeType = (MergeSchema, TypeId);

/// The versions of a custom kind, each converted when it is first written.
#[derive(Debug, PartialEq)]
pub(crate) struct CustomMergeTypes {
    versions: Vec<CustomVersion>,
}

#[derive(Debug, PartialEq)]
struct CustomVersion {
    api_version: String,
    schema: Option<Arc<Value>>,
    /// Of a version with a scale.
    replicas_path: Option<String>,
    converted: OnceLock<MergeType>,
}

impl CustomMergeTypes {
    pub(crate) fn of(definition: &Value) -> Self {
        let group = object::text(definition, &["spec", "group"]).unwrap_or_default();
        let versions = object::list(definition, &["spec", "versions"]).iter().map(|version| CustomVersion {
            api_version: format!("{group}/{}", version["name"].as_str().unwrap_or_default()),
            schema: object::value_at(version, &["schema", "openAPIV3Schema"]).cloned().map(Arc::new),
            replicas_path: object::text(version, &["subresources", "scale", "specReplicasPath"])
                .map(str::to_owned),
            converted: OnceLock::new(),
        });
        Self { versions: versions.collect() }
    }

    pub(super) fn replica_paths(&self) -> ReplicaPaths<'_> {
        fn of(version: &CustomVersion) -> (Cow<'_, str>, Option<Vec<&str>>) {
            let path = version.replicas_path.as_deref();
            let path = path.map(|path| path.trim_start_matches('.').split('.').collect());
            (Cow::Borrowed(&version.api_version), path)
        }
        ReplicaPaths(self.versions.iter().map(of).collect())
    }

    pub(super) fn type_at(&self, api_version: &str) -> Option<TypeRef<'_>> {
        let version = self.versions.iter().find(|version| version.api_version == api_version)?;
        let (schema, id) =
            version.converted.get_or_init(|| schema::custom_merge_type(version.schema.as_deref()));
        Some(TypeRef::new(schema, *id))
    }
}
