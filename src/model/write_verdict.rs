//! Verdicts of policies on changes before they are written.

use std::sync::Arc;

use super::{Digest, LiveObject, ObjectId, Observation, Operation, RenderedObject};

/// A policy denies a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDenial {
    pub policy: Arc<str>,
    pub message: Arc<str>,
}

/// The verdict on one write. It is valid for the same operation between the same two states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteVerdict {
    /// `Delete`: a replacement, so a delete and what follows it.
    pub operation: Operation,
    /// Of the object as rendered.
    pub hash: Digest,
    /// Of what was applied before; `None`: nothing, or that is not known.
    pub previous_hash: Option<Digest>,
    pub denial: Option<PolicyDenial>,
}

impl Observation {
    /// The verdict on this change, if there is one.
    pub fn verdict(&self, object: &RenderedObject, operation: Operation) -> Option<&WriteVerdict> {
        let change = (operation, object.hash, self.applied_hash(&object.id));
        let is_it = |it: &&WriteVerdict| (it.operation, it.hash, it.previous_hash) == change;
        self.verdicts.get(&object.id).filter(is_it)
    }

    /// Of what was applied last to an object that is there.
    pub fn applied_hash(&self, id: &ObjectId) -> Option<Digest> {
        self.objects.get(id).and_then(|live: &Arc<LiveObject>| live.hash)
    }
}
