//! The unbound PersistentVolumeClaims of a cluster, and when their storage classes bind them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::health;
use crate::model::ObjectId;

/// Most claims are bound within this time.
const CLASS_READ_DELAY: Duration = Duration::from_secs(1);
/// A class that could not be read is read again after this time.
const CLASS_RETRY_DELAY: Duration = Duration::from_secs(60);

/// When claims of a storage class are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeBindingMode {
    Immediate,
    WaitForFirstConsumer,
}

#[derive(Clone, Copy, Debug)]
enum StorageClassState {
    Unread { due: Instant },
    Reading,
    Read(VolumeBindingMode),
}

/// The unbound claims of a cluster, and the known storage classes.
#[derive(Debug, Default)]
pub struct UnboundClaims {
    claims: BTreeMap<ObjectId, Arc<str>>,
    classes: BTreeMap<Arc<str>, StorageClassState>,
}

impl UnboundClaims {
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    pub fn note(&mut self, id: &ObjectId, object: &Value) {
        match health::unbound_class(object) {
            Some(class) => {
                self.claims.insert(id.clone(), class.into());
            }
            None => self.remove(id),
        }
    }

    pub fn remove(&mut self, id: &ObjectId) {
        self.claims.remove(id);
    }

    pub fn retain(&mut self, stays: impl Fn(&ObjectId) -> bool) {
        self.claims.retain(|id, _| stays(id));
    }

    /// A new connection may lead to a cluster with other classes.
    pub fn clear_classes(&mut self) {
        self.classes.clear();
    }

    /// `None`: the class could not be read.
    pub fn note_class(&mut self, class: Arc<str>, binding: Option<VolumeBindingMode>, now: Instant) {
        let state = binding
            .map_or(StorageClassState::Unread { due: now + CLASS_RETRY_DELAY }, StorageClassState::Read);
        self.classes.insert(class, state);
    }

    pub fn mark_reading(&mut self, class: Arc<str>) {
        self.classes.insert(class, StorageClassState::Reading);
    }

    pub fn claims_of_class(&self, class: &str) -> impl Iterator<Item = &ObjectId> {
        self.claims.iter().filter(move |(_, it)| ***it == *class).map(|(id, _)| id)
    }

    pub fn waits_for_consumer(&self, id: &ObjectId) -> bool {
        let class = self.claims.get(id).and_then(|class| self.classes.get(class));
        matches!(class, Some(StorageClassState::Read(VolumeBindingMode::WaitForFirstConsumer)))
    }

    /// The class must be read, unless the claim is in use.
    pub fn is_of_unread_class(&self, id: &ObjectId) -> bool {
        self.claims.get(id).is_some_and(|class| {
            matches!(self.classes.get(class), None | Some(StorageClassState::Unread { .. }))
        })
    }

    /// The class that must be read for a claim, and the time of the read.
    pub fn unread_class(&mut self, id: &ObjectId, now: Instant) -> Option<(Arc<str>, Instant)> {
        let class = self.claims.get(id)?;
        let state = self
            .classes
            .entry(Arc::clone(class))
            .or_insert(StorageClassState::Unread { due: now + CLASS_READ_DELAY });
        match state {
            StorageClassState::Unread { due } => Some((Arc::clone(class), *due)),
            StorageClassState::Reading | StorageClassState::Read(_) => None,
        }
    }
}
