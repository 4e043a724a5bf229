//! Clusters that are not registered any more and whose file had no `state: Removed` before. Their objects stay as they are, and
//! every report shows the cluster.
//!
//! Only the process that saw the removal reports it.

use super::state::ControllerState;
use super::unregistered_cluster::UnregisteredCluster;
use crate::fleet::Fleet;
use crate::model::{ClusterState, Connection};
use crate::report::{ClusterReport, UNREGISTERED};

impl ControllerState {
    /// Records clusters that this fleet lacks. Only a valid fleet counts, because an unreadable file is not a removed file.
    pub(super) fn update_unregistered(&mut self, fleet: &Fleet) {
        let known = self.unregistered_clusters.clone();
        for (name, entry) in self.clusters.iter().filter(|(name, _)| !fleet.clusters.contains_key(*name)) {
            if entry.cluster.state == ClusterState::Removed {
                let objects = self.remaining_objects(entry);
                if objects > 0 {
                    tracing::warn!(cluster = %name, objects, "its file was removed while it still had \
                        objects; they stay");
                }
                continue;
            }
            let is_of_git = !matches!(entry.cluster.connection, Connection::ConfigMap { .. });
            let by = self.head.clone().filter(|_| is_of_git);
            self.unregistered_clusters.insert(
                name.clone(),
                UnregisteredCluster { removed_by: by, last_manifest: entry.cluster.clone() },
            );
        }
        self.unregistered_clusters.retain(|name, _| !fleet.clusters.contains_key(name));
        for (name, dropped) in
            self.unregistered_clusters.iter().filter(|(name, _)| !known.contains_key(*name))
        {
            tracing::warn!(cluster = %name, "{}", unregistered_message(dropped));
        }
    }

    pub(super) fn unregistered_reports(&self) -> impl Iterator<Item = ClusterReport> {
        // A cluster whose new file is unreadable is still among the others.
        let dropped =
            self.unregistered_clusters.iter().filter(|(name, _)| !self.clusters.contains_key(*name));
        dropped.map(|(name, dropped)| ClusterReport {
            name: name.clone(),
            ring: self.fleet.as_ref().and_then(|fleet| fleet.matching_ring(&dropped.last_manifest)),
            state: UNREGISTERED,
            detail: unregistered_message(dropped),
            observed: true,
            objects: 0,
            credential_expires: None,
            dropped_by: dropped.removed_by.clone(),
        })
    }
}

fn unregistered_message(dropped: &UnregisteredCluster) -> String {
    match &dropped.removed_by {
        Some(by) => format!("{} removed its file; its objects stay", by.short()),
        None => "no ConfigMap registers it any more; its objects stay".to_owned(),
    }
}
