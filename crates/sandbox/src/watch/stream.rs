//! The life of one watch.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::event;
use crate::cluster::{Cluster, State};
use crate::selectors::Selector;
use crate::status::{ApiError, FieldError};
use crate::store::Stored;
use crate::verbs;
use crate::wire::negotiate::Shape;
use crate::wire::query::Query;
use crate::wire::route::Target;

/// What the client asked for.
#[derive(Debug)]
pub(crate) struct WatchRequest {
    target: Target,
    selector: Selector,
    shape: Shape,
    /// `None`: start with the present objects.
    since: Option<u64>,
    initial_events: bool,
    bookmarks: bool,
    timeout: Duration,
}

/// A server ends watches after 30 to 60 minutes when the client does not say.
const LONGEST: Duration = Duration::from_secs(1800);
/// How often an idle watch gets a bookmark.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

impl WatchRequest {
    pub(crate) fn parse(
        target: &Target,
        query: &Query,
        shape: Shape,
        streaming_lists: bool,
    ) -> Result<Self, ApiError> {
        let mut selector = verbs::selector(&target.kind, query)?;
        if !target.name.is_empty() {
            let name = format!("metadata.name={}", target.name);
            selector = Selector::parse(&target.kind, query.text("labelSelector"), &name)?;
        }
        let initial_events = query.flag("sendInitialEvents") && streaming_lists;
        if initial_events && query.text("resourceVersionMatch") != "NotOlderThan" {
            let mistake = FieldError::forbidden(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            );
            return Err(ApiError::invalid_options("WatchOptions", &[mistake]));
        }
        if query.flag("sendInitialEvents") && !streaming_lists {
            let mistake = FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
            );
            return Err(ApiError::invalid_options("ListOptions", &[mistake]));
        }
        let since = query.number("resourceVersion")?.filter(|revision| *revision > 0);
        Ok(Self {
            target: target.clone(),
            selector,
            shape,
            since: if initial_events { None } else { since },
            initial_events,
            bookmarks: query.flag("allowWatchBookmarks"),
            timeout: query.number("timeoutSeconds")?.map_or(LONGEST, Duration::from_secs),
        })
    }
}

struct Watch {
    cluster: Weak<Cluster>,
    request: WatchRequest,
    cursor: u64,
    pending: VecDeque<Pending>,
    changes: watch::Receiver<u64>,
    connections: watch::Receiver<u64>,
    ends: Instant,
    bookmark_at: Instant,
    finished: bool,
}

/// What waits to be sent. Present objects are encoded only when the client takes them.
enum Pending {
    Line(Bytes),
    Present(Stored),
}

/// Starts a watch; its first events are those of the state as it is now.
pub(crate) fn open(
    cluster: &Arc<Cluster>,
    state: &mut State,
    request: WatchRequest,
) -> impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static {
    let now = Instant::now();
    let resource = request.target.kind.resource();
    let mut watch = Watch {
        cluster: Arc::downgrade(cluster),
        cursor: request.since.unwrap_or_else(|| state.store.revision()),
        pending: VecDeque::new(),
        changes: state.store.subscribe(&resource),
        connections: cluster.connections.subscribe(),
        ends: now + request.timeout,
        bookmark_at: now + BOOKMARK_EVERY,
        finished: false,
        request,
    };
    if watch.request.since.is_none() {
        watch.send_present(state);
    }
    futures::stream::unfold(watch, |mut watch| async move {
        let next = watch.next().await?;
        Some((next, watch))
    })
}

impl Watch {
    fn namespace(&self) -> Option<&str> {
        let namespace = self.request.target.namespace.as_str();
        (!namespace.is_empty()).then_some(namespace)
    }

    fn send_present(&mut self, state: &State) {
        let kind = &self.request.target.kind;
        let selector = &self.request.selector;
        let present = state.store.list_stored(&kind.resource(), self.namespace());
        let mut pending: VecDeque<Pending> = present
            .filter(|(_, object)| selector.is_empty() || selector.matches_text(&object.text()))
            .map(|(_, object)| Pending::Present(object.clone()))
            .collect();
        if self.request.initial_events {
            let end = event::bookmark(kind, self.cursor, true, self.request.shape);
            pending.push_back(Pending::Line(end));
        }
        self.pending = pending;
    }

    /// The next bytes; `None` ends the watch cleanly, an error cuts it.
    async fn next(&mut self) -> Option<Result<Bytes, io::Error>> {
        loop {
            if let Some(next) = self.pending.pop_front() {
                return Some(Ok(self.line(next)));
            }
            if self.finished {
                return None;
            }
            self.changes.borrow_and_update();
            self.collect()?;
            if !self.pending.is_empty() {
                continue;
            }
            tokio::select! {
                biased;
                _ = self.connections.changed() => {
                    self.finished = true;
                    return Some(Err(io::Error::new(io::ErrorKind::ConnectionReset, "the connection was cut")));
                }
                changed = self.changes.changed() => changed.ok()?,
                () = tokio::time::sleep_until(self.ends) => self.finish(),
                () = tokio::time::sleep_until(self.bookmark_at), if self.request.bookmarks => self.send_bookmark(),
            }
        }
    }

    /// Moves what happened since the cursor to the pending lines.
    fn collect(&mut self) -> Option<()> {
        let cluster = self.cluster.upgrade()?;
        let state = cluster.state.lock();
        let resource = self.request.target.kind.resource();
        let changes = match state.store.changes_since(&resource, self.cursor) {
            Ok(changes) => changes,
            Err(compacted) => {
                let expired = ApiError::expired(self.cursor, compacted.oldest);
                self.pending.push_back(Pending::Line(event::error(&expired)));
                self.finished = true;
                return Some(());
            }
        };
        let namespace = self.request.target.namespace.as_str();
        let namespace = (!namespace.is_empty()).then_some(namespace);
        let WatchRequest { target, selector, shape, .. } = &self.request;
        for change in changes {
            self.cursor = change.revision;
            if change.place.is_in(namespace)
                && let Some(line) = event::of(&state.store, &target.kind, change, selector, *shape)
            {
                self.pending.push_back(Pending::Line(line));
            }
        }
        Some(())
    }

    fn line(&self, pending: Pending) -> Bytes {
        match pending {
            Pending::Line(line) => line,
            Pending::Present(object) => {
                event::line("ADDED", &self.request.target.kind, &object, self.request.shape)
            }
        }
    }

    fn send_bookmark(&mut self) {
        if let Some(cluster) = self.cluster.upgrade() {
            self.cursor = self.cursor.max(cluster.state.lock().store.revision());
        }
        let line = event::bookmark(&self.request.target.kind, self.cursor, false, self.request.shape);
        self.pending.push_back(Pending::Line(line));
        self.bookmark_at = Instant::now() + BOOKMARK_EVERY;
    }

    fn finish(&mut self) {
        if self.request.bookmarks {
            self.send_bookmark();
        }
        self.finished = true;
    }
}
