//! The loop: what is open, what is looked at next, and what is said of it ([`said`]).

mod said;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::check::{Checker, Verdict};
use super::comment::{Place, Sticky};
use super::connection::{Connection, Unopened};
use super::ours::{Ours, is_ours};
use super::publish::{Publisher, Unpublished};
use super::queue::{Base, Checked, Next, Open, may_render_of, next};
use super::triggers::{Task, Tasks, Unwritten};
use super::words::{self, Said};
use crate::api::{Call, DeliveryQueue, NotWritten};
use crate::chart;
use crate::cluster::{Home, WritePermit};
use crate::controller::{ConfigHead, Grants};
use crate::forge::{Error, ErrorKind, Hint, HintKind, Pull, PullState, State};
use crate::metrics::Metrics;
use crate::model::{Forge, Instance, Revision};
use crate::notification::Promotion;
use crate::report::{Names, Overview, plan_comment, plan_failure, plan_statuses};
use crate::source::{self, Repository};

/// Between two lists of what is open, while no webhook tells; and while they do.
const POLL: Duration = Duration::from_secs(60);
const POLL_WITH_HOOKS: Duration = Duration::from_secs(300);
/// So long the default branch of the forge is taken for the same.
const BRANCH_LASTS: Duration = Duration::from_secs(300);
/// So long after a webhook they count as arriving.
const HOOKS_ARRIVE: Duration = Duration::from_secs(600);
/// After the forge or Git did not answer, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// While this process may not write.
const PERMIT_PAUSE: Duration = Duration::from_secs(1);
/// Statuses that ended without a result: so many are kept until they are posted.
const MOST_ENDED: usize = 600;
/// A pull request that could not be read, or not be rendered whole, is looked at again after this; as often as this it is awaited.
const AGAIN: Duration = Duration::from_secs(10);
const MOST_TRIES: u32 = 6;
/// Then its statuses say so, and it is looked at less often.
const SELDOM: Duration = Duration::from_secs(300);

const VALIDATE: &str = "validate";
/// Of the head of each pull request.
const CONTEXTS: [&str; 3] = [VALIDATE, "plan", GATE];
const GATE: &str = "gate";

/// What the process was told.
#[derive(Debug)]
pub struct Settings {
    pub repository: Repository,
    /// The deployed branch; `None`: the default one of the forge.
    pub branch: Option<String>,
    pub charts: Arc<chart::Service>,
    pub home: Home,
    pub grants: Arc<Grants>,
    pub permit: WritePermit,
    pub metrics: Metrics,
    /// Who tells people of promotions.
    pub promotions: watch::Sender<Option<Arc<Vec<Promotion>>>>,
}

/// Who tells it what.
#[derive(Debug)]
pub struct Inputs {
    pub instance: watch::Receiver<Option<Arc<Instance>>>,
    pub head: watch::Receiver<Option<Arc<ConfigHead>>>,
    pub overview: watch::Receiver<Arc<Overview>>,
    pub hints: broadcast::Receiver<Hint>,
    /// Changes of triggers that somebody waits for.
    pub calls: mpsc::Receiver<Call>,
    /// What was sent for triggers.
    pub deliveries: DeliveryQueue,
    /// Until then another process leads.
    pub elected: CancellationToken,
    pub stop: CancellationToken,
}

