//! Apps in waves: what each unit has, what was decided about it, and when to decide again.
//!
//! An app without waves is not here, and costs nothing. What is kept of the others is a cache: the head and the baselines come from
//! Git, what a unit runs from its objects and their annotations; only timers and what was decided a moment ago are of this process.
//!
//! An event marks a target due and touches its app (`Apps::touch`). `observe.rs` looks at the touched units, `rollouts.rs` decides, and a
//! target gets another render only when the decision changed. While it is not known what a unit runs, its target is undecided: it is
//! observed and not written to. Claims, awaited definitions and what must not be deleted go by the head (`TargetEntry::head`); what is
//! applied goes by the effective render (`TargetEntry::render`).

mod approvals;
mod baseline;
mod effective;
mod head;
mod observe;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use approvals::approvals_of_other_versions;
pub use baseline::{PastApp, read_past};
pub use head::{AppHead, AtCommit, HeadUnit, Heads};
pub use observe::Seen;

use crate::fleet::Target;
use crate::model::{App, AppId, ClusterName, Digest, History, ObjectId, Rendered, Revision, Scale, UnitMark};
use crate::render::UnitContent;
use crate::rollout::{
    AllOutcomes, Approved, Basis, Condition, Decision, Hold, Reach, Refusal, Timers, UnitFacts, UnitId,
};

/// Reading an app at an earlier commit holds what the files say in memory.
const READERS: usize = 4;

/// The apps in waves.
#[derive(Debug)]
pub struct Apps {
    entries: BTreeMap<AppId, AppEntry>,
    /// Something happened to them since their app was decided about.
    touched: BTreeSet<Target>,
    /// Apps that are decided about next, whatever happened to their targets.
    due: BTreeSet<AppId>,
    deadlines: BTreeSet<(Timestamp, AppId)>,
    /// By the app that comes before them.
    followers: BTreeMap<AppId, BTreeSet<AppId>>,
    pub heads: Arc<Heads>,
    /// So many earlier commits are read side by side.
    reading: Arc<Semaphore>,
    clock: Clock,
    /// What came of measurements.
    measured: Arc<AllOutcomes>,
}

/// Tells the time of day by the clock of the runtime, which never jumps.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    at: Timestamp,
    began_really: std::time::Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self::starting_now()
    }
}

impl Clock {
    pub fn starting_now() -> Self {
        Self { began: Instant::now(), at: Timestamp::now(), began_really: std::time::Instant::now() }
    }

    pub fn time_of(self, instant: Instant) -> Timestamp {
        let elapsed = instant.saturating_duration_since(self.began);
        self.at.saturating_add(elapsed).unwrap_or(self.at)
    }

    /// What the clock of the machine shows: not the same once somebody set it, or the machine slept.
    pub fn wall(self, instant: Instant) -> Timestamp {
        let passed = SignedDuration::try_from(self.began_really.elapsed()).unwrap_or_default();
        let ahead = Timestamp::now().duration_since(self.at).saturating_sub(passed);
        self.time_of(instant).saturating_add(ahead).unwrap_or(Timestamp::MAX)
    }

    /// Never before a timestamp has passed.
    pub fn instant_of(self, time: Timestamp) -> Instant {
        let ahead = std::time::Duration::try_from(time.duration_since(self.at)).unwrap_or_default();
        self.began + ahead
    }
}

#[derive(Debug)]
pub struct AppEntry {
    pub app: Arc<App>,
    pub head: Arc<AppHead>,
    /// A mistake may hide clusters of it.
    pub may_lack_clusters: bool,
    /// The head of the repository.
    pub revision: Option<Revision>,
    pub units: BTreeMap<UnitId, UnitEntry>,
    /// The same units as a decision sees them.
    pub facts: BTreeMap<UnitId, UnitFacts>,
    /// Those that nobody has looked at since the head is the head.
    pub unseen: BTreeSet<UnitId>,
    pub approvals: Vec<Approved>,
    /// The position of each commit in history, the head is 0.
    pub positions: Arc<HashMap<Revision, usize>>,
    /// The commits by position.
    pub history: Arc<History>,
    /// What is known of earlier commits.
    pub commits: BTreeMap<Revision, PastCommit>,
    /// What this process takes back.
    pub refusals: Vec<Refusal>,
    pub decision: Option<Decision>,
    /// A commit that could not be read is read again then.
    pub retry_at: Option<Timestamp>,
    deadline: Option<Timestamp>,
}

