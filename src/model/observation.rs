//! What a cluster was seen to hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::{Digest, Health, Kind, ObjectId};

/// One object that carries this instance's label and is itself the object that was applied (its
/// origin fits): the compact record that is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    pub generation: i64,
    /// As served by the watch.
    pub kind: Kind,
    /// The exact `namespace/name` from the annotation `tutti.dev/app`.
    pub app: Arc<str>,
    /// From the annotation; `None` when somebody took it off.
    pub hash: Option<Digest>,
    /// From the annotation: the commit that was applied last.
    pub revision: Option<Arc<str>>,
    /// `tutti.dev/prune: keep`.
    pub keep: bool,
    /// It has a deletionTimestamp.
    pub deleting: bool,
    pub health: Health,
    /// Of a workload: how many pods it wants and how many are available.
    pub pods: Option<PodCount>,
    /// Its creationTimestamp (RFC 3339).
    pub created: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PodCount {
    pub desired: u32,
    pub available: u32,
}

/// An object that was there before its first apply and is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// Field managers of its `managedFields`, sorted; or the other instance's.
    pub managers: Vec<String>,
}

/// One cluster as seen through its watches, plus what was asked for by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The first list of every kind in use has been read whole. Nothing is pruned before.
    pub complete: bool,
    pub objects: BTreeMap<ObjectId, Live>,
    /// Looked up by name before a first apply, and found to be somebody else's.
    pub strangers: BTreeMap<ObjectId, Stranger>,
    /// Looked up by name before a first apply, and not there.
    pub absent: BTreeSet<ObjectId>,
    /// Kinds that the cluster serves (any version), with whether they are namespaced.
    pub served: BTreeMap<Kind, bool>,
}
