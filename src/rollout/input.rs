//! Everything that a decision depends on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{AppRules, AppWindows, Hold, Outcomes, UnitFacts, UnitId};
use crate::fleet::Wave;
use crate::model::{Answers, AppId, ClusterName, Digest, FileVersion, ObjectId, OnFailure, Revision, Roles};

/// What the app says of its rollouts, beside the waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub on_failure: OnFailure,
    pub deadline: SignedDuration,
    pub gate_first: bool,
    pub paused: bool,
}

/// What the app is at a commit, from Git alone: contents are compared with those of other commits, never with what a cluster has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitFacts {
    /// The contents of all units of each wave, by its position at the head; equal ones count once.
    pub waves: Vec<Digest>,
    pub units: BTreeMap<UnitId, Digest>,
    /// The versions that pins say.
    pub pins: BTreeMap<ClusterName, Arc<str>>,
}

/// What is known of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    Known(Arc<CommitFacts>),
    /// It is being read, or is to be.
    Loading,
    /// It cannot be read any more.
    Unknown,
}

/// A version that is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub digest: Digest,
    /// The head at which it failed.
    pub head: Revision,
    /// What the unit that failed ran before: what has changed since goes back.
    pub ran: Revision,
    /// The wave that got it alone, by its pin or as the ring of the manifest of an app with pins: it goes back alone. The digest is of
    /// that ring then.
    pub ring: Option<usize>,
}

impl Refusal {
    /// Whether this is what holds a unit of a wave.
    pub fn is_reason_of(&self, hold: Option<&Hold>, wave: usize) -> bool {
        let is_it = |hold: &Hold| matches!(hold.gate(), Hold::Reverted { digest } if *digest == self.digest);
        hold.is_some_and(is_it) && self.ring.is_none_or(|ring| ring == wave)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allows {
    /// The last wave that may open.
    Through(usize),
    /// A refused version starts again.
    Retry,
    Override {
        window: String,
    },
}

/// An Approval of this app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    pub digest: Digest,
    pub allows: Allows,
    /// The commit that wrote it: its position in history, the head is 0. `None`: nobody knows.
    pub at: Option<usize>,
    /// Its file: the pull request that brought it says who agreed. `None`: it is not alone in there, or its commit is not known.
    pub file: Option<Arc<FileVersion>>,
}

#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub waves: &'a [Wave],
    pub policy: Policy,
    /// Of the app at the head, over the contents of all units.
    pub digest: Digest,
    pub head: &'a CommitFacts,
    pub head_revision: &'a Revision,
    /// A mistake may hide clusters: a wave without units may have some.
    pub may_lack_clusters: bool,
    pub units: &'a BTreeMap<UnitId, UnitFacts>,
    pub approvals: &'a [Approved],
    pub windows: &'a AppWindows,
    /// What came of measurements after waves.
    pub measured: &'a Outcomes,
    pub rules: &'a AppRules,
    pub roles: &'a Roles,
    /// Who agreed, as far as that was read.
    pub answers: Answers<'a>,
    /// The objects by which what the head has for a unit differs from what the unit has.
    pub changes: &'a dyn Fn(&UnitId) -> Vec<ObjectId>,
    pub app: &'a AppId,
    /// What this process decided to take back, whatever the objects say by now.
    pub refusals: &'a [Refusal],
    pub commit: &'a dyn Fn(&Revision) -> Commit,
    /// The position of a commit in history, the head is 0; `None`: it is older than all that is known.
    pub position: &'a dyn Fn(&Revision) -> Option<usize>,
    /// The commit before one, as far as history is known.
    pub parent: &'a dyn Fn(&Revision) -> Option<Revision>,
    /// By a clock that never jumps: for soaks and deadlines.
    pub now: Timestamp,
    /// What clocks show: for windows.
    pub wall: Timestamp,
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("digest", &self.digest)
            .field("units", &self.units)
            .finish_non_exhaustive()
    }
}
