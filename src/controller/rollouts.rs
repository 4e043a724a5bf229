//! Advances rollouts: observes units after events, decides, and assigns each target its render.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::agreements::Sources;
use super::apps::{AppEntry, Heads, Held, PastApp, PastCommit, Run, Seen, UnitEntry};
use super::event::Event;
use super::file_versions::FileVersions;
use super::world::World;
use crate::fleet::{Fleet, Target};
use crate::model::{
    Answers, AppId, Capabilities, ClusterName, Digest, ObjectId, Previous, Question, Refused, Revision,
    Roles, RolloutAction, RolloutApproval, UnitMark,
};
use crate::render::UnitContent;
use crate::report::Phase;
use crate::rollout::{
    self, Allows, Approved, Basis, Choice, Commit, Condition, Decision, Hold, Input, Outcomes, Policy, Reach,
    UnitFacts, UnitId,
};

impl World {
    /// The apps in waves at a new head. Must run before the targets are updated, because the current render of a target becomes
    /// its baseline.
    pub(super) fn take_heads(&mut self, fleet: &Fleet, heads: &Arc<Heads>) {
        let Self { apps, targets, snapshot, agreements, .. } = self;
        let Some(snapshot) = snapshot else { return };
        let files = FileVersions::new(snapshot);
        agreements.keep(&snapshot.revision, &files);
        let of_app = |id: &AppId| {
            let (app, head) = (fleet.apps.get(id)?, heads.apps.get(id)?);
            Some((Arc::clone(app), approvals_of(fleet, &files, id, &head.waves)))
        };
        let render = |target: &Target| targets.get(target)?.render.as_ref().ok().cloned();
        apps.take_heads(Arc::clone(heads), of_app, &render);
    }

    /// Decides for each app in waves that an event affected.
    pub(super) fn advance_rollouts(&mut self, now: Instant) {
        let (time, wall) = (self.apps.now(now), self.apps.wall(now));
        while let Some((app, clusters, is_due)) = self.apps.next(time) {
            self.advance_rollout(&app, &clusters, is_due, (time, wall));
        }
    }

    /// `is_due`: a decision is needed for another reason than events of its units.
    /// `wall`: the time of the machine's clock.
    fn advance_rollout(
        &mut self,
        id: &AppId,
        touched: &BTreeSet<ClusterName>,
        is_due: bool,
        (now, wall): (Timestamp, Timestamp),
    ) {
        if let Some(entry) = self.apps.get_mut(id) {
            entry.read_again(now);
        }
        let is_other = self.observe_units(id, touched, now);
        let Self { apps, clusters, agreements, fleet, .. } = self;
        let Some(fleet) = fleet else { return };
        let roles = &fleet.approval_rules.roles;
        let (measured, none) = (apps.measured(), Outcomes::new());
        let Some(entry) = apps.get_mut(id).filter(|entry| is_other || entry.decision.is_none() || is_due)
        else {
            return;
        };
        let known = |cluster: &ClusterName| clusters.get(cluster).and_then(|it| it.facts.clone());
        let before = entry.decision.take();
        let measured = measured.get(id).unwrap_or(&none);
        let mut decision = entry.decide(measured, (roles, &|asked| agreements.answer(asked)), (now, wall));
        // An observation that is missing for a moment neither opens nor closes a rollout.
        let mut unread = entry.facts.values().filter(|facts| facts.reach == Reach::Unread).peekable();
        let was_open = before.as_ref().is_none_or(|before| before.is_open);
        // A unit may be behind while its commit is unknown.
        decision.is_open |=
            unread.peek().is_some() && was_open || unread.any(|facts| facts.basis == Basis::Loading);
        let wants = entry.carry_out(&mut decision, &known, now);
        let changed = changed_clusters(before.as_ref(), &decision);
        let holds = decision.units.values().filter_map(|verdict| verdict.hold.as_ref());
        let by_window = { holds }.any(|hold| matches!(hold.gate(), Hold::Window { .. }));
        let look_at_clock = now.saturating_add(LOOK_AT_CLOCK).ok().filter(|_| by_window);
        let deadline = [decision.deadline, entry.retry_at, look_at_clock].into_iter().flatten().min();
        let said = |unit: &UnitId| before.as_ref().and_then(|before| before.units.get(unit));
        let news: BTreeSet<ClusterName> = decision
            .units
            .iter()
            .filter(|(unit, verdict)| said(unit) != Some(verdict))
            .map(|(unit, _)| unit.cluster.clone())
            .collect();
        let asks = std::mem::take(&mut decision.asks);
        entry.decision = Some(decision);
        self.changed = true;
        self.ask_who_agreed(asks, id);
        self.apps.set_deadline(id, deadline);
        for revision in wants {
            self.read_past(id, revision);
        }
        for cluster in news {
            self.apps.touch_followers(&Target { app: id.clone(), cluster });
        }
        for cluster in changed {
            self.give_render(&Target { app: id.clone(), cluster });
        }
    }

