//! Decides when to reconcile: one closed [`Event`] enum, one queue, one loop.
//!
//! Each turn of the loop handles the events and then advances the state: it starts due work within limits per cluster, and sets
//! the next deadline. The loop never blocks. Every request is a task that reports back as an event. A wait (for health, for an
//! approval, for a cluster) is only the absence of an event. A newer revision takes over at once.
//!
//! Its state is a cache of Git and of the clusters: a restarted process decides the same.
//!
//! A turn costs what has happened since the turn before: `targets.rs` is the work queue of targets, `wanted.rs` indexes the
//! rendered objects of a cluster. Retries: after a failed request 1 s, 2 s … 5 min, after a refusal 30 s, 1 min … 5 min, because
//! no watch event reports that the obstacle is gone. A retry delay ends when the rendered objects, the apply settings or the
//! refused object change, or when the cluster answers again.
//!
//! A standby process runs in observe mode and posts nothing. `Event::Elected` has the effect of another `mode` in `tutti.yaml`.
//! `plan`, `diff`, `get`, `why` and `approve` run the same controller once in observe mode.

mod admission;
mod advance;
mod agreements;
mod apps;
mod cause_lists;
mod cause_searches;
mod causes;
mod claims;
mod cluster_entry;
mod clusters;
mod dropped;
mod event;
mod expiry;
mod file_versions;
mod follow;
mod grants;
mod head_renders;
mod in_flight;
mod jitter;
mod last_lines;
mod listing;
mod load;
mod mistakes;
mod no_pods;
mod outcome;
mod overview;
mod parting;
mod phase;
mod posting;
mod prune;
mod registry;
mod removal;
mod rollouts;
mod secrets;
mod serving;
mod supervisor;
mod target;
mod targets;
mod versions;
mod wanted;
mod weight;
mod went_back;
mod words;
mod world;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use apps::{Clock, approvals_of_other_versions};
pub use cluster_entry::START_LASTS;
pub use event::LoadError;
pub use grants::Grants;
pub use load::Origin;
pub use registry::registered;
pub use secrets::{SecretError, resolve as resolve_secret};

use crate::chart;
use crate::cluster::{Home, Link, WritePermit};
use crate::fleet::Fleet;
use crate::forge::Hint;
use crate::metrics::Metrics;
use crate::model::{Cluster, Instance, Keys, Mode, Snapshot};
use crate::render::Defined;
use crate::report::Overview;
use crate::rollout::AllOutcomes;
use event::Event;
use world::World;

/// Events in the queue before senders wait.
const QUEUE: usize = 1024;
/// How long a stop waits for requests in progress, and then for the forge.
const GRACE: Duration = Duration::from_secs(30);
const FORGE_GRACE: Duration = Duration::from_secs(5);

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    Stopped,
    /// When nothing is left to do or to wait for, or at the timeout.
    Settled { timeout: Duration },
    /// When the plans are known, or at the timeout.
    Planned { timeout: Duration },
    /// Like `Planned`, and the causes of unhealthy objects are known.
    Explained { timeout: Duration },
}

/// Finds the connection of a cluster from its manifest.
pub type Links = Arc<dyn Fn(&Cluster) -> Link + Send + Sync>;

