//! Lists and watches one kind without end.
//!
//! A list begins without a resourceVersion and so has the newest state: an outdated cache would revert newer
//! observations. If the server can, the list is a stream, as the first events of the following watch; otherwise it
//! comes page by page. An interrupted list proves nothing and begins again. An interrupted watch continues at its
//! last version. A watch that never delivers an event is replaced by periodic lists, until it does ([`liveness`]).

mod liveness;
mod object_counter;
mod pauses;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use kube::api::{Api, ApiResource, ListParams, WatchEvent, WatchParams};
use kube::core::Status;
use tokio::time::Instant;

use self::liveness::WatchLiveness;
use self::object_counter::ObjectCounter;
use self::pauses::WatchBackoff;
use super::budget::BudgetShare;
use super::error::{clean, innermost};
use super::object::{ServerObject, check_name};
use super::response_bounds::{OverBound, with_reservation};
use super::stream_support::StreamSupport;
use super::watch_change::WatchChange;
use crate::model::ClusterName;

pub(super) use self::object_counter::new_object_budget;
pub(super) use self::pauses::LONGEST_PAUSE;

/// Objects of one page, which is in memory as a whole.
pub(super) const PAGE: u32 = 100;

/// The timeout of a page, or of the start of a watch. Longer than that of the transport for the first byte.
const ANSWER: Duration = Duration::from_secs(120);
/// Seconds after which the server ends a watch.
const LENGTH: u32 = 290;
/// A silent watch beyond this has lost its connection: the server would have ended it.
const SILENCE: Duration = Duration::from_secs(295);
/// The longest silence within a streamed list. A server that does not know streamed lists sends all objects and never
/// the end; a real one waits at most 3 s, for its cache.
const SILENCE_OF_LISTS: Duration = Duration::from_secs(10);
/// A watch that ends sooner counts as failed.
const SHORTEST: Duration = Duration::from_secs(1);
/// After so many interrupted streamed lists in a row the next one comes page by page.
const STREAMS_THAT_BREAK: u32 = 3;
/// After so many server errors in a row at one version, everything is listed again.
const ERRORS_AT_ONE_PLACE: u32 = 3;

/// The pause before a page is requested again because other responses left no room. It has waited for room before.
const CROWDED: Duration = Duration::from_secs(1);
/// After so many times in a row everything is listed again.
const CROWDED_AT_ONE_PAGE: u32 = 5;

/// Bytes of a list's continue token.
const LONGEST_TOKEN: usize = 8 * 1024;

/// The annotation at the end of a streamed list.
const END_OF_LIST: &str = "k8s.io/initial-events-end";

#[derive(Clone, Debug)]
pub(super) struct WatchConfig {
    /// For the log.
    pub cluster: ClusterName,
    /// `None`: all objects.
    pub labels: Option<String>,
    /// Objects of one page.
    pub page: u32,
    /// The longest pause before a list that is refused repeatedly.
    pub longest_pause: Duration,
}

/// All requested objects and their changes, without end.
pub(super) fn watch_changes<const METADATA: bool>(
    objects: Api<ServerObject<METADATA>>,
    api: ApiResource,
    wanted: WatchConfig,
    streams: Arc<StreamSupport>,
) -> impl Stream<Item = WatchChange> + Send + 'static {
    let watching = WatchLoop {
        liveness: WatchLiveness::new((wanted.cluster.as_str(), &api.group, &api.plural)),
        objects,
        api,
        backoff: WatchBackoff::new(wanted.longest_pause),
        queued: None,
        page: wanted.page,
        crowded_retries: 0,
        counter: ObjectCounter::of(&streams.objects),
        logged_bound: None,
        config: wanted,
        streams,
        broken_streams: 0,
        errors_at_version: 0,
        is_denial_logged: false,
        state: WatchLoopState::Start,
    };
    futures::stream::unfold(watching, |mut watching| async move {
        let change = watching.next().await;
        Some((change, watching))
    })
}

