//! One kind, listed and watched for ever.
//!
//! A list begins without a resourceVersion, so it is of the newest state: one from a cache that is behind would take back
//! what was seen already. Where the server can, it comes as a stream, as the first events of the watch that goes on after it;
//! where not, page by page. A list that breaks off says nothing of what is gone: it begins again. A watch that breaks off goes on
//! where it was; one that never tells anything is listed from time to time, until it does ([`sight`]).

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

/// Objects of one page of a list: it is held whole while it is read.
pub(super) const PAGE: u32 = 100;

/// A page of a list, or the beginning of a watch, comes within this. Longer than the transport waits for the first byte.
const ANSWER: Duration = Duration::from_secs(120);
/// The server ends a watch after this, in seconds.
const LENGTH: u32 = 290;
/// A watch that ends by itself tells nothing for longer than this only if its connection is gone.
const SILENCE: Duration = Duration::from_secs(295);
/// Between the objects of a streamed list, and before its end, a server may be silent for so long. One that has never heard of
/// streamed lists may tell all objects and not that they are all; a real one waits 3 s at most, for its cache.
const SILENCE_OF_LISTS: Duration = Duration::from_secs(10);
/// A watch that the server ends sooner did not go well.
const SHORTEST: Duration = Duration::from_secs(1);
/// After so many streamed lists in a row that broke off, the next one comes page by page.
const STREAMS_THAT_BREAK: u32 = 3;
/// After so many errors in a row that the server tells at the same place, all is listed again.
const ERRORS_AT_ONE_PLACE: u32 = 3;

/// Before a page is asked for again for which others left no room: it has waited for room before.
const CROWDED: Duration = Duration::from_secs(1);
/// After so many times in a row all is listed again: a list does not go on for ever where it was.
const CROWDED_AT_ONE_PAGE: u32 = 5;

/// Bytes of the token by which a list goes on.
const LONGEST_TOKEN: usize = 8 * 1024;

/// Ends the objects of a streamed list.
const END_OF_LIST: &str = "k8s.io/initial-events-end";

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Of whom the log speaks.
    pub cluster: ClusterName,
    /// Everything, without one.
    pub labels: Option<String>,
    /// Objects of one page.
    pub page: u32,
    /// The longest pause before a list that is refused again and again.
    pub longest_pause: Duration,
}

/// All objects that are asked for, and what becomes of them, for ever.
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
    /// Objects of a page of this list: fewer, where one was too large.
    page: u32,
    /// How often in a row others left no room for the next page.
    crowded: u32,
    kept: Kept,
    /// The bound that it went over, until a list is whole: told once.
    over: Option<OverBound>,
    /// Told after what comes next.
    queued: Option<Change>,
    /// Streamed lists in a row that broke off.
    broken_streams: u32,
    /// Errors in a row that the server told at the same place.
    errors: u32,
    /// A right was missing, and the log tells of it.
    denial_is_told: bool,
    state: State<METADATA>,
}

#[derive(Default)]
enum State<const METADATA: bool> {
    #[default]
    Start,
    /// A list was said to begin.
    Begun,
    /// The objects of a streamed list are told.
    Streamed(Events<METADATA>),
    /// The next page; `None` is the first.
    Page(Option<String>),
    /// Objects of a page are told.
    Read {
        items: std::vec::IntoIter<Told<METADATA>>,
        then: Then,
        /// What the page takes of the budget.
        room: Vec<Share>,
    },
    /// All before this resourceVersion is known.
    Known(String),
    Watched {
        version: String,
        events: Events<METADATA>,
        since: Instant,
        is_heard: bool,
    },
}

/// What comes after a page.
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
        // No resourceVersion is the newest one.
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
            // Who may not watch may still list, and is told what is missing when it cannot go on.
            Err(error) if self.is_denied(&error) => {
                self.state = State::Page(None);
                None
            }
            Err(error) => {
                // It may be streamed lists alone that it has trouble with.
                if matches!(error, kube::Error::Api(_)) {
                    self.broken_streams += 1;
                } else if asked.elapsed() >= SILENCE_OF_LISTS {
                    // Something on the way may keep what has no end. A page has one.
                    self.broken_streams = STREAMS_THAT_BREAK;
                }
                self.breaks(words(&error), State::Start)
            }
        }
    }

    /// We may not. That is told once: it is asked for again for as long as it lasts.
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
                // What goes well is the watch: one that has to be listed again at once shall wait ever longer.
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
                    // A page of fewer may fit in.
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

    /// The same page again, where others left no room for it; then fewer, for which there is room sooner. The page after that is as
    /// large as before.
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
                    // Too old for the server, or not a version of its store.
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

    /// The server tells an error, or what cannot be read, at this place of a watch.
    fn errs(&mut self, status: &Status, why: String, version: String, is_heard: bool) -> Option<Change> {
        self.errors += 1;
        let is_lost = status.code == 410 || self.errors >= ERRORS_AT_ONE_PLACE;
        self.misses(is_heard || is_lost, why, if is_lost { State::Start } else { State::Known(version) })
    }

    /// It tells more than is kept of a cluster. All is listed again, ever more seldom: by then it may be less.
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
        // What was too large may be gone when all is listed again.
        self.page = self.wanted.page;
    }

    /// Something came of a watch, which goes on.
    fn hears(&mut self, version: String, events: Events<METADATA>, since: Instant) {
        self.errors = 0;
        self.streams.note_event();
        self.pauses.went_well();
        self.sees();
        self.state = State::Watched { version, events, since, is_heard: true };
    }

    /// A watch is over; whether it was one.
    fn ends(&mut self, since: Instant, is_heard: bool) -> bool {
        let was_one = is_heard || since.elapsed() >= SHORTEST;
        if was_one {
            self.pauses.went_well();
        }
        was_one
    }

    /// The watch tells of what happens, also where nothing does.
    fn sees(&mut self) {
        if self.sight.tells() {
            let (cluster, kind) = (&self.wanted.cluster, &self.api.kind);
            tracing::info!(%cluster, kind, "a kind is watched again");
            self.denial_is_told = false;
            self.queued = Some(Change::Sees);
        }
    }

    /// A watch broke off. `is_heard`: it told something, or what is listed now makes up for it.
    fn misses(&mut self, is_heard: bool, why: String, then: State<METADATA>) -> Option<Change> {
        if is_heard {
            return self.breaks(why, then);
        }
        let told = self.loses(why.clone());
        let broken = self.breaks(why, then);
        told.or(broken)
    }

    /// A watch told nothing. Said once that is so for good.
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

/// It goes into the address of the next page.
fn check_token(token: &str) -> Result<(), OverBound> {
    if token.len() <= LONGEST_TOKEN {
        return Ok(());
    }
    Err(OverBound::new(format!("a list of it goes on with a token longer than {LONGEST_TOKEN} bytes")))
}

/// An answer that never comes to its end is none. Through a proxy nothing else would tell.
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

/// The server cannot do it. What it says of rights, of trouble and of kinds that are not there holds for lists of any form.
fn is_refusal(status: &Status) -> bool {
    matches!(status.code, 400 | 405 | 406 | 415 | 422 | 501)
}

/// What may be told. An answer that cannot be read would be quoted: it may be a Secret.
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
