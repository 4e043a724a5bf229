//! The shared state of requests, controllers and faults of one cluster.

use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::sandbox_state::SandboxState;
use crate::faults::{ClusterBackup, FaultState};
use crate::options::SandboxOptions;
use crate::request_log::RequestLog;
use crate::signal::CountedSignal;

#[derive(Debug)]
pub(crate) struct SandboxCluster {
    pub(crate) options: Arc<SandboxOptions>,
    pub(crate) state: Mutex<SandboxState>,
    pub(crate) faults: Mutex<FaultState>,
    pub(crate) requests: Mutex<RequestLog>,
    /// Counts up when all open watches are cut.
    pub(crate) connection_cuts: CountedSignal,
    /// Counts up when the controllers have work.
    pub(crate) controller_work: watch::Sender<u64>,
    pub(crate) controllers_started: Once,
}

impl SandboxCluster {
    pub(crate) fn new(options: Arc<SandboxOptions>, state: SandboxState) -> Self {
        Self {
            options,
            state: Mutex::new(state),
            faults: Mutex::default(),
            requests: Mutex::default(),
            connection_cuts: CountedSignal::default(),
            controller_work: watch::Sender::new(1),
            controllers_started: Once::new(),
        }
    }

    /// Runs `step` on the state and wakes the controllers.
    pub(crate) fn update<T>(&self, step: impl FnOnce(&mut SandboxState) -> T) -> T {
        let result = step(&mut self.state.lock());
        self.controller_work.send_modify(|count| *count += 1);
        result
    }

    /// Objects and revisions go back, history is dropped, watches break, and the controllers reconcile all objects.
    pub(crate) fn restore(&self, backup: &ClusterBackup) {
        self.update(|state| backup.restore(state));
        self.connection_cuts.raise();
    }
}

impl Drop for SandboxCluster {
    /// Watches do not outlive the cluster.
    fn drop(&mut self) {
        self.connection_cuts.raise();
    }
}
