//! The loop of [`pulls`](super): lists open pull requests, checks the next one, runs trigger tasks and steps of own pull
//! requests. [`status_text`] has the texts of statuses.

mod statuses;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::PullServiceSettings;
use super::check::{PullCheckResult, PullChecker};
use super::check_queue::{CheckedHead, DeployedTip, NextCheck, OpenPull, is_render_allowed, next_check};
use super::comment::{CommentKey, PullComment};
use super::connection::{ForgeConnection, ForgeConnectionError, is_retryable};
use super::own_pulls::{OwnPulls, is_own_pull};
use super::publish::{PublishError, Publisher};
use super::status_text::{self, StatusText};
use super::triggers::{TriggerTask, TriggerTaskError, TriggerTasks};
use crate::api::{DeliveryQueue, TriggerCall, TriggerWriteError};
use crate::controller::ConfigHead;
use crate::forge::{CommitStatusState, Error, Pull, PullState, WebhookHint, WebhookHintKind};
use crate::model::{ForgeSettings, Instance, Revision};
use crate::report::{Overview, PlanCommentContext, plan_comment, plan_failure, plan_statuses};
use crate::source;

/// Interval of listing, without webhooks and with them.
const POLL_INTERVAL: Duration = Duration::from_secs(60);
const POLL_INTERVAL_WITH_HOOKS: Duration = Duration::from_secs(300);
/// The forge's default branch is read again after this.
const BRANCH_TTL: Duration = Duration::from_secs(300);
/// Webhooks count as working for so long after the last one.
const HOOKS_ACTIVE_FOR: Duration = Duration::from_secs(600);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// While there is no write permit.
const PERMIT_PAUSE: Duration = Duration::from_secs(1);
/// Ended statuses that are kept until they are posted.
const MAX_ENDED: usize = 600;
/// Interval and number of fast retries of a pull request that cannot be read or rendered completely.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
const MAX_ATTEMPTS: u32 = 6;
/// Interval of retries after that; the statuses then show the error.
const SLOW_RETRY_INTERVAL: Duration = Duration::from_secs(300);

const VALIDATE: &str = "validate";
const CONTEXTS: [&str; 3] = [VALIDATE, "plan", GATE];
const GATE: &str = "gate";

#[derive(Debug)]
pub struct PullServiceInputs {
    pub instance: watch::Receiver<Option<Arc<Instance>>>,
    pub head: watch::Receiver<Option<Arc<ConfigHead>>>,
    pub overview: watch::Receiver<Arc<Overview>>,
    pub hints: broadcast::Receiver<WebhookHint>,
    /// Trigger calls whose callers wait.
    pub calls: mpsc::Receiver<TriggerCall>,
    pub deliveries: DeliveryQueue,
    /// Cancelled when this process leads.
    pub elected: CancellationToken,
    pub stop: CancellationToken,
}

