//! Apps that left a cluster, as long as it is not known what they have left there: it was never read since this process began, or
//! a mistake in the repository hides whether somebody wants that now.
//!
//! Git tells no longer what they had there: the commit that took them away is under way until all of it is known.

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
    /// A new head takes these away.
    pub(super) fn part(&mut self, left: impl IntoIterator<Item = Target>, head: &Revision) {
        self.prune.partings.extend(left.into_iter().map(|target| (target, head.clone())));
    }

    /// A commit of before this process took these away; what newer ones say counts more.
    pub(super) fn parted_before(&mut self, left: BTreeSet<Target>, revision: &Revision) {
        for target in left {
            self.prune.partings.entry(target).or_insert_with(|| revision.clone());
        }
    }

    /// Ends those of apps that came back, and those whose objects are known one by one since deletes were decided: of clusters that
    /// were read, where no mistake hides them. It hides those of an app that is gone.
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

    /// Whatever these apps may have left.
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
