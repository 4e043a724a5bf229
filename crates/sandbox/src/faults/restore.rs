//! Backup and restore of a whole cluster.

use crate::cluster::Cluster;
use crate::options::Pods;
use crate::registry::Registry;
use crate::store::{Saved, Store};

/// All objects of a cluster at one revision.
#[derive(Debug, Clone)]
pub struct Backup(Saved);

pub(super) fn backup(cluster: &Cluster) -> Backup {
    Backup(cluster.state.lock().store.save())
}

/// Objects and revisions go back, history is dropped, watches break, and the controllers reconcile all objects.
pub(super) fn restore(cluster: &Cluster, backup: &Backup) {
    cluster.with(|state| {
        state.store = Store::restored(&backup.0, state.options.history.max(1));
        if state.options.pods == Pods::Virtual {
            state.store.keep_no_history("pods");
        }
        state.registry = Registry::of(state.options.release);
        let definitions: Vec<_> =
            state.store.list("customresourcedefinitions.apiextensions.k8s.io", None).cloned().collect();
        for definition in definitions {
            state.registry.define(&definition);
        }
    });
    cluster.connections.raise();
}
