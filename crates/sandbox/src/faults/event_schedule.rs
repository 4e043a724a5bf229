//! The task that runs the timed events of a fault plan.

use std::sync::{Arc, Weak};

use tokio::time::Instant;

use super::{ClusterBackup, PlannedClusterEvent};
use crate::cluster::SandboxCluster;

/// Starts a task for events without one. Outside a runtime, the next request starts it.
pub(crate) fn start(cluster: &Arc<SandboxCluster>) {
    let (events, plan) = {
        let mut faults = cluster.faults.lock();
        if faults.events.is_empty() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        (std::mem::take(&mut faults.events), faults.plan_number)
    };
    tokio::spawn(run(Arc::downgrade(cluster), events, plan));
}

async fn run(cluster: Weak<SandboxCluster>, events: Vec<(Instant, PlannedClusterEvent)>, plan: u64) {
    for (at, event) in events {
        tokio::time::sleep_until(at).await;
        let Some(cluster) = cluster.upgrade() else { return };
        if cluster.faults.lock().plan_number != plan {
            return;
        }
        apply_event(&cluster, &event);
    }
}

fn apply_event(cluster: &SandboxCluster, event: &PlannedClusterEvent) {
    let cut = || cluster.connection_cuts.raise();
    let name = match event {
        PlannedClusterEvent::Down => {
            cluster.faults.lock().down = true;
            cut();
            "down"
        }
        PlannedClusterEvent::Up => {
            cluster.faults.lock().down = false;
            "up"
        }
        PlannedClusterEvent::CutWatches => {
            cut();
            "cut-watches"
        }
        PlannedClusterEvent::Compact => {
            cluster.state.lock().store.compact();
            "compact"
        }
        PlannedClusterEvent::BackUp => {
            let backup = ClusterBackup::of(&cluster.state.lock());
            cluster.faults.lock().backup = Some(backup);
            "back-up"
        }
        PlannedClusterEvent::Restore => {
            let backup = cluster.faults.lock().backup.clone();
            if let Some(backup) = backup {
                cluster.restore(&backup);
            }
            "restore"
        }
        PlannedClusterEvent::Skew(seconds) => {
            cluster.state.lock().clock.skew(*seconds);
            "skew"
        }
    };
    cluster.faults.lock().count_fault(name);
}
