//! Observations of a cluster: live objects, and the results of lookups by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::{
    Digest, GroupVersionKind, LastApplied, LiveObject, LiveReplicas, ObjectId, Operation, RenderedObject,
    WriteVerdict,
};

/// An object that existed before its first apply and that tutti does not manage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmanagedObject {
    /// Field managers of its `managedFields`, sorted; or the other instance's.
    pub managers: Vec<String>,
    /// The effect of the adoption; only for an app that adopts.
    pub adoption: Option<AdoptionPreview>,
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    /// For an object that tutti applied earlier: its replicas, when Git sets them.
    pub replicas: Option<LiveReplicas>,
}

/// The dry run of an adoption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptionPreview {
    /// Of the object as rendered when the cluster was asked.
    pub hash: Digest,
    /// The effect, or the reason why the object cannot be adopted.
    pub effect: Result<AdoptionEffect, String>,
}

/// The changes to an object by its adoption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdoptionEffect {
    /// Whose fields become ours, sorted.
    pub from: Vec<String>,
    /// Paths of fields that get another value, come or go; not our own labels and annotations.
    pub changes: Vec<String>,
    /// Of a workload: whether its pods are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces_pods: Option<bool>,
}

/// A refused change of immutable fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImmutableChange {
    /// Of the object as rendered.
    pub hash: Digest,
    /// Of the object that is there.
    pub uid: Arc<str>,
    pub fields: Vec<String>,
}

/// One cluster as seen through its watches, plus lookups by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The first list of every kind in use has been read whole. Nothing is pruned before.
    pub complete: bool,
    /// In `Arc`s, because subsets share them.
    pub objects: BTreeMap<ObjectId, Arc<LiveObject>>,
    /// Looked up by name before a first apply: an object that tutti does not manage.
    pub unmanaged_objects: BTreeMap<ObjectId, UnmanagedObject>,
    /// Looked up by name before a first apply, and not there.
    pub absent: BTreeSet<ObjectId>,
    /// The last apply of objects that lost tutti's label or annotations while they were watched. With the uid, because another object of
    /// the same name was never ours.
    pub unlabeled_known: BTreeMap<ObjectId, (Arc<str>, LastApplied)>,
    /// Looked up by name: tutti's field manager is there, but label and annotations are missing. The last apply is unknown, and the next
    /// lookup must read the replicas too.
    pub unlabeled_unknown: BTreeSet<ObjectId>,
    /// Refused changes of immutable fields.
    pub immutable_changes: BTreeMap<ObjectId, ImmutableChange>,
    /// Verdicts of policies on pending writes.
    pub verdicts: BTreeMap<ObjectId, WriteVerdict>,
    /// Kinds that the cluster serves (any version), with whether they are namespaced.
    pub served_kinds: Arc<BTreeMap<GroupVersionKind, bool>>,
}

impl Observation {
    /// Whether the object with this uid exists.
    pub fn has_object(&self, id: &ObjectId, uid: &str) -> bool {
        self.objects.get(id).is_some_and(|live| *live.uid == *uid)
    }

    /// The observation of some objects.
    #[must_use]
    pub fn subset<'a>(&self, ids: impl Iterator<Item = &'a ObjectId>) -> Self {
        let mut part =
            Self { complete: true, served_kinds: Arc::clone(&self.served_kinds), ..Self::default() };
        for id in ids {
            let own = || id.clone();
            part.objects.extend(self.objects.get(id).map(|it| (own(), Arc::clone(it))));
            part.unmanaged_objects.extend(self.unmanaged_objects.get(id).map(|it| (own(), it.clone())));
            part.absent.extend(self.absent.get(id).cloned());
            part.unlabeled_known.extend(self.unlabeled_known.get(id).map(|it| (own(), it.clone())));
            part.unlabeled_unknown.extend(self.unlabeled_unknown.get(id).cloned());
            part.verdicts.extend(self.verdicts.get(id).map(|it| (own(), it.clone())));
            part.immutable_changes.extend(self.immutable_changes.get(id).map(|it| (own(), it.clone())));
        }
        part
    }

    /// The last apply of the object with this uid, if it lost its label or annotations while it was watched.
    pub fn last_applied(&self, id: &ObjectId, uid: &str) -> Option<&LastApplied> {
        self.unlabeled_known.get(id).filter(|(known, _)| **known == *uid).map(|(_, was)| was)
    }

    /// Records the last apply of an object before its new state replaces the old one. Removed annotations do not end the ownership of its
    /// fields.
    pub fn record_lost_annotations(&mut self, id: &ObjectId, live: &LiveObject) {
        let known = self.objects.get(id).filter(|known| known.uid == live.uid);
        if live.last_applied().is_some() {
            self.unlabeled_known.remove(id);
        } else if let Some(was) = known.and_then(|known| known.last_applied()) {
            self.unlabeled_known.insert(id.clone(), (Arc::clone(&live.uid), was));
        }
    }

    /// Removes an object that the watch no longer shows. A rendered object may still exist without its label.
    pub fn remove(&mut self, id: &ObjectId, is_rendered: impl FnOnce() -> bool) -> Option<Arc<LiveObject>> {
        let known = self.objects.remove(id)?;
        match known.last_applied() {
            Some(was) if is_rendered() => {
                self.unlabeled_known.insert(id.clone(), (Arc::clone(&known.uid), was));
            }
            Some(_) => {
                self.unlabeled_known.remove(id);
            }
            None => {}
        }
        Some(known)
    }

    /// The verdict on this change, if there is one.
    pub fn verdict(&self, object: &RenderedObject, operation: Operation) -> Option<&WriteVerdict> {
        let change = (operation, object.hash, self.applied_hash(&object.id));
        let is_it = |it: &&WriteVerdict| (it.operation, it.hash, it.previous_hash) == change;
        self.verdicts.get(&object.id).filter(is_it)
    }

    /// Of what was applied last to an object that is there.
    pub fn applied_hash(&self, id: &ObjectId) -> Option<Digest> {
        self.objects.get(id).and_then(|live| live.hash)
    }
}
