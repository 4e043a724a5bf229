//! Decides when to reconcile: one closed [`Event`] enum, one queue, one loop.
//!
//! Each turn of the loop handles the events and then advances the state: it starts due work within limits per cluster, and sets
//! the next deadline. The loop never blocks. Every request is a task that reports back as an event. A wait (for health, for an
//! approval, for a cluster) is only the absence of an event. A newer revision takes over at once.
//!
//! Its state is a cache of Git and of the clusters: a restarted process decides the same.
//!
//! A turn costs what has happened since the turn before: `targets.rs` is the work queue of targets, `desired_index.rs` indexes the
//! rendered objects of a cluster. Retries: after a failed request 1 s, 2 s … 5 min, after a refusal 30 s, 1 min … 5 min, because
//! no watch event reports that the obstacle is gone. A retry delay ends when the rendered objects, the apply settings or the
//! refused object change, or when the cluster answers again.
//!
//! A standby process runs in observe mode and posts nothing. `Event::Elected` has the effect of another `mode` in `tutti.yaml`.
//! `plan`, `diff`, `get`, `why` and `approve` run the same controller once in observe mode.

mod advance;
mod agreements;
mod api_discovery;
mod apps;
mod cause_lists;
mod cause_searches;
mod causes;
mod cluster_entry;
mod cluster_removal;
mod clusters;
mod crash_logs;
mod delete_policies;
mod desired_index;
mod event;
mod event_causes;
mod expiry_warnings;
mod file_versions;
mod grants;
mod head_renders;
mod in_flight;
mod interner;
mod jitter;
mod kubeconfig_watch;
mod list_limiter;
mod load;
mod mistakes;
mod non_fast_forward;
mod overview;
mod pending_removal;
mod phase;
mod posting;
mod prune;
mod queue_memory;
mod registry;
mod rollouts;
mod run_ending;
mod secrets;
mod state;
mod supervisor;
mod target_entry;
mod targets;
mod task_results;
mod unregistered;
mod versions;
mod volume_claims;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use apps::{RuntimeClock, approvals_of_other_versions};
pub use cluster_entry::STARTUP_GRACE_PERIOD;
pub use event::LoadError;
pub use grants::RepositoryGrants;
pub use load::ManifestOrigin;
pub use registry::read_registered_clusters;
pub use secrets::{SecretError, resolve_operator_secret};

use crate::chart;
use crate::cluster::{ClusterLink, HomeCluster, WritePermit};
use crate::fleet::Fleet;
use crate::forge::WebhookHint;
use crate::metrics::Metrics;
use crate::model::{Cluster, DecryptionKeys, Instance, InstanceMode, Snapshot};
use crate::render::DefinedKindsByCluster;
use crate::report::Overview;
use crate::rollout::AllMeasurementOutcomes;
use event::Event;
use state::ControllerState;

/// Events in the queue before senders wait.
const QUEUE_CAPACITY: usize = 1024;
/// How long a stop waits for requests in progress, and then for the forge.
const STOP_GRACE_PERIOD: Duration = Duration::from_secs(30);
const FORGE_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunUntil {
    Stopped,
    /// When nothing is left to do or to wait for, or at the timeout.
    Settled {
        timeout: Duration,
    },
    /// When the plans are known, or at the timeout.
    Planned {
        timeout: Duration,
    },
    /// Like `Planned`, and the causes of unhealthy objects are known.
    Explained {
        timeout: Duration,
    },
}

/// Finds the connection of a cluster from its manifest.
pub type LinkResolver = Arc<dyn Fn(&Cluster) -> ClusterLink + Send + Sync>;

/// The settings of the process.
pub struct ControllerSettings {
    pub origin: ManifestOrigin,
    pub link_resolver: LinkResolver,
    /// The home cluster: it keeps secrets and registers clusters.
    pub home: HomeCluster,
    pub grants: Arc<RepositoryGrants>,
    pub charts: Arc<chart::ChartService>,
    /// Keys for encrypted files.
    pub keys: DecryptionKeys,
    pub until: RunUntil,
    /// Overrides the mode of the instance: `plan` and similar commands observe, whatever Git says.
    pub mode: Option<InstanceMode>,
    /// Plans are also sent as dry runs to the clusters; for a run that only observes.
    pub dry_runs: bool,
    pub posts_statuses: bool,
    /// The permit of this process. Revoking it stops all writes, and nothing is started after that.
    pub permit: WritePermit,
    /// Another process writes; this one observes until it is elected.
    pub is_standby: bool,
    pub metrics: Metrics,
}