    pub(super) fn ask_who_agreed(&mut self, asks: BTreeSet<Question>, app: &AppId) {
        let asks: Vec<Question> = asks.into_iter().filter(|it| !self.agreements.is_asked(it, app)).collect();
        if asks.is_empty() {
            return;
        }
        let known = self.fleet.as_ref().and_then(|fleet| fleet.apps.get(app));
        let folder = known.map(|app| app.folder().to_owned());
        let sources = Sources { forge: self.reader(), history: Arc::clone(&self.history) };
        for asked in asks {
            self.agreements.ask(asked, (app, folder.clone()), &sources, &self.events);
        }
    }

    /// Observes the units that an event affected, and those not observed yet. Returns whether any of them changed.
    fn observe_units(&mut self, id: &AppId, touched: &BTreeSet<ClusterName>, now: Timestamp) -> bool {
        let Some(entry) = self.apps.get(id) else { return false };
        let touched = touched.iter().flat_map(|cluster| entry.units_on(cluster)).map(|(unit, _)| unit);
        let units: BTreeSet<UnitId> = touched.chain(&entry.unseen).cloned().collect();
        let clusters: BTreeSet<&ClusterName> = units.iter().map(|unit| &unit.cluster).collect();
        let after: BTreeMap<ClusterName, Option<Hold>> =
            clusters.into_iter().map(|cluster| (cluster.clone(), self.comes_after(entry, cluster))).collect();
        let Self { apps, targets, clusters, .. } = self;
        let Some(entry) = apps.get_mut(id) else { return false };
        let mut is_other = false;
        for unit in units {
            let target = targets.get(&Target { app: id.clone(), cluster: unit.cluster.clone() });
            if let (Some(target), Some(cluster)) = (target, clusters.get(&unit.cluster)) {
                is_other |= entry.observe(&unit, Seen { target, cluster, now });
            }
            if let Some(facts) = entry.facts.get_mut(&unit) {
                let after = after.get(&unit.cluster).cloned().flatten();
                is_other |= facts.after != after;
                facts.after = after;
            }
        }
        is_other
    }

    /// The hold while an app that must be done first on a cluster is not done.
    fn comes_after(&self, entry: &AppEntry, cluster: &ClusterName) -> Option<Hold> {
        entry.app.rollout.after.iter().find_map(|after| {
            let target = Target { app: after.app.clone(), cluster: cluster.clone() };
            // An app that the cluster does not have holds nothing back.
            self.targets.get(&target)?;
            let (phase, words) = self.phase(&target);
            if matches!(phase, Phase::Running | Phase::Unmanaged | Phase::KeptOut) {
                return None;
            }
            let because = if words.is_empty() { phase.as_str().to_owned() } else { words };
            Some(Hold::After { app: after.app.clone(), because: because.into() })
        })
    }

