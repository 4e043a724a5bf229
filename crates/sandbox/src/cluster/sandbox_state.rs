//! The state of one cluster: objects, kinds, clock, options.

use std::sync::Arc;

use crate::clock::SandboxClock;
use crate::faults::MutatingWebhook;
use crate::options::SandboxOptions;
use crate::registry::KindRegistry;
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::store::ObjectStore;

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
