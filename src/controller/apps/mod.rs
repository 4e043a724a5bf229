//! Apps in waves: the content of each unit, the last decision, and the time of the next one.
//!
//! Apps without waves are not here and cost nothing. The state is a cache: head and baselines come from Git, the current commit
//! of a unit from its objects and their annotations. Only timers and recent decisions exist in this process alone.
//!
//! An event marks a target due and touches its app (`RolloutApps::touch`). `observe.rs` observes the touched units, `rollouts.rs`
//! decides, and a target gets another render only if the decision changed. While the commit of a unit is unknown, its target is
//! undecided: it is observed and not written to. Shared objects, awaited definitions and protection from deletes follow the head
//! (`TargetEntry::head`); the apply follows the effective render (`TargetEntry::render`).

mod approvals;
mod baseline;
mod effective;
mod head;
mod observe;
mod past_app;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use approvals::approvals_of_other_versions;
pub use baseline::read_past_app;
use head::units_on;
pub use head::{AppAtCommit, AppHead, AppHeads, HeadUnit};
pub use observe::TargetView;
pub use past_app::PastApp;

use crate::fleet::Target;
use crate::model::{
    App, AppId, ClusterName, Digest, ObjectId, ObjectScale, PathHistory, RenderedTarget, Revision,
    UnitRolloutAnnotations,
};
use crate::render::UnitContent;
use crate::rollout::{
    AllMeasurementOutcomes, CurrentUnitContent, GivenApproval, RolloutDecision, RolloutHold, UnitCondition,
    UnitFacts, UnitId, UnitParticipation, UnitTimers, VersionRefusal,
};

/// Limited because each read keeps the parsed files of a commit in memory.
const MAX_READERS: usize = 4;

#[derive(Debug)]
pub struct RolloutApps {
    entries: BTreeMap<AppId, AppEntry>,
    /// Targets with events since the last decision about their app.
    touched: BTreeSet<Target>,
    /// Apps that need a decision for another reason.
    due: BTreeSet<AppId>,
    deadlines: BTreeSet<(Timestamp, AppId)>,
    /// By the app that comes before them.
    followers: BTreeMap<AppId, BTreeSet<AppId>>,
    pub heads: Arc<AppHeads>,
    /// Limits the earlier commits that are read at the same time.
    reading: Arc<Semaphore>,
    clock: RuntimeClock,
    /// Results of measurements.
    measured: Arc<AllMeasurementOutcomes>,
}

/// The time of day by the clock of the runtime, which never jumps.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeClock {
    started: Instant,
    started_at: Timestamp,
    started_real: std::time::Instant,
}

impl Default for RuntimeClock {
    fn default() -> Self {
        Self::starting_now()
    }
}

impl RuntimeClock {
    pub fn starting_now() -> Self {
        Self {
            started: Instant::now(),
            started_at: Timestamp::now(),
            started_real: std::time::Instant::now(),
        }
    }

    pub fn time_of(self, instant: Instant) -> Timestamp {
        let elapsed = instant.saturating_duration_since(self.started);
        self.started_at.saturating_add(elapsed).unwrap_or(self.started_at)
    }

    /// The time of the machine's clock. It differs after the clock was set or the machine slept.
    pub fn wall_time(self, instant: Instant) -> Timestamp {
        let passed = SignedDuration::try_from(self.started_real.elapsed()).unwrap_or_default();
        let ahead = Timestamp::now().duration_since(self.started_at).saturating_sub(passed);
        self.time_of(instant).saturating_add(ahead).unwrap_or(Timestamp::MAX)
    }

    /// Rounds up: the instant is never before the timestamp.
    pub fn instant_of(self, time: Timestamp) -> Instant {
        let ahead = std::time::Duration::try_from(time.duration_since(self.started_at)).unwrap_or_default();
        self.started + ahead
    }
}

