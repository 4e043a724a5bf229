//! Everything that is known at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::model::{AppId, Approval, ClusterName, Diagnostic, Digest, Mode, PodCount, Revision};
use crate::plan::{Action, Difference, Plan};
use crate::rollout::{Confirmation, Hold, Measured, UnitId, WaveReport};

/// Where a target (an app on a cluster) stands. Ordered from good to bad for the worst-of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Phase {
    /// As rendered, and healthy.
    Running,
    /// Left alone on purpose (`unmanaged`).
    Unmanaged,
    /// A taint of its cluster keeps it out, and nothing of it is there.
    KeptOut,
    Paused,
    /// It differs from what is rendered, and nothing is written: `mode: observe`, or `drift: report`.
    OutOfSync,
    /// Applied; its objects are on their way.
    Progressing,
    /// Not applied yet: the next apply is under way or due.
    Pending,
    /// Something else must come first: a namespace, an approval, the end of maintenance.
    Waiting,
    /// Its cluster does not answer.
    Unreachable,
    /// Applied, and will not become healthy by itself.
    Degraded,
    /// The cluster refused an object, or it is somebody else's.
    Refused,
    /// The manifest or its render has errors; what runs is left as it is.
    Invalid,
}

impl Phase {
    /// From good to bad.
    pub const ALL: [Self; 12] = [
        Self::Running,
        Self::Unmanaged,
        Self::KeptOut,
        Self::Paused,
        Self::OutOfSync,
        Self::Progressing,
        Self::Pending,
        Self::Waiting,
        Self::Unreachable,
        Self::Degraded,
        Self::Refused,
        Self::Invalid,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Unmanaged => "Unmanaged",
            Self::KeptOut => "KeptOut",
            Self::Paused => "Paused",
            Self::OutOfSync => "OutOfSync",
            Self::Progressing => "Progressing",
            Self::Pending => "Pending",
            Self::Waiting => "Waiting",
            Self::Unreachable => "Unreachable",
            Self::Degraded => "Degraded",
            Self::Refused => "Refused",
            Self::Invalid => "Invalid",
        }
    }

    /// Nothing is left to do or to wait for.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Running | Self::Unmanaged | Self::KeptOut | Self::Paused)
    }

    /// It has failed unless somebody changes something.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Degraded | Self::Refused | Self::Invalid)
    }
}

/// One app on one cluster.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetReport {
    pub app: AppId,
    pub kind: &'static str,
    pub cluster: ClusterName,
    pub ring: Option<String>,
    /// The commit that it is told on: the last that changed what this target is made from.
    pub revision: Revision,
    pub phase: Phase,
    /// The cause, in words; when it runs, what of it is idle, else empty.
    pub detail: String,
    pub pods: PodCount,
    pub version: String,
    /// Of an AppSet, in the order of the waves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pod_sets: Vec<PodSetReport>,
    /// Creation of its oldest object (RFC 3339).
    pub created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shared")]
    pub plan: Option<Arc<Plan>>,
    /// What the plan would make of the objects, where clusters were asked.
    #[serde(skip)]
    pub differences: Option<Arc<Vec<Difference>>>,
}

/// One podSet of an AppSet on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSetReport {
    pub name: String,
    pub pods: PodCount,
    pub version: String,
}

fn shared<S: Serializer>(plan: &Option<Arc<Plan>>, serializer: S) -> Result<S::Ok, S::Error> {
    plan.as_deref().serialize(serializer)
}

/// The state of a cluster that nothing registers any more.
pub const DROPPED: &str = "Dropped";
/// The states of a cluster that does not answer, or did not yet.
const SILENT: [&str; 2] = ["Connecting", "Offline"];

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    pub name: ClusterName,
    pub ring: Option<String>,
    /// Ready, Connecting, Offline, Maintaining, Removing, Removed, Dropped.
    pub state: &'static str,
    pub detail: String,
    /// Every list has been read whole, or it does not answer: there is nothing left to see now.
    pub observed: bool,
    /// Objects of this instance that were seen in it.
    pub objects: usize,
    /// When what we log in with ends (RFC 3339), where that is known and nobody renews it by itself.
    pub credential_expires: Option<String>,
    /// The commit that took its file away, of a cluster that is Dropped; `worktree` where only the folder on disk has it no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_by: Option<Revision>,
}

