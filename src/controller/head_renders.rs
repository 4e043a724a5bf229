//! Renders of the head: which is under way, and what the last one came to.
//!
//! What is done after 3 s is applied. The rest is awaited (E3998) and follows after 6 s more, then 12 s. An awaited app stays as it is, its
//! commit is pending, and nothing is deleted. A newer commit stops the render under way: no further app is begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::apps::Heads;
use super::event::Event;
use crate::chart;
use crate::fleet::Fleet;
use crate::metrics::Metrics;
use crate::model::Snapshot;
use crate::render::{Admission, Discovered, Memory, Pacing, Renderer, Renders};

/// After so long, what is rendered by then is applied; what takes longer follows. Then twice as long, and so on.
const FIRST_PATIENCE: Duration = Duration::from_secs(3);

/// What is rendered, on whatever thread.
#[derive(Debug)]
pub struct Head {
    pub fleet: Arc<Fleet>,
    pub snapshot: Arc<Snapshot>,
    pub charts: Arc<chart::Service>,
    pub discovered: Discovered,
    /// Apps in waves as they were rendered last.
    pub heads: Arc<Heads>,
    pub metrics: Metrics,
}

#[derive(Debug, Default)]
pub struct HeadRenders {
    /// What earlier revisions rendered to.
    memory: Arc<Mutex<Memory>>,
    /// What was rendered last.
    last: Option<Arc<Renders>>,
    /// Renders that began, and which of them is over: one is under way where they differ. One revision may be rendered several
    /// times, for other clusters or with more charts each time.
    begun: u64,
    over: u64,
    /// A part of the one that is under way is there, and the rest takes its time.
    is_slow: bool,
    /// Charts came while one was under way.
    is_wanted_again: bool,
    /// Stops the one that is under way.
    is_outdated: Arc<AtomicBool>,
}

impl HeadRenders {
    /// On a blocking thread, which reports to the queue. The one that is under way is of no use any more.
    pub fn begin(&mut self, head: Head, events: mpsc::Sender<Event>) {
        self.begun += 1;
        self.is_wanted_again = false;
        self.is_slow = false;
        self.is_outdated.store(true, Ordering::Relaxed);
        self.is_outdated = Arc::default();
        let (number, memory, is_outdated) =
            (self.begun, Arc::clone(&self.memory), Arc::clone(&self.is_outdated));
        let told = events.clone();
        let rendering = tokio::task::spawn_blocking(move || {
            let Head { fleet, snapshot, charts, discovered, mut heads, metrics } = head;
            let started = Instant::now();
            let _span = tracing::trace_span!("render", revision = snapshot.revision.short()).entered();
            let mut patience = FIRST_PATIENCE;
            loop {
                // The one before lets go of the memory in a moment, and then this one has less to do.
                let mut memory = memory.lock();
                let begun = Instant::now();
                let clock = || begun.elapsed();
                let goes_on = || !is_outdated.load(Ordering::Relaxed) && clock() < patience;
                let renders = Renderer::knowing(&fleet, &snapshot, &*charts, discovered.clone())
                    .render_while(&mut memory, Pacing { goes_on: &goes_on, clock: &clock });
                drop(memory);
                if is_outdated.load(Ordering::Relaxed) {
                    return;
                }
                let is_last = renders.is_complete();
                if is_last {
                    metrics.rendered(started.elapsed());
                }
                heads = Arc::new(Heads::of(&fleet, &snapshot, &*charts, &renders, &heads));
                let (admission, heads) = (Admission::of(&fleet, &renders), Arc::clone(&heads));
                let rendered = Event::Rendered { number, renders: Box::new(renders), heads, admission };
                // A closed queue means that the controller has stopped: nobody is left to tell.
                if events.blocking_send(rendered).is_err() || is_last {
                    return;
                }
                patience *= 2;
            }
        });
        tokio::spawn(async move {
            if rendering.await.is_err_and(|error| error.is_panic()) {
                // A closed queue: the controller has stopped.
                let _ = told.send(Event::RenderCrashed { number }).await;
            }
        });
    }

    /// What a render came to; nothing where a newer one has begun.
    pub fn take(&mut self, number: u64, renders: Renders) -> Option<Arc<Renders>> {
        if self.begun != number {
            return None;
        }
        match renders.is_complete() {
            true => self.over = number,
            false => self.is_slow = true,
        }
        Some(Arc::clone(self.last.insert(Arc::new(renders))))
    }

    pub fn last(&self) -> Option<&Arc<Renders>> {
        self.last.as_ref()
    }

    /// No revision was ever rendered whole.
    pub fn is_first(&self) -> bool {
        self.over == 0
    }

    pub fn is_under_way(&self) -> bool {
        self.begun != self.over
    }

    /// Whether a cluster that says something else of itself waits for the end. Nobody waits for a slow one: it begins again
    /// with what it has.
    pub fn holds_up_clusters(&self) -> bool {
        self.is_under_way() && !self.is_slow
    }

    /// It ended without a result, by a fault of ours.
    pub fn crashed(&mut self, number: u64) {
        if self.begun == number {
            self.over = number;
        }
    }

    /// A chart came. Whether to render now: one at a time.
    pub fn chart_arrived(&mut self) -> bool {
        self.is_wanted_again = true;
        self.is_wanted()
    }

    /// Charts came that the last render did not have.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted_again && !self.is_under_way()
    }
}
