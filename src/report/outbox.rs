//! Posts commit statuses to the forge until they match the desired ones. `controller` and `pulls` start it and send commands.
//!
//! Delivery is at least once, without repetitions: a status that the forge has is not posted again, and two texts of one
//! context in one state are at least ten seconds apart. For a deployment, success is final, and after a failure only another
//! failure or success follows. For a check of a pull request any state may follow, as its base changes. If the forge does not
//! answer, the post is retried with growing backoff; rollouts do not wait. Statuses are computed from facts, so the next
//! process posts what this one could not.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::status_text;
use super::statuses::StatusKey;
use crate::cluster::WritePermit;
use crate::forge::{CommitStatus, CommitStatusState, ForgeClient};
use crate::model::Revision;

const MIN_INTERVAL: Duration = Duration::from_secs(10);
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// A command of the controller.
#[derive(Debug)]
pub enum OutboxCommand {
    /// The statuses of a new head before anything else is known. Other statuses stay.
    Initial(BTreeMap<StatusKey, CommitStatus>),
    /// All desired statuses. A commit in progress without a status is superseded by `head`. Only commits in `told` are
    /// remembered.
    Desired { head: Revision, told: Vec<Revision>, statuses: BTreeMap<StatusKey, CommitStatus> },
    /// The statuses that the forge has for a commit.
    Existing { revision: Revision, statuses: Vec<CommitStatus> },
    /// All existing statuses were read, so posting may begin.
    StartPosting,
    /// Answers when nothing is left to post, or with the last error after `patience`.
    Flush { patience: Duration, done: oneshot::Sender<Result<(), String>> },
}

/// Which states may follow a final state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusTransitionRule {
    Deployment,
    Check,
}

/// A handle to a running outbox.
#[derive(Clone, Debug)]
pub struct Outbox(mpsc::UnboundedSender<OutboxCommand>);

impl Outbox {
    /// Posts until every handle is dropped or the permit is revoked.
    pub fn start(forge: ForgeClient, permit: WritePermit, rule: StatusTransitionRule) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let contexts = BTreeMap::new();
        let worker =
            OutboxWorker { forge, permit, rule, may_post: false, contexts, backoff: None, error: None };
        tokio::spawn(worker.run(receiver));
        Self(sender)
    }

    pub fn send(&self, order: OutboxCommand) {
        // The worker ends with the last handle, so this send cannot fail.
        let _ = self.0.send(order);
    }

    /// Waits until everything is posted. Returns the last error if that takes too long.
    pub async fn flush(&self, patience: Duration) -> Result<(), String> {
        let (done, answer) = oneshot::channel();
        self.send(OutboxCommand::Flush { patience, done });
        match tokio::time::timeout(patience + Duration::from_secs(1), answer).await {
            Ok(Ok(result)) => result,
            _ => Err("the forge did not answer in time".to_owned()),
        }
    }
}

#[derive(Debug)]
struct StatusContext {
    desired: CommitStatus,
    /// A pending status that a final one replaced before it was posted. It is posted too, so that the history shows when work
    /// began.
    superseded_pending: Option<CommitStatus>,
    posted: Option<CommitStatus>,
    posted_at: Option<Instant>,
    /// The forge refused the status until then.
    refused_until: Option<Instant>,
}

impl StatusContext {
    fn new(wanted: CommitStatus, posted: Option<CommitStatus>) -> Self {
        Self { desired: wanted, superseded_pending: None, posted, posted_at: None, refused_until: None }
    }

    fn set_desired(&mut self, wanted: CommitStatus) {
        let before = std::mem::replace(&mut self.desired, wanted);
        let overtakes =
            before.state == CommitStatusState::Pending && self.desired.state != CommitStatusState::Pending;
        if overtakes && self.posted.is_none() && self.superseded_pending.is_none() {
            self.superseded_pending = Some(before);
        }
    }

