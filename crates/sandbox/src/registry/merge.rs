//! The merge types of a custom kind, one for each version.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Value;

use super::ResourceKind;
use crate::object;
use crate::schema;
use crate::ssa::types::{MergeSchema, TypeId};
use crate::ssa::{ReplicaPaths, TypeRef, Types};

type Converted = (MergeSchema, TypeId);

/// Everything follows from content.
static DEDUCED: LazyLock<Converted> = LazyLock::new(|| schema::custom(None));

/// The versions of a custom kind, each converted when it is first written.
#[derive(Debug, PartialEq)]
pub(crate) struct CustomMerge {
    versions: Vec<CustomVersion>,
}

#[derive(Debug, PartialEq)]
struct CustomVersion {
    api_version: String,
    schema: Option<Arc<Value>>,
    /// Of a version with a scale.
    replicas_path: Option<String>,
    converted: OnceLock<Converted>,
}

impl CustomMerge {
    pub(crate) fn of(definition: &Value) -> Self {
        let group = object::text(definition, &["spec", "group"]).unwrap_or_default();
        let versions = object::list(definition, &["spec", "versions"]).iter().map(|version| CustomVersion {
            api_version: format!("{group}/{}", version["name"].as_str().unwrap_or_default()),
            schema: object::at(version, &["schema", "openAPIV3Schema"]).cloned().map(Arc::new),
            replicas_path: object::text(version, &["subresources", "scale", "specReplicasPath"])
                .map(str::to_owned),
            converted: OnceLock::new(),
        });
        Self { versions: versions.collect() }
    }

    fn replica_paths(&self) -> ReplicaPaths<'_> {
        fn of(version: &CustomVersion) -> (Cow<'_, str>, Option<Vec<&str>>) {
            let path = version.replicas_path.as_deref();
            let path = path.map(|path| path.trim_start_matches('.').split('.').collect());
            (Cow::Borrowed(&version.api_version), path)
        }
        ReplicaPaths(self.versions.iter().map(of).collect())
    }

    fn type_at(&self, api_version: &str) -> Option<TypeRef<'_>> {
        let version = self.versions.iter().find(|version| version.api_version == api_version)?;
        let (schema, id) = version.converted.get_or_init(|| schema::custom(version.schema.as_deref()));
        Some(TypeRef::new(schema, *id))
    }
}

impl ResourceKind {
    /// How objects of the kind merge in its own version.
    pub(crate) fn merge_type(&self) -> TypeRef<'_> {
        self.of(&self.api_version()).unwrap_or_else(|| TypeRef::new(&DEDUCED.0, DEDUCED.1))
    }
}

impl ResourceKind {
    /// Where replicas stand in each version that a write of the scale knows.
    pub(crate) fn replica_paths(&self) -> ReplicaPaths<'_> {
        if let Some(merge) = &self.merge {
            return merge.replica_paths();
        }
        let versions = ["v1beta1", "v1beta2", "v1"].into_iter().skip(usize::from(self.kind == "ReplicaSet"));
        let of = |version| (Cow::from(format!("{}/{version}", self.group)), Some(vec!["spec", "replicas"]));
        ReplicaPaths(versions.map(of).collect())
    }
}

impl Types for ResourceKind {
    fn of(&self, api_version: &str) -> Option<TypeRef<'_>> {
        if let Some(merge) = &self.merge {
            return merge.type_at(api_version);
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let definitions = schema::built_in();
        let id = (group == self.group).then(|| definitions.merge_type(group, version, &self.kind))??;
        Some(TypeRef::new(definitions.merge_schema(), id))
    }

    fn keeps_all_versions(&self) -> bool {
        self.merge.is_some()
    }

    fn are_stored_checked(&self) -> bool {
        self.merge.is_none()
    }

    fn is_filtered_alike(&self) -> bool {
        self.merge.is_none()
    }
}