type Events<const METADATA: bool> = BoxStream<'static, kube::Result<WatchEvent<ServerObject<METADATA>>>>;

struct WatchLoop<const METADATA: bool> {
    objects: Api<ServerObject<METADATA>>,
    api: ApiResource,
    config: WatchConfig,
    streams: Arc<StreamSupport>,
    backoff: WatchBackoff,
    liveness: WatchLiveness,
    /// Objects of a page of this list: fewer after a page that was too large.
    page: u32,
    /// How often in a row other responses left no room for the next page.
    crowded_retries: u32,
    counter: ObjectCounter,
    /// The exceeded bound, until a list is whole: logged once.
    logged_bound: Option<OverBound>,
    /// Returned after the next change.
    queued: Option<WatchChange>,
    /// Interrupted streamed lists in a row.
    broken_streams: u32,
    /// Server errors in a row at one version.
    errors_at_version: u32,
    /// A missing right was logged.
    is_denial_logged: bool,
    state: WatchLoopState<METADATA>,
}

#[derive(Default)]
enum WatchLoopState<const METADATA: bool> {
    #[default]
    Start,
    /// The start of a list was reported.
    Begun,
    /// A streamed list is being read.
    Streamed(Events<METADATA>),
    /// The next page; `None` is the first.
    Page(Option<String>),
    /// The objects of a page are being returned.
    Read {
        items: std::vec::IntoIter<ServerObject<METADATA>>,
        then: AfterPage,
        /// The page's share of the budget.
        room: Vec<BudgetShare>,
    },
    /// Everything up to this resourceVersion was reported.
    Known(String),
    Watching {
        version: String,
        events: Events<METADATA>,
        since: Instant,
        is_heard: bool,
    },
}

enum AfterPage {
    Page(String),
    Known(String),
}

impl<const METADATA: bool> WatchLoop<METADATA> {
    async fn next(&mut self) -> WatchChange {
        loop {
            if let Some(change) = self.queued.take() {
                return change;
            }
            let is_list = !matches!(self.state, WatchLoopState::Known(_) | WatchLoopState::Watching { .. });
            self.backoff.wait(is_list).await;
            if let Some(change) = self.step().await {
                return change;
            }
        }
    }

    async fn step(&mut self) -> Option<WatchChange> {
        match std::mem::take(&mut self.state) {
            WatchLoopState::Start => {
                self.counter.start_list();
                self.state = WatchLoopState::Begun;
                Some(WatchChange::ListStarted)
            }
            WatchLoopState::Begun => self.begin_list().await,
            WatchLoopState::Streamed(events) => self.read_streamed(events).await,
            WatchLoopState::Page(token) => self.read_page(token).await,
            WatchLoopState::Read { items, then, room } => self.read_item(items, then, room),
            WatchLoopState::Known(version) if !self.is_list_due() => self.watch_from(version).await,
            WatchLoopState::Known(_) => {
                self.state = WatchLoopState::Start;
                None
            }
            WatchLoopState::Watching { version, events, since, is_heard } => {
                self.read_watched(version, events, (since, is_heard)).await
            }
        }
    }

    async fn begin_list(&mut self) -> Option<WatchChange> {
        let is_refused = self.broken_streams >= STREAMS_THAT_BREAK || !self.streams.may_stream(&self.api);
        if is_refused || self.liveness.is_polling() {
            self.state = WatchLoopState::Page(None);
            return None;
        }
        let mut parameters = self.parameters();
        parameters.send_initial_events = true;
        let asked = Instant::now();
        // No resourceVersion means the newest one.
        match within(self.objects.watch(&parameters, "")).await {
            Ok(events) => {
                self.state = WatchLoopState::Streamed(events.boxed());
                None
            }
            Err(kube::Error::Api(status)) if is_refusal(&status) => {
                tracing::debug!(kind = self.api.kind, error = words_of(&status), "lists come page by page");
                self.streams.note_refusal(&self.api);
                self.state = WatchLoopState::Page(None);
                None
            }
            // An account without the watch right may still list. The missing right is reported when the watch fails.
            Err(error) if self.note_denied(&error) => {
                self.state = WatchLoopState::Page(None);
                None
            }
            Err(error) => {
                // Only streamed lists may fail on this server.
                if matches!(error, kube::Error::Api(_)) {
                    self.broken_streams += 1;
                } else if asked.elapsed() >= SILENCE_OF_LISTS {
                    // Something on the way may buffer an endless response. A page ends.
                    self.broken_streams = STREAMS_THAT_BREAK;
                }
                self.disconnect(error_text(&error), WatchLoopState::Start)
            }
        }
    }

