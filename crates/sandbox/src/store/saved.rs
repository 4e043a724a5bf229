//! A backup of the store.

use std::sync::Arc;

use super::{Store, Stored};

/// The bytes of all objects at one revision.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub(super) revision: u64,
    pub(super) tables: Vec<(Arc<str>, Vec<Stored>)>,
}

impl Store {
    /// A store with these objects, without history, at that revision; the controllers see them all.
    pub(crate) fn restored(saved: &Saved, history: usize) -> Self {
        let mut store = Self::new(saved.revision, history);
        for (resource, objects) in &saved.tables {
            for object in objects {
                store.load(resource, object);
            }
            store.touch(resource);
        }
        store.forget_before(saved.revision);
        store
    }
}