/// An earlier commit of an app.
#[derive(Clone, Debug)]
pub enum PastCommit {
    Loading,
    Known(Arc<PastApp>),
    /// It cannot be read, or not any more; tried again then.
    Unknown {
        until: Timestamp,
    },
}

#[derive(Debug)]
pub struct UnitEntry {
    pub run: Run,
    /// What its objects say, or shall say.
    pub mark: UnitMark,
    pub timers: Timers,
    /// The commit that its content at the head is of, once it has that.
    pub revision: Option<Revision>,
    /// It went back to what it ran before: its hooks ran then.
    pub skips_hooks: bool,
    /// The numbers of pods that it had last: while a rollout is open they do not fall.
    pub scales: BTreeMap<ObjectId, Scale>,
}

impl Default for UnitEntry {
    fn default() -> Self {
        Self {
            run: Run::Unknown,
            mark: UnitMark::default(),
            timers: Timers::default(),
            revision: None,
            skips_hooks: false,
            scales: BTreeMap::new(),
        }
    }
}

/// Which render a unit has.
#[derive(Clone, Debug)]
pub enum Run {
    /// To be found out from its objects.
    Unknown,
    /// The head's. `was_whole`: all of it was there once. What is missing since, somebody took away.
    Head { was_whole: bool },
    /// That of an earlier commit.
    Held(Held),
    /// That of an earlier head, which did not come to be there whole before another head came.
    Half(Held),
}

/// The baseline of a unit.
#[derive(Clone, Debug)]
pub struct Held {
    pub revision: Revision,
    pub content: Arc<UnitContent>,
    /// Of the target at that commit.
    pub rendered: Arc<Rendered>,
    /// Nothing of it is made anew that is neither there nor at the head: it was found by a process that did not apply it.
    pub is_of_earlier_process: bool,
}

