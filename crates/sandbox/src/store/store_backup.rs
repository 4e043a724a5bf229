//! A backup of the store.

use std::sync::Arc;

use super::StoredObject;

/// The bytes of all objects at one revision.
#[derive(Debug, Clone)]
pub(crate) struct StoreBackup {
    pub(super) revision: u64,
    pub(super) tables: Vec<(Arc<str>, Vec<StoredObject>)>,
}
