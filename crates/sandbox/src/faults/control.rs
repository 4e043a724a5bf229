//! The methods of [`Sandbox`] that set and count faults.

use std::collections::BTreeMap;

use super::{ClusterBackup, FaultPlan, event_schedule};
use crate::cluster::Sandbox;

impl Sandbox {
    /// Lets this plan begin now, in place of the one before; an empty plan ends all of its faults.
    pub fn set_faults(&self, plan: &FaultPlan) {
        self.cluster.state.lock().webhooks = plan.webhooks.clone().into();
        let wants_backup = plan.events.iter().any(|(_, event)| *event == super::PlannedClusterEvent::Restore);
        let backup = wants_backup.then(|| self.backup());
        {
            let mut faults = self.cluster.faults.lock();
            faults.down = false;
            faults.backup = backup;
            faults.start_plan(plan);
        }
        event_schedule::start(&self.cluster);
    }

    /// Counts of the injected faults by name: `429`, `drop-after`, `watch-cut`, `down`, ….
    pub fn fault_counts(&self) -> BTreeMap<String, u64> {
        self.cluster.faults.lock().fault_counts()
    }

    /// All objects as they are now.
    pub fn backup(&self) -> ClusterBackup {
        ClusterBackup::of(&self.cluster.state.lock())
    }

    /// Takes the cluster back to a backup, as a restored etcd does: revisions go back too.
    pub fn restore(&self, backup: &ClusterBackup) {
        self.cluster.restore(backup);
    }

    /// Puts the cluster's clock this many seconds ahead, or behind.
    pub fn set_clock_skew(&self, seconds: i64) {
        self.cluster.state.lock().clock.skew(seconds);
    }
}
