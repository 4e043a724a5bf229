//! The facts of one moment: targets, clusters, rollouts, deletes and errors. The controller builds it; statuses,
//! notifications, API, metrics and CLI read it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::model::{AppId, Approval, ClusterName, Diagnostic, Digest, InstanceMode, PodCount, Revision};
use crate::plan::{ObjectDiff, Plan, PlanAction, StepReason};
use crate::rollout::{Confirmation, MeasurementResult, RolloutHold, UnitId, WaveReport};

/// The state of a target. Ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum TargetPhase {
    /// As rendered, and healthy.
    Running,
    /// `unmanaged`: not touched.
    Unmanaged,
    /// A taint keeps it off the cluster, and none of its objects is there.
    KeptOut,
    Paused,
    /// It differs from the render, and `mode: observe` or `drift: report` prevents writes.
    OutOfSync,
    /// Applied; its objects are not ready yet.
    Progressing,
    /// Not applied yet: the next apply is running or due.
    Pending,
    /// It waits for something else: a namespace, an approval, the end of maintenance.
    Waiting,
    /// Its cluster does not answer.
    Unreachable,
    /// Applied, and it will not become healthy by itself.
    Degraded,
    /// The cluster refused an object, or another owner has it.
    Refused,
    /// The manifest or its render has errors. Live objects stay.
    Invalid,
}

impl TargetPhase {
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

    /// It stays failed until somebody changes something.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Degraded | Self::Refused | Self::Invalid)
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetReport {
    pub app: AppId,
    pub kind: &'static str,
    pub cluster: ClusterName,
    pub ring: Option<String>,
    /// The commit whose status covers it: the last that changed its inputs.
    pub revision: Revision,
    pub phase: TargetPhase,
    /// The cause. For a Running target, what is idle, else empty.
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
    /// What the plan would change in the objects, if clusters were queried.
    #[serde(skip)]
    pub differences: Option<Arc<Vec<ObjectDiff>>>,
}

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

/// The state of a cluster that is no longer registered.
pub const UNREGISTERED: &str = "Dropped";
/// The states of a cluster that does not answer (yet).
const UNREACHABLE_STATES: [&str; 2] = ["Connecting", "Offline"];

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    pub name: ClusterName,
    pub ring: Option<String>,
    /// Ready, Connecting, Offline, Maintaining, Removing, Removed, Dropped.
    pub state: &'static str,
    pub detail: String,
    /// Every list was read to its end, or the cluster does not answer.
    pub observed: bool,
    /// Objects of this instance in the cluster.
    pub objects: usize,
    /// When the credential expires (RFC 3339), if that is known and it is not renewed automatically.
    pub credential_expires: Option<String>,
    /// The commit that removed the file of a Dropped cluster; `worktree` if only the working tree removed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_by: Option<Revision>,
}

impl ClusterReport {
    /// All values of `state`.
    pub const STATES: [&str; 7] =
        ["Ready", "Connecting", "Offline", "Maintaining", "Removing", "Removed", UNREGISTERED];

    /// The cluster is no longer registered, so nothing is deployed to it.
    pub fn is_unregistered(&self) -> bool {
        self.state == UNREGISTERED
    }

    /// The cluster is registered and answers.
    pub fn is_up(&self) -> bool {
        !self.is_unregistered() && !UNREACHABLE_STATES.contains(&self.state)
    }
}

/// An object that Git no longer wants.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionReport {
    pub cluster: ClusterName,
    pub app: AppId,
    /// `*`: all objects of the app there, while they are unknown.
    pub object: String,
    /// The head at which the delete was first found.
    pub revision: Revision,
    /// Delete, wait, or orphan.
    pub action: PlanAction,
    /// It waits for an approval, or until its replacement is healthy.
    pub waits: bool,
    /// The digest to approve, if an approval is missing.
    pub approval: Option<String>,
    /// `None` while it is being deleted, or after the cluster refused it: then `reason` alone names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<StepReason>,
    pub reason: String,
}

