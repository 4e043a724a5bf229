//! The stream of one watch: initial events, changes, bookmarks, timeout.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use tokio::time::Instant;

use super::event;
use super::request::{WatchRequest, WatchStart};
use crate::api_error::ApiError;
use crate::clock::SandboxClock;
use crate::cluster::{SandboxCluster, SandboxState};
use crate::signal::CountedSignal;
use crate::store::StoredObject;
use crate::verbs;
use crate::wire::content_negotiation::ResponseShape;

/// How often an idle watch gets a bookmark, and how long before its end it gets the last one.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

struct WatchStream {
    cluster: Weak<SandboxCluster>,
    request: WatchRequest,
    resource: String,
    /// How many of all changes of the resource this watch has processed.
    seen_changes: u64,
    pending: VecDeque<PendingEvent>,
    changes: CountedSignal,
    connection_cuts: CountedSignal,
    /// How often connections had been cut when this one began.
    initial_cut_count: u64,
    ends_at: Instant,
    bookmark_at: Instant,
    finished: bool,
    clock: SandboxClock,
    /// True until the first table is sent.
    is_first: bool,
}

/// An event to send. Existing objects are encoded when the client reads them.
enum PendingEvent {
    Line(Bytes),
    Present(StoredObject),
}

/// Starts a watch; its first events are those of the state as it is now.
pub(crate) fn open(
    cluster: &Arc<SandboxCluster>,
    state: &mut SandboxState,
    request: WatchRequest,
) -> impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static {
    let now = Instant::now();
    let resource = request.target.kind.resource();
    let mut watch = WatchStream {
        cluster: Arc::downgrade(cluster),
        seen_changes: 0,
        pending: VecDeque::new(),
        changes: state.store.subscribe(&resource),
        connection_cuts: cluster.connection_cuts.clone(),
        initial_cut_count: cluster.connection_cuts.count(),
        ends_at: now + request.timeout,
        bookmark_at: now,
        finished: false,
        clock: state.clock,
        is_first: true,
        resource,
        request,
    };
    watch.plan_bookmark(now);
    watch.start(state);
    futures::stream::unfold(watch, |mut watch| async move {
        let next = watch.next().await?;
        Some((next, watch))
    })
}

impl WatchStream {
    fn namespace(&self) -> Option<&str> {
        let namespace = self.request.target.namespace.as_str();
        (!namespace.is_empty()).then_some(namespace)
    }

    fn start(&mut self, state: &SandboxState) {
        let current = state.store.revision();
        let (from, marked) = match self.request.start {
            WatchStart::After(revision) => (revision, None),
            WatchStart::Now => (current, None),
            WatchStart::Existing { at_least, marked } => (current, Some((at_least, marked))),
        };
        match state.store.changes_before(&self.resource, from) {
            Ok(seen) => self.seen_changes = seen,
            Err(compacted) => return self.fail(&ApiError::expired(from, compacted.oldest)),
        }
        match marked {
            Some((at_least, _)) if at_least > current => {
                self.fail(&verbs::future_revision_error(at_least, current))
            }
            Some((_, marked)) => self.send_present(state, current, marked),
            None => {}
        }
    }

    fn send_present(&mut self, state: &SandboxState, current: u64, marked: bool) {
        let selector = &self.request.selector;
        let pairs = selector.required_labels();
        let present = state.store.list_labelled_from(&self.resource, self.namespace(), "", &pairs);
        let mut pending: VecDeque<PendingEvent> = present
            .filter(|(_, object)| selector.is_empty() || selector.matches_text(&object.text()))
            .map(|(_, object)| PendingEvent::Present(object.clone()))
            .collect();
        if marked && self.request.bookmarks {
            let end = event::bookmark(&self.request.target.kind, current, true, self.request.shape);
            pending.push_back(PendingEvent::Line(end));
        }
        self.pending = pending;
    }

    /// The event in the shape that the client requested.
    fn encode_for_client(&mut self, next: PendingEvent) -> Bytes {
        let line = self.line(next);
        let ResponseShape::Table(include) = self.request.shape else { return line };
        let first = std::mem::take(&mut self.is_first);
        event::as_table(&line, &self.request.target.kind, &self.clock, include, first)
    }

    /// The next bytes; `None` ends the watch cleanly, an error cuts it.
    async fn next(&mut self) -> Option<Result<Bytes, io::Error>> {
        loop {
            if let Some(next) = self.pending.pop_front() {
                return Some(Ok(self.encode_for_client(next)));
            }
            if self.finished {
                return None;
            }
            let changes = self.changes.count();
            self.collect()?;
            if !self.pending.is_empty() || self.finished {
                continue;
            }
            let wakes = self.ends_at.min(self.bookmark_at);
            tokio::select! {
                biased;
                () = self.connection_cuts.wait_beyond(self.initial_cut_count) => {
                    self.finished = true;
                    return Some(Err(io::Error::new(io::ErrorKind::ConnectionReset, "the connection was cut")));
                }
                () = self.changes.wait_beyond(changes) => {}
                () = tokio::time::sleep_until(wakes) => self.tick()?,
            }
        }
    }

    /// Moves what happened since the last look to the pending lines; returns the present revision.
    fn collect(&mut self) -> Option<u64> {
        let cluster = self.cluster.upgrade()?;
        let state = cluster.state.lock();
        let current = state.store.revision();
        let changes = match state.store.changes_from(&self.resource, self.seen_changes) {
            Ok(changes) => changes,
            Err(compacted) => {
                self.fail(&ApiError::expired(compacted.oldest.saturating_sub(1), compacted.oldest));
                return Some(current);
            }
        };
        let namespace = self.request.target.namespace.as_str();
        let namespace = (!namespace.is_empty()).then_some(namespace);
        let WatchRequest { target, selector, shape, start: begin, .. } = &self.request;
        for change in changes {
            self.seen_changes += 1;
            if change.place.is_in(namespace)
                && !begin.skips(change.revision)
                && let Some(line) = event::for_change(&state.store, &target.kind, change, selector, *shape)
            {
                self.pending.push_back(PendingEvent::Line(line));
            }
        }
        if !state.registry.serves(&target.kind) {
            // its definition went, or stopped serving this version: the watch ends with it
            self.finished = true;
        }
        Some(current)
    }

    fn line(&self, pending: PendingEvent) -> Bytes {
        match pending {
            PendingEvent::Line(line) => line,
            PendingEvent::Present(object) => {
                event::encode_stored("ADDED", &self.request.target.kind, &object, self.request.shape)
            }
        }
    }

    fn fail(&mut self, error: &ApiError) {
        self.pending.push_back(PendingEvent::Line(event::error(error)));
        self.finished = true;
    }

    /// Ends the watch or sends a bookmark.
    fn tick(&mut self) -> Option<()> {
        let now = Instant::now();
        if now >= self.ends_at {
            self.finished = true;
            return Some(());
        }
        let current = self.collect()?;
        if self.request.bookmarks && !self.finished && !self.request.start.is_after(current) {
            let line = event::bookmark(&self.request.target.kind, current, false, self.request.shape);
            self.pending.push_back(PendingEvent::Line(line));
        }
        self.plan_bookmark(now);
        Some(())
    }

    fn plan_bookmark(&mut self, now: Instant) {
        if !self.request.bookmarks {
            self.bookmark_at = self.ends_at;
            return;
        }
        self.bookmark_at = now + BOOKMARK_EVERY;
        let last = self.ends_at.checked_sub(BOOKMARK_BEFORE_END).filter(|last| *last > now);
        if let Some(last) = last {
            self.bookmark_at = self.bookmark_at.min(last);
        }
    }
}
