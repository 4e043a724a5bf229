//! One kind in one version, as discovery and storage describe it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value;

use super::custom_merge::CustomMergeTypes;
use crate::custom::CustomKindInfo;

/// One resource of one API version.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResourceKind {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<&'static str>,
    pub(crate) subresources: Vec<Subresource>,
    /// The `storageVersionHash` of discovery; `-` for kinds that are not stored.
    pub(crate) storage_hash: String,
    /// Kinds with a spec whose change counts up `metadata.generation`.
    pub(crate) has_generation: bool,
    /// The minor releases that serve it.
    pub(crate) releases: RangeInclusive<u32>,
    /// The OpenAPI schema of a custom kind.
    pub(crate) schema: Option<Arc<Value>>,
    /// How a custom kind merges; built-in kinds have their merge types from the embedded schema.
    pub(crate) merge: Option<Arc<CustomMergeTypes>>,
    /// Further facts of a custom kind's definition.
    pub(crate) definition: Option<Arc<CustomKindInfo>>,
    /// Where a custom kind keeps replicas, from its scale subresource.
    pub(crate) scale_paths: Option<ScalePaths>,
}

/// A path below the objects of a kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    /// Of what it answers; empty when that is of the version of its kind.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: Option<String>,
}

impl ResourceKind {
    /// `deployments.apps`, or `pods` in the core group: as messages name a resource, and the key of
    /// its objects in the store (all versions of a resource are the same objects).
    pub(crate) fn resource(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// `Deployment.apps`, or `Pod` in the core group.
    pub(crate) fn qualified_kind(&self) -> String {
        qualified(&self.kind, &self.group)
    }

    /// `apps/v1`, or `v1` in the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `DeploymentList`, or the name in a definition.
    pub(crate) fn list_kind(&self) -> String {
        match &self.definition {
            Some(declared) => declared.list_kind.clone(),
            None => format!("{}List", self.kind),
        }
    }

    pub(crate) fn has_subresource(&self, subresource: &str) -> bool {
        self.subresources.iter().any(|one| one.name == subresource)
    }

    pub(crate) fn has_status(&self) -> bool {
        self.has_subresource("status")
    }

    /// Listed, but refused by the simulator: kinds that are questions to the server, and versions
    /// that it would have to convert.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(
            (self.group.as_str(), self.plural.as_str()),
            ("", "bindings" | "componentstatuses" | "replicationcontrollers")
                | ("apiregistration.k8s.io", _)
                | ("authentication.k8s.io", "tokenreviews")
                | ("authorization.k8s.io", "localsubjectaccessreviews" | "subjectaccessreviews")
        ) || (self.group == "autoscaling" && self.version == "v1")
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.schema.is_some()
    }

    pub(crate) fn has_resource_name(&self, resource: &str) -> bool {
        self.plural == resource.split('.').next().unwrap_or("") && self.resource() == resource
    }
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}