/// Counts of writes to clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts {
    pub configured: usize,
    pub created: usize,
    pub deleted: usize,
    pub clusters: BTreeSet<ClusterName>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutReport {
    pub app: AppId,
    /// The digest of the head's version: what an Approval names.
    pub digest: Digest,
    /// The newest commit that changed the app, for `git revert`. `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Revision>,
    /// Some unit still changes or is not healthy yet.
    pub is_open: bool,
    /// Waves with units, in order.
    pub waves: Vec<WaveReport>,
    /// The confirmation that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<MeasurementResult>,
    /// By cluster, then by podSet.
    pub units: Vec<UnitReport>,
    /// Approvals of another version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals_unused: Vec<UnusedRolloutApproval>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnusedRolloutApproval {
    pub name: String,
    pub file: String,
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitReport {
    #[serde(flatten)]
    pub unit: UnitId,
    pub wave: String,
    /// It has the head's content.
    pub is_at_head: bool,
    pub is_done: bool,
    /// The commit of its objects, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// When it took new content, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Since when it has been healthy without a break, as observed by this process.
    #[serde(skip)]
    pub done_since: Option<Timestamp>,
    /// The commit that it ran before, if it was healthy then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<Revision>,
    /// Its state, if it is not done.
    pub detail: String,
    /// Why it does not have the head's render.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<RolloutHold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl RolloutReport {
    pub fn units_on(&self, cluster: &ClusterName) -> impl Iterator<Item = &UnitReport> {
        let first = self.units.partition_point(|unit| unit.unit.cluster < *cluster);
        self.units.iter().skip(first).take_while(move |unit| unit.unit.cluster == *cluster)
    }

    /// The hold that explains a target.
    pub fn hold_of(&self, target: &TargetReport) -> Option<&RolloutHold> {
        let mut holds = self.units_on(&target.cluster).filter_map(|unit| unit.hold.as_ref());
        holds.find(|hold| hold.to_string() == target.detail)
    }
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    pub revision: Option<Revision>,
    /// The targets belong to `revision`.
    #[serde(skip)]
    pub is_rendered: bool,
    /// Since `revision` is the head.
    #[serde(skip)]
    pub writes: WriteCounts,
    pub mode: InstanceMode,
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
    /// Deletes held by a paused app, a cluster in maintenance or `mode: observe`, with the action that would follow or needs an approval.
    pub held: Vec<DeletionReport>,
    /// Objects that Git no longer wants and that stay for good.
    pub orphans: Vec<DeletionReport>,
    /// Deleted objects by commit and cluster, since this process began.
    #[serde(skip)]
    pub deleted_counts: BTreeMap<(Revision, ClusterName), usize>,
    pub approvals_wanted: Vec<Approval>,
    /// Of deletes that are due here. Another process may have deleted more by now and wait for an approval.
    #[serde(skip)]
    pub approvals_early: Vec<Approval>,
    /// Approval files that match nothing.
    pub approvals_unused: Vec<String>,
    pub diagnostics: Vec<Diagnostic>,
    /// Commits whose statuses are kept, newest first: the head and commits in progress.
    #[serde(skip)]
    pub tracked_commits: Vec<Revision>,
    /// The newest commits of the branch, the head first.
    #[serde(skip)]
    pub recent_commits: Vec<Revision>,
    /// For each error outside a target: the last commit that changed its file.
    #[serde(skip)]
    pub errors_by_commit: Vec<(Revision, Diagnostic)>,
    /// Why the repository cannot be read, and what to do.
    pub source_error: Option<String>,
}

impl Overview {
    /// The revision was rendered, and every cluster was read.
    pub fn is_complete(&self) -> bool {
        self.is_rendered && self.clusters.iter().all(|cluster| cluster.observed)
    }

    /// The targets of one app, by cluster, by binary search.
    pub fn targets_of(&self, app: &AppId) -> &[TargetReport] {
        slice_of_app(&self.targets, app, |target| &target.app)
    }

    pub fn rollout_of(&self, app: &AppId) -> Option<&RolloutReport> {
        let found = self.rollouts.binary_search_by(|rollout| rollout.app.cmp(app)).ok()?;
        self.rollouts.get(found)
    }

    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Entries of one app in a list sorted by app.
fn slice_of_app<'t, T>(all: &'t [T], app: &AppId, app_of: impl Fn(&T) -> &AppId) -> &'t [T] {
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
        assert_eq!(phases, TargetPhase::ALL.into_iter().map(TargetPhase::as_str).collect());
        assert_eq!(listed("| STATE of a cluster | |"), ClusterReport::STATES.into_iter().collect());
    }

    #[test]
    fn targets_of_an_app_are_found_by_search() {
        let app = |number: usize| AppId::new("shop", &format!("{number:05}"));
        let targets: Vec<(AppId, usize)> =
            (0..10_000).flat_map(|it| (0..3).map(move |on| (app(it), on))).collect();
        for (wanted, expected) in [(0, 3), (4_711, 3), (9_999, 3), (10_000, 0)] {
            let visited = Cell::new(0);
            let found = slice_of_app(&targets, &app(wanted), |target| {
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
