//! Clusters that nothing registers any more, and that no file said to empty before: what runs there is left as it is, and every
//! report says so.
//!
//! Only the process that saw it happen reports it.

use super::world::World;
use crate::fleet::Fleet;
use crate::model::{Cluster, ClusterState, Connection, Revision};
use crate::report::{ClusterReport, DROPPED};

/// One such cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dropped {
    /// The commit that took its file away; `None`: a ConfigMap had registered it.
    by: Option<Revision>,
    /// As it was last.
    last: Cluster,
}

impl World {
    /// Notes the clusters that this fleet does not name any more. Only a valid fleet counts: a file that cannot be read is not
    /// one that is gone.
    pub(super) fn take_dropped(&mut self, fleet: &Fleet) {
        let known = self.dropped.clone();
        for (name, entry) in self.clusters.iter().filter(|(name, _)| !fleet.clusters.contains_key(*name)) {
            if entry.cluster.state == ClusterState::Removed {
                let objects = self.left_to_go(entry);
                if objects > 0 {
                    tracing::warn!(cluster = %name, objects, "its file went before it was empty; what is there stays");
                }
                continue;
            }
            let is_of_git = !matches!(entry.cluster.connection, Connection::ConfigMap { .. });
            let by = self.head.clone().filter(|_| is_of_git);
            self.dropped.insert(name.clone(), Dropped { by, last: entry.cluster.clone() });
        }
        self.dropped.retain(|name, _| !fleet.clusters.contains_key(name));
        for (name, dropped) in self.dropped.iter().filter(|(name, _)| !known.contains_key(*name)) {
            tracing::warn!(cluster = %name, "{}", words(dropped));
        }
    }

    pub(super) fn dropped_reports(&self) -> impl Iterator<Item = ClusterReport> {
        // One that a file of now names, which cannot be read, is still among the others.
        let dropped = self.dropped.iter().filter(|(name, _)| !self.clusters.contains_key(*name));
        dropped.map(|(name, dropped)| ClusterReport {
            name: name.clone(),
            ring: self.fleet.as_ref().and_then(|fleet| fleet.ring_for(&dropped.last)),
            state: DROPPED,
            detail: words(dropped),
            observed: true,
            objects: 0,
            credential_expires: None,
            dropped_by: dropped.by.clone(),
        })
    }
}

fn words(dropped: &Dropped) -> String {
    match &dropped.by {
        Some(by) => format!("{} took its file away; its objects are left as they are", by.short()),
        None => "no ConfigMap registers it any more; its objects are left as they are".to_owned(),
    }
}
