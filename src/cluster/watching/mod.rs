//! Lists and watches one kind without end.
//!
//! A list begins without a resourceVersion and so has the newest state: an outdated cache would revert newer
//! observations. If the server can, the list is a stream, as the first events of the following watch; otherwise it
//! comes page by page. An interrupted list proves nothing and begins again. An interrupted watch continues at its
//! last version. A watch that never delivers an event is replaced by periodic lists, until it does ([`sight`]).

mod kept;
mod pauses;
mod sight;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use kube::api::{Api, ApiResource, ListParams, WatchEvent, WatchParams};
use kube::core::Status;
use tokio::time::Instant;

use self::kept::Kept;
use self::pauses::Pauses;
use self::sight::Sight;
use super::bounds::{OverBound, with_room};
use super::budget::Share;
use super::error::{clean, innermost};
use super::object::{Told, check_name};
use super::streams::Streams;
use super::watch::Change;
use crate::model::ClusterName;

pub(super) use self::kept::account;
pub(super) use self::pauses::LONGEST as LONGEST_PAUSE;

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
pub(super) struct Wanted {
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
pub(super) fn changes<const METADATA: bool>(
    objects: Api<Told<METADATA>>,
    api: ApiResource,
    wanted: Wanted,
    streams: Arc<Streams>,
) -> impl Stream<Item = Change> + Send + 'static {
    let watching = Watching {
        sight: Sight::new((wanted.cluster.as_str(), &api.group, &api.plural)),
        objects,
        api,
        pauses: Pauses::new(wanted.longest_pause),
        queued: None,
        page: wanted.page,
        crowded: 0,
        kept: Kept::of(&streams.objects),
        over: None,
        wanted,
        streams,
        broken_streams: 0,
        errors: 0,
        denial_is_told: false,
        state: State::Start,
    };
    futures::stream::unfold(watching, |mut watching| async move {
        let change = watching.next().await;
        Some((change, watching))
    })
}

type Events<const METADATA: bool> = BoxStream<'static, kube::Result<WatchEvent<Told<METADATA>>>>;

struct Watching<const METADATA: bool> {
    objects: Api<Told<METADATA>>,
    api: ApiResource,
    wanted: Wanted,
    streams: Arc<Streams>,
    pauses: Pauses,
    sight: Sight,
    /// Objects of a page of this list: fewer after a page that was too large.
    page: u32,
    /// How often in a row other responses left no room for the next page.
    crowded: u32,
    kept: Kept,
    /// The exceeded bound, until a list is whole: logged once.
    over: Option<OverBound>,
    /// Returned after the next change.
    queued: Option<Change>,
    /// Interrupted streamed lists in a row.
    broken_streams: u32,
    /// Server errors in a row at one version.
    errors: u32,
    /// A missing right was logged.
    denial_is_told: bool,
    state: State<METADATA>,
}

#[derive(Default)]
enum State<const METADATA: bool> {
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
        items: std::vec::IntoIter<Told<METADATA>>,
        then: Then,
        /// The page's share of the budget.
        room: Vec<Share>,
    },
    /// Everything up to this resourceVersion was reported.
    Known(String),
    Watched {
        version: String,
        events: Events<METADATA>,
        since: Instant,
        is_heard: bool,
    },
}

enum Then {
    Page(String),
    Known(String),
}

impl<const METADATA: bool> Watching<METADATA> {
    async fn next(&mut self) -> Change {
        loop {
            if let Some(change) = self.queued.take() {
                return change;
            }
            let is_list = !matches!(self.state, State::Known(_) | State::Watched { .. });
            self.pauses.wait(is_list).await;
            if let Some(change) = self.step().await {
                return change;
            }
        }
    }

    async fn step(&mut self) -> Option<Change> {
        match std::mem::take(&mut self.state) {
            State::Start => {
                self.kept.begins();
                self.state = State::Begun;
                Some(Change::Listing)
            }
            State::Begun => self.begin().await,
            State::Streamed(events) => self.take_streamed(events).await,
            State::Page(token) => self.read_page(token).await,
            State::Read { items, then, room } => self.take_read(items, then, room),
            State::Known(version) if !self.is_list_due() => self.watch_from(version).await,
            State::Known(_) => {
                self.state = State::Start;
                None
            }
            State::Watched { version, events, since, is_heard } => {
                self.take_watched(version, events, (since, is_heard)).await
            }
        }
    }

