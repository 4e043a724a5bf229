//! When to reconcile: one closed [`Event`] enum, one queue, one loop.
//!
//! Each turn of the loop takes in what happened and then brings the world forward: starts what is
//! due, within bounds per cluster, and sets the next deadline. Nothing waits inside the loop: all
//! requests are tasks that report back as events, and a wait (for health, for an approval, for a
//! cluster) is only the absence of an event. A newer revision takes over at once.
//!
//! What it knows is a cache of Git and of the clusters; kill it and the next one does the same.
//!
//! Each turn costs what has happened since the turn before: `targets.rs` is the agenda of targets to look at, `wanted.rs` indexes what is
//! rendered for a cluster. Retries: after a failed request 1 s, 2 s … 5 min, after a refusal 30 s, 1 min … 5 min, because no watch event
//! reports that the obstacle is gone. A retry delay ends when the rendered objects, the apply settings or the refused object change, or
//! when the cluster answers again.
//!
//! A process that stands by is one in observe mode that posts nothing. `Event::Elected` has the effect of another `mode` in `tutti.yaml`.
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

/// How many events may wait before their senders do.
const QUEUE: usize = 1024;
/// How long a stop waits for requests that are under way, and then for the forge.
const GRACE: Duration = Duration::from_secs(30);
const FORGE_GRACE: Duration = Duration::from_secs(5);

/// How long to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until told to stop.
    Stopped,
    /// Until there is nothing left to do or to wait for, but not longer than this.
    Settled { timeout: Duration },
    /// Until it is known what there is to do, but not longer than this.
    Planned { timeout: Duration },
    /// The same, and until the cause is known of what is not well.
    Explained { timeout: Duration },
}

/// Finds the way to a cluster from its manifest.
pub type Links = Arc<dyn Fn(&Cluster) -> Link + Send + Sync>;

/// What the process was told.
pub struct Settings {
    pub origin: Origin,
    pub links: Links,
    /// What keeps secrets and registers clusters.
    pub home: Home,
    /// What the repository may refer to.
    pub grants: Arc<Grants>,
    pub charts: Arc<chart::Service>,
    /// What opens encrypted files.
    pub keys: Keys,
    pub until: Until,
    /// Overrides the instance's own mode: `plan` and its like observe, whatever Git says.
    pub mode: Option<Mode>,
    /// Clusters are asked what the plans would make of their objects; for a run that only observes.
    pub foresee: bool,
    /// Commit statuses are written.
    pub report: bool,
    /// Of this process. Whoever revokes it stops all writes; nothing is started after that.
    pub permit: WritePermit,
    /// Another process writes: this one looks on until it is elected.
    pub stands_by: bool,
    /// Who counts.
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

/// Who wakes the controller.
#[derive(Debug)]
pub struct Inputs {
    /// Time to ask Git.
    pub wakes: mpsc::Receiver<()>,
    pub hints: mpsc::Receiver<Hint>,
    /// What came of measurements after waves.
    pub measured: watch::Receiver<Arc<AllOutcomes>>,
    /// This process was elected, if it stood by.
    pub elected: CancellationToken,
    pub stop: CancellationToken,
}

/// Who listens to it.
#[derive(Debug)]
pub struct Outputs {
    pub overview: watch::Sender<Arc<Overview>>,
    /// The instance as read last: receivers and poll interval follow it.
    pub instance: watch::Sender<Option<Arc<Instance>>>,
    pub head: watch::Sender<Option<Arc<ConfigHead>>>,
}

/// The config repository as it was read last.
#[derive(Clone, Debug)]
pub struct ConfigHead {
    pub fleet: Arc<Fleet>,
    pub snapshot: Arc<Snapshot>,
    /// The kinds that its apps define, once all of them are rendered.
    pub defined: Option<Defined>,
}

/// How a run ended.
#[derive(Debug)]
pub enum Ending {
    Settled,
    Stopped,
    TimedOut,
    /// The repository could not be read at all.
    Unreadable(LoadError),
}

/// Runs the controller; the last overview says what it left behind.
pub async fn run(settings: Settings, mut inputs: Inputs, outputs: Outputs) -> (Ending, Arc<Overview>) {
    let (sender, mut events) = mpsc::channel(QUEUE);
    let queue = sender.downgrade();
    let depth = move || queue.upgrade().map_or(0, |queue| queue.max_capacity() - queue.capacity());
    settings.metrics.watch_queue(depth);
    let deadline = match settings.until {
        Until::Stopped => None,
        // One beyond all clocks is none.
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
                // Whatever else is here already belongs to the same turn.
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

/// Starts nothing new and lets what is under way come to its end: a write is never cut off between
/// sending and answer.
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

/// Tells everybody what is known now, if anything changed since the last time; or says when it will. The overview is of
/// everything: a large fleet that changes all the time is not told of at each change.
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