    fn give_render(&mut self, target: &Target) {
        let Self { apps, targets, clusters, .. } = self;
        let (Some(entry), Some(known)) = (apps.get_mut(&target.app), targets.get(target)) else { return };
        let (Ok(head), Some(cluster)) = (&known.head, clusters.get(&target.cluster)) else { return };
        let effective = entry.effective(&target.cluster, &Arc::clone(head), &cluster.observation);
        let is_undecided = effective.is_undecided;
        let Some(known) = self.targets.get_mut(target) else { return };
        let is_other = known.choose(Arc::clone(&effective.rendered), is_undecided);
        self.apps.touch(target);
        if !is_other {
            // The objects are equal; other fields of the render are written only along with a change.
            return;
        }
        self.in_flight.cancel(target);
        let cluster = self.clusters.get_mut(&target.cluster);
        if cluster.is_some_and(|it| it.take_render(&target.app.to_string(), &effective.rendered)) {
            self.watch_rendered(&target.cluster);
        }
        self.changed = true;
        if let Some(known) = self.targets.get_mut(target) {
            known.due = true;
            self.agenda.mark(target.clone());
        }
    }

    /// Reads an app at an earlier commit, once.
    fn read_past(&mut self, id: &AppId, revision: Revision) {
        let Some(fleet) = self.fleet.clone() else { return };
        let Some(entry) = self.apps.get_mut(id).filter(|entry| !entry.commits.contains_key(&revision)) else {
            return;
        };
        entry.commits.insert(revision.clone(), PastCommit::Loading);
        let (head, app) = (Arc::clone(&entry.head), id.clone());
        let discovered =
            self.clusters.iter().filter_map(|(name, it)| Some((name.clone(), it.facts.clone()?))).collect();
        let (history, events) = (Arc::clone(&self.history), self.events.clone());
        let reading = Arc::clone(&self.reading);
        let (places, defined) = (self.apps.reading(), self.renders.last().map(|it| it.defined().clone()));
        tokio::spawn(async move {
            let place = places.acquire_owned().await;
            let known = (discovered, defined.unwrap_or_default());
            let past =
                super::apps::read_past(&history, &reading, &fleet, &head, &app, &revision, known).await;
            drop(place);
            // The send fails only when the controller has stopped.
            let _ = events.send(Event::PastApp { app, revision, past: past.map(Box::new) }).await;
        });
    }

    pub(super) fn past_read(&mut self, app: &AppId, revision: &Revision, past: Option<PastApp>) {
        let now = self.apps.now(Instant::now());
        let Some(entry) = self.apps.get_mut(app) else { return };
        match past {
            // This commit was read for other waves than the current ones.
            Some(past) if past.waves != entry.head.waves => _ = entry.commits.remove(revision),
            Some(past) => _ = entry.commits.insert(revision.clone(), PastCommit::Known(Arc::new(past))),
            None => {
                let until = now.saturating_add(READ_AGAIN).unwrap_or(now);
                entry.commits.insert(revision.clone(), PastCommit::Unknown { until });
                entry.retry_at = [entry.retry_at, Some(until)].into_iter().flatten().min();
            }
        }
        // This commit may show what a unit runs.
        let unknown = entry.units.iter().filter(|(_, unit)| matches!(unit.run, Run::Unknown));
        entry.unseen.extend(unknown.map(|(id, _)| id.clone()));
        self.apps.decide_soon(app);
    }

    /// The hold of each unit of a target.
    pub(super) fn holds(&self, target: &Target) -> impl Iterator<Item = (&UnitId, &Hold)> {
        let entry = self.apps.get(&target.app);
        let units = entry.into_iter().flat_map(|entry| entry.units_on(&target.cluster));
        let decision = entry.and_then(|entry| entry.decision.as_ref());
        units.filter_map(move |(id, _)| Some((id, decision?.units.get(id)?.hold.as_ref()?)))
    }

