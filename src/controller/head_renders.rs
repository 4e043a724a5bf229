//! Renders of the head: the render in progress, and the result of the last one.
//!
//! Apps that are rendered after 3 s are applied. The others are awaited (E3998) and follow after 6 s more, then 12 s. An awaited
//! app stays as it is, its commit is pending, and nothing is deleted. A newer commit stops the render in progress: no further app
//! is started.

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

/// After this time the apps rendered so far are applied. The next parts follow after twice the time each.
const FIRST_PATIENCE: Duration = Duration::from_secs(3);

/// The input of a render, on any thread.
#[derive(Debug)]
pub struct Head {
    pub fleet: Arc<Fleet>,
    pub snapshot: Arc<Snapshot>,
    pub charts: Arc<chart::Service>,
    pub discovered: Discovered,
    /// Apps in waves, from the last render.
    pub heads: Arc<Heads>,
    pub metrics: Metrics,
}

#[derive(Debug, Default)]
pub struct HeadRenders {
    /// Renders of earlier revisions.
    memory: Arc<Mutex<Memory>>,
    last: Option<Arc<Renders>>,
    /// Number of started renders, and the number of the last finished one: they differ while a render is in progress. One
    /// revision may be rendered several times, for other clusters or with more charts.
    begun: u64,
    over: u64,
    /// A part of the render in progress is applied, and the rest is slow.
    is_slow: bool,
    /// Charts arrived during the render in progress.
    is_wanted_again: bool,
    /// Stops the render in progress.
    is_outdated: Arc<AtomicBool>,
}

impl HeadRenders {
    /// Runs on a blocking thread, which reports to the event queue. The render in progress becomes outdated.
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
                // The previous render releases the memory soon, and this one reuses its results.
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
                // The send fails only when the controller has stopped.
                if events.blocking_send(rendered).is_err() || is_last {
                    return;
                }
                patience *= 2;
            }
        });
        tokio::spawn(async move {
            if rendering.await.is_err_and(|error| error.is_panic()) {
                // The send fails only when the controller has stopped.
                let _ = told.send(Event::RenderCrashed { number }).await;
            }
        });
    }

    /// The result of a render, unless a newer one has started.
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

    /// No revision was ever rendered in full.
    pub fn is_first(&self) -> bool {
        self.over == 0
    }

    pub fn is_under_way(&self) -> bool {
        self.begun != self.over
    }

    /// Whether a cluster with changed capabilities waits for the end of the render. A slow render is not waited for: the next one
    /// starts with the current capabilities.
    pub fn holds_up_clusters(&self) -> bool {
        self.is_under_way() && !self.is_slow
    }

    /// It ended without a result, which is a bug.
    pub fn crashed(&mut self, number: u64) {
        if self.begun == number {
            self.over = number;
        }
    }

    /// Records that a chart arrived. Returns whether to render now: one render at a time.
    pub fn chart_arrived(&mut self) -> bool {
        self.is_wanted_again = true;
        self.is_wanted()
    }

    /// Charts arrived that the last render did not have.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted_again && !self.is_under_way()
    }
}
