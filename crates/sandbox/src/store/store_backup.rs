//! A backup of the store.

use std::sync::Arc;

use super::{ObjectStore, StoredObject};

/// The bytes of all objects at one revision.
#[derive(Debug, Clone)]
pub(crate) struct StoreBackup {
    pub(super) revision: u64,
    pub(super) tables: Vec<(Arc<str>, Vec<StoredObject>)>,
}

impl ObjectStore {
    /// A store with these objects, without history, at that revision; the controllers see them all.
    pub(crate) fn restored(saved: &StoreBackup, history: usize) -> Self {
        let mut store = Self::new(saved.revision, history);
        for (resource, objects) in &saved.tables {
            for object in objects {
                store.load(resource, object);
            }
            store.requeue_all(resource);
        }
        store.forget_before(saved.revision);
        store
    }
}
