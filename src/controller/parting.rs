//! Apps that left a cluster that was never read since this process began.
//!
//! Git tells no longer what they had there, and nobody has looked: the commit that took them away is under way until the cluster
//! was read.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cluster_entry::Reach;
use super::world::World;
use crate::fleet::{Fleet, Target};
use crate::model::{App, Revision};
use crate::plan::{Action, Reason};
use crate::report::DeletionReport;

impl World {
    /// A new head has these no longer, which were there as these apps said.
    pub(super) fn part(&mut self, left: Vec<(Target, Arc<App>)>, fleet: &Fleet, head: &Revision) {
        for (target, app) in left {
            let is_unread = self.clusters.get(&target.cluster).is_some_and(|cluster| !cluster.was_read);
            if is_unread && fleet.takes_away(&app, &target.cluster) {
                self.prune.partings.insert(target, head.clone());
            }
        }
    }

    /// A commit of before this process took these away; what newer ones say counts more.
    pub(super) fn parted_before(&mut self, left: BTreeSet<Target>, revision: &Revision) {
        for target in left {
            self.prune.partings.entry(target).or_insert_with(|| revision.clone());
        }
    }

    /// Ends those of apps that came back, and of clusters that were read: their objects are known one by one, once a valid fleet
    /// says that nobody else wants them.
    pub(super) fn end_partings(&mut self) {
        if self.prune.partings.is_empty() {
            return;
        }
        let is_valid = self.is_all_understood();
        let Self { clusters, targets, told, prune, .. } = self;
        prune.partings.retain(|target, revision| {
            let is_unknown =
                clusters.get(&target.cluster).is_some_and(|cluster| !cluster.was_read || !is_valid);
            is_unknown && targets.get(target).is_none() && told.contains(revision)
        });
    }

    fn is_all_understood(&self) -> bool {
        self.fleet.as_ref().is_some_and(|fleet| fleet.is_valid())
            && self.targets.values().all(|target| target.render.is_ok())
    }

    /// Whatever these apps may have left.
    pub(super) fn partings(&self) -> impl Iterator<Item = DeletionReport> {
        let is_valid = self.is_all_understood();
        let open = self.prune.partings.iter().filter(|(target, _)| self.targets.get(target).is_none());
        open.filter_map(move |(Target { app, cluster }, revision)| {
            let reason = match self.clusters.get(cluster)?.reach {
                _ if !is_valid => Reason::FleetInvalid,
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