impl Apps {
    pub fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            touched: BTreeSet::new(),
            due: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            followers: BTreeMap::new(),
            heads: Arc::default(),
            reading: Arc::new(Semaphore::new(READERS)),
            clock: Clock::starting_now(),
            measured: Arc::default(),
        }
    }

    pub fn reading(&self) -> Arc<Semaphore> {
        Arc::clone(&self.reading)
    }

    pub fn now(&self, instant: Instant) -> Timestamp {
        self.clock.time_of(instant)
    }

    pub fn wall(&self, instant: Instant) -> Timestamp {
        self.clock.wall(instant)
    }

    pub fn get(&self, app: &AppId) -> Option<&AppEntry> {
        self.entries.get(app)
    }

    pub fn get_mut(&mut self, app: &AppId) -> Option<&mut AppEntry> {
        self.entries.get_mut(app)
    }

    pub fn contains(&self, app: &AppId) -> bool {
        self.entries.contains_key(app)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&AppId, &AppEntry)> {
        self.entries.iter()
    }

    /// Another name of the instance is another inventory.
    pub fn clear(&mut self) {
        *self = Self { clock: self.clock, measured: Arc::clone(&self.measured), ..Self::new() };
    }

    /// Something happened to a target.
    pub fn touch(&mut self, target: &Target) {
        if self.entries.contains_key(&target.app) {
            self.touched.insert(target.clone());
        }
        self.touch_followers(target);
    }

    /// What is said of a target changed: apps that come after it wait for something else, or no longer.
    pub fn touch_followers(&mut self, target: &Target) {
        for follower in self.followers.get(&target.app).into_iter().flatten() {
            self.touched.insert(Target { app: follower.clone(), cluster: target.cluster.clone() });
        }
    }

    pub fn decide_soon(&mut self, app: &AppId) {
        self.due.insert(app.clone());
    }

    /// Apps for which something else was measured are decided about.
    pub fn take_measured(&mut self, measured: Arc<AllOutcomes>) {
        let is_other = |app: &&AppId| self.measured.get(*app) != measured.get(*app);
        self.due.extend(self.measured.keys().chain(measured.keys()).filter(is_other).cloned());
        self.measured = measured;
    }

    pub fn measured(&self) -> Arc<AllOutcomes> {
        Arc::clone(&self.measured)
    }

    /// The next app to decide about, and the clusters on which something happened to it.
    /// And whether something else calls for a decision.
    pub fn next(&mut self, now: Timestamp) -> Option<(AppId, BTreeSet<ClusterName>, bool)> {
        while let Some((at, _)) = self.deadlines.first()
            && *at <= now
            && let Some((_, app)) = self.deadlines.pop_first()
        {
            self.due.insert(app);
        }
        let due = self.due.pop_first();
        let is_due = due.is_some();
        let app = due.or_else(|| Some(self.touched.first()?.app.clone()))?;
        let first = Target { app: app.clone(), cluster: ClusterName::from("") };
        let of_app = self.touched.range(first..).take_while(|target| target.app == app);
        let targets: Vec<Target> = of_app.cloned().collect();
        targets.iter().for_each(|target| _ = self.touched.remove(target));
        Some((app, targets.into_iter().map(|target| target.cluster).collect(), is_due))
    }

    /// Nothing happened that calls for a decision.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.touched.is_empty()
            && self.due.is_empty()
            && self.deadlines.first().is_none_or(|(at, _)| *at > now)
    }

    /// Decides about an app again then.
    pub fn set_deadline(&mut self, app: &AppId, at: Option<Timestamp>) {
        let Some(entry) = self.entries.get_mut(app) else { return };
        if let Some(before) = std::mem::replace(&mut entry.deadline, at) {
            self.deadlines.remove(&(before, app.clone()));
        }
        self.deadlines.extend(at.map(|at| (at, app.clone())));
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| self.clock.instant_of(*at))
    }

    /// The apps in waves of a new head. What their units run stays known.
    /// `render`: what a target has now.
    pub fn take_heads(
        &mut self,
        heads: Arc<Heads>,
        mut app: impl FnMut(&AppId) -> Option<(Arc<App>, Vec<Approved>)>,
        render: &dyn Fn(&Target) -> Option<Arc<Rendered>>,
    ) {
        let gone: Vec<AppId> =
            self.entries.keys().filter(|id| !heads.apps.contains_key(*id)).cloned().collect();
        for id in gone {
            self.set_deadline(&id, None);
            self.entries.remove(&id);
        }
        self.followers.clear();
        for (id, head) in &heads.apps {
            let Some((app, approvals)) = app(id) else { continue };
            for after in &app.rollout.after {
                self.followers.entry(after.app.clone()).or_default().insert(id.clone());
            }
            let is_same = self.entries.get(id).is_some_and(|known| {
                let has_approvals = !approvals.is_empty() || !known.approvals.is_empty();
                Arc::ptr_eq(&known.head, head) && known.app == app && !has_approvals
            });
            if !is_same {
                self.due.insert(id.clone());
            }
            let render =
                |cluster: &ClusterName| render(&Target { app: id.clone(), cluster: cluster.clone() });
            match self.entries.get_mut(id) {
                Some(entry) => entry.take_head(app, head, approvals, &render),
                None => {
                    let mut entry = AppEntry::new(app, Arc::clone(head), approvals);
                    entry.reset_facts();
                    self.entries.insert(id.clone(), entry);
                }
            }
            if let Some(entry) = self.entries.get_mut(id) {
                entry.positions = Arc::clone(&heads.positions);
                entry.history = Arc::clone(&heads.history);
                entry.revision.clone_from(&heads.revision);
                if entry.may_lack_clusters != heads.may_lack_clusters {
                    entry.may_lack_clusters = heads.may_lack_clusters;
                    entry.decision = None;
                    self.due.insert(id.clone());
                }
            }
        }
        self.heads = heads;
    }
}