    /// The commits whose rollout is open. Their statuses are updated until it ends, even when newer commits come.
    pub(super) fn unfinished_commits(&self) -> BTreeSet<Revision> {
        let open = self.apps.iter().filter(|(_, entry)| entry.is_open());
        let targets = open.flat_map(|(id, _)| self.targets.of_app(id));
        targets.map(|(_, target)| target.revision.clone()).collect()
    }

    /// A unit of a target that fails while its rollout is open.
    pub(super) fn rollout_failure(&self, target: &Target) -> Option<String> {
        let entry = self.apps.get(&target.app)?;
        let decision = entry.decision.as_ref()?;
        entry
            .units_on(&target.cluster)
            .find_map(|(id, _)| Some(decision.units.get(id)?.failure.as_ref()?.to_string()))
    }
}

/// While a window is shut: the controller notices within this time that the clock was set or that the machine slept.
const LOOK_AT_CLOCK: SignedDuration = SignedDuration::from_mins(5);

/// A commit that could not be read is read again after this time, because a chart may be available again.
const READ_AGAIN: SignedDuration = SignedDuration::from_mins(5);

/// The Approvals of an app as input of a decision.
pub fn approvals_of(
    fleet: &Fleet,
    files: &FileVersions<'_>,
    app: &AppId,
    waves: &crate::fleet::Waves,
) -> Vec<Approved> {
    let approved = |approval: &RolloutApproval| {
        let allows = match &approval.action {
            RolloutAction::Open { through } => Allows::Through(waves.position(through)?),
            RolloutAction::Retry => Allows::Retry,
            RolloutAction::Override { window } => Allows::Override { window: window.clone() },
        };
        let at = files.age(approval.location.as_ref());
        let file = files.of_approval(approval.location.as_ref(), approval.is_alone);
        Some(Approved { digest: approval.digest, allows, at, file })
    };
    fleet.rollout_approvals.get(app).into_iter().flatten().filter_map(approved).collect()
}

/// The clusters on which the render of a unit changes.
fn changed_clusters(before: Option<&Decision>, now: &Decision) -> BTreeSet<ClusterName> {
    let is_same = before.is_some_and(|before| before.is_open == now.is_open);
    let is_changed = |(id, verdict): &(&UnitId, &rollout::Verdict)| {
        !is_same
            || before.and_then(|before| before.units.get(*id)).map(|it| &it.choice) != Some(&verdict.choice)
    };
    now.units.iter().filter(is_changed).map(|(id, _)| id.cluster.clone()).collect()
}

impl AppEntry {
    fn read_again(&mut self, now: Timestamp) {
        if self.retry_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        let is_over = |commit: &PastCommit| matches!(commit, PastCommit::Unknown { until } if *until <= now);
        self.commits.retain(|_, commit| !is_over(commit));
        let waits = self.commits.values().filter_map(|commit| match commit {
            PastCommit::Unknown { until } => Some(*until),
            PastCommit::Loading | PastCommit::Known(_) => None,
        });
        self.retry_at = waits.min();
        self.unseen.extend(self.units.keys().cloned());
    }

    /// The objects that differ between the head and the current content of a unit. All objects of the head if the current content
    /// is unknown.
    fn changes(&self, id: &UnitId) -> Vec<ObjectId> {
        let head = self.head.units.get(id).and_then(|unit| unit.content.as_deref());
        let Some(head) = head else { return Vec::new() };
        let has = self.units.get(id).and_then(|unit| match &unit.run {
            Run::Held(held) | Run::Half(held) => Some(&*held.content),
            Run::Head { .. } => Some(head),
            Run::Unknown => None,
        });
        let Some(has) = has else { return head.objects.iter().map(|(object, _)| object.clone()).collect() };
        let missing = |of: &UnitContent, other: &UnitContent| -> Vec<ObjectId> {
            let lacks = |(object, digest): &&(ObjectId, Digest)| other.get(object).as_ref() != Some(digest);
            of.objects.iter().filter(lacks).map(|(object, _)| object.clone()).collect()
        };
        let mut changes = missing(head, has);
        changes.extend(missing(has, head));
        changes
    }

