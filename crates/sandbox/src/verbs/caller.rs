//! Who writes.

use crate::registry::ResourceKind;
use crate::ssa::{Operation, Writer};
use crate::store::{Key, ObjectName};

/// Who asks, and whether it is only a rehearsal.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The field manager.
    pub(crate) manager: String,
    pub(crate) dry_run: bool,
}

impl Caller {
    pub(crate) fn controller() -> Self {
        Self { manager: "kube-controller-manager".to_owned(), dry_run: false }
    }

    pub(crate) fn kubelet() -> Self {
        Self { manager: "kubelet".to_owned(), dry_run: false }
    }

    pub(crate) fn scheduler() -> Self {
        Self { manager: "kube-scheduler".to_owned(), dry_run: false }
    }

    pub(super) fn writer(&self, kind: &ResourceKind, operation: Operation, subresource: &str) -> Writer {
        Writer {
            manager: self.manager.clone(),
            operation,
            api_version: kind.api_version(),
            subresource: subresource.to_owned(),
        }
    }
}

pub(crate) fn key(kind: &ResourceKind, namespace: &str, name: &str) -> Key {
    Key { resource: kind.resource(), name: ObjectName::new(namespace, name) }
}
