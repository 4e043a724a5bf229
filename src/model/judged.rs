//! What policies say of changes that are about to be written.

use std::sync::Arc;

use super::{Digest, Live, ObjectId, Observation, RenderedObject};

/// A policy denies a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    pub policy: Arc<str>,
    pub message: Arc<str>,
}

/// The verdict on one write. It holds while neither side of the change is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Of the object as rendered.
    pub hash: Digest,
    /// Of what was applied before; `None`: nothing, or that is not known.
    pub was: Option<Digest>,
    pub denial: Option<Denial>,
}

impl Observation {
    /// The verdict on this change, if there is one.
    pub fn verdict(&self, object: &RenderedObject) -> Option<&Judged> {
        let is_it = |it: &&Judged| it.hash == object.hash && it.was == self.applied_hash(&object.id);
        self.judged.get(&object.id).filter(is_it)
    }

    /// Of what was applied last to an object that is there.
    pub fn applied_hash(&self, id: &ObjectId) -> Option<Digest> {
        self.objects.get(id).and_then(|live: &Arc<Live>| live.hash)
    }
}
