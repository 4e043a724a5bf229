//! The handle of one cluster, which callers clone.

use std::sync::Arc;
use std::time::Duration;

use super::sandbox_cluster::SandboxCluster;
use super::sandbox_state::SandboxState;
use crate::clock::SandboxClock;
use crate::faults::{Fault, RequestMatch};
use crate::options::{PodMode, SandboxOptions};
use crate::registry::KindRegistry;
use crate::request_record::RequestRecord;
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::service::SandboxService;
use crate::store::ObjectStore;
use crate::verbs;

/// One embedded cluster. Clones are handles of the same cluster; it ends with the last of them.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(crate) cluster: Arc<SandboxCluster>,
}

impl Sandbox {
    /// A cluster with the namespaces and nodes that a new cluster has.
    pub fn new(options: SandboxOptions) -> Self {
        let options = Arc::new(options);
        let mut seed = Seed::of_cluster(options.seed, &options.name);
        let first_revision = 1_000 + seed.below(9_000);
        let mut state = SandboxState {
            store: ObjectStore::new(first_revision, options.history.max(1)),
            registry: KindRegistry::for_release(options.release),
            seed,
            clock: SandboxClock::starting_at(options.epoch),
            options: options.clone(),
            scenario: Arc::new(options.scenario.clone()),
            webhooks: Arc::default(),
            last_addresses: (1, 1),
        };
        if options.pods == PodMode::Virtual {
            state.store.disable_history("pods");
        }
        verbs::bootstrap(&mut state);
        Self { cluster: Arc::new(SandboxCluster::new(options, state)) }
    }

    /// The cluster's name.
    pub fn name(&self) -> &str {
        &self.cluster.options.name
    }

    /// The API as a service, for `kube::Client::new(sandbox.service(), "default")`.
    pub fn service(&self) -> SandboxService {
        SandboxService::new(self.cluster.clone())
    }

    /// The API without injected faults: requests never fail or wait, also while the cluster is down, and are not
    /// logged.
    pub fn without_faults(&self) -> SandboxService {
        SandboxService::without_faults(self.cluster.clone())
    }

    /// Takes the cluster down (requests fail to connect, open watches are cut) or up again.
    pub fn set_down(&self, down: bool) {
        self.cluster.faults.lock().down = down;
        if down {
            self.cut_watches();
        }
    }

    /// Sets another scenario, also for running pods.
    pub fn set_scenario(&self, scenario: Scenario) {
        self.cluster.update(|state| {
            state.scenario = Arc::new(scenario);
            state.store.requeue_all("pods");
        });
    }

    /// Cuts every open watch, as a restarted load balancer does.
    pub fn cut_watches(&self) {
        self.cluster.connection_cuts.raise();
    }

    /// Forgets all history: watches from an older resourceVersion answer 410.
    pub fn compact(&self) {
        self.cluster.state.lock().store.compact();
    }

    /// Delays every answer by this much from now on.
    pub fn set_latency(&self, latency: Duration) {
        self.cluster.faults.lock().latency = latency;
    }

    /// The next `times` requests that match fail with `fault`; other requests pass.
    pub fn fail_next(&self, matching: RequestMatch, times: usize, fault: Fault) {
        self.cluster.faults.lock().add_planned(matching, 0, times, fault);
    }

    /// Lets `skip` matching requests pass, then fails the one after with `fault`.
    pub fn fail_nth(&self, matching: RequestMatch, skip: usize, fault: Fault) {
        self.cluster.faults.lock().add_planned(matching, skip, 1, fault);
    }

    /// Every request since the start or the last [`reset_requests`](Self::reset_requests), in order.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.cluster.requests.lock().all()
    }

    /// How many requests match.
    pub fn count_requests(&self, matching: &RequestMatch) -> usize {
        self.cluster.requests.lock().count(matching)
    }

    /// Forgets the requests seen so far.
    pub fn reset_requests(&self) {
        self.cluster.requests.lock().clear();
    }
}
