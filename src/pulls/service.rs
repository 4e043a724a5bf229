//! The loop: what is open, what is looked at next, and what is said of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::check::{Checker, Verdict};
use super::comment::{Place, Sticky};
use super::connection::{Connection, Unopened};
use super::ours::Ours;
use super::publish::{Publisher, Unpublished};
use super::queue::{Base, Checked, Next, Open, may_render_of, next};
use super::triggers::{Task, Unwritten};
use super::words::{self, Said};
use crate::api::Call;
use crate::chart;
use crate::cluster::{Home, WritePermit};
use crate::controller::{ConfigHead, Grants};
use crate::forge::{CommitStatus, Error, Hint, HintKind, Pull, PullState, State, shortened};
use crate::metrics::Metrics;
use crate::model::{Forge, Instance, Revision};
use crate::promotion::{BRANCHES, summary};
use crate::report::outbox::Order;
use crate::report::{Names, Overview, plan_comment, plan_failure, plan_statuses};
use crate::source::Repository;

/// Between two lists of what is open, while no webhook tells; and while they do.
const POLL: Duration = Duration::from_secs(60);
const POLL_WITH_HOOKS: Duration = Duration::from_secs(300);
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

const VALIDATE: &str = "validate";
/// Of the head of each pull request.
const CONTEXTS: [&str; 3] = [VALIDATE, PLAN, GATE];
const PLAN: &str = "plan";
const GATE: &str = "gate";
/// Changes of triggers that may wait; what is more is told of again by whoever sends it.
const MOST_TASKS: usize = 1_000;

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

/// What is said of the head of a pull request, by context.
#[derive(Debug)]
struct Report {
    head: Revision,
    contexts: BTreeMap<String, Said>,
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
    /// What is said of the head of each.
    said: BTreeMap<u64, Report>,
    /// What is said of the tip of the deployed branch.
    of_base: Option<(Revision, Said)>,
    /// What was under way and comes to no result: the commit, the context, and why.
    ended: VecDeque<(Revision, String, Said)>,
    /// What was there when this process began: what the forge says of it already is read before anything is said.
    to_recall: BTreeSet<Revision>,
    ours: Ours,
    /// What triggers change.
    tasks: VecDeque<Task>,
    /// Numbers that a webhook told of.
    hinted: BTreeSet<u64>,
    list_at: Instant,
    is_first_list: bool,
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
    Publish(#[from] Unpublished),
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
            to_recall: BTreeSet::new(),
            ours: Ours::default(),
            tasks: VecDeque::new(),
            hinted: BTreeSet::new(),
            list_at: Instant::now(),
            is_first_list: true,
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
                return now + LONGEST_PAUSE;
            };
            match self.step(&instance, &forge).await {
                Ok(None) => (self.pause, self.trouble) = (None, None),
                Ok(Some(at)) => {
                    (self.pause, self.trouble) = (None, None);
                    return at;
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
            Ok(hint) = inputs.hints.recv() => self.hint(&hint),
            Some(call) = inputs.calls.recv() => self.tasks.push_back(Task::of_call(call)),
        }
    }

    fn take_in(&mut self, inputs: &mut Inputs) {
        loop {
            match inputs.hints.try_recv() {
                Ok(hint) => self.hint(&hint),
                // More came than there is room for: all are listed.
                Err(broadcast::error::TryRecvError::Lagged(_)) => self.list_at = Instant::now(),
                Err(_) => break,
            }
        }
        let head = inputs.head.borrow_and_update().clone();
        if let Some(head) = head {
            let revision = &head.snapshot.revision;
            if self.base.as_ref().is_none_or(|base| base.revision != *revision) {
                if let Some((head, said)) = self.of_base.take() {
                    let contexts = BTreeMap::from([(VALIDATE.to_owned(), said)]);
                    self.end(Report { head, contexts }, &words::superseded(revision));
                }
                if self.base.is_none() {
                    self.to_recall.insert(revision.clone());
                }
                self.base = Some(Base { revision: revision.clone(), since: Instant::now() });
            }
            self.head = Some(head);
        }
        while let Ok(call) = inputs.calls.try_recv() {
            self.tasks.push_back(Task::of_call(call));
        }
        if inputs.overview.has_changed().unwrap_or_default() {
            self.ours.look();
        }
        let overview = inputs.overview.borrow_and_update().clone();
        self.overview = Arc::clone(&overview);
        if let Some(base) = &self.base
            && overview.revision.as_ref() == Some(&base.revision)
        {
            let now = (base.revision.clone(), words::of_branch(&overview));
            if self.of_base.as_ref() != Some(&now) {
                self.of_base = Some(now);
                self.tell(&overview.status_prefix, overview.page_url.as_deref());
            }
        }
    }

