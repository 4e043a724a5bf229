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

use super::due_messages::{DueMessage, DueMessages, MessageTimers, RouteState};
use super::message_text::{Notice, digest_message};
use super::rate_limiter::RateLimiter;
use super::route_history::{self, RouteHistory, RouteStart, ThreadRecord};
use super::service::{self, ResolvedService, SendOutcome, send};
use super::{MessageSeverity, NotificationSettings};
use crate::cluster::HomeCluster;
use crate::controller::{RepositoryGrants, SecretError};
use crate::model::{Digest, Notification, NotificationService, Revision, SecretRef};
use crate::report::notices::NotificationThread;

/// The open commits of each route: their end was not sent.
pub type OpenCommits = Arc<Mutex<BTreeMap<String, BTreeSet<Revision>>>>;

const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Before a refused message is tried again; a person has to fix the cause.
const REFUSED_RETRY_DELAY: Duration = Duration::from_secs(300);
/// The upper bound for a delay that a service asks for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);
/// While this process may not write.
const PERMIT_PAUSE: Duration = Duration::from_secs(1);
const TOUCH_INTERVAL: Duration = Duration::from_secs(300);
/// More messages at once become one.
const MOST_AT_ONCE: usize = 10;
/// Before a credential is read again.
const CREDENTIAL_LASTS: Duration = Duration::from_secs(60);

pub(super) struct RouteWorker {
    settings: Arc<NotificationSettings>,
    client: reqwest::Client,
    history: RouteHistory,
    open_commits: OpenCommits,
    rate_limiter: Arc<RateLimiter>,
    timers: MessageTimers,
    target: Option<(NotificationService, ResolvedService, Instant)>,
    /// Backoff after a failure: its end and its length.
    pause: Option<(Instant, Duration)>,
    /// Threads with a refused message, and when it is tried again. Other threads continue.
    refused_until: BTreeMap<NotificationThread, Instant>,
    /// The thread whose message failed last. Others are tried before it.
    failed: Option<NotificationThread>,
    touched_at: Option<Instant>,
    /// Logged once.
    last_error: Option<String>,
}

impl RouteWorker {
    pub fn new(
        settings: Arc<NotificationSettings>,
        client: reqwest::Client,
        open: OpenCommits,
        pace: Arc<RateLimiter>,
        route: &str,
        first_look: RouteStart,
    ) -> Self {
        let memory = RouteHistory::open(settings.folder.as_deref(), route, first_look);
        let worker = Self {
            settings,
            client,
            history: memory,
            open_commits: open,
            rate_limiter: pace,
            timers: MessageTimers::default(),
            target: None,
            pause: None,
            refused_until: BTreeMap::new(),
            failed: None,
            touched_at: None,
            last_error: None,
        };
        worker.publish_open_commits(route);
        worker
    }