/// Goes on until it is stopped.
pub async fn run(settings: Settings, mut inputs: Inputs) {
    let stop = inputs.stop.clone();
    let work = async {
        inputs.elected.cancelled().await;
        let mut service = Service::new(settings);
        loop {
            let wake = service.turn(&mut inputs).await;
            service.wait(&mut inputs, wake).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

struct Service {
    settings: Settings,
    checker: Checker,
    connection: Option<Connection>,
    head: Option<Arc<ConfigHead>>,
    overview: Arc<Overview>,
    base: Option<Base>,
    open: BTreeMap<u64, Open>,
    comments: BTreeMap<u64, Sticky>,
    /// What is said of the head of each, by the name after the prefix.
    said: BTreeMap<u64, (Revision, BTreeMap<String, Said>)>,
    /// What is said of the tip of the deployed branch.
    of_base: Option<(Revision, Said)>,
    /// What was under way and comes to no result: the commit, the context, and why.
    ended: VecDeque<(Revision, String, Said)>,
    /// What the forge says of it already is read before anything is said. With a word, nothing else is said any more: what is pending
    /// ends so.
    to_recall: BTreeMap<Revision, Option<Said>>,
    /// What an earlier process may have left pending was looked for.
    has_looked_back: bool,
    ours: Ours,
    tasks: Tasks,
    /// Numbers that a webhook told of.
    hinted: BTreeSet<u64>,
    list_at: Instant,
    /// When to ask for the default branch again.
    branch_at: Instant,
    hooked_at: Option<Instant>,
    /// After a failure: nothing is asked before, and the pause that led to it.
    pause: Option<(Instant, Duration)>,
    /// Logged once.
    trouble: Option<String>,
}

/// Why a turn came to nothing.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Connection(#[from] Unopened),
    #[error(transparent)]
    Forge(#[from] Error),
    #[error(transparent)]
    Git(#[from] source::Error),
    #[error(transparent)]
    Publish(#[from] Unpublished),
}

impl Trouble {
    /// What the forge answered, whatever was asked.
    fn of_forge(&self) -> Option<&Error> {
        match self {
            Self::Forge(error)
            | Self::Connection(Unopened::Forge(error))
            | Self::Publish(Unpublished::Forge(error)) => Some(error),
            Self::Connection(_) | Self::Git(_) | Self::Publish(_) => None,
        }
    }
}

impl Service {
    fn new(settings: Settings) -> Self {
        let checker = Checker::new(settings.repository.clone(), Arc::clone(&settings.charts));
        Self {
            settings,
            checker,
            connection: None,
            head: None,
            overview: Arc::default(),
            base: None,
            open: BTreeMap::new(),
            comments: BTreeMap::new(),
            said: BTreeMap::new(),
            of_base: None,
            ended: VecDeque::new(),
            to_recall: BTreeMap::new(),
            has_looked_back: false,
            ours: Ours::default(),
            tasks: Tasks::default(),
            hinted: BTreeSet::new(),
            list_at: Instant::now(),
            branch_at: Instant::now(),
            hooked_at: None,
            pause: None,
            trouble: None,
        }
    }

    /// Does what is due, one thing after another; says when to go on.
    async fn turn(&mut self, inputs: &mut Inputs) -> Instant {
        loop {
            self.take_in(inputs);
            let now = Instant::now();
            if !self.settings.permit.holds() {
                return now + PERMIT_PAUSE;
            }
            if let Some((until, _)) = self.pause.filter(|(until, _)| *until > now) {
                return until;
            }
            let instance = inputs.instance.borrow().clone();
            let forge = instance.as_ref().and_then(|instance| instance.forge.clone());
            let (Some(instance), Some(forge)) = (instance, forge) else {
                self.connection = None;
                self.tasks.refuse_calls("tutti.yaml names no forge to write to");
                return now + LONGEST_PAUSE;
            };
            match self.step(&instance, &forge).await {
                Ok(None) => (self.pause, self.trouble) = (None, None),
                Ok(Some(at)) => {
                    (self.pause, self.trouble) = (None, None);
                    return self.tasks.next_at().map_or(at, |task| task.min(at));
                }
                Err(trouble) => self.failed(&trouble),
            }
        }
    }

    /// Until something happens, or the time has come.
    async fn wait(&mut self, inputs: &mut Inputs, wake: Instant) {
        tokio::select! {
            () = tokio::time::sleep_until(wake) => {}
            Ok(()) = inputs.head.changed() => {}
            Ok(()) = inputs.overview.changed() => {}
            Ok(()) = inputs.instance.changed() => {}
            Some(hint) = heard(&mut inputs.hints) => match hint {
                Some(hint) => self.hint(&hint),
                None => self.list_at = Instant::now(),
            },
            Some(call) = inputs.calls.recv(), if self.tasks.has_room() => self.tasks.add(Task::of_call(call)),
            () = inputs.deliveries.arrived(), if self.may_take_deliveries() => {}
        }
    }

    /// As long as the instance has a mistake nobody knows what its triggers make of one: it stays on the disk.
    fn may_take_deliveries(&self) -> bool {
        self.tasks.has_room() && self.head.as_ref().is_some_and(|head| head.fleet.is_usable())
    }

    fn take_in(&mut self, inputs: &mut Inputs) {
        let (before, head) = (self.base.clone(), inputs.head.borrow_and_update().clone());
        if let Some(head) = head {
            let revision = &head.snapshot.revision;
            if self.base.as_ref().is_none_or(|base| base.revision != *revision) {
                if let Some((of, said)) = self.of_base.take() {
                    self.end(&of, [(VALIDATE.to_owned(), said)], &words::superseded(revision));
                }
                if self.base.is_none() {
                    self.to_recall.insert(revision.clone(), None);
                }
                self.base = Some(Base { revision: revision.clone(), since: Instant::now() });
            }
            self.head = Some(head);
        }
        loop {
            match inputs.hints.try_recv() {
                Ok(hint) => self.hint(&hint),
                // More came than there is room for: all are listed.
                Err(broadcast::error::TryRecvError::Lagged(_)) => self.list_at = Instant::now(),
                Err(_) => break,
            }
        }
        while self.tasks.has_room()
            && let Ok(call) = inputs.calls.try_recv()
        {
            self.tasks.add(Task::of_call(call));
        }
        while self.may_take_deliveries()
            && let Some(head) = self.head.clone()
            && let Some((delivery, stored)) = inputs.deliveries.pop()
        {
            Task::of_delivery(&delivery, stored, &head).into_iter().for_each(|task| self.tasks.add(task));
        }
        let overview = inputs.overview.borrow_and_update().clone();
        let is_new = !Arc::ptr_eq(&self.overview, &overview);
        if is_new {
            self.ours.look();
            self.overview = Arc::clone(&overview);
        }
        // Of a large fleet the words take their time: they are of this overview and this base until there is another.
        let is_other = |base: &Base| before.as_ref().is_none_or(|before| before.revision != base.revision);
        if let Some(base) = &self.base
            && (is_new || is_other(base))
            && overview.revision.as_ref() == Some(&base.revision)
        {
            let now = (base.revision.clone(), words::of_branch(&overview));
            let is_known = |(of, (state, _)): &(Revision, Said)| *of == now.0 && *state != State::Pending;
            // What has a result is not begun anew in the eyes of those who look.
            let stays = now.1.0 == State::Pending && self.of_base.as_ref().is_some_and(is_known);
            if !stays && self.of_base.as_ref() != Some(&now) {
                self.of_base = Some(now);
                self.tell(&overview.status_prefix, overview.page_url.as_deref());
            }
        }
    }

    fn hint(&mut self, hint: &Hint) {
        // Its rollout goes first, from the moment in which it is told of.
        if hint.kind.is_of_branch()
            && let (Some(base), Some(connection)) = (&mut self.base, &self.connection)
            && hint.branch() == Some(&*connection.access.branch)
        {
            base.since = Instant::now();
        }
        if !matches!(hint.kind, HintKind::Pull | HintKind::Review | HintKind::Comment | HintKind::Label) {
            return;
        }
        self.hooked_at = Some(Instant::now());
        // Nothing is read from comments.
        if hint.kind == HintKind::Comment {
            return;
        }
        self.ours.touch(hint.pull);
        match hint.pull {
            Some(number) => drop(self.hinted.insert(number)),
            None => self.list_at = Instant::now(),
        }
    }

    fn failed(&mut self, trouble: &Trouble) {
        let asked = match trouble.of_forge() {
            Some(Error::RateLimited { retry_after, .. }) => *retry_after,
            // Another token may have been put in its place.
            Some(Error::Authentication { .. }) => {
                self.connection = None;
                Some(LONGEST_PAUSE)
            }
            _ => None,
        };
        let pause = self.pause.map_or(FIRST_PAUSE, |(_, pause)| (pause * 2).min(LONGEST_PAUSE));
        self.pause = Some((Instant::now() + asked.unwrap_or(pause).min(10 * LONGEST_PAUSE), pause));
        let words = trouble.to_string();
        if self.trouble.as_ref() != Some(&words) {
            tracing::warn!(error = words, "pull requests wait");
            self.trouble = Some(words);
        }
    }

    /// The next thing that is due: `None` when it was done, else when to look again.
    async fn step(&mut self, instance: &Instance, forge: &Forge) -> Result<Option<Instant>, Trouble> {
        if self.connection.as_ref().is_none_or(|connection| connection.forge != *forge) {
            let is_same = |known: &Connection| {
                (&known.forge.url, &known.forge.repository) == (&forge.url, &forge.repository)
            };
            if !self.connection.as_ref().is_none_or(is_same) {
                // Numbers and comments there are others.
                self.open.clear();
                self.comments.clear();
                self.said.clear();
                self.ended.clear();
                self.ours = Ours::default();
            }
            self.connection = Some(Connection::open(&self.settings, forge).await?);
            self.list_at = Instant::now();
            self.branch_at = self.list_at + BRANCH_LASTS;
            // Of another outbox, which does not know what was posted.
            let heads = self.said.values().map(|(head, _)| head);
            let known: Vec<Revision> =
                heads.chain(self.base.iter().map(|base| &base.revision)).cloned().collect();
            self.to_recall.extend(known.into_iter().map(|revision| (revision, None)));
        }
        let Some(connection) = self.connection.clone() else { return Ok(None) };
        if let Some(task) = self.tasks.take_due(Instant::now()) {
            return self.carry_out(task, instance, &connection).await.map(|()| None);
        }
        if let Some(number) = self.hinted.first().copied() {
            let pull = match connection.access.client.pull(number).await {
                Err(error) if is_for_later(&error) => return Err(error.into()),
                // More than anybody reads, for example: the others are not held up.
                Err(error) => {
                    tracing::warn!(pull = number, %error, "a pull request cannot be read");
                    self.hinted.remove(&number);
                    return Ok(None);
                }
                Ok(pull) => pull,
            };
            self.hinted.remove(&number);
            self.take_pull(number, pull, &connection);
            return Ok(None);
        }
        let now = Instant::now();
        if self.list_at <= now && self.branch_at <= now && self.settings.branch.is_none() {
            let branch = connection.access.client.repository_facts().await?.default_branch;
            self.branch_at = now + BRANCH_LASTS;
            if branch != connection.access.branch {
                tracing::info!(
                    before = connection.access.branch,
                    branch,
                    "the forge has another default branch"
                );
                self.connection = None;
                self.ours.touch(None);
                return Ok(None);
            }
        }
        if self.list_at <= now {
            let pulls = connection.access.client.pulls_open().await?;
            let listed: BTreeSet<u64> = pulls.iter().map(|pull| pull.number).collect();
            let gone: Vec<u64> =
                self.open.keys().copied().filter(|number| !listed.contains(number)).collect();
            gone.into_iter().for_each(|number| self.take_pull(number, None, &connection));
            pulls.into_iter().for_each(|pull| self.take_pull(pull.number, Some(pull), &connection));
            self.ours.gates.retain(|number, _| self.open.contains_key(number));
            self.tell(&instance.status_prefix, instance.page_url.as_deref());
            let hooks_arrive = self.hooked_at.is_some_and(|at| now < at + HOOKS_ARRIVE);
            self.list_at = now + if hooks_arrive { POLL_WITH_HOOKS } else { POLL };
            return Ok(None);
        }
        let present = self.to_recall.iter().find(|(_, why)| why.is_none());
        if let Some(revision) = present.map(|(revision, _)| revision.clone()) {
            self.recall(&revision, None, instance, &connection).await?;
            return Ok(None);
        }
        let Some(base) = &self.base else { return Ok(Some(self.list_at)) };
        let ours_at = self.ours.next(now);
        let at = match next(&self.open, base, &instance.status_prefix, now) {
            Next::Check(number) => {
                self.check(number, instance, &connection).await?;
                return Ok(None);
            }
            // What is merged or opened does not wait for fifty comparisons with a base that moved.
            Next::Recheck(number) if ours_at > now || !self.has_looked_back => {
                self.check(number, instance, &connection).await?;
                return Ok(None);
            }
            Next::Recheck(_) => now,
            Next::At(at) => at.min(self.list_at),
            Next::Nothing => self.list_at,
        };
        if !self.has_looked_back {
            self.look_back(&connection).await?;
            self.has_looked_back = true;
            return Ok(None);
        }
        if let Some((revision, why)) =
            self.to_recall.first_key_value().map(|(it, why)| (it.clone(), why.clone()))
        {
            self.recall(&revision, why, instance, &connection).await?;
            return Ok(None);
        }
        if ours_at > now {
            return Ok(Some(at.min(ours_at)));
        }
        let Some(head) = self.head.clone() else { return Ok(Some(at)) };
        let in_conflict = self.open.iter().filter(|(_, open)| open.conflicts);
        let conflicts: BTreeSet<u64> = in_conflict.map(|(number, _)| *number).collect();
        let has_open = self
            .open
            .values()
            .any(|open| is_ours(&open.pull, &connection.access.me, &instance.status_prefix));
        // It is lent out as long as it is looked at.
        let mut ours = std::mem::take(&mut self.ours);
        let publisher = self.publisher(instance, &connection, &head);
        let did = ours.step(&publisher, &self.overview, has_open, &conflicts).await;
        self.ours = ours;
        if did? {
            self.list_at = now;
        }
        if let Some(promotions) = self.ours.promotions() {
            self.settings.promotions.send_if_modified(|known| {
                let is_new = known.as_ref().is_none_or(|known| **known != promotions);
                *known = Some(Arc::new(promotions));
                is_new
            });
        }
        self.tell(&instance.status_prefix, instance.page_url.as_deref());
        Ok(None)
    }

    fn publisher<'a>(
        &'a self,
        instance: &'a Instance,
        connection: &'a Connection,
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

    /// One change of a trigger. What may succeed later is tried again, before anything else.
    async fn carry_out(
        &mut self,
        mut task: Task,
        instance: &Instance,
        connection: &Connection,
    ) -> Result<(), Trouble> {
        let Some(head) = self.head.clone() else {
            self.tasks.add_first(task);
            return Ok(());
        };
        let written = task.write(&self.publisher(instance, connection, &head)).await;
        let is_of_access = |error: &Unwritten| matches!(error, Unwritten::Publish(it) if it.is_of_access());
        let needs_access = written.as_ref().is_err_and(is_of_access);
        if needs_access {
            // By now the token may be another one, or the default branch.
            self.connection = None;
        }
        match written {
            Err(Unwritten::Publish(error)) if error.may_pass() && task.tries < MOST_TRIES => {
                task.tries += 1;
                self.tasks.add_first(task);
                return Err(error.into());
            }
            Err(Unwritten::Publish(error)) if (error.may_pass() || needs_access) && task.may_wait() => {
                tracing::warn!(%error, "a delivery for triggers is not carried out yet; it is tried again");
                task.not_before = Some(Instant::now() + SELDOM);
                self.tasks.add(task);
            }
            written => {
                if let Some(before) = task.answer(written.map_err(NotWritten::from)) {
                    self.tasks.add(before);
                }
                self.ours.touch(None);
                self.list_at = Instant::now();
            }
        }
        Ok(())
    }

    /// One pull request as the forge has it now. `None`: it is not open any more.
    fn take_pull(&mut self, number: u64, pull: Option<Pull>, connection: &Connection) {
        let is_ours =
            |pull: &Pull| pull.state == PullState::Open && pull.base.reference == connection.access.branch;
        let Some(pull) = pull.filter(is_ours) else {
            self.open.remove(&number);
            self.comments.remove(&number);
            self.forget(number, &words::closed());
            return;
        };
        if self.said.get(&number).is_some_and(|(head, _)| *head != pull.head.revision) {
            self.forget(number, &words::superseded(&pull.head.revision));
        }
        match self.open.get_mut(&number) {
            Some(open) => open.take(pull),
            None => {
                // Another one may have the same head.
                if !self.said.values().any(|(head, _)| *head == pull.head.revision) {
                    self.to_recall.insert(pull.head.revision.clone(), None);
                }
                self.open.insert(number, Open::new(pull));
            }
        }
    }

    async fn check(
        &mut self,
        number: u64,
        instance: &Instance,
        connection: &Connection,
    ) -> Result<(), Trouble> {
        let (Some(config), Some(open)) = (self.head.clone(), self.open.get(&number)) else { return Ok(()) };
        let pull = open.pull.clone();
        let (head, branch) = (&pull.head.revision, connection.access.branch.as_str());
        let base = config.snapshot.revision.clone();
        let checked = Checked {
            head: head.clone(),
            base: base.clone(),
            may_render: may_render_of(&pull, &instance.status_prefix),
        };
        let say = |service: &mut Self, said: [Said; 2]| {
            service.say(&pull, said, is_ours(&pull, &connection.access.me, &instance.status_prefix));
            service.tell(&instance.status_prefix, instance.page_url.as_deref());
        };
        if !checked.may_render {
            let waits = words::fork(&instance.status_prefix);
            say(self, [waits.clone(), waits]);
            self.done(number, checked);
            return Ok(());
        }
        if !self.said.contains_key(&number) {
            say(self, [words::comparing(branch), words::comparing(branch)]);
        }
        let verdict = match self.checker.check(&config, &pull.head_reference(), head).await {
            Ok(verdict) => verdict,
            Err(error) => {
                tracing::warn!(%error, pull = number, "a pull request cannot be read; it is tried again");
                if self.later(number) >= MOST_TRIES {
                    let why = (State::Error, format!("not read yet: {error}"));
                    say(self, [why, (State::Error, words::not_compared().1)]);
                }
                return Ok(());
            }
        };
        let names = Names {
            prefix: instance.status_prefix.clone(),
            base: branch.to_owned(),
            head: pull.head.reference.clone(),
            url: instance.page_url.clone(),
        };
        if let Some(open) = self.open.get_mut(&number) {
            open.conflicts = matches!(verdict, Verdict::Conflicts(..));
        }
        let failed = |validate: Said| {
            let why = plan_failure(&names, head, &validate.1, None);
            ([validate, words::not_compared()], why)
        };
        let mut is_whole = true;
        let (said, comment) = match verdict {
            Verdict::Conflicts(paths, more) => failed(words::conflicts(branch, &paths, more)),
            Verdict::Unreadable(why) => failed(words::unreadable(&why)),
            Verdict::Compared(comparison) => {
                is_whole = comparison.awaited == 0;
                if !is_whole && self.later(number) < MOST_TRIES {
                    return Ok(());
                }
                let (validate, plan) = plan_statuses(&comparison);
                let text = plan_comment(&comparison, &names);
                ([validate, plan].map(words::ended), text)
            }
        };
        say(self, said);
        let is_written = match self.comment(number, connection, &names, &comment).await {
            Ok(written) => written.is_some(),
            // Of one that is locked, for example: the others are not held up.
            Err(error) => {
                self.later(number);
                if error.is_transient() {
                    return Err(error.into());
                }
                tracing::warn!(%error, pull = number, "a pull request has no comment of its plan; it is tried again");
                false
            }
        };
        if is_whole && is_written {
            self.done(number, checked);
        }
        Ok(())
    }

    fn done(&mut self, number: u64, checked: Checked) {
        if let Some(open) = self.open.get_mut(&number) {
            open.checked = Some(checked);
            (open.not_before, open.tries) = (None, 0);
        }
    }

    /// It is tried again; how often it was by now.
    fn later(&mut self, number: u64) -> u32 {
        let Some(open) = self.open.get_mut(&number) else { return MOST_TRIES };
        open.tries += 1;
        open.not_before = Some(Instant::now() + if open.tries < MOST_TRIES { AGAIN } else { SELDOM });
        open.tries
    }

    async fn comment(
        &mut self,
        number: u64,
        connection: &Connection,
        names: &Names,
        body: &str,
    ) -> Result<Option<()>, Error> {
        let sticky = self.comments.entry(number).or_default();
        let place = Place { pull: number, me: &connection.access.me, marker: &names.marker() };
        sticky.write(&connection.access.client, &self.settings.permit, place, body).await
    }
}

/// The next hint; within it `None` where more came than there is room for. `None`: nobody sends any more.
async fn heard(hints: &mut broadcast::Receiver<Hint>) -> Option<Option<Hint>> {
    match hints.recv().await {
        Ok(hint) => Some(Some(hint)),
        Err(broadcast::error::RecvError::Lagged(_)) => Some(None),
        Err(broadcast::error::RecvError::Closed) => None,
    }
}

/// The same request may succeed later, or with another token.
pub(super) fn is_for_later(error: &Error) -> bool {
    // An answer that is too large is that of one pull request.
    let is_of_one = matches!(error, Error::Answer { .. });
    !is_of_one && (error.is_transient() || error.kind() == ErrorKind::Authentication)
}
