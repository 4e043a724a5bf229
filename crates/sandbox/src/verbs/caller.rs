//! The caller of a write: field manager, dry run, field validation.

use crate::decoding::{FieldValidation, Warnings};
use crate::registry::ResourceKind;
use crate::ssa::{Operation, Writer};
use crate::store::{Key, ObjectName};

/// The caller of a write, and whether it is a dry run.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The field manager.
    pub(crate) manager: String,
    pub(crate) dry_run: bool,
    /// The handling of unknown fields.
    pub(crate) validation: FieldValidation,
    /// The warnings of the response.
    pub(crate) warnings: Warnings,
}

impl Caller {
    /// A component of the cluster, whose objects need no field validation.
    pub(crate) fn named(manager: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            dry_run: false,
            validation: FieldValidation::Ignore,
            warnings: Warnings::default(),
        }
    }

    pub(crate) fn controller() -> Self {
        Self::named("kube-controller-manager")
    }

    pub(crate) fn kubelet() -> Self {
        Self::named("kubelet")
    }

    pub(crate) fn scheduler() -> Self {
        Self::named("kube-scheduler")
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
