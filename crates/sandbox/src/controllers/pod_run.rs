//! The state of a pod in its kubelet.

use std::time::Duration;

use tokio::time::Instant;

use super::pod_failure::PodFailure;

/// The state of a pod on its node.
#[derive(Debug, Clone)]
pub(super) struct PodRun {
    pub(super) started: Instant,
    pub(super) start_takes: Duration,
    pub(super) stops_at: Option<Instant>,
    pub(super) restarts: u32,
    /// The next step of a failing pod, and its time.
    pub(super) next_step: Option<(Instant, FailingPodStep)>,
    /// The failure that the pod has had often enough.
    pub(super) past_failure: Option<PodFailure>,
    /// Since when the pod is ready.
    pub(super) ready_since: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FailingPodStep {
    BackOff,
    Restart,
    Pull,
}
