//! How the objects of a kind merge: built-in kinds by the embedded schema, custom kinds by their definition.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::ResourceKind;
use crate::schema;
use crate::ssa::types::{MergeSchema, TypeId};
use crate::ssa::{ReplicaPaths, TypeRef, VersionedMergeTypes};

/// Everything follows from content.
static DEDUCED: LazyLock<(MergeSchema, TypeId)> = LazyLock::new(|| schema::custom_merge_type(None));

impl ResourceKind {
    /// How objects of the kind merge in its own version.
    pub(crate) fn merge_type(&self) -> TypeRef<'_> {
        self.merge_type_at(&self.api_version()).unwrap_or_else(|| TypeRef::new(&DEDUCED.0, DEDUCED.1))
    }

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