    fn decide(
        &self,
        measured: &Outcomes,
        (roles, answers): (&Roles, Answers<'_>),
        (now, wall): (Timestamp, Timestamp),
    ) -> Decision {
        let head_revision = self.revision.clone().unwrap_or_else(|| Revision::from(Revision::WORKTREE));
        let commit = |revision: &Revision| match self.commits.get(revision) {
            Some(PastCommit::Known(past)) => Commit::Known(Arc::clone(&past.facts)),
            Some(PastCommit::Unknown { .. }) => Commit::Unknown,
            Some(PastCommit::Loading) | None => Commit::Loading,
        };
        let position = |revision: &Revision| self.positions.get(revision).copied();
        let parent = |revision: &Revision| {
            let at = position(revision)?.checked_add(1)?;
            self.history.commits.get(at).cloned()
        };
        let deadline = SignedDuration::try_from(self.app.rollout.deadline()).unwrap_or(SignedDuration::MAX);
        rollout::decide(&Input {
            waves: self.head.waves.list(),
            policy: Policy {
                on_failure: self.app.rollout.on_failure,
                deadline,
                gate_first: self.app.rollout.gate_first,
                paused: self.app.paused,
            },
            digest: self.head.digest,
            head: &self.head.facts,
            head_revision: &head_revision,
            may_lack_clusters: self.may_lack_clusters,
            units: &self.facts,
            approvals: &self.approvals,
            windows: &self.head.selected.windows,
            measured,
            rules: &self.head.selected.rules,
            roles,
            answers,
            changes: &|unit| self.changes(unit),
            app: &self.app.id,
            refusals: &self.refusals,
            commit: &commit,
            position: &position,
            parent: &parent,
            now,
            wall,
        })
    }

    /// Assigns each unit its decided render. If a render is not available, the decision gets the reason. Returns the commits that
    /// must be read first. `known`: the capabilities of each cluster.
    fn carry_out(
        &mut self,
        decision: &mut Decision,
        known: &dyn Fn(&ClusterName) -> Option<Arc<Capabilities>>,
        now: Timestamp,
    ) -> BTreeSet<Revision> {
        let mut wants = std::mem::take(&mut decision.wants);
        self.refusals.clone_from(&decision.refusals);
        let ids: Vec<UnitId> = decision.units.keys().cloned().collect();
        for id in ids {
            let Some(verdict) = decision.units.get_mut(&id) else { continue };
            let facts = self.facts.get(&id);
            if facts.is_some_and(|facts| facts.basis == Basis::Loading) {
                wants.extend(facts.and_then(|facts| facts.revision.clone()));
            }
            match verdict.choice.clone() {
                Choice::Head => {
                    let head = self.head.revision_on(&id.cluster);
                    if let (Some(unit), Some(facts)) = (self.units.get_mut(&id), self.facts.get(&id))
                        && unit.take_head(facts, head, now)
                    {
                        self.unseen.insert(id.clone());
                    }
                }
                Choice::At(revision) => {
                    match self.take_back(
                        (&id, verdict.hold.as_ref()),
                        &revision,
                        known(&id.cluster).as_ref(),
                        now,
                    ) {
                        Ok(()) => {}
                        Err(Missing::NotRead) => {
                            wants.insert(revision);
                            verdict.choice = Choice::Undecided;
                        }
                        Err(Missing::Gone(because)) => {
                            (verdict.choice, verdict.hold) = self.without(&id, because, verdict.hold.take());
                        }
                    }
                }
                Choice::Stay | Choice::Frozen | Choice::Nothing | Choice::Undecided => {}
            }
        }
        wants
    }

    fn take_back(
        &mut self,
        (id, hold): (&UnitId, Option<&Hold>),
        revision: &Revision,
        known: Option<&Arc<Capabilities>>,
        now: Timestamp,
    ) -> Result<(), Missing> {
        match self.commits.get(revision) {
            Some(PastCommit::Known(past)) if past.is_outdated(&id.cluster, known) => {
                self.commits.remove(revision);
                return Err(Missing::NotRead);
            }
            Some(PastCommit::Known(_)) => {}
            None | Some(PastCommit::Loading) => return Err(Missing::NotRead),
            Some(PastCommit::Unknown { .. }) => {
                return Err(Missing::Gone(format!("commit {} cannot be read any more", revision.short())));
            }
        }
        let held = self.held_at(id, revision);
        let Some(unit) = self.units.get(id) else { return Ok(()) };
        let previous = unit.mark.previous.as_ref().filter(|previous| previous.revision == *revision);
        let facts = self.facts.get(id);
        let is_empty = facts.is_some_and(|facts| facts.basis == Basis::Empty);
        let Some(held) = held else {
            return Err(Missing::Gone(format!("commit {} does not have it", revision.short())));
        };
        if !is_empty && previous.is_none_or(|previous| previous.content != held.content.digest) {
            return Err(Missing::Gone(format!("commit {} renders something else by now", revision.short())));
        }
        let hold = hold.filter(|_| matches!(unit.run, Run::Head { .. }));
        let wave = facts.map_or(0, |facts| facts.wave);
        let refusal = self.refusals.iter().find(|it| it.is_reason_of(hold, wave));
        let refused = refusal.map(|it| Refused { digest: it.digest, head: it.head.clone() });
        let mark = UnitMark { since: Some(unit.begins(now)), previous: previous.cloned(), refused };
        if let Some(unit) = self.units.get_mut(id) {
            unit.run = Run::Held(Held { is_of_earlier_process: false, ..held });
            unit.mark = mark;
            unit.timers.reset();
        }
        self.unseen.insert(id.clone());
        Ok(())
    }

    /// The choice for a unit whose commit cannot be read.
    fn without(&self, id: &UnitId, because: String, hold: Option<Hold>) -> (Choice, Option<Hold>) {
        let because = because.into();
        match self.units.get(id).map(|unit| &unit.run) {
            Some(Run::Head { .. }) => (Choice::Head, Some(Hold::RevertFailed { because })),
            Some(Run::Half(_)) => (Choice::Frozen, Some(Hold::Frozen { because, waits: hold.map(Box::new) })),
            _ => (Choice::Nothing, hold),
        }
    }
}

/// Why a commit cannot be used.
enum Missing {
    NotRead,
    Gone(String),
}

impl UnitEntry {
    /// The time from which it has the new content. Of two marks the newer one counts, because annotations have a resolution of
    /// seconds.
    fn begins(&self, now: Timestamp) -> Timestamp {
        let next = self.mark.since.map(|before| before.as_second().saturating_add(1));
        Timestamp::from_second(now.as_second().max(next.unwrap_or(i64::MIN))).unwrap_or(now)
    }

    /// Assigns the head's render. Returns whether the unit had another one before.
    fn take_head(&mut self, facts: &UnitFacts, head: Option<&Revision>, now: Timestamp) -> bool {
        if matches!(self.run, Run::Head { .. }) {
            return false;
        }
        self.revision = if facts.is_behind { head.cloned() } else { facts.revision.clone() };
        if facts.is_behind {
            let ran = match &self.run {
                Run::Held(held) if facts.condition == Condition::Done => {
                    Some(Previous { revision: held.revision.clone(), content: held.content.digest })
                }
                _ => self.mark.previous.take(),
            };
            self.skips_hooks = facts.goes_back();
            self.mark = UnitMark { since: Some(self.begins(now)), previous: ran, refused: None };
            self.timers.reset();
        }
        self.run = Run::Head { was_whole: !facts.is_behind };
        true
    }
}
