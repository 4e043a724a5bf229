//! Recorded changes of stored objects.

use std::cell::OnceCell;

use bytes::Bytes;

use super::{ObjectPath, StoredObject};

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
