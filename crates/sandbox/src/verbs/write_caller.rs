//! The caller of a write: field manager, dry run, field validation.

use crate::decoding::{FieldValidation, ResponseWarnings};
use crate::registry::ResourceKind;
use crate::ssa::{ManagedWriter, ManagerOperation};
use crate::store::{NamespacedName, StoreKey};

/// The caller of a write, and whether it is a dry run.
#[derive(Debug, Clone)]
pub(crate) struct WriteCaller {
    /// The field manager.
    pub(crate) manager: String,
    pub(crate) dry_run: bool,
    /// The handling of unknown fields.
    pub(crate) validation: FieldValidation,
    /// The warnings of the response.
    pub(crate) warnings: ResponseWarnings,
}

impl WriteCaller {
    /// A component of the cluster, whose objects need no field validation.
    pub(crate) fn with_manager(manager: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            dry_run: false,
            validation: FieldValidation::Ignore,
            warnings: ResponseWarnings::default(),
        }
    }

    pub(crate) fn controller() -> Self {
        Self::with_manager("kube-controller-manager")
    }

    pub(crate) fn kubelet() -> Self {
        Self::with_manager("kubelet")
    }

    pub(crate) fn scheduler() -> Self {
        Self::with_manager("kube-scheduler")
    }

    pub(super) fn writer(
        &self,
        kind: &ResourceKind,
        operation: ManagerOperation,
        subresource: &str,
    ) -> ManagedWriter {
        ManagedWriter {
            manager: self.manager.clone(),
            operation,
            api_version: kind.api_version(),
            subresource: subresource.to_owned(),
        }
    }
}

pub(crate) fn object_key(kind: &ResourceKind, namespace: &str, name: &str) -> StoreKey {
    StoreKey { resource: kind.resource(), name: NamespacedName::new(namespace, name) }
}
