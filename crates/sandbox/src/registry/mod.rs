//! The kinds that a cluster serves: the built-in ones from a table, and those of its
//! CustomResourceDefinitions.
//!
//! Needs nothing but the table. Never looks at objects other than CustomResourceDefinitions.

mod custom;
mod kinds;

use std::sync::{Arc, LazyLock};

use serde_json::Value;

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
    /// The OpenAPI schema of a custom kind; built-in kinds have their merge schema in a table.
    pub(crate) schema: Option<Arc<Value>>,
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

static BUILT_IN: LazyLock<Vec<Arc<ResourceKind>>> =
    LazyLock::new(|| kinds::built_in().into_iter().map(Arc::new).collect());

/// What one cluster serves.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    kinds: Vec<Arc<ResourceKind>>,
}

impl Registry {
    pub(crate) fn built_in() -> Self {
        Self { kinds: BUILT_IN.clone() }
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<ResourceKind>> {
        self.kinds.iter().find(|kind| kind.plural == plural && kind.group == group && kind.version == version)
    }

    /// By the name that messages and the store use: `deployments.apps`.
    pub(crate) fn resource(&self, resource: &str) -> Option<&Arc<ResourceKind>> {
        self.kinds.iter().find(|kind| kind.is(resource))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ResourceKind>> {
        self.kinds.iter()
    }

    /// Groups in their order of registration, each with its versions.
    pub(crate) fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for kind in &self.kinds {
            match groups.iter_mut().find(|(group, _)| *group == kind.group) {
                Some((_, versions)) if versions.contains(&kind.version.as_str()) => {}
                Some((_, versions)) => versions.push(&kind.version),
                None => groups.push((&kind.group, vec![&kind.version])),
            }
        }
        groups
    }

    /// Serves the versions of a CustomResourceDefinition, in place of what it declared before.
    pub(crate) fn define(&mut self, definition: &Value) {
        self.undefine(definition);
        self.kinds.extend(custom::kinds_of(definition).into_iter().map(Arc::new));
    }

    /// Stops serving a CustomResourceDefinition.
    pub(crate) fn undefine(&mut self, definition: &Value) {
        let (group, plural) = custom::names_of(definition);
        self.kinds.retain(|kind| !(kind.is_custom() && kind.group == group && kind.plural == plural));
    }
}