    fn hint(&mut self, hint: &Hint) {
        if let (Some(_), Some(head)) = (&hint.payload, &self.head) {
            let room = MOST_TASKS.saturating_sub(self.tasks.len());
            self.tasks.extend(Task::of_hint(hint, head).into_iter().take(room));
        }
        if !matches!(hint.kind, HintKind::Pull | HintKind::Review | HintKind::Comment | HintKind::Label) {
            return;
        }
        self.hooked_at = Some(Instant::now());
        self.ours.touch(hint.pull);
        match hint.pull {
            Some(number) => drop(self.hinted.insert(number)),
            None => self.list_at = Instant::now(),
        }
    }

    fn failed(&mut self, trouble: &Trouble) {
        let asked = match trouble {
            Trouble::Forge(Error::RateLimited { retry_after, .. })
            | Trouble::Publish(Unpublished::Forge(Error::RateLimited { retry_after, .. })) => *retry_after,
            // Another token may have been put in its place.
            Trouble::Forge(Error::Authentication { .. })
            | Trouble::Publish(Unpublished::Forge(Error::Authentication { .. })) => {
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
            self.connection = Some(Connection::open(&self.settings, forge).await?);
            self.list_at = Instant::now();
            self.tell(&instance.status_prefix, instance.page_url.as_deref());
        }
        let Some(connection) = self.connection.clone() else { return Ok(None) };
        if let Some(task) = self.tasks.pop_front() {
            return self.carry_out(task, instance, &connection).await.map(|()| None);
        }
        if let Some(number) = self.hinted.first().copied() {
            let pull = connection.access.client.pull(number).await?;
            self.hinted.remove(&number);
            self.take_pull(number, pull, &connection);
            return Ok(None);
        }
        let now = Instant::now();
        if self.list_at <= now {
            let pulls = connection.access.client.pulls_open().await?;
            let listed: BTreeSet<u64> = pulls.iter().map(|pull| pull.number).collect();
            if self.is_first_list {
                self.to_recall.extend(pulls.iter().map(|pull| pull.head.revision.clone()));
                self.is_first_list = false;
            }
            let gone: Vec<u64> =
                self.open.keys().copied().filter(|number| !listed.contains(number)).collect();
            gone.into_iter().for_each(|number| self.take_pull(number, None, &connection));
            pulls.into_iter().for_each(|pull| self.take_pull(pull.number, Some(pull), &connection));
            let hooks_arrive = self.hooked_at.is_some_and(|at| now < at + HOOKS_ARRIVE);
            self.list_at = now + if hooks_arrive { POLL_WITH_HOOKS } else { POLL };
            return Ok(None);
        }
        if let Some(revision) = self.to_recall.pop_first() {
            if let Err(error) = self.recall(&revision, instance, &connection).await {
                self.to_recall.insert(revision);
                return Err(error.into());
            }
            return Ok(None);
        }
        let Some(base) = &self.base else { return Ok(Some(self.list_at)) };
        let at = match next(&self.open, base, &instance.status_prefix, now) {
            Next::Check(number) => {
                self.check(number, instance, &connection).await?;
                return Ok(None);
            }
            Next::At(at) => at.min(self.list_at),
            Next::Nothing => self.list_at,
        };
        if self.ours.next(now) > now {
            return Ok(Some(at.min(self.ours.next(now))));
        }
        let Some(head) = self.head.clone() else { return Ok(Some(at)) };
        let in_conflict = self.open.iter().filter(|(_, open)| open.conflicts);
        let conflicts: BTreeSet<u64> = in_conflict.map(|(number, _)| *number).collect();
        // It is lent out as long as it is looked at.
        let mut ours = std::mem::take(&mut self.ours);
        let publisher = self.publisher(instance, &connection, &head);
        let did = ours.step(&publisher, &self.overview, &conflicts).await;
        self.ours = ours;
        for (number, (of, gates)) in self.ours.gates.clone() {
            let named = gates.iter().map(|gate| (format!("{GATE}/{}", gate.name), words::gate(gate)));
            let all = (GATE.to_owned(), words::gate(&summary(&gates)));
            self.say(number, &of, named.chain([all]));
        }
        did?;
        self.tell(&instance.status_prefix, instance.page_url.as_deref());
        Ok(None)
    }

    /// Beside what is said of this head already.
    fn say<N: Into<String>>(
        &mut self,
        number: u64,
        head: &Revision,
        contexts: impl IntoIterator<Item = (N, Said)>,
    ) {
        let report = self
            .said
            .entry(number)
            .or_insert_with(|| Report { head: head.clone(), contexts: BTreeMap::new() });
        if report.head == *head {
            report.contexts.extend(contexts.into_iter().map(|(name, said)| (name.into(), said)));
        }
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
            self.tasks.push_front(task);
            return Ok(());
        };
        let written = task.write(&self.publisher(instance, connection, &head)).await;
        match written {
            Err(Unwritten::Publish(error)) if error.may_pass() && task.tries < MOST_TRIES => {
                task.tries += 1;
                self.tasks.push_front(task);
                return Err(error.into());
            }
            written => {
                task.answer(written.map_err(|error| error.to_string()));
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
            if let Some(report) = self.said.remove(&number) {
                self.end(report, &words::closed());
            }
            return;
        };
        if self.said.get(&number).is_some_and(|report| report.head != pull.head.revision)
            && let Some(report) = self.said.remove(&number)
        {
            self.end(report, &words::superseded(&pull.head.revision));
        }
        match self.open.get_mut(&number) {
            Some(open) => open.take(pull),
            None => {
                self.open.insert(number, Open::new(pull));
            }
        }
    }

    /// Nothing more is said of a commit: what is pending ends so.
    fn end(&mut self, report: Report, why: &Said) {
        let pending = report.contexts.into_iter().filter(|(_, (state, _))| *state == State::Pending);
        self.ended.extend(pending.map(|(context, _)| (report.head.clone(), context, why.clone())));
        while self.ended.len() > MOST_ENDED {
            self.ended.pop_front();
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
        let may_render = may_render_of(&pull, &instance.status_prefix);
        let checked = Checked { head: head.clone(), base: base.clone(), may_render };
        let is_promotion = pull.author.eq_ignore_ascii_case(&connection.access.me)
            && !pull.head.is_fork
            && pull.head.reference.starts_with(BRANCHES[0]);
        let gate = if is_promotion { words::gates_are_read() } else { words::no_promotion() };
        let say = |service: &mut Self, validate: Said, plan: Said| {
            service.say(number, head, [(VALIDATE, validate), (PLAN, plan)]);
            if let Some(report) = service.said.get_mut(&number) {
                // Whoever looks at the gates knows better.
                report.contexts.entry(GATE.to_owned()).or_insert_with(|| gate.clone());
            }
            service.tell(&instance.status_prefix, instance.page_url.as_deref());
        };
        if !checked.may_render {
            let fork = words::fork(&instance.status_prefix);
            say(self, fork.clone(), fork);
            self.done(number, checked);
            return Ok(());
        }
        if !self.said.contains_key(&number) {
            say(self, words::comparing(branch), words::comparing(branch));
        }
        let verdict = match self.checker.check(&config, &pull.head_reference(), head).await {
            Ok(verdict) => verdict,
            Err(error) => {
                tracing::warn!(%error, pull = number, "a pull request cannot be read; it is tried again");
                self.later(number);
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
            (validate, words::not_compared(), why)
        };
        let (validate, plan, comment) = match verdict {
            Verdict::Conflicts(paths, more) => failed(words::conflicts(branch, &paths, more)),
            Verdict::Unreadable(why) => failed(words::unreadable(&why)),
            Verdict::Compared(comparison) if comparison.awaited > 0 && self.later(number) < MOST_TRIES => {
                return Ok(());
            }
            Verdict::Compared(comparison) => {
                let (validate, plan) = plan_statuses(&comparison);
                let text = plan_comment(&comparison, &names);
                (validate, plan, text)
            }
        };
        say(self, validate, plan);
        self.comment(number, connection, &names, &comment).await?;
        self.done(number, checked);
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
        open.not_before = Some(Instant::now() + AGAIN);
        open.tries
    }

    /// What the forge says of a commit already. What has a result is not begun anew in the eyes of those who look.
    async fn recall(
        &mut self,
        revision: &Revision,
        instance: &Instance,
        connection: &Connection,
    ) -> Result<(), Error> {
        let prefix = &instance.status_prefix;
        let context_of = |name: &str| format!("{prefix}/{name}");
        let mut statuses = connection.access.client.statuses(revision).await?;
        statuses.retain(|status| CONTEXTS.iter().any(|name| status.context == context_of(name)));
        let said = |name: &str| {
            let status = statuses.iter().find(|status| status.context == context_of(name))?;
            (status.state != State::Pending).then(|| (status.state, status.description.clone()))
        };
        if let [Some(validate), Some(plan), Some(gate)] = CONTEXTS.map(said) {
            let is_of = |open: &&Open| open.pull.head.revision == *revision;
            if let Some(number) = self.open.values().find(is_of).map(|open| open.pull.number) {
                self.say(number, revision, [(VALIDATE, validate), (PLAN, plan), (GATE, gate)]);
            }
        }
        connection.outbox.send(Order::Known { revision: revision.clone(), statuses });
        self.tell(prefix, instance.page_url.as_deref());
        Ok(())
    }

    async fn comment(
        &mut self,
        number: u64,
        connection: &Connection,
        names: &Names,
        body: &str,
    ) -> Result<(), Trouble> {
        let sticky = self.comments.entry(number).or_default();
        let place = Place { pull: number, me: &connection.access.me, marker: &names.marker() };
        sticky.write(&connection.access.client, &self.settings.permit, place, body).await?;
        Ok(())
    }

    /// Everything that is said now, to the outbox.
    fn tell(&mut self, prefix: &str, page: Option<&str>) {
        let (Some(connection), Some(base)) = (&self.connection, &self.base) else { return };
        let mut statuses = BTreeMap::new();
        let mut say = |revision: &Revision, name: &str, (state, text): &Said, url: Option<&str>| {
            let context = format!("{prefix}/{name}");
            let status = CommitStatus {
                context: context.clone(),
                state: *state,
                description: shortened(text).into_owned(),
                target_url: url.map(ToOwned::to_owned),
            };
            statuses.insert((revision.clone(), context), status);
        };
        for (revision, context, said) in &self.ended {
            say(revision, context, said, None);
        }
        let is_known = |revision: &Revision| !self.to_recall.contains(revision);
        if let Some((revision, said)) = self.of_base.as_ref().filter(|(revision, _)| is_known(revision)) {
            say(revision, VALIDATE, said, page);
        }
        for (number, report) in self.said.iter().filter(|(_, report)| is_known(&report.head)) {
            let url = self.open.get(number).map(|open| open.pull.url.as_str());
            for (name, said) in &report.contexts {
                say(&report.head, name, said, url);
            }
        }
        let told = statuses.keys().map(|(revision, _)| revision.clone()).collect::<BTreeSet<_>>();
        let order =
            Order::Desired { head: base.revision.clone(), told: told.into_iter().collect(), statuses };
        connection.outbox.send(order);
    }
}
