//! Pending removals: apps that left a cluster whose objects of that app are not known yet. Either the cluster was never read
//! since the process started, or an error in the repository hides whether another app wants the objects.
//!
//! Git no longer lists these objects. The commit that removed the app stays unfinished until all of them are known.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use super::cluster_entry::{ClusterEntry, Reach};
use super::targets::Targets;
use super::world::World;
use crate::fleet::{Fleet, Target};
use crate::model::Revision;
use crate::plan::{Action, Reason};
use crate::report::DeletionReport;

impl World {
    /// The targets that a new head removes.
    pub(super) fn part(&mut self, left: impl IntoIterator<Item = Target>, head: &Revision) {
        self.prune.partings.extend(left.into_iter().map(|target| (target, head.clone())));
    }

    /// The targets that a commit before this process removed. A newer entry of a target has priority.
    pub(super) fn parted_before(&mut self, left: BTreeSet<Target>, revision: &Revision) {
        for target in left {
            self.prune.partings.entry(target).or_insert_with(|| revision.clone());
        }
    }

    /// Ends the removals of apps that returned, and those whose objects are known since deletes were decided: the cluster was
    /// read, and no error hides the app. An error hides the objects of a removed app.
    pub(super) fn end_partings(&mut self) {
        let Self { clusters, targets, told, prune, fleet, .. } = self;
        let Some(fleet) = fleet else { return };
        let is_valid = LazyCell::new(|| is_valid(fleet, targets));
        prune.partings.retain(|target, revision| {
            let is_known = |cluster: &ClusterEntry| {
                cluster.was_read && (fleet.apps.contains_key(&target.app) || *is_valid)
            };
            clusters.get(&target.cluster).is_some_and(|cluster| !is_known(cluster))
                && targets.get(target).is_none()
                && told.contains(revision)
        });
    }

    /// Reports of objects that these apps may have left behind.
    pub(super) fn partings(&self) -> impl Iterator<Item = DeletionReport> {
        let is_valid = LazyCell::new(|| self.fleet.as_ref().is_some_and(|it| is_valid(it, &self.targets)));
        let open = self.prune.partings.iter().filter(|(target, _)| self.targets.get(target).is_none());
        open.filter_map(move |(Target { app, cluster }, revision)| {
            let reason = match self.clusters.get(cluster)?.reach {
                _ if !*is_valid => Reason::FleetInvalid,
                Reach::Offline { .. } => Reason::WaitsForCluster { cluster: cluster.clone() },
                Reach::Connecting | Reach::Ready => Reason::ObservationIncomplete,
            };
            Some(DeletionReport {
                cluster: cluster.clone(),
                app: app.clone(),
                object: "*".to_owned(),
                revision: revision.clone(),
                action: Action::Wait,
                waits: true,
                approval: None,
                reason: reason.to_string(),
            })
        })
    }
}

fn is_valid(fleet: &Fleet, targets: &Targets) -> bool {
    fleet.is_valid() && targets.broken().is_empty()
}