impl AppEntry {
    fn new(app: Arc<App>, head: Arc<AppHead>, approvals: Vec<Approved>) -> Self {
        let units: BTreeMap<UnitId, UnitEntry> =
            head.units.keys().map(|id| (id.clone(), UnitEntry::default())).collect();
        let (commits, positions, history) = (BTreeMap::new(), Arc::default(), Arc::default());
        Self {
            app,
            head,
            may_lack_clusters: false,
            revision: None,
            facts: BTreeMap::new(),
            unseen: BTreeSet::new(),
            units,
            approvals,
            positions,
            history,
            commits,
            refusals: Vec::new(),
            decision: None,
            retry_at: None,
            deadline: None,
        }
    }

    /// Looks at every unit anew, before anything is decided.
    pub fn reset_facts(&mut self) {
        self.facts = self.head.units.iter().map(|(id, unit)| (id.clone(), unread(unit))).collect();
        self.unseen = self.head.units.keys().cloned().collect();
    }

    /// The units on a cluster.
    pub fn units_on(&self, cluster: &ClusterName) -> impl Iterator<Item = (&UnitId, &UnitEntry)> {
        units_on(&self.units, cluster)
    }

    /// The older the commit, the larger. One that is not known is older than all.
    pub fn position(&self, revision: &Revision) -> usize {
        self.positions.get(revision).copied().unwrap_or(usize::MAX)
    }

    /// It is in the history that is known.
    pub fn is_known(&self, revision: &Revision) -> bool {
        self.positions.contains_key(revision)
    }

    /// A commit is being read that the decision depends on.
    pub fn is_reading(&self) -> bool {
        self.commits.values().any(|commit| matches!(commit, PastCommit::Loading))
    }

    /// Something that is held back comes without anybody's doing, and not only once a window opens: that may take days.
    pub fn ends_by_itself(&self) -> bool {
        let verdicts = self.decision.iter().flat_map(|decision| decision.units.values());
        let mut holds = verdicts.filter_map(|verdict| verdict.hold.as_ref());
        holds.any(|hold| hold.until().is_some() && !matches!(hold.gate(), Hold::Window { .. }))
    }

    pub fn is_open(&self) -> bool {
        self.decision.as_ref().is_none_or(|decision| decision.is_open)
    }
}

/// A unit of a cluster that nothing is known of.
fn unread(unit: &HeadUnit) -> UnitFacts {
    UnitFacts {
        wave: unit.wave,
        head: head_digest(unit),
        reach: Reach::Unread,
        is_behind: true,
        basis: Basis::Loading,
        condition: Condition::Progressing("not known yet".into()),
        revision: None,
        mark: UnitMark::default(),
        timers: Timers::default(),
        after: None,
        mistake: None,
        pin: unit.pin.clone(),
    }
}

/// Of what cannot be rendered, that of nothing.
fn head_digest(unit: &HeadUnit) -> Digest {
    unit.content.as_ref().map_or_else(|| Digest::of(b""), |content| content.digest)
}

/// Those on a cluster.
fn units_on<'u, T>(
    units: &'u BTreeMap<UnitId, T>,
    cluster: &ClusterName,
) -> impl Iterator<Item = (&'u UnitId, &'u T)> + use<'u, T> {
    let (first, cluster) = (UnitId { cluster: cluster.clone(), pod_set: Arc::default() }, cluster.clone());
    units.range(first..).take_while(move |(id, _)| id.cluster == cluster)
}