    async fn begin(&mut self) -> Option<Change> {
        let is_refused = self.broken_streams >= STREAMS_THAT_BREAK || !self.streams.may_be_asked(&self.api);
        if is_refused || self.sight.is_lost() {
            self.state = State::Page(None);
            return None;
        }
        let mut parameters = self.parameters();
        parameters.send_initial_events = true;
        let asked = Instant::now();
        // No resourceVersion means the newest one.
        match within(self.objects.watch(&parameters, "")).await {
            Ok(events) => {
                self.state = State::Streamed(events.boxed());
                None
            }
            Err(kube::Error::Api(status)) if is_refusal(&status) => {
                tracing::debug!(kind = self.api.kind, error = words_of(&status), "lists come page by page");
                self.streams.note_refusal(&self.api);
                self.state = State::Page(None);
                None
            }
            // An account without the watch right may still list. The missing right is reported when the watch fails.
            Err(error) if self.is_denied(&error) => {
                self.state = State::Page(None);
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
                self.breaks(words(&error), State::Start)
            }
        }
    }

    /// A right is missing. Logged once; the request is repeated while it lasts.
    fn is_denied(&mut self, error: &kube::Error) -> bool {
        let kube::Error::Api(status) = error else { return false };
        let is_denied = status.code == 403;
        if is_denied && !std::mem::replace(&mut self.denial_is_told, true) {
            let (cluster, kind) = (&self.wanted.cluster, &self.api.kind);
            tracing::warn!(%cluster, kind, error = words_of(status), "a kind cannot be watched");
        }
        is_denied
    }