    fn next_status(&self) -> &CommitStatus {
        self.superseded_pending.as_ref().filter(|_| self.posted.is_none()).unwrap_or(&self.desired)
    }

    /// When it is due: `None` never, `Some(None)` at once.
    fn due_at(&self, rule: StatusTransitionRule) -> Option<Option<Instant>> {
        let Some(posted) = &self.posted else { return Some(None) };
        if posted.state == self.desired.state && posted.description == self.desired.description {
            return None;
        }
        let later = Some(self.posted_at.map(|at| at + MIN_INTERVAL));
        match (posted.state, self.desired.state) {
            (CommitStatusState::Pending, now)
                if rule == StatusTransitionRule::Check && now != CommitStatusState::Pending =>
            {
                Some(None)
            }
            _ if rule == StatusTransitionRule::Check => later,
            // Success is final: a later problem does not belong to this commit.
            (CommitStatusState::Success, _) => None,
            // A failure stays until it is known to be over, also after a restart.
            (CommitStatusState::Failure, CommitStatusState::Pending | CommitStatusState::Skipped) => None,
            (before, now) if before == now => later,
            _ => Some(None),
        }
    }
}

struct OutboxWorker {
    forge: ForgeClient,
    /// Stopping the process does not revoke it.
    permit: WritePermit,
    rule: StatusTransitionRule,
    may_post: bool,
    contexts: BTreeMap<StatusKey, StatusContext>,
    /// Backoff after a failure: its end and its length.
    backoff: Option<(Instant, Duration)>,
    error: Option<String>,
}