pub async fn run(settings: PullServiceSettings, mut inputs: PullServiceInputs) {
    let stop = inputs.stop.clone();
    let work = async {
        inputs.elected.cancelled().await;
        let mut service = PullService::new(settings);
        loop {
            let wake = service.run_due(&mut inputs).await;
            service.wait(&mut inputs, wake).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

struct PullService {
    settings: PullServiceSettings,
    checker: PullChecker,
    connection: Option<ForgeConnection>,
    head: Option<Arc<ConfigHead>>,
    overview: Arc<Overview>,
    base: Option<DeployedTip>,
    open: BTreeMap<u64, OpenPull>,
    comments: BTreeMap<u64, PullComment>,
    /// Statuses of each head, by name without prefix.
    head_statuses: BTreeMap<u64, (Revision, BTreeMap<String, StatusText>)>,
    /// Status of the deployed branch's tip.
    base_status: Option<(Revision, StatusText)>,
    /// Statuses that end without a result: commit, name, and why.
    ended_statuses: VecDeque<(Revision, String, StatusText)>,
    /// Commits whose statuses must be read from the forge before any are set. `Some`: only pending ones are ended, with this
    /// text.
    to_read_back: BTreeMap<Revision, Option<StatusText>>,
    /// Whether pending statuses of an earlier process were searched.
    is_history_read: bool,
    own_pulls: OwnPulls,
    tasks: TriggerTasks,
    hinted_pulls: BTreeSet<u64>,
    next_list_at: Instant,
    next_branch_check_at: Instant,
    last_hook_at: Option<Instant>,
    /// After an error: no request before this time, and the backoff that led to it.
    backoff: Option<(Instant, Duration)>,
    last_error: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum PullServiceError {
    #[error(transparent)]
    Connection(#[from] ForgeConnectionError),
    #[error(transparent)]
    Forge(#[from] Error),
    #[error(transparent)]
    Git(#[from] source::Error),
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl PullServiceError {
    /// The forge's error, of whichever request.
    fn forge_error(&self) -> Option<&Error> {
        match self {
            Self::Forge(error)
            | Self::Connection(ForgeConnectionError::Forge(error))
            | Self::Publish(PublishError::Forge(error)) => Some(error),
            Self::Connection(_) | Self::Git(_) | Self::Publish(_) => None,
        }
    }
}

impl PullService {
    fn new(settings: PullServiceSettings) -> Self {
        let checker = PullChecker::new(settings.repository.clone(), Arc::clone(&settings.charts));
        Self {
            settings,
            checker,
            connection: None,
            head: None,
            overview: Arc::default(),
            base: None,
            open: BTreeMap::new(),
            comments: BTreeMap::new(),
            head_statuses: BTreeMap::new(),
            base_status: None,
            ended_statuses: VecDeque::new(),
            to_read_back: BTreeMap::new(),
            is_history_read: false,
            own_pulls: OwnPulls::default(),
            tasks: TriggerTasks::default(),
            hinted_pulls: BTreeSet::new(),
            next_list_at: Instant::now(),
            next_branch_check_at: Instant::now(),
            last_hook_at: None,
            backoff: None,
            last_error: None,
        }
    }

    /// Does everything that is due; returns when to continue.
    async fn run_due(&mut self, inputs: &mut PullServiceInputs) -> Instant {
        loop {
            self.receive_inputs(inputs);
            let now = Instant::now();
            if !self.settings.permit.is_valid() {
                return now + PERMIT_PAUSE;
            }
            if let Some((until, _)) = self.backoff.filter(|(until, _)| *until > now) {
                return until;
            }
            let instance = inputs.instance.borrow().clone();
            let forge = instance.as_ref().and_then(|instance| instance.forge.clone());
            let (Some(instance), Some(forge)) = (instance, forge) else {
                self.connection = None;
                self.tasks.refuse_calls("tutti.yaml names no forge to write to");
                return now + MAX_PAUSE;
            };
            match self.step(&instance, &forge).await {
                Ok(None) => (self.backoff, self.last_error) = (None, None),
                Ok(Some(at)) => {
                    (self.backoff, self.last_error) = (None, None);
                    return self.tasks.next_due_at().map_or(at, |task| task.min(at));
                }
                Err(trouble) => self.handle_failure(&trouble),
            }
        }
    }

    async fn wait(&mut self, inputs: &mut PullServiceInputs, wake: Instant) {
        tokio::select! {
            () = tokio::time::sleep_until(wake) => {}
            Ok(()) = inputs.head.changed() => {}
            Ok(()) = inputs.overview.changed() => {}
            Ok(()) = inputs.instance.changed() => {}
            Some(hint) = next_hint(&mut inputs.hints) => match hint {
                Some(hint) => self.handle_hint(&hint),
                None => self.next_list_at = Instant::now(),
            },
            Some(call) = inputs.calls.recv(), if self.tasks.has_room() => self.tasks.add(TriggerTask::of_call(call)),
            () = inputs.deliveries.wait_for_delivery(), if self.may_take_deliveries() => {}
        }
    }

    /// While the instance has a mistake its triggers are unknown: deliveries stay on disk.
    fn may_take_deliveries(&self) -> bool {
        self.tasks.has_room() && self.head.as_ref().is_some_and(|head| head.fleet.is_usable())
    }

    fn receive_inputs(&mut self, inputs: &mut PullServiceInputs) {
        let (before, head) = (self.base.clone(), inputs.head.borrow_and_update().clone());
        if let Some(head) = head {
            let revision = &head.snapshot.revision;
            if self.base.as_ref().is_none_or(|base| base.revision != *revision) {
                if let Some((of, said)) = self.base_status.take() {
                    self.end_pending(&of, [(VALIDATE.to_owned(), said)], &status_text::superseded(revision));
                }
                if self.base.is_none() {
                    self.to_read_back.insert(revision.clone(), None);
                }
                self.base = Some(DeployedTip { revision: revision.clone(), since: Instant::now() });
            }
            self.head = Some(head);
        }
        loop {
            match inputs.hints.try_recv() {
                Ok(hint) => self.handle_hint(&hint),
                // Hints were lost: list all.
                Err(broadcast::error::TryRecvError::Lagged(_)) => self.next_list_at = Instant::now(),
                Err(_) => break,
            }
        }
        while self.tasks.has_room()
            && let Ok(call) = inputs.calls.try_recv()
        {
            self.tasks.add(TriggerTask::of_call(call));
        }
        while self.may_take_deliveries()
            && let Some(head) = self.head.clone()
            && let Some((delivery, stored)) = inputs.deliveries.pop()
        {
            TriggerTask::of_delivery(&delivery, stored, &head)
                .into_iter()
                .for_each(|task| self.tasks.add(task));
        }
        let overview = inputs.overview.borrow_and_update().clone();
        let is_new = !Arc::ptr_eq(&self.overview, &overview);
        if is_new {
            self.own_pulls.mark_due();
            self.overview = Arc::clone(&overview);
        }
        // Computed only for a new overview or base: it takes time for a large fleet.
        let is_other =
            |base: &DeployedTip| before.as_ref().is_none_or(|before| before.revision != base.revision);
        if let Some(base) = &self.base
            && (is_new || is_other(base))
            && overview.revision.as_ref() == Some(&base.revision)
        {
            let now = (base.revision.clone(), status_text::branch_status(&overview));
            let is_known = |(of, (state, _)): &(Revision, StatusText)| {
                *of == now.0 && *state != CommitStatusState::Pending
            };
            // A result is never replaced by pending.
            let stays =
                now.1.0 == CommitStatusState::Pending && self.base_status.as_ref().is_some_and(is_known);
            if !stays && self.base_status.as_ref() != Some(&now) {
                self.base_status = Some(now);
                self.post_statuses(&overview.status_prefix, overview.page_url.as_deref());
            }
        }
    }

    fn handle_hint(&mut self, hint: &WebhookHint) {
        // The rollout of a push goes first, from the webhook on.
        if hint.kind.is_of_branch()
            && let (Some(base), Some(connection)) = (&mut self.base, &self.connection)
            && hint.branch() == Some(&*connection.access.branch)
        {
            base.since = Instant::now();
        }
        if !matches!(
            hint.kind,
            WebhookHintKind::Pull
                | WebhookHintKind::Review
                | WebhookHintKind::Comment
                | WebhookHintKind::Label
        ) {
            return;
        }
        self.last_hook_at = Some(Instant::now());
        // Comments carry no input.
        if hint.kind == WebhookHintKind::Comment {
            return;
        }
        self.own_pulls.invalidate(hint.pull);
        match hint.pull {
            Some(number) => drop(self.hinted_pulls.insert(number)),
            None => self.next_list_at = Instant::now(),
        }
    }

    fn handle_failure(&mut self, trouble: &PullServiceError) {
        let asked = match trouble.forge_error() {
            Some(Error::RateLimited { retry_after, .. }) => *retry_after,
            // The token may have been replaced.
            Some(Error::Authentication { .. }) => {
                self.connection = None;
                Some(MAX_PAUSE)
            }
            _ => None,
        };
        let pause = self.backoff.map_or(FIRST_PAUSE, |(_, pause)| (pause * 2).min(MAX_PAUSE));
        self.backoff = Some((Instant::now() + asked.unwrap_or(pause).min(10 * MAX_PAUSE), pause));
        let words = trouble.to_string();
        if self.last_error.as_ref() != Some(&words) {
            tracing::warn!(error = words, "pull requests wait");
            self.last_error = Some(words);
        }
    }

    /// Does the next thing that is due: `None` when it was done, else when to continue.
    async fn step(
        &mut self,
        instance: &Instance,
        forge: &ForgeSettings,
    ) -> Result<Option<Instant>, PullServiceError> {
        if self.connection.as_ref().is_none_or(|connection| connection.forge != *forge) {
            let is_same = |known: &ForgeConnection| {
                (&known.forge.url, &known.forge.repository) == (&forge.url, &forge.repository)
            };
            if !self.connection.as_ref().is_none_or(is_same) {
                // Another repository: nothing known applies.
                self.open.clear();
                self.comments.clear();
                self.head_statuses.clear();
                self.ended_statuses.clear();
                self.own_pulls = OwnPulls::default();
            }
            self.connection = Some(ForgeConnection::open(&self.settings, forge).await?);
            self.next_list_at = Instant::now();
            self.next_branch_check_at = self.next_list_at + BRANCH_TTL;
            // The new outbox does not know what was posted.
            let heads = self.head_statuses.values().map(|(head, _)| head);
            let known: Vec<Revision> =
                heads.chain(self.base.iter().map(|base| &base.revision)).cloned().collect();
            self.to_read_back.extend(known.into_iter().map(|revision| (revision, None)));
        }
        let Some(connection) = self.connection.clone() else { return Ok(None) };
        if let Some(task) = self.tasks.take_due(Instant::now()) {
            return self.run_task(task, instance, &connection).await.map(|()| None);
        }
        if let Some(number) = self.hinted_pulls.first().copied() {
            let pull = match connection.access.client.pull(number).await {
                Err(error) if is_retryable(&error) => return Err(error.into()),
                // For example too large an answer. Others must not wait.
                Err(error) => {
                    tracing::warn!(pull = number, %error, "a pull request cannot be read");
                    self.hinted_pulls.remove(&number);
                    return Ok(None);
                }
                Ok(pull) => pull,
            };
            self.hinted_pulls.remove(&number);
            self.update_pull(number, pull, &connection);
            return Ok(None);
        }
        let now = Instant::now();
        if self.next_list_at <= now && self.next_branch_check_at <= now && self.settings.branch.is_none() {
            let branch = connection.access.client.repository_facts().await?.default_branch;
            self.next_branch_check_at = now + BRANCH_TTL;
            if branch != connection.access.branch {
                tracing::info!(
                    before = connection.access.branch,
                    branch,
                    "the forge has another default branch"
                );
                self.connection = None;
                self.own_pulls.invalidate(None);
                return Ok(None);
            }
        }
        if self.next_list_at <= now {
            let pulls = connection.access.client.pulls_open().await?;
            let listed: BTreeSet<u64> = pulls.iter().map(|pull| pull.number).collect();
            let gone: Vec<u64> =
                self.open.keys().copied().filter(|number| !listed.contains(number)).collect();
            gone.into_iter().for_each(|number| self.update_pull(number, None, &connection));
            pulls.into_iter().for_each(|pull| self.update_pull(pull.number, Some(pull), &connection));
            self.own_pulls.gates.retain(|number, _| self.open.contains_key(number));
            self.post_statuses(&instance.status_prefix, instance.page_url.as_deref());
            let hooks_arrive = self.last_hook_at.is_some_and(|at| now < at + HOOKS_ACTIVE_FOR);
            self.next_list_at = now + if hooks_arrive { POLL_INTERVAL_WITH_HOOKS } else { POLL_INTERVAL };
            return Ok(None);
        }
        let present = self.to_read_back.iter().find(|(_, why)| why.is_none());
        if let Some(revision) = present.map(|(revision, _)| revision.clone()) {
            self.read_back(&revision, None, instance, &connection).await?;
            return Ok(None);
        }
        let Some(base) = &self.base else { return Ok(Some(self.next_list_at)) };
        let ours_at = self.own_pulls.next_step_at(now);
        let at = match next_check(&self.open, base, &instance.status_prefix, now) {
            NextCheck::Check(number) => {
                self.check_pull(number, instance, &connection).await?;
                return Ok(None);
            }
            // Merges and new pull requests do not wait for comparisons with a moved base.
            NextCheck::Recheck(number) if ours_at > now || !self.is_history_read => {
                self.check_pull(number, instance, &connection).await?;
                return Ok(None);
            }
            NextCheck::Recheck(_) => now,
            NextCheck::WaitUntil(at) => at.min(self.next_list_at),
            NextCheck::Nothing => self.next_list_at,
        };
        if !self.is_history_read {
            self.find_unfinished(&connection).await?;
            self.is_history_read = true;
            return Ok(None);
        }
        if let Some((revision, why)) =
            self.to_read_back.first_key_value().map(|(it, why)| (it.clone(), why.clone()))
        {
            self.read_back(&revision, why, instance, &connection).await?;
            return Ok(None);
        }
        if ours_at > now {
            return Ok(Some(at.min(ours_at)));
        }
        let Some(head) = self.head.clone() else { return Ok(Some(at)) };
        let in_conflict = self.open.iter().filter(|(_, open)| open.has_conflicts);
        let conflicts: BTreeSet<u64> = in_conflict.map(|(number, _)| *number).collect();
        let has_open = self
            .open
            .values()
            .any(|open| is_own_pull(&open.pull, &connection.access.login, &instance.status_prefix));
        // Taken out, because `step` borrows the service.
        let mut ours = std::mem::take(&mut self.own_pulls);
        let publisher = self.publisher(instance, &connection, &head);
        let did = ours.step(&publisher, &self.overview, has_open, &conflicts).await;
        self.own_pulls = ours;
        if did? {
            self.next_list_at = now;
        }
        if let Some(promotions) = self.own_pulls.promotions() {
            self.settings.promotions.send_if_modified(|known| {
                let is_new = known.as_ref().is_none_or(|known| **known != promotions);
                *known = Some(Arc::new(promotions));
                is_new
            });
        }
        self.post_statuses(&instance.status_prefix, instance.page_url.as_deref());
        Ok(None)
    }

    fn publisher<'a>(
        &'a self,
        instance: &'a Instance,
        connection: &'a ForgeConnection,
        head: &'a ConfigHead,
    ) -> Publisher<'a> {
        Publisher {
            access: &connection.access,
            permit: &self.settings.permit,
            repository: &self.settings.repository,
            head,
            prefix: &instance.status_prefix,
        }
    }

    /// Runs one trigger task. Transient failures are retried before anything else.
    async fn run_task(
        &mut self,
        mut task: TriggerTask,
        instance: &Instance,
        connection: &ForgeConnection,
    ) -> Result<(), PullServiceError> {
        let Some(head) = self.head.clone() else {
            self.tasks.add_first(task);
            return Ok(());
        };
        let written = task.write(&self.publisher(instance, connection, &head)).await;
        let is_of_access =
            |error: &TriggerTaskError| matches!(error, TriggerTaskError::Publish(it) if it.is_access_error());
        let needs_access = written.as_ref().is_err_and(is_of_access);
        if needs_access {
            // The token or the default branch may have changed.
            self.connection = None;
        }
        match written {
            Err(TriggerTaskError::Publish(error)) if error.is_transient() && task.attempts < MAX_ATTEMPTS => {
                task.attempts += 1;
                self.tasks.add_first(task);
                return Err(error.into());
            }
            Err(TriggerTaskError::Publish(error))
                if (error.is_transient() || needs_access) && task.may_wait() =>
            {
                tracing::warn!(%error, "a delivery for triggers is not carried out yet; retrying");
                task.retry_at = Some(Instant::now() + SLOW_RETRY_INTERVAL);
                self.tasks.add(task);
            }
            written => {
                if let Some(before) = task.complete(written.map_err(TriggerWriteError::from)) {
                    self.tasks.add(before);
                }
                self.own_pulls.invalidate(None);
                self.next_list_at = Instant::now();
            }
        }
        Ok(())
    }

    /// Updates one pull request from the forge. `None`: not open any more.
    fn update_pull(&mut self, number: u64, pull: Option<Pull>, connection: &ForgeConnection) {
        let is_ours =
            |pull: &Pull| pull.state == PullState::Open && pull.base.reference == connection.access.branch;
        let Some(pull) = pull.filter(is_ours) else {
            self.open.remove(&number);
            self.comments.remove(&number);
            self.drop_pull(number, &status_text::closed());
            return;
        };
        if self.head_statuses.get(&number).is_some_and(|(head, _)| *head != pull.head.revision) {
            self.drop_pull(number, &status_text::superseded(&pull.head.revision));
        }
        match self.open.get_mut(&number) {
            Some(open) => open.update(pull),
            None => {
                // Two pull requests may have the same head.
                if !self.head_statuses.values().any(|(head, _)| *head == pull.head.revision) {
                    self.to_read_back.insert(pull.head.revision.clone(), None);
                }
                self.open.insert(number, OpenPull::new(pull));
            }
        }
    }

    async fn check_pull(
        &mut self,
        number: u64,
        instance: &Instance,
        connection: &ForgeConnection,
    ) -> Result<(), PullServiceError> {
        let (Some(config), Some(open)) = (self.head.clone(), self.open.get(&number)) else { return Ok(()) };
        let pull = open.pull.clone();
        let (head, branch) = (&pull.head.revision, connection.access.branch.as_str());
        let base = config.snapshot.revision.clone();
        let checked = CheckedHead {
            head: head.clone(),
            base: base.clone(),
            may_render: is_render_allowed(&pull, &instance.status_prefix),
        };
        let say = |service: &mut Self, said: [StatusText; 2]| {
            service.set_statuses(
                &pull,
                said,
                is_own_pull(&pull, &connection.access.login, &instance.status_prefix),
            );
            service.post_statuses(&instance.status_prefix, instance.page_url.as_deref());
        };
        if !checked.may_render {
            let waits = status_text::awaiting_fork_label(&instance.status_prefix);
            say(self, [waits.clone(), waits]);
            self.mark_checked(number, checked);
            return Ok(());
        }
        if !self.head_statuses.contains_key(&number) {
            say(self, [status_text::comparing(branch), status_text::comparing(branch)]);
        }
        let verdict = match self.checker.check(&config, &pull.head_reference(), head).await {
            Ok(verdict) => verdict,
            Err(error) => {
                tracing::warn!(%error, pull = number, "failed to read a pull request; retrying");
                if self.schedule_retry(number) >= MAX_ATTEMPTS {
                    let why = (CommitStatusState::Error, format!("not read yet: {error}"));
                    say(self, [why, (CommitStatusState::Error, status_text::not_compared().1)]);
                }
                return Ok(());
            }
        };
        let names = PlanCommentContext {
            prefix: instance.status_prefix.clone(),
            base: branch.to_owned(),
            head: pull.head.reference.clone(),
            url: instance.page_url.clone(),
        };
        if let Some(open) = self.open.get_mut(&number) {
            open.has_conflicts = matches!(verdict, PullCheckResult::Conflicts(..));
        }
        let failed = |validate: StatusText| {
            let why = plan_failure(&names, head, &validate.1, None);
            ([validate, status_text::not_compared()], why)
        };
        let mut is_whole = true;
        let (said, comment) = match verdict {
            PullCheckResult::Conflicts(paths, more) => failed(status_text::conflicts(branch, &paths, more)),
            PullCheckResult::Invalid(why) => failed(status_text::invalid(&why)),
            PullCheckResult::Compared(comparison) => {
                is_whole = comparison.awaited == 0;
                if !is_whole && self.schedule_retry(number) < MAX_ATTEMPTS {
                    return Ok(());
                }
                let (validate, plan) = plan_statuses(&comparison);
                let text = plan_comment(&comparison, &names);
                ([validate, plan].map(status_text::ended), text)
            }
        };
        say(self, said);
        let is_written = match self.write_comment(number, connection, &names, &comment).await {
            Ok(written) => written.is_some(),
            // For example a locked one. Others must not wait.
            Err(error) => {
                self.schedule_retry(number);
                if error.is_transient() {
                    return Err(error.into());
                }
                tracing::warn!(%error, pull = number, "failed to write the plan comment of a pull request; \
                                                       retrying");
                false
            }
        };
        if is_whole && is_written {
            self.mark_checked(number, checked);
        }
        Ok(())
    }

    fn mark_checked(&mut self, number: u64, checked: CheckedHead) {
        if let Some(open) = self.open.get_mut(&number) {
            open.checked = Some(checked);
            (open.retry_at, open.attempts) = (None, 0);
        }
    }

    /// Schedules a retry; returns the number of attempts.
    fn schedule_retry(&mut self, number: u64) -> u32 {
        let Some(open) = self.open.get_mut(&number) else { return MAX_ATTEMPTS };
        open.attempts += 1;
        open.retry_at = Some(
            Instant::now() + if open.attempts < MAX_ATTEMPTS { RETRY_INTERVAL } else { SLOW_RETRY_INTERVAL },
        );
        open.attempts
    }

    async fn write_comment(
        &mut self,
        number: u64,
        connection: &ForgeConnection,
        names: &PlanCommentContext,
        body: &str,
    ) -> Result<Option<()>, Error> {
        let sticky = self.comments.entry(number).or_default();
        let place = CommentKey { pull: number, author: &connection.access.login, marker: &names.marker() };
        sticky.write(&connection.access.client, &self.settings.permit, place, body).await
    }
}

/// The next hint; the inner `None` means that hints were lost. `None`: the sender is gone.
async fn next_hint(hints: &mut broadcast::Receiver<WebhookHint>) -> Option<Option<WebhookHint>> {
    match hints.recv().await {
        Ok(hint) => Some(Some(hint)),
        Err(broadcast::error::RecvError::Lagged(_)) => Some(None),
        Err(broadcast::error::RecvError::Closed) => None,
    }
}
