//! The worker of one route: sends due messages one after another.
//!
//! There is no queue. What is due follows from the state of each thread and from its history, so a service that hangs costs no
//! memory and gets the last state. Delivery is at least once: a message that was sent but not recorded before a crash is sent
//! once more, with the same id.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::memory::{self, Entry, FirstLook, Memory};
use super::pace::Pace;
use super::pending::{Due, Pended, Pending, Present};
use super::service::{self, Outcome, Target, send};
use super::words::{Notice, digest};
use super::{Settings, Severity};
use crate::cluster::Home;
use crate::controller::{Grants, SecretError};
use crate::model::{Digest, Notification, NotificationService, Revision, SecretRef};
use crate::report::notices::Thread;

/// The open commits of each route: their end was not sent.
pub type OpenCommits = Arc<Mutex<BTreeMap<String, BTreeSet<Revision>>>>;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Before a refused message is tried again; a person has to fix the cause.
const REFUSED_PAUSE: Duration = Duration::from_secs(300);
/// The upper bound for a delay that a service asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// While this process may not write.
const PERMIT_PAUSE: Duration = Duration::from_secs(1);
const TOUCHED: Duration = Duration::from_secs(300);
/// More messages at once become one.
const MOST_AT_ONCE: usize = 10;
/// Before a credential is read again.
const CREDENTIAL_LASTS: Duration = Duration::from_secs(60);

pub(super) struct Worker {
    settings: Arc<Settings>,
    client: reqwest::Client,
    memory: Memory,
    open: OpenCommits,
    pace: Arc<Pace>,
    pending: Pending,
    target: Option<(NotificationService, Target, Instant)>,
    /// Backoff after a failure: its end and its length.
    pause: Option<(Instant, Duration)>,
    /// Threads with a refused message, and when it is tried again. Other threads continue.
    refused: BTreeMap<Thread, Instant>,
    /// The thread whose message failed last. Others are tried before it.
    failed: Option<Thread>,
    touched: Option<Instant>,
    /// Logged once.
    trouble: Option<String>,
}

impl Worker {
    pub fn new(
        settings: Arc<Settings>,
        client: reqwest::Client,
        open: OpenCommits,
        pace: Arc<Pace>,
        route: &str,
        first_look: FirstLook,
    ) -> Self {
        let memory = Memory::open(settings.folder.as_deref(), route, first_look);
        let worker = Self {
            settings,
            client,
            memory,
            open,
            pace,
            pending: Pending::default(),
            target: None,
            pause: None,
            refused: BTreeMap::new(),
            failed: None,
            touched: None,
            trouble: None,
        };
        worker.note_open(route);
        worker
    }

