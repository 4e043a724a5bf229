//! One kind, with all that the API needs to know about it.

use std::sync::Arc;

use serde_json::Value;

use super::merge::CustomMerge;
use crate::custom::Declared;

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
    pub(crate) has_status: bool,
    pub(crate) has_scale: bool,
    /// Kinds with a spec whose change counts up `metadata.generation`.
    pub(crate) has_generation: bool,
    /// The OpenAPI schema of a custom kind.
    pub(crate) schema: Option<Arc<Value>>,
    /// How a custom kind merges; built-in kinds have their merge types from the embedded schema.
    pub(crate) merge: Option<Arc<CustomMerge>>,
    /// What else the definition of a custom kind says.
    pub(crate) declared: Option<Arc<Declared>>,
    /// Where a custom kind keeps replicas, from its scale subresource.
    pub(crate) scale_paths: Option<ScalePaths>,
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

    /// `DeploymentList`, or what a definition says.
    pub(crate) fn list_kind(&self) -> String {
        match &self.declared {
            Some(declared) => declared.list_kind.clone(),
            None => format!("{}List", self.kind),
        }
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.schema.is_some()
    }

    pub(crate) fn is(&self, resource: &str) -> bool {
        self.plural == resource.split('.').next().unwrap_or("") && self.resource() == resource
    }
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}