impl ClusterReport {
    /// All that `state` may be.
    pub const STATES: [&str; 7] =
        ["Ready", "Connecting", "Offline", "Maintaining", "Removing", "Removed", DROPPED];

    /// Nothing registers it any more: nobody deploys to it.
    pub fn is_dropped(&self) -> bool {
        self.state == DROPPED
    }

    /// It is one of ours, and answers.
    pub fn is_up(&self) -> bool {
        !self.is_dropped() && !SILENT.contains(&self.state)
    }
}

/// One object that Git no longer wants.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionReport {
    pub cluster: ClusterName,
    pub app: AppId,
    /// `*`: whatever the app has left there, while that is not known.
    pub object: String,
    /// The head at which it was first found to be no longer wanted.
    pub revision: Revision,
    /// Delete, wait, or orphan: it stays.
    pub action: Action,
    /// It waits: for an approval, or until what replaces it is healthy.
    pub waits: bool,
    /// The digest to approve, when a person's word is what is missing.
    pub approval: Option<String>,
    pub reason: String,
}

/// What was written to clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    pub configured: usize,
    pub created: usize,
    pub deleted: usize,
    pub clusters: BTreeSet<ClusterName>,
}

impl Writes {
    /// `3 configured, 1 created, 0 deleted on 2 clusters`.
    pub fn words(&self) -> String {
        let Self { configured, created, deleted, clusters } = self;
        if clusters.is_empty() {
            return "nothing to write".to_owned();
        }
        let clusters = super::words::count(clusters.len(), "cluster");
        format!("{configured} configured, {created} created, {deleted} deleted on {clusters}")
    }
}

/// The rollout of one app in waves.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutReport {
    pub app: AppId,
    /// Of the version at the head: what an Approval names.
    pub digest: Digest,
    /// The newest commit that changed the app: what `git revert` takes back. `None` where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Revision>,
    /// Something of it is still to change, or to become well.
    pub is_open: bool,
    /// Those that have units, in order.
    pub waves: Vec<WaveReport>,
    /// What a person is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// What is measured after waves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Measured>,
    /// By cluster, then by podSet.
    pub units: Vec<UnitReport>,
    /// Approvals that are for another version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals_unused: Vec<OtherApproval>,
}

/// An Approval of a version that is not the head's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherApproval {
    pub name: String,
    /// Its path in the config repository.
    pub file: String,
    pub digest: Digest,
}

/// One unit of an app in waves.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitReport {
    #[serde(flatten)]
    pub unit: UnitId,
    pub wave: String,
    /// It has the head's content.
    pub is_at_head: bool,
    pub is_done: bool,
    /// The commit that its objects are of, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// When it took other content, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Since when it is well without a break, as far as this process saw.
    #[serde(skip)]
    pub done_since: Option<Timestamp>,
    /// The commit that it ran before, where it did well then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<Revision>,
    /// How it does, where it is not done.
    pub detail: String,
    /// Why it does not have the head's render.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl RolloutReport {
    pub fn units_on(&self, cluster: &ClusterName) -> impl Iterator<Item = &UnitReport> {
        let first = self.units.partition_point(|unit| unit.unit.cluster < *cluster);
        self.units.iter().skip(first).take_while(move |unit| unit.unit.cluster == *cluster)
    }

    /// The hold that the words of a target are of.
    pub fn hold_of(&self, target: &TargetReport) -> Option<&Hold> {
        let mut holds = self.units_on(&target.cluster).filter_map(|unit| unit.hold.as_ref());
        holds.find(|hold| hold.to_string() == target.detail)
    }
}

