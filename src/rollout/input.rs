//! The input of a decision.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{AppApprovalRules, AppWindows, MeasurementOutcomes, RolloutHold, UnitFacts, UnitId};
use crate::fleet::Wave;
use crate::model::{
    AppId, ApprovalQueryLookup, ApproverRoles, ClusterName, Digest, FileVersion, ObjectId, OnFailure,
    Revision,
};

/// The rollout settings of the app, without the waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutPolicy {
    pub on_failure: OnFailure,
    pub deadline: SignedDuration,
    pub gate_first: bool,
    pub paused: bool,
}

/// The app at a commit, from Git alone: contents are compared with those of other commits, never with live objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitFacts {
    /// For each wave the digest of its units' contents, by the position of the wave at the head; equal contents count once.
    pub waves: Vec<Digest>,
    pub units: BTreeMap<UnitId, Digest>,
    /// The versions in pin files.
    pub pins: BTreeMap<ClusterName, Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitState {
    Known(Arc<CommitFacts>),
    /// It is being read, or must be read.
    Loading,
    Unknown,
}

/// A version that is reverted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRefusal {
    pub digest: Digest,
    /// The head at which it failed.
    pub head: Revision,
    /// The previous commit of the unit that failed: everything that changed since then is reverted.
    pub reverts_to: Revision,
    /// The wave that got the version alone, by its pin or as the ring in the manifest of an app with pins: only this wave is
    /// reverted, and the digest is that of its ring.
    pub ring: Option<usize>,
}

impl VersionRefusal {
    /// Whether this refusal is the reason of a unit's hold.
    pub fn is_reason_of(&self, hold: Option<&RolloutHold>, wave: usize) -> bool {
        let is_it = |hold: &RolloutHold| matches!(hold.gate(), RolloutHold::Reverted { digest } if *digest == self.digest);
        hold.is_some_and(is_it) && self.ring.is_none_or(|ring| ring == wave)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalEffect {
    /// The last wave that may open.
    Through(usize),
    /// The refused version may be tried again.
    Retry,
    Override {
        window: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenApproval {
    pub digest: Digest,
    pub allows: ApprovalEffect,
    /// The position of its commit in history; the head is 0. `None`: unknown.
    pub position: Option<usize>,
    /// Its file: the reviews of the pull request that brought it count. `None`: the file has other documents, or its commit is
    /// unknown.
    pub file: Option<Arc<FileVersion>>,
}

#[derive(Clone, Copy)]
pub struct RolloutInput<'a> {
    pub waves: &'a [Wave],
    pub policy: RolloutPolicy,
    /// Of the app at the head, over the contents of all units.
    pub digest: Digest,
    pub head: &'a CommitFacts,
    pub head_revision: &'a Revision,
    /// An error may hide clusters: a wave without units may have some.
    pub may_lack_clusters: bool,
    pub units: &'a BTreeMap<UnitId, UnitFacts>,
    pub approvals: &'a [GivenApproval],
    pub windows: &'a AppWindows,
    /// The results of measurements after waves.
    pub measurements: &'a MeasurementOutcomes,
    pub rules: &'a AppApprovalRules,
    pub roles: &'a ApproverRoles,
    /// The agreements that were read so far.
    pub answers: ApprovalQueryLookup<'a>,
    /// The objects that differ between the head and the current content of a unit.
    pub changed_objects: &'a dyn Fn(&UnitId) -> Vec<ObjectId>,
    pub app: &'a AppId,
    /// The refusals that this process decided, whatever the objects show by now.
    pub refusals: &'a [VersionRefusal],
    pub commit: &'a dyn Fn(&Revision) -> CommitState,
    /// The position of a commit in history; the head is 0. `None`: older than the known history.
    pub position: &'a dyn Fn(&Revision) -> Option<usize>,
    /// The parent of a commit, if it is in the known history.
    pub parent: &'a dyn Fn(&Revision) -> Option<Revision>,
    /// The time of a clock that never jumps, for soaks and deadlines.
    pub now: Timestamp,
    /// The time of the machine's clock, for windows.
    pub wall_time: Timestamp,
}

impl fmt::Debug for RolloutInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RolloutInput")
            .field("digest", &self.digest)
            .field("units", &self.units)
            .finish_non_exhaustive()
    }
}