    async fn take_streamed(&mut self, mut events: Events<METADATA>) -> Option<Change> {
        let why = match tokio::time::timeout(SILENCE_OF_LISTS, events.next()).await {
            Ok(Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)))) => {
                if let Err(over) = object.check().and_then(|()| self.kept.lists(object.name())) {
                    return self.exceeds(over);
                }
                self.state = State::Streamed(events);
                return Some(Change::Seen(Box::new(object.into_value(&self.api))));
            }
            Ok(Some(Ok(WatchEvent::Deleted(object)))) => {
                self.kept.leaves(object.name());
                self.state = State::Streamed(events);
                return Some(Change::Left(Box::new(object.into_value(&self.api))));
            }
            Ok(Some(Ok(WatchEvent::Bookmark(bookmark)))) => {
                if bookmark.metadata.annotations.get(END_OF_LIST).is_none_or(|said| said != "true") {
                    self.state = State::Streamed(events);
                    return None;
                }
                let version = bookmark.metadata.resource_version;
                if version.is_empty() {
                    return self.breaks(NO_VERSION.to_owned(), State::Start);
                }
                if let Err(over) = check_name(&version) {
                    return self.exceeds(over);
                }
                (self.broken_streams, self.errors) = (0, 0);
                self.ends_list();
                self.sees();
                // Only the watch resets the backoff: one that must list again at once shall wait ever longer.
                let listed = Change::Listed { version: version.clone() };
                self.state = State::Watched { version, events, since: Instant::now(), is_heard: false };
                return Some(listed);
            }
            Ok(Some(Ok(WatchEvent::Error(status)))) => words_of(&status),
            Ok(Some(Err(error))) => words(&error),
            Ok(None) => "it ended before all objects were told".to_owned(),
            Err(_) => {
                self.streams.note_refusal(&self.api);
                "the server did not say that all objects were told".to_owned()
            }
        };
        self.broken_streams += 1;
        self.breaks(why, State::Start)
    }

    async fn read_page(&mut self, token: Option<String>) -> Option<Change> {
        let parameters = ListParams {
            label_selector: self.wanted.labels.clone(),
            limit: Some(self.objects_of_page()),
            continue_token: token.clone(),
            ..ListParams::default()
        };
        let (list, room) = with_room(within(self.objects.list(&parameters))).await;
        let list = match list {
            Ok(list) => list,
            Err(error) => {
                return match OverBound::of(&error) {
                    Some(over) if over.is_crowded() && self.crowded < CROWDED_AT_ONE_PAGE => {
                        self.crowded += 1;
                        self.state = State::Page(token);
                        tokio::time::sleep(CROWDED).await;
                        None
                    }
                    // A smaller page may fit.
                    Some(over) if !over.is_crowded() && self.page > 1 => {
                        self.page = fewer(self.page);
                        self.state = State::Page(token);
                        None
                    }
                    _ => {
                        self.is_denied(&error);
                        self.breaks(words(&error), State::Start)
                    }
                };
            }
        };
        self.crowded = 0;
        let is_said = |text: &String| !text.is_empty();
        let (token, version) = (list.metadata.continue_, list.metadata.resource_version);
        let then = match (token.filter(is_said), version.filter(is_said)) {
            (Some(token), _) => Then::Page(token),
            (None, Some(version)) => Then::Known(version),
            (None, None) => return self.breaks(NO_VERSION.to_owned(), State::Start),
        };
        let is_short = match &then {
            Then::Page(token) => check_token(token),
            Then::Known(version) => check_name(version),
        };
        if let Err(over) = is_short.and_then(|()| self.kept.turns(list.items.len())) {
            return self.exceeds(over);
        }
        self.state = State::Read { items: list.items.into_iter(), then, room };
        None
    }

    /// The size of the next page. Without room the same size is tried again, then a smaller one. Later pages have the
    /// old size again.
    fn objects_of_page(&self) -> u32 {
        (1..self.crowded).fold(self.page, |page, _| fewer(page))
    }

    fn take_read(
        &mut self,
        mut items: std::vec::IntoIter<Told<METADATA>>,
        then: Then,
        room: Vec<Share>,
    ) -> Option<Change> {
        if let Some(object) = items.next() {
            if let Err(over) = object.check().and_then(|()| self.kept.lists(object.name())) {
                return self.exceeds(over);
            }
            self.state = State::Read { items, then, room };
            return Some(Change::Seen(Box::new(object.into_value(&self.api))));
        }
        match then {
            Then::Page(token) => {
                self.state = State::Page(Some(token));
                None
            }
            Then::Known(version) => {
                (self.broken_streams, self.errors) = (0, 0);
                self.ends_list();
                self.sight.listed();
                self.state = State::Known(version.clone());
                Some(Change::Listed { version })
            }
        }
    }

    async fn watch_from(&mut self, version: String) -> Option<Change> {
        let patience = self.sight.until_list().map_or(ANSWER, |until| until.min(ANSWER));
        match within_time(patience, self.objects.watch(&self.parameters(), &version)).await {
            Ok(events) => {
                let since = Instant::now();
                self.state = State::Watched { version, events: events.boxed(), since, is_heard: false };
                None
            }
            Err(error) => {
                self.is_denied(&error);
                match &error {
                    _ if self.is_list_due() => {
                        self.state = State::Start;
                        None
                    }
                    // Too old for the server, or no version of its store.
                    kube::Error::Api(status) if matches!(status.code, 400 | 410 | 422) => {
                        self.breaks(words(&error), State::Start)
                    }
                    _ => self.misses(false, words(&error), State::Known(version)),
                }
            }
        }
    }

    async fn take_watched(
        &mut self,
        version: String,
        mut events: Events<METADATA>,
        (since, is_heard): (Instant, bool),
    ) -> Option<Change> {
        let patience = self.sight.until_list().map_or(SILENCE, |until| until.min(SILENCE));
        let next = tokio::time::timeout(patience, events.next()).await;
        let (object, is_gone) = match next {
            Ok(Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)))) => (object, false),
            Ok(Some(Ok(WatchEvent::Deleted(object)))) => (object, true),
            Ok(Some(Ok(WatchEvent::Bookmark(bookmark)))) => {
                let moved = bookmark.metadata.resource_version;
                if let Err(over) = check_name(&moved) {
                    return self.exceeds(over);
                }
                if moved.is_empty() || moved == version {
                    self.sees();
                    self.state = State::Watched { version, events, since, is_heard };
                } else {
                    self.hears(moved, events, since);
                }
                return None;
            }
            Ok(Some(Ok(WatchEvent::Error(status)))) => {
                return self.errs(&status, words_of(&status), version, is_heard);
            }
            Ok(Some(Err(kube::Error::Api(status)))) => {
                return self.errs(&status, words_of(&status), version, is_heard);
            }
            Ok(Some(Err(error @ kube::Error::SerdeError(_)))) => {
                return self.errs(&Status::default(), words(&error), version, is_heard);
            }
            Ok(Some(Err(error))) if OverBound::of(&error).is_some() => {
                return self.errs(&Status::default(), words(&error), version, is_heard);
            }
            Ok(Some(Err(error))) => {
                self.ends(since, is_heard);
                return self.misses(is_heard, words(&error), State::Known(version));
            }
            Ok(None) => {
                if self.ends(since, is_heard) {
                    self.sees();
                    self.state = State::Known(version);
                    return None;
                }
                return self.misses(
                    is_heard,
                    "the server ended it at once".to_owned(),
                    State::Known(version),
                );
            }
            Err(_) => {
                self.ends(since, is_heard);
                self.state = State::Known(version);
                let is_silent = !is_heard && !self.is_list_due();
                return is_silent.then(|| self.loses("it told nothing until its end".to_owned())).flatten();
            }
        };
        let Some(version) = object.version().map(str::to_owned) else {
            return self.breaks(NO_VERSION.to_owned(), State::Start);
        };
        let kept = if is_gone {
            self.kept.leaves(object.name());
            Ok(())
        } else {
            object.check().and_then(|()| self.kept.sees(object.name()))
        };
        if let Err(over) = kept {
            return self.exceeds(over);
        }
        self.hears(version, events, since);
        let object = Box::new(object.into_value(&self.api));
        Some(if is_gone { Change::Left(object) } else { Change::Seen(object) })
    }

    /// An error event, or an unreadable one, at this version of a watch.
    fn errs(&mut self, status: &Status, why: String, version: String, is_heard: bool) -> Option<Change> {
        self.errors += 1;
        let is_lost = status.code == 410 || self.errors >= ERRORS_AT_ONE_PLACE;
        self.misses(is_heard || is_lost, why, if is_lost { State::Start } else { State::Known(version) })
    }

    /// The kind exceeds a bound. Everything is listed again, ever more seldom: it may be less by then.
    fn exceeds(&mut self, over: OverBound) -> Option<Change> {
        let why = over.to_string();
        if self.over.as_ref() != Some(&over) {
            let (cluster, kind) = (&self.wanted.cluster, &self.api.kind);
            tracing::warn!(%cluster, kind, error = why, "what a cluster tells of a kind goes over its bound");
            self.over = Some(over);
        }
        self.breaks(why, State::Start)
    }

    fn ends_list(&mut self) {
        self.kept.ends();
        self.over = None;
        // The large objects may be gone at the next list.
        self.page = self.wanted.page;
    }

    /// An event arrived, and the watch continues.
    fn hears(&mut self, version: String, events: Events<METADATA>, since: Instant) {
        self.errors = 0;
        self.streams.note_event();
        self.pauses.went_well();
        self.sees();
        self.state = State::Watched { version, events, since, is_heard: true };
    }

    /// A watch ended. Returns whether it had worked.
    fn ends(&mut self, since: Instant, is_heard: bool) -> bool {
        let was_one = is_heard || since.elapsed() >= SHORTEST;
        if was_one {
            self.pauses.went_well();
        }
        was_one
    }

    /// The watch works, even if nothing changes.
    fn sees(&mut self) {
        if self.sight.tells() {
            let (cluster, kind) = (&self.wanted.cluster, &self.api.kind);
            tracing::info!(%cluster, kind, "a kind is watched again");
            self.denial_is_told = false;
            self.queued = Some(Change::Sees);
        }
    }

    /// A watch was interrupted. `is_heard`: it delivered an event, or a list follows anyway.
    fn misses(&mut self, is_heard: bool, why: String, then: State<METADATA>) -> Option<Change> {
        if is_heard {
            return self.breaks(why, then);
        }
        let told = self.loses(why.clone());
        let broken = self.breaks(why, then);
        told.or(broken)
    }

    /// A watch delivered nothing. Reported once, if that lasts.
    fn loses(&mut self, why: String) -> Option<Change> {
        let since = self.sight.failed()?;
        if !self.denial_is_told {
            let (cluster, kind) = (&self.wanted.cluster, &self.api.kind);
            tracing::warn!(
                %cluster, kind, error = why,
                "a kind cannot be watched: until it can, it is listed every five minutes"
            );
        }
        Some(Change::Blind { since, why })
    }

    fn is_list_due(&self) -> bool {
        self.sight.until_list() == Some(Duration::ZERO)
    }

    fn breaks(&mut self, why: String, then: State<METADATA>) -> Option<Change> {
        self.pauses.broke();
        self.state = then;
        Some(Change::Broken(why))
    }

    fn parameters(&self) -> WatchParams {
        WatchParams {
            label_selector: self.wanted.labels.clone(),
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
fn words(error: &kube::Error) -> String {
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