/// Everything that is known at one moment.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    pub revision: Option<Revision>,
    /// The targets are those of the revision.
    #[serde(skip)]
    pub is_rendered: bool,
    /// Since the revision is the head.
    #[serde(skip)]
    pub writes: Writes,
    pub mode: Mode,
    pub status_prefix: String,
    pub page_url: Option<String>,
    /// In order; empty without `rings.yaml`.
    pub rings: Vec<String>,
    pub targets: Vec<TargetReport>,
    /// Of apps in waves, by app.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<RolloutReport>,
    pub clusters: Vec<ClusterReport>,
    pub deletions: Vec<DeletionReport>,
    /// What a paused app, a cluster in maintenance or `mode: observe` holds: with the action that it is else, or an approval is needed for.
    pub held: Vec<DeletionReport>,
    /// What Git no longer wants and is left where it is, for good.
    pub orphans: Vec<DeletionReport>,
    /// How many objects of a cluster went by a commit, since this process began.
    #[serde(skip)]
    pub deleted: BTreeMap<(Revision, ClusterName), usize>,
    /// What a person may approve.
    pub approvals_wanted: Vec<Approval>,
    /// Of deletes that are due here; another process may have deleted more by now, and wait for a person's word.
    #[serde(skip)]
    pub approvals_early: Vec<Approval>,
    /// Approval files that fit nothing.
    pub approvals_unused: Vec<String>,
    pub diagnostics: Vec<Diagnostic>,
    /// Commits whose statuses are kept, newest first: the head and what is still under way.
    #[serde(skip)]
    pub told: Vec<Revision>,
    /// The newest commits of the branch, the head first.
    #[serde(skip)]
    pub recent: Vec<Revision>,
    /// For each error outside a target: the commit that changed its file last.
    #[serde(skip)]
    pub blamed: Vec<(Revision, Diagnostic)>,
    /// The repository could not be read: why, and what to do about it.
    pub source_error: Option<String>,
}

impl Overview {
    /// What the revision wants was rendered, and every cluster was read.
    pub fn is_known(&self) -> bool {
        self.is_rendered && self.clusters.iter().all(|cluster| cluster.observed)
    }

    /// The targets of one app, by cluster; the others are not visited.
    pub fn targets_of(&self, app: &AppId) -> &[TargetReport] {
        of_app(&self.targets, app, |target| &target.app)
    }

    pub fn rollout_of(&self, app: &AppId) -> Option<&RolloutReport> {
        let found = self.rollouts.binary_search_by(|rollout| rollout.app.cmp(app)).ok()?;
        self.rollouts.get(found)
    }

    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Those of one app, of a list that is in the order of the apps.
fn of_app<'t, T>(all: &'t [T], app: &AppId, app_of: impl Fn(&T) -> &AppId) -> &'t [T] {
    let first = all.partition_point(|it| app_of(it) < app);
    let rest = all.get(first..).unwrap_or_default();
    rest.get(..rest.partition_point(|it| app_of(it) == app)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn statuses_md_lists_every_phase_and_state() {
        let page = include_str!("../../docs/reference/statuses.md");
        let listed = |head: &str| -> BTreeSet<&str> {
            let table = page.split(head).nth(1).expect("the table");
            let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("| ")?.split(" |").next());
            rows.flat_map(|cell| cell.split(", ")).collect()
        };
        let phases = listed("| STATUS of an app | |");
        assert_eq!(phases, Phase::ALL.into_iter().map(Phase::as_str).collect());
        assert_eq!(listed("| STATE of a cluster | |"), ClusterReport::STATES.into_iter().collect());
    }

    #[test]
    fn targets_of_one_app_are_found_without_a_look_at_the_others() {
        let app = |number: usize| AppId::new("shop", &format!("{number:05}"));
        let targets: Vec<(AppId, usize)> =
            (0..10_000).flat_map(|it| (0..3).map(move |on| (app(it), on))).collect();
        for (wanted, expected) in [(0, 3), (4_711, 3), (9_999, 3), (10_000, 0)] {
            let visited = Cell::new(0);
            let found = of_app(&targets, &app(wanted), |target| {
                visited.set(visited.get() + 1);
                &target.0
            });
            assert_eq!(found.len(), expected);
            assert!(found.iter().all(|target| target.0 == app(wanted)));
            // Twice the logarithm of 30,000.
            assert!(visited.get() <= 32, "{}", visited.get());
        }
    }
}
