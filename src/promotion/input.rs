//! The input of a decision.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::PinChange;
use crate::fleet::Fleet;
use crate::model::{AppId, ClusterName, Digest, Revision, UnmetApprovalRule};
use crate::rollout::MeasurementResult;

/// Limit of open pull requests of this instance.
pub const MAX_OPEN: usize = 10;

/// The state of one app in one ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppRingState {
    /// The units that take part: without clusters that are offline or in maintenance.
    pub units: usize,
    /// Those with the head's content that are healthy.
    pub done: usize,
    /// As in the VERSION column: `v3`, or `v3/v4` during a change.
    pub version: String,
    /// Since when all of them are done.
    pub done_since: Option<Timestamp>,
    /// Why the first of them is not done.
    pub wait_reason: String,
    /// The measurements before the next ring. `None`: the limits of rings do not apply to the app.
    pub measures: Option<Vec<MeasurementResult>>,
}

/// The state of one app's rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppRolloutState {
    pub app: AppId,
    /// The newest commit that changed it.
    pub commit: Option<Revision>,
    /// It is done, has failed, or waits for a person: it does not advance without help.
    pub is_settled: bool,
    /// The wave that waits for a person, and the digest to confirm.
    pub pending_confirmation: Option<(String, Digest)>,
    /// Missing approvals of rules before that wave.
    pub missing_approvals: Vec<UnmetApprovalRule>,
    /// The clusters that open with it or with an earlier wave.
    pub opened_clusters: BTreeSet<ClusterName>,
    /// A fact is being read: the rollout may have waited for a person before, and may again.
    pub is_reading: bool,
    /// Its units were reverted to their previous content.
    pub is_refused: bool,
}

/// How a commit is reverted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitUndo {
    /// It changed only pins: these restore the old versions.
    Pins(Vec<PinChange>),
    /// `git revert`.
    Whole,
    /// Later commits changed the same files: a person must decide. The files.
    Conflicts(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullRequestState {
    Open,
    Merged,
    /// Closed without a merge.
    Closed,
}

/// A pull request from a branch of this instance in the same repository. Others, such as those from forks, are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    /// Its name without `refs/heads/`.
    pub branch: String,
    /// The commit that it proposes.
    pub head: Revision,
    pub body: String,
    pub state: PullRequestState,
    /// It has commits of other authors: tutti never pushes to it again.
    pub has_foreign_commits: bool,
    /// The forge cannot merge it with its base.
    pub has_conflicts: bool,
}

/// The state at one moment. `fleet` is the head's, and the other states are of the same commit.
#[derive(Clone, Copy, Debug)]
pub struct PromotionInput<'a> {
    pub fleet: &'a Fleet,
    pub rings: &'a BTreeMap<(AppId, String), AppRingState>,
    pub rollouts: &'a [AppRolloutState],
    /// How to revert the commits of refused versions. A missing one is being computed.
    pub undo: &'a BTreeMap<Revision, CommitUndo>,
    /// All open ones, and the newest that were closed or merged.
    pub pull_requests: &'a [PullRequest],
    /// Why the running state is incomplete.
    pub unread_reason: Option<&'a str>,
    /// [`MAX_OPEN`], minus other open pull requests of this instance.
    pub limit: usize,
    /// The time of a clock that never jumps, for soaks.
    pub now: Timestamp,
    /// The time of the machine's clock, for windows.
    pub wall_time: Timestamp,
}

impl PromotionInput<'_> {
    /// The prefix of branches is that of the statuses.
    pub fn prefix(&self) -> &str {
        &self.fleet.instance.status_prefix
    }
}
