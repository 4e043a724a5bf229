//! The settings of one embedded cluster.

use std::time::{Duration, SystemTime};

use crate::registry::ResourceKind;
use crate::release::Release;
use crate::scenario::Scenario;

/// Settings of a [`Sandbox`](crate::Sandbox).
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// The cluster's name, as kubeconfigs and node names show it.
    pub name: String,
    /// The `gitVersion` that `/version` answers.
    pub version: String,
    /// The simulated release; [`SandboxOptions::running`] sets all options that belong to it.
    pub release: Release,
    /// Everything random (uids, suffixes, delays, faults) comes from here.
    pub seed: u64,
    /// Simulated nodes: one pod of every DaemonSet runs on each.
    pub nodes: usize,
    /// Whether the pods of controllers are objects.
    pub pods: PodMode,
    /// How long pods take from scheduled to ready: between these two, by the seed.
    pub pod_start: (Duration, Duration),
    /// How long a deleted pod takes to end.
    pub pod_stop: Duration,
    /// How long the pods of a Job run.
    pub job_run: Duration,
    /// Changes that each resource keeps for watches; older ones answer 410.
    pub history: usize,
    /// The wall-clock time at the start; it advances with `tokio::time`.
    pub epoch: SystemTime,
    /// The scenario of pod behaviour; [`Sandbox::set_scenario`](crate::Sandbox::set_scenario) changes it later.
    pub scenario: Scenario,
    /// Whether the server answers streaming lists (`sendInitialEvents`), as real ones do since 1.32.
    pub streaming_lists: bool,
    /// Whether the server answers aggregated discovery (`apidiscovery.k8s.io/v2`), as real ones do since 1.30.
    pub aggregated_discovery: bool,
    /// Resources (`accounts.example.com`) whose own server knows no server-side apply: such a patch is answered by 415, and
    /// their objects have no `managedFields`.
    pub without_apply: Vec<String>,
}

/// How the pods of controllers exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PodMode {
    /// As objects, as on a real server.
    #[default]
    Stored,
    /// Out of sight: workloads and services go through the same states in the same times, but
    /// requests for pods answer 501 `NotSimulated`, and there are no events about pods (so later draws
    /// of the seed are others). For tests with very many clusters.
    Virtual,
}

impl SandboxOptions {
    /// Whether the server keeps an account of who set what of these objects.
    pub(crate) fn tracks_fields(&self, kind: &ResourceKind) -> bool {
        self.without_apply.is_empty() || !self.without_apply.contains(&kind.resource())
    }

    /// A server of another release of Kubernetes.
    #[must_use]
    pub fn running(self, release: Release) -> Self {
        Self {
            version: release.version(),
            release,
            streaming_lists: release.has_streaming_lists(),
            aggregated_discovery: release.has_aggregated_discovery(),
            ..self
        }
    }

    /// A cluster whose pods are ready at once, for tests.
    pub fn instant(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            pod_start: (Duration::ZERO, Duration::ZERO),
            pod_stop: Duration::ZERO,
            job_run: Duration::ZERO,
            ..Self::default()
        }
    }
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            name: "sandbox".to_owned(),
            version: "v1.36.0".to_owned(),
            release: Release::default(),
            seed: 1,
            nodes: 3,
            pods: PodMode::Stored,
            pod_start: (Duration::from_secs(1), Duration::from_secs(3)),
            pod_stop: Duration::from_secs(1),
            job_run: Duration::from_secs(2),
            history: 1000,
            epoch: SystemTime::now(),
            scenario: Scenario::default(),
            streaming_lists: true,
            aggregated_discovery: true,
            without_apply: Vec::new(),
        }
    }
}