    /// Runs until the sender is dropped: the route was removed, or the process ends.
    pub async fn run(mut self, mut present: watch::Receiver<Option<Arc<RouteState>>>) {
        loop {
            let now = present.borrow_and_update().clone();
            let wake = match now {
                Some(now) => self.send_due(&now).await,
                None => None,
            };
            tokio::select! {
                changed = present.changed() => if changed.is_err() { return },
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Sends at most one due message and returns when to look again.
    async fn send_due(&mut self, present: &RouteState) -> Option<Instant> {
        let now = Instant::now();
        if !self.settings.permit.is_valid() {
            return Some(now + PERMIT_PAUSE);
        }
        self.history.reset_if_changed(&digest_of(&present.route));
        if self.history.start.is_some() && !present.is_settled {
            return None;
        }
        let DueMessages { messages, next, is_history_changed: is_noted } =
            self.timers.due_messages(&mut self.history, present, (now, Timestamp::now()));
        if is_noted {
            self.trim_history(present);
            self.save().await;
        }
        self.publish_open_commits(&present.route.name);
        self.touch(now).await;
        self.refused_until.retain(|_, again| *again > now);
        let mut due: Vec<DueMessage> =
            messages.into_iter().filter(|due| !self.refused_until.contains_key(&due.thread)).collect();
        if due.is_empty() {
            return self.refused_until.values().copied().chain(next).min();
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
                self.log_secret_error(&present.route.name, &why);
                return Some(self.pause(Some(MAX_BACKOFF)));
            }
        };
        let room = match service::rate_limits(&target) {
            Some(limits) => match self.rate_limiter.take(target.address(), limits, now) {
                Ok(room) => room,
                Err(free) => return Some(free),
            },
            None => usize::MAX,
        };
        // Messages for programs are never merged; nor are messages that may contain text refused by the service.
        let is_for_people = !matches!(present.route.service, NotificationService::Generic { .. });
        let together =
            is_for_people && self.refused_until.is_empty() && (due.len() > MOST_AT_ONCE || due.len() > room);
        let most = if together { due.len() } else { 1 };
        self.send(present, &target, &due[..most]).await;
        // More may be due.
        Some(self.pause.map_or(now, |(until, _)| until))
    }

    async fn send(&mut self, present: &RouteState, target: &ResolvedService, due: &[DueMessage]) {
        let at = Timestamp::now();
        let notices: Vec<Notice<'_>> = due
            .iter()
            .map(|due| Notice {
                instance: &present.instance,
                thread: &due.thread,
                happened: due.notice.happened,
                history: &due.notice.history,
                facts: &due.facts,
                started_at: due.started_at,
                commit: due.thread.commit().and_then(|commit| present.commits.get(commit)),
                at,
            })
            .collect();
        let language = present.route.language;
        let (message, known) = match notices.as_slice() {
            [one] => {
                // Readers are not notified of an edit, so a problem needs a new message.
                let is_quiet = matches!(
                    MessageSeverity::of(one.happened),
                    MessageSeverity::Info | MessageSeverity::Good
                );
                let is_young = |entry: &&ThreadRecord| entry.at + SignedDuration::from_hours(24) > at;
                let entry =
                    self.history.record(&one.thread.to_string()).filter(|_| is_quiet).filter(is_young);
                let known = entry.and_then(|entry| entry.name.clone());
                (Some(one.message(language)), known)
            }
            many => (digest_message(many, language, at), None),
        };
        let Some(message) = message else { return };
        let (route, service) = (&present.route.name, present.route.service.name());
        self.update_records(due, |entry, due| {
            (entry.told, entry.sent) = (due.history_before.clone(), Some(due.notice.history.clone()));
            entry.began = due.started_at;
            entry.note_names(&due.facts);
        })
        .await;
        self.trim_history(present);
        let send = send::deliver(
            &self.client,
            target,
            &message,
            at,
            known.as_deref(),
            &self.settings.request_rewriter,
        );
        let ended = || SendOutcome::Unconfirmed("this process may not write any more".to_owned());
        let outcome = self.settings.permit.run_in_term(Box::pin(send)).await.unwrap_or_else(ended);
        self.settings.metrics.record_notification(service, outcome.name());
        match outcome {
            SendOutcome::Sent(name) => {
                (self.pause, self.last_error, self.failed) = (None, None, None);
                // A merged message belongs to no single thread.
                let name = name.filter(|_| due.len() == 1);
                self.update_records(due, |entry, due| {
                    (entry.told, entry.sent, entry.at) = (due.notice.history.clone(), None, at);
                    entry.name.clone_from(&name);
                })
                .await;
                self.publish_open_commits(&present.route.name);
                tracing::debug!(route, service, what = message.title, "told");
            }
            SendOutcome::RetryLater { after, why } => {
                self.update_records(due, |entry, _| entry.sent = None).await;
                self.failed(route, due, &why, after);
            }
            SendOutcome::Unconfirmed(why) => self.failed(route, due, &why, None),
            SendOutcome::Refused(why) => {
                // The credential may have been replaced.
                self.target = None;
                self.update_records(due, |entry, _| entry.sent = None).await;
                self.failed(route, due, &why, None);
                let again = Instant::now() + REFUSED_RETRY_DELAY;
                self.refused_until.extend(due.iter().map(|due| (due.thread.clone(), again)));
            }
        }
    }

    /// Changes the records of the messages' threads and saves them.
    async fn update_records(&mut self, due: &[DueMessage], note: impl Fn(&mut ThreadRecord, &DueMessage)) {
        for due in due {
            let key = due.thread.to_string();
            let mut entry = self.history.record(&key).cloned().unwrap_or_default();
            note(&mut entry, due);
            self.history.set(key, entry);
        }
        self.save().await;
    }

    /// Keeps these commits in the evaluation of overviews.
    fn publish_open_commits(&self, route: &str) {
        let open = self.history.threads().filter(|(_, entry)| entry.is_open());
        let open = open.filter_map(|(key, _)| NotificationThread::parse(key)?.commit().cloned()).collect();
        self.open_commits.lock().insert(route.to_owned(), open);
    }

    fn trim_history(&mut self, present: &RouteState) {
        let seen: BTreeSet<String> = present.threads.keys().map(ToString::to_string).collect();
        self.history.drop_oldest(|key| seen.contains(key));
    }

    fn failed(&mut self, route: &str, due: &[DueMessage], why: &str, after: Option<Duration>) {
        if self.is_new_error(why) {
            tracing::warn!(route, error = why, "a notification was not sent and waits for a retry");
        }
        self.failed = due.last().map(|due| due.thread.clone());
        self.pause(after);
    }

    /// An unset variable turns a route off, which is no error.
    fn log_secret_error(&mut self, route: &str, why: &SecretError) {
        match why {
            why if !self.is_new_error(&why.to_string()) => {}
            SecretError::NotSet(variable) => {
                tracing::info!("route {route} is off: the environment variable {variable} is not set");
            }
            why => tracing::warn!(route, error = %why, "a notification was not sent and waits for a retry"),
        }
    }

    /// Whether the error differs from the last one; each is logged once.
    fn is_new_error(&mut self, why: &str) -> bool {
        self.last_error.replace(why.to_owned()).as_deref() != Some(why)
    }

    fn pause(&mut self, after: Option<Duration>) -> Instant {
        let pause = self.pause.map_or(INITIAL_BACKOFF, |(_, pause)| (pause * 2).min(MAX_BACKOFF));
        let until = Instant::now() + after.unwrap_or(pause).min(MAX_RETRY_AFTER);
        self.pause = Some((until, pause));
        until
    }

    /// Marks on disk that this process leads.
    async fn touch(&mut self, now: Instant) {
        let Some(path) =
            self.history.path().filter(|_| self.touched_at.is_none_or(|at| at + TOUCH_INTERVAL <= now))
        else {
            return;
        };
        let path = path.to_owned();
        self.touched_at = Some(now);
        // If this fails, a later process treats done commits as sent if they are old.
        let _ = tokio::task::spawn_blocking(move || route_history::touch(&path)).await;
    }

    async fn save(&self) {
        let saved = match self.history.file_content() {
            Ok(None) => return,
            Ok(Some((path, bytes))) => {
                tokio::task::spawn_blocking(move || route_history::write(&path, &bytes))
                    .await
                    .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            }
            Err(error) => Err(error),
        };
        if let Err(error) = saved {
            tracing::warn!(%error, "failed to save the history of a notification route: after a restart it \
                                    may send messages again");
        }
    }

    async fn target(
        &mut self,
        service: &NotificationService,
        now: Instant,
    ) -> Result<ResolvedService, SecretError> {
        if let Some((of, target, read_at)) = &self.target
            && of == service
            && *read_at + CREDENTIAL_LASTS > now
        {
            return Ok(target.clone());
        }
        let target = resolve_service(&self.settings.grants, &self.settings.home, service).await?;
        self.target = Some((service.clone(), target.clone(), now));
        Ok(target)
    }
}

/// The service with its credentials.
pub async fn resolve_service(
    grants: &RepositoryGrants,
    home: &HomeCluster,
    service: &NotificationService,
) -> Result<ResolvedService, SecretError> {
    let read = async |reference: &SecretRef| grants.resolve(reference, home).await;
    let perhaps = async |reference: &Option<SecretRef>| match reference {
        Some(reference) => read(reference).await.map(Some),
        None => Ok(None),
    };
    Ok(match service {
        NotificationService::Feishu { url, secret } => {
            ResolvedService::Feishu { url: read(url).await?, secret: perhaps(secret).await? }
        }
        NotificationService::DingTalk { url, secret } => {
            ResolvedService::DingTalk { url: read(url).await?, secret: perhaps(secret).await? }
        }
        NotificationService::WeCom { url } => ResolvedService::WeCom { url: read(url).await? },
        NotificationService::SlackWebhook { url } => ResolvedService::SlackWebhook { url: read(url).await? },
        NotificationService::SlackBot { token, channel } => {
            ResolvedService::SlackBot { token: read(token).await?, channel: channel.clone() }
        }
        NotificationService::Teams { url } => ResolvedService::Teams { url: read(url).await? },
        NotificationService::Generic { url, secret } => {
            ResolvedService::Generic { url: read(url).await?, secret: perhaps(secret).await? }
        }
        NotificationService::Email { url, from, to } => {
            ResolvedService::Email { url: read(url).await?, from: from.clone(), to: to.clone() }
        }
    })
}

/// The digest of selection and destination.
fn digest_of(route: &Notification) -> String {
    let Notification { service, selector, phases, .. } = route;
    Digest::of(format!("{service:?} {} {:?}", selector.grouping_key(), phases).as_bytes()).to_string()
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