#[derive(Debug)]
pub struct AppEntry {
    pub app: Arc<App>,
    pub head: Arc<AppHead>,
    /// An error may hide clusters of the app.
    pub may_lack_clusters: bool,
    /// The head of the repository.
    pub revision: Option<Revision>,
    pub units: BTreeMap<UnitId, UnitEntry>,
    /// The same units as input of a decision.
    pub facts: BTreeMap<UnitId, UnitFacts>,
    /// Units that were not observed since the head changed.
    pub unobserved_units: BTreeSet<UnitId>,
    pub approvals: Vec<GivenApproval>,
    /// The position of each commit in history; the head is 0.
    pub positions: Arc<HashMap<Revision, usize>>,
    /// The commits by position.
    pub history: Arc<PathHistory>,
    pub commits: BTreeMap<Revision, PastCommit>,
    /// Versions that this process refuses.
    pub refusals: Vec<VersionRefusal>,
    pub decision: Option<RolloutDecision>,
    /// When a commit that could not be read is read again.
    pub retry_at: Option<Timestamp>,
    deadline: Option<Timestamp>,
}

/// An earlier commit of an app.
#[derive(Clone, Debug)]
pub enum PastCommit {
    Loading,
    Known(Arc<PastApp>),
    /// It cannot be read, or not any more; retried after `until`.
    Unknown {
        until: Timestamp,
    },
}

#[derive(Debug)]
pub struct UnitEntry {
    pub render_state: UnitRenderState,
    /// The mark of its objects, or the one to write.
    pub mark: UnitRolloutAnnotations,
    pub timers: UnitTimers,
    /// The commit of its content, if it has the head's content.
    pub revision: Option<Revision>,
    /// It was reverted to its previous content: the hooks of that content have run.
    pub skips_hooks: bool,
    /// Its last numbers of pods. They do not fall while a rollout is open.
    pub scales: BTreeMap<ObjectId, ObjectScale>,
}

impl Default for UnitEntry {
    fn default() -> Self {
        Self {
            render_state: UnitRenderState::Unknown,
            mark: UnitRolloutAnnotations::default(),
            timers: UnitTimers::default(),
            revision: None,
            skips_hooks: false,
            scales: BTreeMap::new(),
        }
    }
}

/// The render of a unit.
#[derive(Clone, Debug)]
pub enum UnitRenderState {
    /// To be found from its objects.
    Unknown,
    /// The head's. `was_whole`: all objects existed once. An object that is missing since then was deleted by somebody else.
    Head { was_whole: bool },
    /// The render of an earlier commit.
    Held(UnitBaseline),
    /// The render of an earlier head that was not complete before the next head came.
    PartlyApplied(UnitBaseline),
}

#[derive(Clone, Debug)]
pub struct UnitBaseline {
    pub revision: Revision,
    pub content: Arc<UnitContent>,
    /// The render of the target at that commit.
    pub rendered: Arc<RenderedTarget>,
    /// Found by a process that did not apply it. An object that is neither live nor in the head is not created again.
    pub is_of_earlier_process: bool,
}

