//! The methods of [`Sandbox`] that set and count faults.

use std::collections::BTreeMap;

use super::{Backup, FaultPlan, calendar, restore};
use crate::cluster::Sandbox;

impl Sandbox {
    /// Lets this plan begin now, in place of the one before; an empty plan ends all of its faults.
    pub fn set_faults(&self, plan: &FaultPlan) {
        self.cluster.state.lock().webhooks = plan.webhooks.clone().into();
        let wants_backup = plan.events.iter().any(|(_, event)| *event == super::ClusterEvent::Restore);
        let backup = wants_backup.then(|| restore::backup(&self.cluster));
        {
            let mut faults = self.cluster.faults.lock();
            faults.down = false;
            faults.backup = backup;
            faults.run(plan);
        }
        calendar::start(&self.cluster);
    }

    /// Counts of the injected faults by name: `429`, `drop-after`, `watch-cut`, `down`, ….
    pub fn struck(&self) -> BTreeMap<String, u64> {
        self.cluster.faults.lock().struck()
    }

    /// All objects as they are now.
    pub fn backup(&self) -> Backup {
        restore::backup(&self.cluster)
    }

    /// Takes the cluster back to a backup, as a restored etcd does: revisions go back too.
    pub fn restore(&self, backup: &Backup) {
        restore::restore(&self.cluster, backup);
    }

    /// Puts the cluster's clock this many seconds ahead, or behind.
    pub fn set_clock_skew(&self, seconds: i64) {
        self.cluster.state.lock().clock.skew(seconds);
    }
}
