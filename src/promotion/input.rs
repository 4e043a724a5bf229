//! Everything that the answer depends on.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::PinChange;
use crate::fleet::Fleet;
use crate::model::{AppId, ClusterName, Digest, Revision, RuleAsks};
use crate::rollout::Measured;

/// Pull requests of ours that may be open at the same time.
pub const MOST_OPEN: usize = 10;

/// How one app does in one ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingState {
    /// Those that take part: not those of clusters that do not answer, or are in maintenance.
    pub units: usize,
    /// Of them, those that have the head's content and are well.
    pub done: usize,
    /// As the VERSION column: `v3`, `v3/v4` while it changes.
    pub version: String,
    /// Since when all of them are done.
    pub done_since: Option<Timestamp>,
    /// Why the first of them is not done.
    pub waits: String,
    /// What is measured before the next ring. `None`: the limits of rings are not in force for the app.
    pub measures: Option<Vec<Measured>>,
}

/// How the rollout of one app does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutState {
    pub app: AppId,
    /// The newest commit that changed it.
    pub commit: Option<Revision>,
    /// It is done, has failed, or waits for a person: it goes on no further by itself.
    pub is_settled: bool,
    /// The wave that waits for a person, and the digest that is confirmed.
    pub asks: Option<(String, Digest)>,
    /// What rules ask for before that wave.
    pub rules: Vec<RuleAsks>,
    /// The clusters that open with it, or with a wave before it.
    pub opens: BTreeSet<ClusterName>,
    /// What it waits for is being read: it may have asked before, and ask again.
    pub is_reading: bool,
    /// Its units went back to what they ran before.
    pub is_refused: bool,
}

/// What takes a commit back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// It changed pins alone: these set them back.
    Pins(Vec<PinChange>),
    /// `git revert`.
    Whole,
    /// Later commits changed the same: a person has to look. Which files.
    Conflicts(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    Open,
    Merged,
    /// Without a merge.
    Closed,
}

/// A pull request from a branch of ours in this repository; of others, forks above all, nothing is said here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    /// Its name without `refs/heads/`.
    pub branch: String,
    /// The commit that it proposes.
    pub head: Revision,
    pub body: String,
    pub state: RequestState,
    /// Somebody else pushed to it: it is never pushed again.
    pub has_foreign_commits: bool,
    /// The forge cannot merge it with its base.
    pub has_conflicts: bool,
}

/// What is known at one moment. `fleet` is the head's, and the states are of the same commit.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub fleet: &'a Fleet,
    pub rings: &'a BTreeMap<(AppId, String), RingState>,
    pub rollouts: &'a [RolloutState],
    /// How to take back the commits of refused versions; one that is missing is looked up still.
    pub undo: &'a BTreeMap<Revision, Undo>,
    /// All that are open, and the newest that were closed or merged.
    pub requests: &'a [PullRequest],
    /// Why not all is known of what runs.
    pub unread: Option<&'a str>,
    /// [`MOST_OPEN`], less what others of ours have open.
    pub limit: usize,
    /// By the clock that never jumps: for soaks.
    pub now: Timestamp,
    /// What clocks show: for windows.
    pub wall: Timestamp,
}

impl Input<'_> {
    /// Of branches: that of the statuses.
    pub fn prefix(&self) -> &str {
        &self.fleet.instance.status_prefix
    }
}
