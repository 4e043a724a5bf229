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

use super::apps::AppHeads;
use super::event::Event;
use crate::chart;
use crate::fleet::Fleet;
use crate::metrics::Metrics;
use crate::model::Snapshot;
use crate::render::{Admission, DiscoveredCapabilities, FleetRenderer, Pacing, RenderCache, Renders};

/// After this time the apps rendered so far are applied. The next parts follow after twice the time each.
const PARTIAL_RENDER_AFTER: Duration = Duration::from_secs(3);

/// The input of a render, on any thread.
#[derive(Debug)]
pub struct HeadRenderInput {
    pub fleet: Arc<Fleet>,
    pub snapshot: Arc<Snapshot>,
    pub charts: Arc<chart::ChartService>,
    pub discovered: DiscoveredCapabilities,
    /// Apps in waves, from the last render.
    pub heads: Arc<AppHeads>,
    pub metrics: Metrics,
}

#[derive(Debug, Default)]
pub struct HeadRenders {
    /// Renders of earlier revisions.
    memory: Arc<Mutex<RenderCache>>,
    last: Option<Arc<Renders>>,
    /// Number of started renders, and the number of the last finished one: they differ while a render is in progress. One
    /// revision may be rendered several times, for other clusters or with more charts.
    started: u64,
    finished: u64,
    /// A part of the render in progress is applied, and the rest is slow.
    is_slow: bool,
    /// Charts arrived during the render in progress.
    has_new_charts: bool,
    /// Stops the render in progress.
    stop_flag: Arc<AtomicBool>,
}

impl HeadRenders {
    /// Runs on a blocking thread, which reports to the event queue. The render in progress becomes outdated.
    pub fn begin(&mut self, head: HeadRenderInput, events: mpsc::Sender<Event>) {
        self.started += 1;
        self.has_new_charts = false;
        self.is_slow = false;
        self.stop_flag.store(true, Ordering::Relaxed);
        self.stop_flag = Arc::default();
        let (number, memory, is_outdated) =
            (self.started, Arc::clone(&self.memory), Arc::clone(&self.stop_flag));
        let told = events.clone();
        let rendering = tokio::task::spawn_blocking(move || {
            let HeadRenderInput { fleet, snapshot, charts, discovered, mut heads, metrics } = head;
            let started = Instant::now();
            let _span = tracing::trace_span!("render", revision = snapshot.revision.short()).entered();
            let mut patience = PARTIAL_RENDER_AFTER;
            loop {
                // The previous render releases the memory soon, and this one reuses its results.
                let mut memory = memory.lock();
                let begun = Instant::now();
                let clock = || begun.elapsed();
                let goes_on = || !is_outdated.load(Ordering::Relaxed) && clock() < patience;
                let renders =
                    FleetRenderer::with_capabilities(&fleet, &snapshot, &*charts, discovered.clone())
                        .render_while(&mut memory, Pacing { goes_on: &goes_on, clock: &clock });
                drop(memory);
                if is_outdated.load(Ordering::Relaxed) {
                    return;
                }
                let is_last = renders.is_complete();
                if is_last {
                    metrics.record_render(started.elapsed());
                }
                heads = Arc::new(AppHeads::of(&fleet, &snapshot, &*charts, &renders, &heads));
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
    pub fn accept(&mut self, number: u64, renders: Renders) -> Option<Arc<Renders>> {
        if self.started != number {
            return None;
        }
        match renders.is_complete() {
            true => self.finished = number,
            false => self.is_slow = true,
        }
        Some(Arc::clone(self.last.insert(Arc::new(renders))))
    }

    pub fn last(&self) -> Option<&Arc<Renders>> {
        self.last.as_ref()
    }

    /// No revision was ever rendered in full.
    pub fn is_first(&self) -> bool {
        self.finished == 0
    }

    pub fn is_under_way(&self) -> bool {
        self.started != self.finished
    }

    /// Whether a cluster with changed capabilities waits for the end of the render. A slow render is not waited for: the next one
    /// starts with the current capabilities.
    pub fn blocks_cluster_renders(&self) -> bool {
        self.is_under_way() && !self.is_slow
    }

    /// It ended without a result, which is a bug.
    pub fn mark_crashed(&mut self, number: u64) {
        if self.started == number {
            self.finished = number;
        }
    }

    /// Records that a chart arrived. Returns whether to render now: one render at a time.
    pub fn chart_arrived(&mut self) -> bool {
        self.has_new_charts = true;
        self.needs_rerender()
    }

    /// Charts arrived that the last render did not have.
    pub fn needs_rerender(&self) -> bool {
        self.has_new_charts && !self.is_under_way()
    }
}