    /// Runs until the sender is dropped: the route was removed, or the process ends.
    pub async fn run(mut self, mut present: watch::Receiver<Option<Arc<Present>>>) {
        loop {
            let now = present.borrow_and_update().clone();
            let wake = match now {
                Some(now) => self.turn(&now).await,
                None => None,
            };
            tokio::select! {
                changed = present.changed() => if changed.is_err() { return },
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Sends at most one due message and returns when to look again.
    async fn turn(&mut self, present: &Present) -> Option<Instant> {
        let now = Instant::now();
        if !self.settings.permit.holds() {
            return Some(now + PERMIT_PAUSE);
        }
        self.memory.belongs_to(&digest_of(&present.route));
        if self.memory.first_look.is_some() && !present.is_settled {
            return None;
        }
        let Due { messages, next, is_noted } =
            self.pending.due(&mut self.memory, present, (now, Timestamp::now()));
        if is_noted {
            self.bound(present);
            self.save().await;
        }
        self.note_open(&present.route.name);
        self.touch(now).await;
        self.refused.retain(|_, again| *again > now);
        let mut due: Vec<Pended> =
            messages.into_iter().filter(|due| !self.refused.contains_key(&due.thread)).collect();
        if due.is_empty() {
            return self.refused.values().copied().chain(next).min();
        }
        // Round robin, so that a failing message does not block others.
        let after =
            due.iter().position(|due| self.failed.as_ref().is_some_and(|failed| due.thread > *failed));
        due.rotate_left(after.unwrap_or(0));
        if let Some((until, _)) = self.pause.filter(|(until, _)| *until > now) {
            return Some(until);
        }
        let target = match self.target(&present.route.service, now).await {
            Ok(target) => target,
            Err(why) => {
                self.log_missing(&present.route.name, &why);
                return Some(self.pause(Some(LONGEST_PAUSE)));
            }
        };
        let room = match service::limits(&target) {
            Some(limits) => match self.pace.take(target.address(), limits, now) {
                Ok(room) => room,
                Err(free) => return Some(free),
            },
            None => usize::MAX,
        };
        // Messages for programs are never merged; nor are messages that may contain text refused by the service.
        let is_for_people = !matches!(present.route.service, NotificationService::Generic { .. });
        let together =
            is_for_people && self.refused.is_empty() && (due.len() > MOST_AT_ONCE || due.len() > room);
        let most = if together { due.len() } else { 1 };
        self.send(present, &target, &due[..most]).await;
        // More may be due.
        Some(self.pause.map_or(now, |(until, _)| until))
    }

    async fn send(&mut self, present: &Present, target: &Target, due: &[Pended]) {
        let at = Timestamp::now();
        let notices: Vec<Notice<'_>> = due
            .iter()
            .map(|due| Notice {
                instance: &present.instance,
                thread: &due.thread,
                happened: due.step.happened,
                told: &due.step.after,
                facts: &due.facts,
                began: due.began,
                commit: due.thread.commit().and_then(|commit| present.commits.get(commit)),
                at,
            })
            .collect();
        let language = present.route.language;
        let (message, known) = match notices.as_slice() {
            [one] => {
                // Readers are not notified of an edit, so a problem needs a new message.
                let is_quiet = matches!(Severity::of(one.happened), Severity::Info | Severity::Good);
                let is_young = |entry: &&Entry| entry.at + SignedDuration::from_hours(24) > at;
                let entry = self.memory.of(&one.thread.to_string()).filter(|_| is_quiet).filter(is_young);
                let known = entry.and_then(|entry| entry.name.clone());
                (Some(one.message(language)), known)
            }
            many => (digest(many, language, at), None),
        };
        let Some(message) = message else { return };
        let (route, service) = (&present.route.name, present.route.service.name());
        self.note_sent(due, |entry, due| {
            (entry.told, entry.sent) = (due.before.clone(), Some(due.step.after.clone()));
            entry.began = due.began;
            entry.note_names(&due.facts);
        })
        .await;
        self.bound(present);
        let send =
            send::deliver(&self.client, target, &message, at, known.as_deref(), &self.settings.through);
        let ended = || Outcome::Lost("this process may not write any more".to_owned());
        let outcome = self.settings.permit.within(Box::pin(send)).await.unwrap_or_else(ended);
        self.settings.metrics.notified(service, outcome.name());
        match outcome {
            Outcome::Sent(name) => {
                (self.pause, self.trouble, self.failed) = (None, None, None);
                // A merged message belongs to no single thread.
                let name = name.filter(|_| due.len() == 1);
                self.note_sent(due, |entry, due| {
                    (entry.told, entry.sent, entry.at) = (due.step.after.clone(), None, at);
                    entry.name.clone_from(&name);
                })
                .await;
                self.note_open(&present.route.name);
                tracing::debug!(route, service, what = message.what, "told");
            }
            Outcome::Later { after, why } => {
                self.note_sent(due, |entry, _| entry.sent = None).await;
                self.failed(route, due, &why, after);
            }
            Outcome::Lost(why) => self.failed(route, due, &why, None),
            Outcome::Refused(why) => {
                // The credential may have been replaced.
                self.target = None;
                self.note_sent(due, |entry, _| entry.sent = None).await;
                self.failed(route, due, &why, None);
                let again = Instant::now() + REFUSED_PAUSE;
                self.refused.extend(due.iter().map(|due| (due.thread.clone(), again)));
            }
        }
    }

    /// Changes the records of the messages' threads and saves them.
    async fn note_sent(&mut self, due: &[Pended], note: impl Fn(&mut Entry, &Pended)) {
        for due in due {
            let key = due.thread.to_string();
            let mut entry = self.memory.of(&key).cloned().unwrap_or_default();
            note(&mut entry, due);
            self.memory.set(key, entry);
        }
        self.save().await;
    }

    /// Keeps these commits in the evaluation of overviews.
    fn note_open(&self, route: &str) {
        let open = self.memory.threads().filter(|(_, entry)| entry.is_open());
        let open = open.filter_map(|(key, _)| Thread::parse(key)?.commit().cloned()).collect();
        self.open.lock().insert(route.to_owned(), open);
    }

    fn bound(&mut self, present: &Present) {
        let seen: BTreeSet<String> = present.seen.keys().map(ToString::to_string).collect();
        self.memory.bound(|key| seen.contains(key));
    }

    fn failed(&mut self, route: &str, due: &[Pended], why: &str, after: Option<Duration>) {
        if self.note_trouble(why) {
            tracing::warn!(route, error = why, "a notification waits");
        }
        self.failed = due.last().map(|due| due.thread.clone());
        self.pause(after);
    }

    /// An unset variable turns a route off, which is no error.
    fn log_missing(&mut self, route: &str, why: &SecretError) {
        match why {
            why if !self.note_trouble(&why.to_string()) => {}
            SecretError::NotSet(variable) => {
                tracing::info!("route {route} is off: the environment variable {variable} is not set");
            }
            why => tracing::warn!(route, error = %why, "a notification waits"),
        }
    }

    /// Whether the error differs from the last one; each is logged once.
    fn note_trouble(&mut self, why: &str) -> bool {
        self.trouble.replace(why.to_owned()).as_deref() != Some(why)
    }

    fn pause(&mut self, after: Option<Duration>) -> Instant {
        let pause = self.pause.map_or(FIRST_PAUSE, |(_, pause)| (pause * 2).min(LONGEST_PAUSE));
        let until = Instant::now() + after.unwrap_or(pause).min(LONGEST_WAIT);
        self.pause = Some((until, pause));
        until
    }

    /// Marks on disk that this process leads.
    async fn touch(&mut self, now: Instant) {
        let Some(path) = self.memory.path().filter(|_| self.touched.is_none_or(|at| at + TOUCHED <= now))
        else {
            return;
        };
        let path = path.to_owned();
        self.touched = Some(now);
        // If this fails, a later process treats done commits as sent if they are old.
        let _ = tokio::task::spawn_blocking(move || memory::touch(&path)).await;
    }

    async fn save(&self) {
        let saved = match self.memory.content() {
            Ok(None) => return,
            Ok(Some((path, bytes))) => tokio::task::spawn_blocking(move || memory::write(&path, &bytes))
                .await
                .unwrap_or_else(|error| Err(std::io::Error::other(error))),
            Err(error) => Err(error),
        };
        if let Err(error) = saved {
            tracing::warn!(%error, "what was told cannot be kept: after a restart it may be told once more");
        }
    }

    async fn target(&mut self, service: &NotificationService, now: Instant) -> Result<Target, SecretError> {
        if let Some((of, target, read_at)) = &self.target
            && of == service
            && *read_at + CREDENTIAL_LASTS > now
        {
            return Ok(target.clone());
        }
        let target = read_target(&self.settings.grants, &self.settings.home, service).await?;
        self.target = Some((service.clone(), target.clone(), now));
        Ok(target)
    }
}

/// The service with its credentials.
pub async fn read_target(
    grants: &Grants,
    home: &Home,
    service: &NotificationService,
) -> Result<Target, SecretError> {
    let read = async |reference: &SecretRef| grants.resolve(reference, home).await;
    let perhaps = async |reference: &Option<SecretRef>| match reference {
        Some(reference) => read(reference).await.map(Some),
        None => Ok(None),
    };
    Ok(match service {
        NotificationService::Feishu { url, secret } => {
            Target::Feishu { url: read(url).await?, secret: perhaps(secret).await? }
        }
        NotificationService::DingTalk { url, secret } => {
            Target::DingTalk { url: read(url).await?, secret: perhaps(secret).await? }
        }
        NotificationService::WeCom { url } => Target::WeCom { url: read(url).await? },
        NotificationService::SlackWebhook { url } => Target::SlackWebhook { url: read(url).await? },
        NotificationService::SlackBot { token, channel } => {
            Target::SlackBot { token: read(token).await?, channel: channel.clone() }
        }
        NotificationService::Teams { url } => Target::Teams { url: read(url).await? },
        NotificationService::Generic { url, secret } => {
            Target::Generic { url: read(url).await?, secret: perhaps(secret).await? }
        }
        NotificationService::Email { url, from, to } => {
            Target::Email { url: read(url).await?, from: from.clone(), to: to.clone() }
        }
    })
}

/// The digest of selection and destination.
fn digest_of(route: &Notification) -> String {
    let Notification { service, selector, phases, .. } = route;
    Digest::of(format!("{service:?} {} {:?}", selector.of_what(), phases).as_bytes()).to_string()
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
