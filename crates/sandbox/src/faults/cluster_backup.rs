//! Backup and restore of a whole cluster.

use crate::cluster::SandboxState;
use crate::options::PodMode;
use crate::registry::KindRegistry;
use crate::store::{ObjectStore, StoreBackup};

/// All objects of a cluster at one revision.
#[derive(Debug, Clone)]
pub struct ClusterBackup(StoreBackup);

impl ClusterBackup {
    pub(super) fn of(state: &SandboxState) -> Self {
        Self(state.store.save())
    }

    pub(crate) fn restore(&self, state: &mut SandboxState) {
        state.store = ObjectStore::restored(&self.0, state.options.history.max(1));
        if state.options.pods == PodMode::Virtual {
            state.store.disable_history("pods");
        }
        state.registry = KindRegistry::for_release(state.options.release);
        let definitions: Vec<_> =
            state.store.list("customresourcedefinitions.apiextensions.k8s.io", None).cloned().collect();
        for definition in definitions {
            state.registry.define(&definition);
        }
    }
}
