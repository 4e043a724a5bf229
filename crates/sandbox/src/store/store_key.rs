//! Where an object lives: its resource, namespace and name.

use serde_json::Value;

use crate::object;

/// Where an object lives within its resource; the namespace is empty for cluster-wide kinds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NamespacedName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl NamespacedName {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(crate) fn of(value: &Value) -> Self {
        Self::new(object::namespace(value), object::name(value))
    }
}

/// An object anywhere in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StoreKey {
    /// `deployments.apps`.
    pub(crate) resource: String,
    pub(crate) name: NamespacedName,
}
