//! Stored objects' keys and recorded changes.

use std::cell::OnceCell;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::{Place, Stored};
use crate::object;

/// A parsed object: immutable, and shared while it is in use.
pub(crate) type Object = Arc<Value>;

/// Where an object lives within its resource; the namespace is empty for cluster-wide kinds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ObjectName {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(crate) fn of(value: &Value) -> Self {
        Self::new(object::namespace(value), object::name(value))
    }
}

/// An object anywhere in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// `deployments.apps`.
    pub(crate) resource: String,
    pub(crate) name: ObjectName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One recorded write.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) kind: ChangeKind,
    pub(crate) place: Place,
    pub(crate) object: Stored,
    pub(crate) previous: Option<Stored>,
    /// The event of this change as watches of whole objects, and of metadata, send it: encoded once
    /// for all watches that see it at about the same time.
    pub(super) lines: OnceCell<Box<Lines>>,
}

#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) whole: OnceCell<Bytes>,
    pub(super) metadata: OnceCell<Bytes>,
}

/// The requested history was dropped; watches from `oldest` on can be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    pub(crate) oldest: u64,
}