impl OutboxWorker {
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<OutboxCommand>) {
        let mut flush: Option<(Instant, oneshot::Sender<Result<(), String>>)> = None;
        loop {
            let next = self.next_due();
            // Flush does not wait for a status that only keeps its distance.
            let idle = self.may_post
                && self.error.is_none()
                && next.as_ref().is_none_or(|(_, at)| *at > Instant::now());
            let is_revoked = self.permit.is_revoked();
            if let Some((deadline, _)) = &flush
                && (idle || is_revoked || *deadline <= Instant::now())
                && let Some((_, done)) = flush.take()
            {
                // The receiver may be gone.
                let _ = done.send(match &self.error {
                    _ if is_revoked => Err("this process may not write any more".to_owned()),
                    None if idle => Ok(()),
                    error => Err(error.clone().unwrap_or_default()),
                });
            }
            let now = Instant::now();
            let wake = match &next {
                Some((_, at)) if *at <= now => {
                    // Commands in the queue may change what is due.
                    match orders.try_recv() {
                        Ok(order) => self.handle_command(order, &mut flush),
                        Err(_) => self.post(next.map(|(key, _)| key)).await,
                    }
                    continue;
                }
                Some((_, at)) => Some(*at),
                None => None,
            };
            let wake = [wake, flush.as_ref().map(|(deadline, _)| *deadline)].into_iter().flatten().min();
            tokio::select! {
                order = orders.recv() => match order {
                    Some(order) => self.handle_command(order, &mut flush),
                    None => return,
                },
                () = sleep_until(wake) => {}
            }
        }
    }

    fn handle_command(
        &mut self,
        order: OutboxCommand,
        flush: &mut Option<(Instant, oneshot::Sender<Result<(), String>>)>,
    ) {
        match order {
            OutboxCommand::Existing { revision, statuses } => {
                // The time of the existing post is unknown; it may be a moment ago.
                let posted_at = (self.rule == StatusTransitionRule::Check).then(Instant::now);
                for status in statuses {
                    let key = (revision.clone(), status.context.clone());
                    let context = self.contexts.entry(key);
                    let context = context.or_insert_with(|| StatusContext::new(status.clone(), None));
                    (context.posted, context.posted_at) = (Some(status), posted_at.or(context.posted_at));
                }
            }
            OutboxCommand::Initial(statuses) => {
                for (key, wanted) in statuses {
                    self.contexts.entry(key).or_insert_with(|| StatusContext::new(wanted, None));
                }
            }
            OutboxCommand::Desired { head, told, statuses } => {
                for (key, context) in &mut self.contexts {
                    if !statuses.contains_key(key)
                        && context.desired.state == CommitStatusState::Pending
                        && key.0 != head
                    {
                        context.desired.state = CommitStatusState::Skipped;
                        context.desired.description = status_text::superseded(&head);
                    }
                }
                let rule = self.rule;
                self.contexts.retain(|key, context| told.contains(&key.0) || context.due_at(rule).is_some());
                self.set_desired(statuses);
            }
            OutboxCommand::StartPosting => self.may_post = true,
            OutboxCommand::Flush { patience, done } => *flush = Some((Instant::now() + patience, done)),
        }
    }

    fn set_desired(&mut self, statuses: BTreeMap<StatusKey, CommitStatus>) {
        for (key, wanted) in statuses {
            match self.contexts.get_mut(&key) {
                Some(context) => context.set_desired(wanted),
                None => {
                    self.contexts.insert(key, StatusContext::new(wanted, None));
                }
            }
        }
    }

    /// The next status, and its earliest time.
    fn next_due(&self) -> Option<(StatusKey, Instant)> {
        if !self.may_post || self.permit.is_revoked() {
            return None;
        }
        let now = Instant::now();
        let not_before = self.backoff.map_or(now, |(until, _)| until.max(now));
        // A leader that could not renew its Lease may succeed in a moment.
        let not_before =
            if self.permit.is_valid() { not_before } else { not_before.max(now + INITIAL_BACKOFF) };
        self.contexts
            .iter()
            .filter_map(|(key, context)| {
                let at = context.due_at(self.rule)?.unwrap_or(now).max(not_before);
                Some((key.clone(), context.refused_until.map_or(at, |until| until.max(at))))
            })
            .min_by_key(|(_, at)| *at)
    }

    async fn post(&mut self, key: Option<StatusKey>) {
        let Some(key) = key else { return };
        let Some(wanted) = self.contexts.get(&key).map(|context| context.next_status().clone()) else {
            return;
        };
        let (revision, context) = (key.0.short(), key.1.as_str());
        let span = tracing::trace_span!("post_status", revision, context, state = wanted.state.as_str());
        let post = Box::pin(self.forge.post_status(&key.0, &wanted).instrument(span));
        // Whether it arrived is unknown. It is posted again; the next leader reads the statuses first.
        let Some(result) = self.permit.write(post).await else {
            self.backoff = Some((Instant::now() + INITIAL_BACKOFF, INITIAL_BACKOFF));
            return;
        };
        let Some(context) = self.contexts.get_mut(&key) else { return };
        match result {
            Ok(()) => {
                context.posted = Some(wanted);
                context.posted_at = Some(Instant::now());
                self.backoff = None;
                self.error = None;
            }
            Err(error) if !error.is_transient() && wanted.state == CommitStatusState::Skipped => {
                // Older forges lack `skipped`; `error` is the nearest state.
                tracing::debug!(%error, "the forge refused the state skipped");
                context.desired.state = CommitStatusState::Error;
            }
            Err(error) if !error.is_transient() => {
                tracing::warn!(%error, revision = key.0.short(), context = key.1, "the forge refused a commit status");
                context.refused_until = Some(Instant::now() + MAX_BACKOFF);
                self.error = Some(error.to_string());
            }
            Err(error) => {
                let pause = self.backoff.map_or(INITIAL_BACKOFF, |(_, pause)| (pause * 2).min(MAX_BACKOFF));
                tracing::warn!(%error, revision = key.0.short(), context = key.1, "the commit status waits");
                self.backoff = Some((Instant::now() + pause, pause));
                self.error = Some(error.to_string());
            }
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