/// The settings of the process.
pub struct Settings {
    pub origin: Origin,
    pub links: Links,
    /// The home cluster: it keeps secrets and registers clusters.
    pub home: Home,
    pub grants: Arc<Grants>,
    pub charts: Arc<chart::Service>,
    /// Keys for encrypted files.
    pub keys: Keys,
    pub until: Until,
    /// Overrides the mode of the instance: `plan` and similar commands observe, whatever Git says.
    pub mode: Option<Mode>,
    /// Plans are also sent as dry runs to the clusters; for a run that only observes.
    pub foresee: bool,
    pub report: bool,
    /// The permit of this process. Revoking it stops all writes, and nothing is started after that.
    pub permit: WritePermit,
    /// Another process writes; this one observes until it is elected.
    pub stands_by: bool,
    pub metrics: Metrics,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("origin", &self.origin)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// The inputs of the controller.
#[derive(Debug)]
pub struct Inputs {
    pub wakes: mpsc::Receiver<()>,
    pub hints: mpsc::Receiver<Hint>,
    /// The results of measurements after waves.
    pub measured: watch::Receiver<Arc<AllOutcomes>>,
    /// This process was elected, if it was standby.
    pub elected: CancellationToken,
    pub stop: CancellationToken,
}

/// The outputs of the controller.
#[derive(Debug)]
pub struct Outputs {
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
    pub defined: Option<Defined>,
}

#[derive(Debug)]
pub enum Ending {
    Settled,
    Stopped,
    TimedOut,
    /// The repository could not be read at all.
    Unreadable(LoadError),
}

/// Runs the controller. The last overview shows the remaining state.
pub async fn run(settings: Settings, mut inputs: Inputs, outputs: Outputs) -> (Ending, Arc<Overview>) {
    let (sender, mut events) = mpsc::channel(QUEUE);
    let queue = sender.downgrade();
    let depth = move || queue.upgrade().map_or(0, |queue| queue.max_capacity() - queue.capacity());
    settings.metrics.watch_queue(depth);
    let deadline = match settings.until {
        Until::Stopped => None,
        // A timeout beyond the range of the clock means no timeout.
        Until::Settled { timeout } | Until::Planned { timeout } | Until::Explained { timeout } => {
            Instant::now().checked_add(timeout)
        }
    };
    let mut world = World::new(settings, sender);
    world.handle(Event::Wake);
    let mut published = None;

    let ending = loop {
        let wake = world.advance(Instant::now());
        let next = publish(&mut world, &outputs, &mut published);
        if let Some(ending) = world.ending() {
            break ending;
        }
        let wake = [wake, next, deadline].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = inputs.stop.cancelled() => break Ending::Stopped,
            () = inputs.elected.cancelled(), if world.stands_by() => world.handle(Event::Elected),
            Some(event) = events.recv() => {
                world.handle(event);
                // Events that are in the queue already belong to the same turn.
                while let Ok(event) = events.try_recv() {
                    world.handle(event);
                }
            }
            Some(hint) = inputs.hints.recv() => world.handle(Event::Hint(hint)),
            Ok(()) = inputs.measured.changed() => {
                world.measured(Arc::clone(&inputs.measured.borrow_and_update()));
            }
            Some(()) = inputs.wakes.recv() => world.handle(Event::Wake),
            () = sleep_until(wake) => {
                if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    break Ending::TimedOut;
                }
            }
        }
    };

    drain(&mut world, &mut events).await;
    publish(&mut world, &outputs, &mut None);
    world.flush(&mut events, FORGE_GRACE).await;
    let overview = Arc::clone(&outputs.overview.borrow());
    (ending, overview)
}

/// Starts nothing new, and lets work in progress end: a write is never interrupted between request and response.
async fn drain(world: &mut World, events: &mut mpsc::Receiver<Event>) {
    world.cancel();
    let give_up = Instant::now() + GRACE;
    while world.is_busy() {
        tokio::select! {
            Some(event) = events.recv() => world.handle(event),
            () = tokio::time::sleep_until(give_up) => {
                tracing::warn!("requests are still under way after {GRACE:?}; they are left to the cluster");
                return;
            }
        }
    }
}

/// Publishes the overview if the state has changed, or returns when it will. The overview covers everything, so a large fleet
/// that changes all the time is not published at each change.
fn publish(world: &mut World, outputs: &Outputs, last: &mut Option<Instant>) -> Option<Instant> {
    if !world.has_changed() {
        return None;
    }
    let now = Instant::now();
    if let Some(next) = last.map(|last| last + world.pause_of_overviews()).filter(|next| *next > now) {
        return Some(next);
    }
    *last = Some(now);
    let overview = Arc::new(world.overview());
    world.published(&overview);
    outputs.overview.send_replace(overview);
    outputs.instance.send_if_modified(|known| {
        let instance = world.instance();
        let changed = *known != instance;
        *known = instance;
        changed
    });
    outputs.head.send_if_modified(|known| world.renew_head(known));
    None
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
