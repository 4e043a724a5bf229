//! The key of an object within its resource: `namespace/name`.

use std::sync::Arc;

use super::NamespacedName;

/// `namespace/name`, or only the name of a cluster-wide object. Its order is that of lists: the
/// order of etcd's keys, in which `a-b/x` comes before `a/x`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectPath(Arc<str>);

impl ObjectPath {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() { Self(name.into()) } else { Self(format!("{namespace}/{name}").into()) }
    }

    /// The text as it is, also when nothing lives there.
    pub(super) fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    pub(super) fn of(name: &NamespacedName) -> Self {
        Self::new(&name.namespace, &name.name)
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    pub(crate) fn namespace(&self) -> &str {
        self.0.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// Is it in the namespace, when one is wanted?
    pub(crate) fn is_in(&self, namespace: Option<&str>) -> bool {
        namespace.is_none_or(|wanted| wanted == self.namespace())
    }

    pub(super) fn to_name(&self) -> NamespacedName {
        NamespacedName::new(self.namespace(), self.name())
    }
}

impl std::borrow::Borrow<str> for ObjectPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}
