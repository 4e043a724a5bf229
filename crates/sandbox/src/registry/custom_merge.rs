//! The merge types of a custom kind, one for each version.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Value;

use super::ResourceKind;
use crate::object;
use crate::schema;
use crate::ssa::types::{MergeSchema, TypeId};
use crate::ssa::{ReplicaPaths, TypeRef, VersionedMergeTypes};

type MergeType = (MergeSchema, TypeId);

/// Everything follows from content.
static DEDUCED: LazyLock<MergeType> = LazyLock::new(|| schema::custom_merge_type(None));

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
        let (schema, id) =
            version.converted.get_or_init(|| schema::custom_merge_type(version.schema.as_deref()));
        Some(TypeRef::new(schema, *id))
    }
}

impl ResourceKind {
    /// How objects of the kind merge in its own version.
    pub(crate) fn merge_type(&self) -> TypeRef<'_> {
        self.merge_type_at(&self.api_version()).unwrap_or_else(|| TypeRef::new(&DEDUCED.0, DEDUCED.1))
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

impl VersionedMergeTypes for ResourceKind {
    fn merge_type_at(&self, api_version: &str) -> Option<TypeRef<'_>> {
        if let Some(merge) = &self.merge {
            return merge.type_at(api_version);
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let definitions = schema::built_in();
        let id = (group == self.group).then(|| definitions.merge_type(group, version, &self.kind))??;
        Some(TypeRef::new(definitions.merge_schema(), id))
    }

    fn requires_known_versions(&self) -> bool {
        self.merge.is_some()
    }

    fn trusts_stored_objects(&self) -> bool {
        self.merge.is_none()
    }

    fn filters_every_version(&self) -> bool {
        self.merge.is_none()
    }
}
