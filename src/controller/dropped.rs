//! Clusters that are not registered any more and whose file had no `state: Removed` before. Their objects stay as they are, and
//! every report shows the cluster.
//!
//! Only the process that saw the removal reports it.

use super::world::World;
use crate::fleet::Fleet;
use crate::model::{Cluster, ClusterState, Connection, Revision};
use crate::report::{ClusterReport, DROPPED};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dropped {
    /// The commit that removed its file; `None`: a ConfigMap had registered it.
    by: Option<Revision>,
    /// Its last known manifest.
    last: Cluster,
}

impl World {
    /// Records clusters that this fleet lacks. Only a valid fleet counts, because an unreadable file is not a removed file.
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
        // A cluster whose new file is unreadable is still among the others.
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