impl RolloutApps {
    pub fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            touched: BTreeSet::new(),
            due: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            followers: BTreeMap::new(),
            heads: Arc::default(),
            reading: Arc::new(Semaphore::new(MAX_READERS)),
            clock: RuntimeClock::starting_now(),
            measured: Arc::default(),
        }
    }

    pub fn reading(&self) -> Arc<Semaphore> {
        Arc::clone(&self.reading)
    }

    pub fn now(&self, instant: Instant) -> Timestamp {
        self.clock.time_of(instant)
    }

    pub fn wall_time(&self, instant: Instant) -> Timestamp {
        self.clock.wall_time(instant)
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

    /// Another instance name is another inventory.
    pub fn clear(&mut self) {
        *self = Self { clock: self.clock, measured: Arc::clone(&self.measured), ..Self::new() };
    }

    /// Records an event of a target.
    pub fn touch(&mut self, target: &Target) {
        if self.entries.contains_key(&target.app) {
            self.touched.insert(target.clone());
        }
        self.touch_followers(target);
    }

    /// The status of a target changed: apps that come after it may start or must wait.
    pub fn touch_followers(&mut self, target: &Target) {
        for follower in self.followers.get(&target.app).into_iter().flatten() {
            self.touched.insert(Target { app: follower.clone(), cluster: target.cluster.clone() });
        }
    }

    pub fn decide_soon(&mut self, app: &AppId) {
        self.due.insert(app.clone());
    }

    /// Apps with new measurements need a decision.
    pub fn take_measured(&mut self, measured: Arc<AllMeasurementOutcomes>) {
        let is_other = |app: &&AppId| self.measured.get(*app) != measured.get(*app);
        self.due.extend(self.measured.keys().chain(measured.keys()).filter(is_other).cloned());
        self.measured = measured;
    }

    pub fn measured(&self) -> Arc<AllMeasurementOutcomes> {
        Arc::clone(&self.measured)
    }

    /// The next app to decide about, the clusters with events, and whether there is another reason for a decision.
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

    /// No app needs a decision.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.touched.is_empty()
            && self.due.is_empty()
            && self.deadlines.first().is_none_or(|(at, _)| *at > now)
    }

    /// Sets the time of the next decision about an app.
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

    /// Sets the apps in waves of a new head. The known renders of their units stay. `render`: the current render of a target.
    pub fn take_heads(
        &mut self,
        heads: Arc<AppHeads>,
        mut app: impl FnMut(&AppId) -> Option<(Arc<App>, Vec<GivenApproval>)>,
        render: &dyn Fn(&Target) -> Option<Arc<RenderedTarget>>,
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
                Some(entry) => entry.update_head(app, head, approvals, &render),
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
    fn new(app: Arc<App>, head: Arc<AppHead>, approvals: Vec<GivenApproval>) -> Self {
        let units: BTreeMap<UnitId, UnitEntry> =
            head.units.keys().map(|id| (id.clone(), UnitEntry::default())).collect();
        let (commits, positions, history) = (BTreeMap::new(), Arc::default(), Arc::default());
        Self {
            app,
            head,
            may_lack_clusters: false,
            revision: None,
            facts: BTreeMap::new(),
            unobserved_units: BTreeSet::new(),
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

    /// Marks every unit for an observation before the next decision.
    pub fn reset_facts(&mut self) {
        self.facts = self.head.units.iter().map(|(id, unit)| (id.clone(), unread_facts(unit))).collect();
        self.unobserved_units = self.head.units.keys().cloned().collect();
    }

    pub fn units_on(&self, cluster: &ClusterName) -> impl Iterator<Item = (&UnitId, &UnitEntry)> {
        units_on(&self.units, cluster)
    }

    /// Larger for older commits. An unknown commit is the oldest.
    pub fn position(&self, revision: &Revision) -> usize {
        self.positions.get(revision).copied().unwrap_or(usize::MAX)
    }

    /// It is in the known history.
    pub fn is_known(&self, revision: &Revision) -> bool {
        self.positions.contains_key(revision)
    }

    /// The decision waits for a commit that is being read.
    pub fn is_reading(&self) -> bool {
        self.commits.values().any(|commit| matches!(commit, PastCommit::Loading))
    }

    /// A hold ends without help, and not only when a window opens, which may take days.
    pub fn ends_by_itself(&self) -> bool {
        let verdicts = self.decision.iter().flat_map(|decision| decision.units.values());
        let mut holds = verdicts.filter_map(|verdict| verdict.hold.as_ref());
        holds.any(|hold| hold.until().is_some() && !matches!(hold.gate(), RolloutHold::Window { .. }))
    }

    pub fn is_open(&self) -> bool {
        self.decision.as_ref().is_none_or(|decision| decision.is_open)
    }
}

/// The facts of a unit on a cluster without an observation.
fn unread_facts(unit: &HeadUnit) -> UnitFacts {
    UnitFacts {
        wave: unit.wave,
        head: head_digest(unit),
        participation: UnitParticipation::Unread,
        is_behind: true,
        current_content: CurrentUnitContent::Loading,
        condition: UnitCondition::Progressing("not known yet".into()),
        revision: None,
        mark: UnitRolloutAnnotations::default(),
        timers: UnitTimers::default(),
        predecessor_hold: None,
        render_error: None,
        pin: unit.pin.clone(),
    }
}

/// The digest of nothing if it cannot be rendered.
fn head_digest(unit: &HeadUnit) -> Digest {
    unit.content.as_ref().map_or_else(|| Digest::of(b""), |content| content.digest)
}