impl std::fmt::Debug for ControllerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("origin", &self.origin)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// The inputs of the controller.
#[derive(Debug)]
pub struct ControllerInputs {
    pub wakes: mpsc::Receiver<()>,
    pub hints: mpsc::Receiver<WebhookHint>,
    /// The results of measurements after waves.
    pub measurements: watch::Receiver<Arc<AllMeasurementOutcomes>>,
    /// This process was elected, if it was standby.
    pub elected: CancellationToken,
    pub stop: CancellationToken,
}

/// The outputs of the controller.
#[derive(Debug)]
pub struct ControllerOutputs {
    pub overview: watch::Sender<Arc<Overview>>,
    /// The instance at the last read: receivers and the poll interval follow it.
    pub instance: watch::Sender<Option<Arc<Instance>>>,
    pub head: watch::Sender<Option<Arc<ConfigHead>>>,
}

/// The config repository at the last read.
#[derive(Clone, Debug)]
pub struct ConfigHead {
    pub fleet: Arc<Fleet>,
    pub snapshot: Arc<Snapshot>,
    /// The kinds that its apps define, once all of them are rendered.
    pub defined: Option<DefinedKindsByCluster>,
}

#[derive(Debug)]
pub enum RunEnding {
    Settled,
    Stopped,
    TimedOut,
    /// The repository could not be read at all.
    Unreadable(LoadError),
}

/// Runs the controller. The last overview shows the remaining state.
pub async fn run(
    settings: ControllerSettings,
    mut inputs: ControllerInputs,
    outputs: ControllerOutputs,
) -> (RunEnding, Arc<Overview>) {
    let (sender, mut events) = mpsc::channel(QUEUE_CAPACITY);
    let queue = sender.downgrade();
    let depth = move || queue.upgrade().map_or(0, |queue| queue.max_capacity() - queue.capacity());
    settings.metrics.watch_queue(depth);
    let deadline = match settings.until {
        RunUntil::Stopped => None,
        // A timeout beyond the range of the clock means no timeout.
        RunUntil::Settled { timeout } | RunUntil::Planned { timeout } | RunUntil::Explained { timeout } => {
            Instant::now().checked_add(timeout)
        }
    };
    let mut state = ControllerState::new(settings, sender);
    state.handle(Event::Wake);
    let mut published = None;

    let ending = loop {
        let wake = state.advance(Instant::now());
        let next = publish(&mut state, &outputs, &mut published);
        if let Some(ending) = state.ending() {
            break ending;
        }
        let wake = [wake, next, deadline].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = inputs.stop.cancelled() => break RunEnding::Stopped,
            () = inputs.elected.cancelled(), if state.is_standby() => state.handle(Event::Elected),
            Some(event) = events.recv() => {
                state.handle(event);
                // Events that are in the queue already belong to the same turn.
                while let Ok(event) = events.try_recv() {
                    state.handle(event);
                }
            }
            Some(hint) = inputs.hints.recv() => state.handle(Event::Hint(hint)),
            Ok(()) = inputs.measurements.changed() => {
                state.update_measurements(Arc::clone(&inputs.measurements.borrow_and_update()));
            }
            Some(()) = inputs.wakes.recv() => state.handle(Event::Wake),
            () = sleep_until(wake) => {
                if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    break RunEnding::TimedOut;
                }
            }
        }
    };

    drain(&mut state, &mut events).await;
    publish(&mut state, &outputs, &mut None);
    state.flush(&mut events, FORGE_GRACE_PERIOD).await;
    let overview = Arc::clone(&outputs.overview.borrow());
    (ending, overview)
}

/// Starts nothing new, and lets work in progress end: a write is never interrupted between request and response.
async fn drain(state: &mut ControllerState, events: &mut mpsc::Receiver<Event>) {
    state.cancel();
    let give_up = Instant::now() + STOP_GRACE_PERIOD;
    while state.is_busy() {
        tokio::select! {
            Some(event) = events.recv() => state.handle(event),
            () = tokio::time::sleep_until(give_up) => {
                tracing::warn!("requests are still under way after {STOP_GRACE_PERIOD:?}; this process does \
                                not wait for their results");
                return;
            }
        }
    }
}

/// Publishes the overview if the state has changed, or returns when it will. The overview covers everything, so a large fleet
/// that changes all the time is not published at each change.
fn publish(
    state: &mut ControllerState,
    outputs: &ControllerOutputs,
    last: &mut Option<Instant>,
) -> Option<Instant> {
    if !state.has_changed() {
        return None;
    }
    let now = Instant::now();
    if let Some(next) = last.map(|last| last + state.overview_interval()).filter(|next| *next > now) {
        return Some(next);
    }
    *last = Some(now);
    let overview = Arc::new(state.overview());
    state.handle_published(&overview);
    outputs.overview.send_replace(overview);
    outputs.instance.send_if_modified(|known| {
        let instance = state.instance();
        let changed = *known != instance;
        *known = instance;
        changed
    });
    outputs.head.send_if_modified(|known| state.refresh_head(known));
    None
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
