//! The names of objects that were listed some seconds ago.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::model::ObjectId;

/// How long a list is valid. An object that is created meanwhile shows up in the response to the apply.
pub(super) const LISTING_LIFETIME: Duration = Duration::from_secs(5);

/// Group, kind and namespace.
pub(super) type NameScope = (Arc<str>, Arc<str>, Option<Arc<str>>);

pub(super) fn place_of(id: &ObjectId) -> NameScope {
    (Arc::clone(&id.group), Arc::clone(&id.kind), id.namespace.clone())
}

/// Cached lists by kind and namespace.
#[derive(Debug, Default)]
pub(super) struct NameCache {
    folders: Mutex<HashMap<NameScope, Arc<tokio::sync::Mutex<NameListing>>>>,
}

#[derive(Debug)]
pub(super) struct NameListing {
    /// Start of the period in which lookups are counted.
    pub(super) since: Instant,
    pub(super) asked: usize,
    pub(super) names: ListedNames,
}

impl NameListing {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), asked: 0, names: ListedNames::NotListed }
    }
}

#[derive(Debug)]
pub(super) enum ListedNames {
    NotListed,
    /// All names at one moment.
    Whole(HashSet<String>),
    /// Too many names, or the list was too slow.
    Unavailable,
}

impl NameCache {
    /// Returns the lists in use, and drops expired ones.
    pub(super) fn recent(&self) -> MutexGuard<'_, HashMap<NameScope, Arc<tokio::sync::Mutex<NameListing>>>> {
        let mut folders = self.folders.lock();
        folders.retain(|_, folder| {
            Arc::strong_count(folder) > 1
                || folder.try_lock().is_ok_and(|folder| folder.since.elapsed() < LISTING_LIFETIME * 2)
        });
        folders
    }
}
