//! One embedded cluster: its state behind one lock, and the [`Sandbox`] handle that callers clone.

use std::sync::{Arc, Once};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::clock::SandboxClock;
use crate::faults::{Fault, FaultState, MutatingWebhook, RequestMatch};
use crate::options::{PodMode, SandboxOptions};
use crate::registry::KindRegistry;
use crate::request_log::{RequestLog, RequestRecord};
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::service::SandboxService;
use crate::signal::CountedSignal;
use crate::store::ObjectStore;
use crate::{controllers, verbs};

/// The state behind the lock. Every request and every controller step is one critical section without an await, so each
/// sees a consistent cluster.
#[derive(Debug)]
pub(crate) struct SandboxState {
    pub(crate) store: ObjectStore,
    pub(crate) registry: KindRegistry,
    pub(crate) seed: Seed,
    pub(crate) clock: SandboxClock,
    pub(crate) options: Arc<SandboxOptions>,
    /// The simulated behaviour of pods.
    pub(crate) scenario: Arc<Scenario>,
    /// The mutating webhooks.
    pub(crate) webhooks: Arc<[MutatingWebhook]>,
    /// The last octets handed out as service and pod addresses.
    pub(crate) last_addresses: (u32, u32),
}

impl SandboxState {
    pub(crate) fn pod_address(&mut self) -> String {
        self.last_addresses.1 += 1;
        let number = self.last_addresses.1;
        format!("10.244.{}.{}", (number / 250) % 250, number % 250 + 1)
    }
}

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
    started: Once,
}

impl SandboxCluster {
    /// Runs `step` on the state and wakes the controllers.
    pub(crate) fn update<T>(&self, step: impl FnOnce(&mut SandboxState) -> T) -> T {
        let result = step(&mut self.state.lock());
        self.controller_work.send_modify(|count| *count += 1);
        result
    }

    /// Starts the controllers, once, on the runtime of the caller.
    pub(crate) fn start(self: &Arc<Self>) {
        self.started.call_once(|| {
            tokio::spawn(controllers::run(Arc::downgrade(self), self.controller_work.subscribe()));
        });
    }
}

impl Drop for SandboxCluster {
    /// Watches do not outlive the cluster.
    fn drop(&mut self) {
        self.connection_cuts.raise();
    }
}

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
        let cluster = SandboxCluster {
            options,
            state: Mutex::new(state),
            faults: Mutex::default(),
            requests: Mutex::default(),
            connection_cuts: CountedSignal::default(),
            controller_work: watch::Sender::new(1),
            started: Once::new(),
        };
        Self { cluster: Arc::new(cluster) }
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