    /// A right is missing. Logged once; the request is repeated while it lasts.
    fn note_denied(&mut self, error: &kube::Error) -> bool {
        let kube::Error::Api(status) = error else { return false };
        let is_denied = status.code == 403;
        if is_denied && !std::mem::replace(&mut self.is_denial_logged, true) {
            let (cluster, kind) = (&self.config.cluster, &self.api.kind);
            tracing::warn!(%cluster, kind, error = words_of(status), "a kind cannot be watched");
        }
        is_denied
    }

    async fn read_streamed(&mut self, mut events: Events<METADATA>) -> Option<WatchChange> {
        let why = match tokio::time::timeout(SILENCE_OF_LISTS, events.next()).await {
            Ok(Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)))) => {
                if let Err(over) =
                    object.check_name_lengths().and_then(|()| self.counter.count_listed(object.name()))
                {
                    return self.fail_over_bound(over);
                }
                self.state = WatchLoopState::Streamed(events);
                return Some(WatchChange::Updated(Box::new(object.into_value(&self.api))));
            }
            Ok(Some(Ok(WatchEvent::Deleted(object)))) => {
                self.counter.remove_object(object.name());
                self.state = WatchLoopState::Streamed(events);
                return Some(WatchChange::Removed(Box::new(object.into_value(&self.api))));
            }
            Ok(Some(Ok(WatchEvent::Bookmark(bookmark)))) => {
                if bookmark.metadata.annotations.get(END_OF_LIST).is_none_or(|said| said != "true") {
                    self.state = WatchLoopState::Streamed(events);
                    return None;
                }
                let version = bookmark.metadata.resource_version;
                if version.is_empty() {
                    return self.disconnect(NO_VERSION.to_owned(), WatchLoopState::Start);
                }
                if let Err(over) = check_name(&version) {
                    return self.fail_over_bound(over);
                }
                (self.broken_streams, self.errors_at_version) = (0, 0);
                self.end_list();
                self.note_watch_works();
                // Only the watch resets the backoff: one that must list again at once shall wait ever longer.
                let listed = WatchChange::ListEnded { version: version.clone() };
                self.state =
                    WatchLoopState::Watching { version, events, since: Instant::now(), is_heard: false };
                return Some(listed);
            }
            Ok(Some(Ok(WatchEvent::Error(status)))) => words_of(&status),
            Ok(Some(Err(error))) => error_text(&error),
            Ok(None) => "it ended before it had sent all objects".to_owned(),
            Err(_) => {
                self.streams.note_refusal(&self.api);
                "the server did not confirm that it had sent all objects".to_owned()
            }
        };
        self.broken_streams += 1;
        self.disconnect(why, WatchLoopState::Start)
    }

    async fn read_page(&mut self, token: Option<String>) -> Option<WatchChange> {
        let parameters = ListParams {
            label_selector: self.config.labels.clone(),
            limit: Some(self.page_size()),
            continue_token: token.clone(),
            ..ListParams::default()
        };
        let (list, room) = with_reservation(within(self.objects.list(&parameters))).await;
        let list = match list {
            Ok(list) => list,
            Err(error) => {
                return match OverBound::find_in(&error) {
                    Some(over) if over.is_crowded() && self.crowded_retries < CROWDED_AT_ONE_PAGE => {
                        self.crowded_retries += 1;
                        self.state = WatchLoopState::Page(token);
                        tokio::time::sleep(CROWDED).await;
                        None
                    }
                    // A smaller page may fit.
                    Some(over) if !over.is_crowded() && self.page > 1 => {
                        self.page = fewer(self.page);
                        self.state = WatchLoopState::Page(token);
                        None
                    }
                    _ => {
                        self.note_denied(&error);
                        self.disconnect(error_text(&error), WatchLoopState::Start)
                    }
                };
            }
        };
        self.crowded_retries = 0;
        let is_said = |text: &String| !text.is_empty();
        let (token, version) = (list.metadata.continue_, list.metadata.resource_version);
        let then = match (token.filter(is_said), version.filter(is_said)) {
            (Some(token), _) => AfterPage::Page(token),
            (None, Some(version)) => AfterPage::Known(version),
            (None, None) => return self.disconnect(NO_VERSION.to_owned(), WatchLoopState::Start),
        };
        let is_short = match &then {
            AfterPage::Page(token) => check_token(token),
            AfterPage::Known(version) => check_name(version),
        };
        if let Err(over) = is_short.and_then(|()| self.counter.count_page(list.items.len())) {
            return self.fail_over_bound(over);
        }
        self.state = WatchLoopState::Read { items: list.items.into_iter(), then, room };
        None
    }

    /// The size of the next page. Without room the same size is tried again, then a smaller one. Later pages have the
    /// old size again.
    fn page_size(&self) -> u32 {
        (1..self.crowded_retries).fold(self.page, |page, _| fewer(page))
    }

    fn read_item(
        &mut self,
        mut items: std::vec::IntoIter<ServerObject<METADATA>>,
        then: AfterPage,
        room: Vec<BudgetShare>,
    ) -> Option<WatchChange> {
        if let Some(object) = items.next() {
            if let Err(over) =
                object.check_name_lengths().and_then(|()| self.counter.count_listed(object.name()))
            {
                return self.fail_over_bound(over);
            }
            self.state = WatchLoopState::Read { items, then, room };
            return Some(WatchChange::Updated(Box::new(object.into_value(&self.api))));
        }
        match then {
            AfterPage::Page(token) => {
                self.state = WatchLoopState::Page(Some(token));
                None
            }
            AfterPage::Known(version) => {
                (self.broken_streams, self.errors_at_version) = (0, 0);
                self.end_list();
                self.liveness.note_list();
                self.state = WatchLoopState::Known(version.clone());
                Some(WatchChange::ListEnded { version })
            }
        }
    }

    async fn watch_from(&mut self, version: String) -> Option<WatchChange> {
        let patience = self.liveness.until_list().map_or(ANSWER, |until| until.min(ANSWER));
        match within_time(patience, self.objects.watch(&self.parameters(), &version)).await {
            Ok(events) => {
                let since = Instant::now();
                self.state =
                    WatchLoopState::Watching { version, events: events.boxed(), since, is_heard: false };
                None
            }
            Err(error) => {
                self.note_denied(&error);
                match &error {
                    _ if self.is_list_due() => {
                        self.state = WatchLoopState::Start;
                        None
                    }
                    // Too old for the server, or no version of its store.
                    kube::Error::Api(status) if matches!(status.code, 400 | 410 | 422) => {
                        self.disconnect(error_text(&error), WatchLoopState::Start)
                    }
                    _ => self.fail_silent_watch(false, error_text(&error), WatchLoopState::Known(version)),
                }
            }
        }
    }

    async fn read_watched(
        &mut self,
        version: String,
        mut events: Events<METADATA>,
        (since, is_heard): (Instant, bool),
    ) -> Option<WatchChange> {
        let patience = self.liveness.until_list().map_or(SILENCE, |until| until.min(SILENCE));
        let next = tokio::time::timeout(patience, events.next()).await;
        let (object, is_gone) = match next {
            Ok(Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)))) => (object, false),
            Ok(Some(Ok(WatchEvent::Deleted(object)))) => (object, true),
            Ok(Some(Ok(WatchEvent::Bookmark(bookmark)))) => {
                let moved = bookmark.metadata.resource_version;
                if let Err(over) = check_name(&moved) {
                    return self.fail_over_bound(over);
                }
                if moved.is_empty() || moved == version {
                    self.note_watch_works();
                    self.state = WatchLoopState::Watching { version, events, since, is_heard };
                } else {
                    self.continue_watch(moved, events, since);
                }
                return None;
            }
            Ok(Some(Ok(WatchEvent::Error(status)))) => {
                return self.handle_watch_error(&status, words_of(&status), version, is_heard);
            }
            Ok(Some(Err(kube::Error::Api(status)))) => {
                return self.handle_watch_error(&status, words_of(&status), version, is_heard);
            }
            Ok(Some(Err(error @ kube::Error::SerdeError(_)))) => {
                return self.handle_watch_error(&Status::default(), error_text(&error), version, is_heard);
            }
            Ok(Some(Err(error))) if OverBound::find_in(&error).is_some() => {
                return self.handle_watch_error(&Status::default(), error_text(&error), version, is_heard);
            }
            Ok(Some(Err(error))) => {
                self.end_watch(since, is_heard);
                return self.fail_silent_watch(is_heard, error_text(&error), WatchLoopState::Known(version));
            }
            Ok(None) => {
                if self.end_watch(since, is_heard) {
                    self.note_watch_works();
                    self.state = WatchLoopState::Known(version);
                    return None;
                }
                return self.fail_silent_watch(
                    is_heard,
                    "the server ended it at once".to_owned(),
                    WatchLoopState::Known(version),
                );
            }
            Err(_) => {
                self.end_watch(since, is_heard);
                self.state = WatchLoopState::Known(version);
                let is_silent = !is_heard && !self.is_list_due();
                return is_silent
                    .then(|| self.note_watch_lost("it sent nothing until its end".to_owned()))
                    .flatten();
            }
        };
        let Some(version) = object.version().map(str::to_owned) else {
            return self.disconnect(NO_VERSION.to_owned(), WatchLoopState::Start);
        };
        let kept = if is_gone {
            self.counter.remove_object(object.name());
            Ok(())
        } else {
            object.check_name_lengths().and_then(|()| self.counter.count_object(object.name()))
        };
        if let Err(over) = kept {
            return self.fail_over_bound(over);
        }
        self.continue_watch(version, events, since);
        let object = Box::new(object.into_value(&self.api));
        Some(if is_gone { WatchChange::Removed(object) } else { WatchChange::Updated(object) })
    }

    /// An error event, or an unreadable one, at this version of a watch.
    fn handle_watch_error(
        &mut self,
        status: &Status,
        why: String,
        version: String,
        is_heard: bool,
    ) -> Option<WatchChange> {
        self.errors_at_version += 1;
        let is_lost = status.code == 410 || self.errors_at_version >= ERRORS_AT_ONE_PLACE;
        self.fail_silent_watch(
            is_heard || is_lost,
            why,
            if is_lost { WatchLoopState::Start } else { WatchLoopState::Known(version) },
        )
    }

    /// The kind exceeds a bound. Everything is listed again, ever more seldom: it may be less by then.
    fn fail_over_bound(&mut self, over: OverBound) -> Option<WatchChange> {
        let why = over.to_string();
        if self.logged_bound.as_ref() != Some(&over) {
            let (cluster, kind) = (&self.config.cluster, &self.api.kind);
            tracing::warn!(%cluster, kind, error = why, "the objects of a kind exceed the limit of a cluster");
            self.logged_bound = Some(over);
        }
        self.disconnect(why, WatchLoopState::Start)
    }

    fn end_list(&mut self) {
        self.counter.end_list();
        self.logged_bound = None;
        // The large objects may be gone at the next list.
        self.page = self.config.page;
    }

    /// An event arrived, and the watch continues.
    fn continue_watch(&mut self, version: String, events: Events<METADATA>, since: Instant) {
        self.errors_at_version = 0;
        self.streams.note_event();
        self.backoff.reset();
        self.note_watch_works();
        self.state = WatchLoopState::Watching { version, events, since, is_heard: true };
    }

    /// A watch ended. Returns whether it had worked.
    fn end_watch(&mut self, since: Instant, is_heard: bool) -> bool {
        let was_one = is_heard || since.elapsed() >= SHORTEST;
        if was_one {
            self.backoff.reset();
        }
        was_one
    }

    /// The watch works, even if nothing changes.
    fn note_watch_works(&mut self) {
        if self.liveness.note_event() {
            let (cluster, kind) = (&self.config.cluster, &self.api.kind);
            tracing::info!(%cluster, kind, "a kind is watched again");
            self.is_denial_logged = false;
            self.queued = Some(WatchChange::WatchRestored);
        }
    }

    /// A watch was interrupted. `is_heard`: it delivered an event, or a list follows anyway.
    fn fail_silent_watch(
        &mut self,
        is_heard: bool,
        why: String,
        then: WatchLoopState<METADATA>,
    ) -> Option<WatchChange> {
        if is_heard {
            return self.disconnect(why, then);
        }
        let told = self.note_watch_lost(why.clone());
        let broken = self.disconnect(why, then);
        told.or(broken)
    }

    /// A watch delivered nothing. Reported once, if that lasts.
    fn note_watch_lost(&mut self, why: String) -> Option<WatchChange> {
        let since = self.liveness.note_failure()?;
        if !self.is_denial_logged {
            let (cluster, kind) = (&self.config.cluster, &self.api.kind);
            tracing::warn!(
                %cluster, kind, error = why,
                "a kind cannot be watched: until it can, it is listed every five minutes"
            );
        }
        Some(WatchChange::WatchLost { since, why })
    }

    fn is_list_due(&self) -> bool {
        self.liveness.until_list() == Some(Duration::ZERO)
    }

    fn disconnect(&mut self, why: String, then: WatchLoopState<METADATA>) -> Option<WatchChange> {
        self.backoff.note_failure();
        self.state = then;
        Some(WatchChange::Disconnected(why))
    }

    fn parameters(&self) -> WatchParams {
        WatchParams {
            label_selector: self.config.labels.clone(),
            timeout: Some(LENGTH),
            ..WatchParams::default()
        }
    }
}

