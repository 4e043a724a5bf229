//! Backup and restore of a whole cluster.

use crate::cluster::SandboxCluster;
use crate::options::PodMode;
use crate::registry::KindRegistry;
use crate::store::{ObjectStore, StoreBackup};

/// All objects of a cluster at one revision.
#[derive(Debug, Clone)]
pub struct ClusterBackup(StoreBackup);

pub(super) fn backup(cluster: &SandboxCluster) -> ClusterBackup {
    ClusterBackup(cluster.state.lock().store.save())
}

/// Objects and revisions go back, history is dropped, watches break, and the controllers reconcile all objects.
pub(super) fn restore(cluster: &SandboxCluster, backup: &ClusterBackup) {
    cluster.update(|state| {
        state.store = ObjectStore::restored(&backup.0, state.options.history.max(1));
        if state.options.pods == PodMode::Virtual {
            state.store.disable_history("pods");
        }
        state.registry = KindRegistry::for_release(state.options.release);
        let definitions: Vec<_> =
            state.store.list("customresourcedefinitions.apiextensions.k8s.io", None).cloned().collect();
        for definition in definitions {
            state.registry.define(&definition);
        }
    });
    cluster.connection_cuts.raise();
}
