//! Pending removals: apps that left a cluster whose objects of that app are not known yet. Either the cluster was never read
//! since the process started, or an error in the repository hides whether another app wants the objects.
//!
//! Git no longer lists these objects. The commit that removed the app stays unfinished until all of them are known.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use super::cluster_entry::{ClusterEntry, ConnectionState};
use super::state::ControllerState;
use super::targets::Targets;
use crate::fleet::{Fleet, Target};
use crate::model::Revision;
use crate::plan::{PlanAction, StepReason};
use crate::report::DeletionReport;

impl ControllerState {
    /// The targets that a new head removes.
    pub(super) fn add_pending_removals(&mut self, left: impl IntoIterator<Item = Target>, head: &Revision) {
        self.prune.pending_removals.extend(left.into_iter().map(|target| (target, head.clone())));
    }

    /// The targets that a commit before this process removed. A newer entry of a target has priority.
    pub(super) fn restore_pending_removals(&mut self, left: BTreeSet<Target>, revision: &Revision) {
        for target in left {
            self.prune.pending_removals.entry(target).or_insert_with(|| revision.clone());
        }
    }

    /// Ends the removals of apps that returned, and those whose objects are known since deletes were decided: the cluster was
    /// read, and no error hides the app. An error hides the objects of a removed app.
    pub(super) fn clear_pending_removals(&mut self) {
        let Self { clusters, targets, tracked_commits: told, prune, fleet, .. } = self;
        let Some(fleet) = fleet else { return };
        let is_valid = LazyCell::new(|| is_valid(fleet, targets));
        prune.pending_removals.retain(|target, revision| {
            let is_known = |cluster: &ClusterEntry| {
                cluster.was_read && (fleet.apps.contains_key(&target.app) || *is_valid)
            };
            clusters.get(&target.cluster).is_some_and(|cluster| !is_known(cluster))
                && targets.get(target).is_none()
                && told.contains(revision)
        });
    }

    /// Reports of objects that these apps may have left behind.
    pub(super) fn pending_removal_reports(&self) -> impl Iterator<Item = DeletionReport> {
        let is_valid = LazyCell::new(|| self.fleet.as_ref().is_some_and(|it| is_valid(it, &self.targets)));
        let open =
            self.prune.pending_removals.iter().filter(|(target, _)| self.targets.get(target).is_none());
        open.filter_map(move |(Target { app, cluster }, revision)| {
            let reason = match self.clusters.get(cluster)?.connection_state {
                _ if !*is_valid => StepReason::FleetInvalid,
                ConnectionState::Offline { .. } => StepReason::WaitsForCluster { cluster: cluster.clone() },
                ConnectionState::Connecting | ConnectionState::Ready => StepReason::ObservationIncomplete,
            };
            Some(DeletionReport {
                cluster: cluster.clone(),
                app: app.clone(),
                object: "*".to_owned(),
                revision: revision.clone(),
                action: PlanAction::Wait,
                waits: true,
                approval: None,
                reason: reason.to_string(),
                cause: Some(reason),
            })
        })
    }
}

fn is_valid(fleet: &Fleet, targets: &Targets) -> bool {
    fleet.is_valid() && targets.broken().is_empty()
}
