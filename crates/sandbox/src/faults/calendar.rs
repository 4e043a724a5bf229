//! The task that runs the timed events of a fault plan.

use std::sync::{Arc, Weak};

use tokio::time::Instant;

use super::{ClusterEvent, restore};
use crate::cluster::Cluster;

/// Starts a task for events without one. Outside a runtime, the next request starts it.
pub(crate) fn start(cluster: &Arc<Cluster>) {
    let (events, plan) = {
        let mut faults = cluster.faults.lock();
        if faults.events.is_empty() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        (std::mem::take(&mut faults.events), faults.plans)
    };
    tokio::spawn(run(Arc::downgrade(cluster), events, plan));
}

async fn run(cluster: Weak<Cluster>, events: Vec<(Instant, ClusterEvent)>, plan: u64) {
    for (at, event) in events {
        tokio::time::sleep_until(at).await;
        let Some(cluster) = cluster.upgrade() else { return };
        if cluster.faults.lock().plans != plan {
            return;
        }
        happen(&cluster, &event);
    }
}

fn happen(cluster: &Cluster, event: &ClusterEvent) {
    let cut = || cluster.connections.raise();
    let name = match event {
        ClusterEvent::Down => {
            cluster.faults.lock().down = true;
            cut();
            "down"
        }
        ClusterEvent::Up => {
            cluster.faults.lock().down = false;
            "up"
        }
        ClusterEvent::CutWatches => {
            cut();
            "cut-watches"
        }
        ClusterEvent::Compact => {
            cluster.state.lock().store.compact();
            "compact"
        }
        ClusterEvent::BackUp => {
            let backup = restore::backup(cluster);
            cluster.faults.lock().backup = Some(backup);
            "back-up"
        }
        ClusterEvent::Restore => {
            let backup = cluster.faults.lock().backup.clone();
            if let Some(backup) = backup {
                restore::restore(cluster, &backup);
            }
            "restore"
        }
        ClusterEvent::Skew(seconds) => {
            cluster.state.lock().clock.skew(*seconds);
            "skew"
        }
    };
    cluster.faults.lock().count(name);
}
