//! Stored objects' keys and recorded changes.

use std::cell::OnceCell;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::{ObjectPath, StoredObject};
use crate::object;

/// A parsed object: immutable, and shared while it is in use.
pub(crate) type ParsedObject = Arc<Value>;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One recorded write.
#[derive(Debug)]
pub(crate) struct StoreChange {
    pub(crate) revision: u64,
    pub(crate) kind: StoreChangeKind,
    pub(crate) place: ObjectPath,
    pub(crate) object: StoredObject,
    pub(crate) previous: Option<StoredObject>,
    /// The event of this change as watches of whole objects, and of metadata, send it: encoded once
    /// for all watches that see it at about the same time.
    pub(super) encoded_events: OnceCell<Box<EncodedEvents>>,
}

#[derive(Debug, Default)]
pub(super) struct EncodedEvents {
    pub(super) whole: OnceCell<Bytes>,
    pub(super) metadata: OnceCell<Bytes>,
}

/// The requested history was dropped; watches from `oldest` on can be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistoryCompacted {
    pub(crate) oldest: u64,
}