fn fewer(page: u32) -> u32 {
    (page / 4).max(1)
}

/// The token is part of the address of the next page.
fn check_token(token: &str) -> Result<(), OverBound> {
    if token.len() <= LONGEST_TOKEN {
        return Ok(());
    }
    Err(OverBound::new(format!("a list of it goes on with a token longer than {LONGEST_TOKEN} bytes")))
}

/// Adds a timeout. Through a proxy nothing else ends a lost response.
async fn within<T>(answer: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    within_time(ANSWER, answer).await
}

async fn within_time<T>(
    patience: Duration,
    answer: impl Future<Output = kube::Result<T>>,
) -> kube::Result<T> {
    let late = |_| kube::Error::Service(format!("no answer within {} s", patience.as_secs()).into());
    tokio::time::timeout(patience, answer).await.map_err(late)?
}

const NO_VERSION: &str = "the server leaves out the resourceVersion, without which nothing can be watched";

/// The server cannot stream lists. Errors about rights, load and missing kinds apply to lists of any form.
fn is_refusal(status: &Status) -> bool {
    matches!(status.code, 400 | 405 | 406 | 415 | 422 | 501)
}

/// The error as it may be shown. An unreadable response would be quoted, and may be a Secret.
fn error_text(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => words_of(status),
        kube::Error::SerdeError(_) => "an answer that cannot be read".to_owned(),
        error => clean(&innermost(error)),
    }
}

fn words_of(status: &Status) -> String {
    if status.message.is_empty() {
        clean(&format!("{} ({})", status.reason, status.code))
    } else {
        clean(&status.message)
    }
}
