//! Advances rollouts: observes units after events, decides, and assigns each target its render.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::agreements::AgreementSources;
use super::apps::{
    AppEntry, AppHeads, PastApp, PastCommit, TargetView, UnitBaseline, UnitEntry, UnitRenderState,
};
use super::event::Event;
use super::file_versions::FileVersions;
use super::state::ControllerState;
use crate::fleet::{Fleet, Target};
use crate::model::{
    AppId, ApprovalQuery, ApprovalQueryLookup, ApproverRoles, Capabilities, ClusterName, Digest, ObjectId,
    PreviousContent, RefusedVersion, Revision, RolloutAction, RolloutApproval, UnitRolloutAnnotations,
};
use crate::render::UnitContent;
use crate::report::TargetPhase;
use crate::rollout::{
    self, ApprovalEffect, CommitState, CurrentUnitContent, GivenApproval, MeasurementOutcomes, RenderChoice,
    RolloutDecision, RolloutHold, RolloutInput, RolloutPolicy, UnitCondition, UnitFacts, UnitId,
    UnitParticipation,
};

impl ControllerState {
    /// The apps in waves at a new head. Must run before the targets are updated, because the current render of a target becomes
    /// its baseline.
    pub(super) fn update_heads(&mut self, fleet: &Fleet, heads: &Arc<AppHeads>) {
        let Self { rollout_apps: apps, targets, snapshot, agreements, .. } = self;
        let Some(snapshot) = snapshot else { return };
        let files = FileVersions::new(snapshot);
        agreements.retain_for_head(&snapshot.revision, &files);
        let of_app = |id: &AppId| {
            let (app, head) = (fleet.apps.get(id)?, heads.apps.get(id)?);
            Some((Arc::clone(app), approvals_of(fleet, &files, id, &head.waves)))
        };
        let render = |target: &Target| targets.get(target)?.render.as_ref().ok().cloned();
        apps.take_heads(Arc::clone(heads), of_app, &render);
    }

    /// Decides for each app in waves that an event affected.
    pub(super) fn advance_rollouts(&mut self, now: Instant) {
        let (time, wall) = (self.rollout_apps.now(now), self.rollout_apps.wall_time(now));
        while let Some((app, clusters, is_due)) = self.rollout_apps.next(time) {
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
        if let Some(entry) = self.rollout_apps.get_mut(id) {
            entry.retry_unreadable_commits(now);
        }
        let is_other = self.observe_units(id, touched, now);
        let Self { rollout_apps: apps, clusters, agreements, fleet, .. } = self;
        let Some(fleet) = fleet else { return };
        let roles = &fleet.approval_rules.roles;
        let (measured, none) = (apps.measured(), MeasurementOutcomes::new());
        let Some(entry) = apps.get_mut(id).filter(|entry| is_other || entry.decision.is_none() || is_due)
        else {
            return;
        };
        let known = |cluster: &ClusterName| clusters.get(cluster).and_then(|it| it.capabilities.clone());
        let before = entry.decision.take();
        let measured = measured.get(id).unwrap_or(&none);
        let mut decision = entry.decide(measured, (roles, &|asked| agreements.answer(asked)), (now, wall));
        // An observation that is missing for a moment neither opens nor closes a rollout.
        let mut unread =
            entry.facts.values().filter(|facts| facts.participation == UnitParticipation::Unread).peekable();
        let was_open = before.as_ref().is_none_or(|before| before.is_open);
        // A unit may be behind while its commit is unknown.
        decision.is_open |= unread.peek().is_some() && was_open
            || unread.any(|facts| facts.current_content == CurrentUnitContent::Loading);
        let wants = entry.apply_decision(&mut decision, &known, now);
        let changed = changed_clusters(before.as_ref(), &decision);
        let holds = decision.units.values().filter_map(|verdict| verdict.hold.as_ref());
        let by_window = { holds }.any(|hold| matches!(hold.gate(), RolloutHold::Window { .. }));
        let look_at_clock = now.saturating_add(CLOCK_CHECK_INTERVAL).ok().filter(|_| by_window);
        let deadline = [decision.deadline, entry.retry_at, look_at_clock].into_iter().flatten().min();
        let said = |unit: &UnitId| before.as_ref().and_then(|before| before.units.get(unit));
        let news: BTreeSet<ClusterName> = decision
            .units
            .iter()
            .filter(|(unit, verdict)| said(unit) != Some(verdict))
            .map(|(unit, _)| unit.cluster.clone())
            .collect();
        let asks = std::mem::take(&mut decision.questions);
        entry.decision = Some(decision);
        self.is_overview_outdated = true;
        self.request_agreements(asks, id);
        self.rollout_apps.set_deadline(id, deadline);
        for revision in wants {
            self.load_past_app(id, revision);
        }
        for cluster in news {
            self.rollout_apps.touch_followers(&Target { app: id.clone(), cluster });
        }
        for cluster in changed {
            self.update_effective_render(&Target { app: id.clone(), cluster });
        }
    }

    pub(super) fn request_agreements(&mut self, asks: BTreeSet<ApprovalQuery>, app: &AppId) {
        let asks: Vec<ApprovalQuery> =
            asks.into_iter().filter(|it| !self.agreements.is_asked(it, app)).collect();
        if asks.is_empty() {
            return;
        }
        let known = self.fleet.as_ref().and_then(|fleet| fleet.apps.get(app));
        let folder = known.map(|app| app.folder().to_owned());
        let sources = AgreementSources { forge: self.forge_reader(), history: Arc::clone(&self.history) };
        for asked in asks {
            self.agreements.ask(asked, (app, folder.clone()), &sources, &self.events);
        }
    }

    /// Observes the units that an event affected, and those not observed yet. Returns whether any of them changed.
    fn observe_units(&mut self, id: &AppId, touched: &BTreeSet<ClusterName>, now: Timestamp) -> bool {
        let Some(entry) = self.rollout_apps.get(id) else { return false };
        let touched = touched.iter().flat_map(|cluster| entry.units_on(cluster)).map(|(unit, _)| unit);
        let units: BTreeSet<UnitId> = touched.chain(&entry.unobserved_units).cloned().collect();
        let clusters: BTreeSet<&ClusterName> = units.iter().map(|unit| &unit.cluster).collect();
        let after: BTreeMap<ClusterName, Option<RolloutHold>> = clusters
            .into_iter()
            .map(|cluster| (cluster.clone(), self.predecessor_hold(entry, cluster)))
            .collect();
        let Self { rollout_apps: apps, targets, clusters, .. } = self;
        let Some(entry) = apps.get_mut(id) else { return false };
        let mut is_other = false;
        for unit in units {
            let target = targets.get(&Target { app: id.clone(), cluster: unit.cluster.clone() });
            if let (Some(target), Some(cluster)) = (target, clusters.get(&unit.cluster)) {
                is_other |= entry.observe_unit(&unit, TargetView { target, cluster, now });
            }
            if let Some(facts) = entry.facts.get_mut(&unit) {
                let after = after.get(&unit.cluster).cloned().flatten();
                is_other |= facts.predecessor_hold != after;
                facts.predecessor_hold = after;
            }
        }
        is_other
    }

    /// The hold while an app that must be done first on a cluster is not done.
    fn predecessor_hold(&self, entry: &AppEntry, cluster: &ClusterName) -> Option<RolloutHold> {
        entry.app.rollout.after.iter().find_map(|after| {
            let target = Target { app: after.app.clone(), cluster: cluster.clone() };
            // An app that the cluster does not have holds nothing back.
            self.targets.get(&target)?;
            let (phase, words) = self.phase(&target);
            if matches!(phase, TargetPhase::Running | TargetPhase::Unmanaged | TargetPhase::KeptOut) {
                return None;
            }
            let because = if words.is_empty() { phase.as_str().to_owned() } else { words };
            Some(RolloutHold::After { app: after.app.clone(), because: because.into() })
        })
    }

    fn update_effective_render(&mut self, target: &Target) {
        let Self { rollout_apps: apps, targets, clusters, .. } = self;
        let (Some(entry), Some(known)) = (apps.get_mut(&target.app), targets.get(target)) else { return };
        let (Ok(head), Some(cluster)) = (&known.head, clusters.get(&target.cluster)) else { return };
        let effective = entry.effective_render(&target.cluster, &Arc::clone(head), &cluster.observation);
        let is_undecided = effective.is_undecided;
        let Some(known) = self.targets.get_mut(target) else { return };
        let is_other = known.set_render(Arc::clone(&effective.rendered), is_undecided);
        self.rollout_apps.touch(target);
        if !is_other {
            // The objects are equal; other fields of the render are written only along with a change.
            return;
        }
        self.in_flight.cancel(target);
        let cluster = self.clusters.get_mut(&target.cluster);
        if cluster.is_some_and(|it| it.set_app_render(&target.app.to_string(), &effective.rendered)) {
            self.watch_rendered(&target.cluster);
        }
        self.is_overview_outdated = true;
        if let Some(known) = self.targets.get_mut(target) {
            known.is_due = true;
            self.work_queue.mark_due(target.clone());
        }
    }

    /// Reads an app at an earlier commit, once.
    fn load_past_app(&mut self, id: &AppId, revision: Revision) {
        let Some(fleet) = self.fleet.clone() else { return };
        let Some(entry) =
            self.rollout_apps.get_mut(id).filter(|entry| !entry.commits.contains_key(&revision))
        else {
            return;
        };
        entry.commits.insert(revision.clone(), PastCommit::Loading);
        let (head, app) = (Arc::clone(&entry.head), id.clone());
        let discovered = self
            .clusters
            .iter()
            .filter_map(|(name, it)| Some((name.clone(), it.capabilities.clone()?)))
            .collect();
        let (history, events) = (Arc::clone(&self.history), self.events.clone());
        let reading = Arc::clone(&self.manifest_cache);
        let (places, defined) =
            (self.rollout_apps.reading(), self.renders.last().map(|it| it.defined_kinds().clone()));
        tokio::spawn(async move {
            let place = places.acquire_owned().await;
            let known = (discovered, defined.unwrap_or_default());
            let past =
                super::apps::read_past_app(&history, &reading, &fleet, &head, &app, &revision, known).await;
            drop(place);
            // The send fails only when the controller has stopped.
            let _ = events.send(Event::PastAppRead { app, revision, past: past.map(Box::new) }).await;
        });
    }

    pub(super) fn handle_past_app(&mut self, app: &AppId, revision: &Revision, past: Option<PastApp>) {
        let now = self.rollout_apps.now(Instant::now());
        let Some(entry) = self.rollout_apps.get_mut(app) else { return };
        match past {
            // This commit was read for other waves than the current ones.
            Some(past) if past.waves != entry.head.waves => _ = entry.commits.remove(revision),
            Some(past) => _ = entry.commits.insert(revision.clone(), PastCommit::Known(Arc::new(past))),
            None => {
                let until = now.saturating_add(COMMIT_RETRY_DELAY).unwrap_or(now);
                entry.commits.insert(revision.clone(), PastCommit::Unknown { until });
                entry.retry_at = [entry.retry_at, Some(until)].into_iter().flatten().min();
            }
        }
        // This commit may show what a unit runs.
        let unknown =
            entry.units.iter().filter(|(_, unit)| matches!(unit.render_state, UnitRenderState::Unknown));
        entry.unobserved_units.extend(unknown.map(|(id, _)| id.clone()));
        self.rollout_apps.decide_soon(app);
    }

    /// The hold of each unit of a target.
    pub(super) fn holds(&self, target: &Target) -> impl Iterator<Item = (&UnitId, &RolloutHold)> {
        let entry = self.rollout_apps.get(&target.app);
        let units = entry.into_iter().flat_map(|entry| entry.units_on(&target.cluster));
        let decision = entry.and_then(|entry| entry.decision.as_ref());
        units.filter_map(move |(id, _)| Some((id, decision?.units.get(id)?.hold.as_ref()?)))
    }

    /// The commits whose rollout is open. Their statuses are updated until it ends, even when newer commits come.
    pub(super) fn unfinished_commits(&self) -> BTreeSet<Revision> {
        let open = self.rollout_apps.iter().filter(|(_, entry)| entry.is_open());
        let targets = open.flat_map(|(id, _)| self.targets.of_app(id));
        targets.map(|(_, target)| target.revision.clone()).collect()
    }

    /// A unit of a target that fails while its rollout is open.
    pub(super) fn rollout_failure(&self, target: &Target) -> Option<String> {
        let entry = self.rollout_apps.get(&target.app)?;
        let decision = entry.decision.as_ref()?;
        entry
            .units_on(&target.cluster)
            .find_map(|(id, _)| Some(decision.units.get(id)?.failure.as_ref()?.to_string()))
    }
}

/// While a window is shut: the controller notices within this time that the clock was set or that the machine slept.
const CLOCK_CHECK_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// A commit that could not be read is read again after this time, because a chart may be available again.
const COMMIT_RETRY_DELAY: SignedDuration = SignedDuration::from_mins(5);

/// The Approvals of an app as input of a decision.
pub fn approvals_of(
    fleet: &Fleet,
    files: &FileVersions<'_>,
    app: &AppId,
    waves: &crate::fleet::Waves,
) -> Vec<GivenApproval> {
    let approved = |approval: &RolloutApproval| {
        let allows = match &approval.action {
            RolloutAction::Open { through } => ApprovalEffect::Through(waves.position(through)?),
            RolloutAction::Retry => ApprovalEffect::Retry,
            RolloutAction::Override { window } => ApprovalEffect::Override { window: window.clone() },
        };
        let at = files.commit_position(approval.location.as_ref());
        let file = files.approval_version(approval.location.as_ref(), approval.is_alone);
        Some(GivenApproval { digest: approval.digest, allows, position: at, file })
    };
    fleet.rollout_approvals.get(app).into_iter().flatten().filter_map(approved).collect()
}

/// The clusters on which the render of a unit changes.
fn changed_clusters(before: Option<&RolloutDecision>, now: &RolloutDecision) -> BTreeSet<ClusterName> {
    let is_same = before.is_some_and(|before| before.is_open == now.is_open);
    let is_changed = |(id, verdict): &(&UnitId, &rollout::UnitDecision)| {
        !is_same
            || before.and_then(|before| before.units.get(*id)).map(|it| &it.choice) != Some(&verdict.choice)
    };
    now.units.iter().filter(is_changed).map(|(id, _)| id.cluster.clone()).collect()
}

impl AppEntry {
    fn retry_unreadable_commits(&mut self, now: Timestamp) {
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
        self.unobserved_units.extend(self.units.keys().cloned());
    }

    /// The objects that differ between the head and the current content of a unit. All objects of the head if the current content
    /// is unknown.
    fn changed_objects(&self, id: &UnitId) -> Vec<ObjectId> {
        let head = self.head.units.get(id).and_then(|unit| unit.content.as_deref());
        let Some(head) = head else { return Vec::new() };
        let has = self.units.get(id).and_then(|unit| match &unit.render_state {
            UnitRenderState::Held(held) | UnitRenderState::PartlyApplied(held) => Some(&*held.content),
            UnitRenderState::Head { .. } => Some(head),
            UnitRenderState::Unknown => None,
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
        measured: &MeasurementOutcomes,
        (roles, answers): (&ApproverRoles, ApprovalQueryLookup<'_>),
        (now, wall): (Timestamp, Timestamp),
    ) -> RolloutDecision {
        let head_revision = self.revision.clone().unwrap_or_else(|| Revision::from(Revision::WORKTREE));
        let commit = |revision: &Revision| match self.commits.get(revision) {
            Some(PastCommit::Known(past)) => CommitState::Known(Arc::clone(&past.facts)),
            Some(PastCommit::Unknown { .. }) => CommitState::Unknown,
            Some(PastCommit::Loading) | None => CommitState::Loading,
        };
        let position = |revision: &Revision| self.positions.get(revision).copied();
        let parent = |revision: &Revision| {
            let at = position(revision)?.checked_add(1)?;
            self.history.commits.get(at).cloned()
        };
        let deadline = SignedDuration::try_from(self.app.rollout.deadline()).unwrap_or(SignedDuration::MAX);
        rollout::decide(&RolloutInput {
            waves: self.head.waves.list(),
            policy: RolloutPolicy {
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
            measurements: measured,
            rules: &self.head.selected.rules,
            roles,
            answers,
            changed_objects: &|unit| self.changed_objects(unit),
            app: &self.app.id,
            refusals: &self.refusals,
            commit: &commit,
            position: &position,
            parent: &parent,
            now,
            wall_time: wall,
        })
    }

    /// Assigns each unit its decided render. If a render is not available, the decision gets the reason. Returns the commits that
    /// must be read first. `known`: the capabilities of each cluster.
    fn apply_decision(
        &mut self,
        decision: &mut RolloutDecision,
        known: &dyn Fn(&ClusterName) -> Option<Arc<Capabilities>>,
        now: Timestamp,
    ) -> BTreeSet<Revision> {
        let mut wants = std::mem::take(&mut decision.needed_commits);
        self.refusals.clone_from(&decision.refusals);
        let ids: Vec<UnitId> = decision.units.keys().cloned().collect();
        for id in ids {
            let Some(verdict) = decision.units.get_mut(&id) else { continue };
            let facts = self.facts.get(&id);
            if facts.is_some_and(|facts| facts.current_content == CurrentUnitContent::Loading) {
                wants.extend(facts.and_then(|facts| facts.revision.clone()));
            }
            match verdict.choice.clone() {
                RenderChoice::Head => {
                    let head = self.head.revision_on(&id.cluster);
                    if let (Some(unit), Some(facts)) = (self.units.get_mut(&id), self.facts.get(&id))
                        && unit.assign_head(facts, head, now)
                    {
                        self.unobserved_units.insert(id.clone());
                    }
                }
                RenderChoice::At(revision) => {
                    match self.assign_past_render(
                        (&id, verdict.hold.as_ref()),
                        &revision,
                        known(&id.cluster).as_ref(),
                        now,
                    ) {
                        Ok(()) => {}
                        Err(MissingCommit::NotRead) => {
                            wants.insert(revision);
                            verdict.choice = RenderChoice::Undecided;
                        }
                        Err(MissingCommit::Gone(because)) => {
                            (verdict.choice, verdict.hold) =
                                self.fallback_choice(&id, because, verdict.hold.take());
                        }
                    }
                }
                RenderChoice::Stay
                | RenderChoice::Frozen
                | RenderChoice::Nothing
                | RenderChoice::Undecided => {}
            }
        }
        wants
    }

    fn assign_past_render(
        &mut self,
        (id, hold): (&UnitId, Option<&RolloutHold>),
        revision: &Revision,
        known: Option<&Arc<Capabilities>>,
        now: Timestamp,
    ) -> Result<(), MissingCommit> {
        match self.commits.get(revision) {
            Some(PastCommit::Known(past)) if past.is_outdated(&id.cluster, known) => {
                self.commits.remove(revision);
                return Err(MissingCommit::NotRead);
            }
            Some(PastCommit::Known(_)) => {}
            None | Some(PastCommit::Loading) => return Err(MissingCommit::NotRead),
            Some(PastCommit::Unknown { .. }) => {
                return Err(MissingCommit::Gone(format!(
                    "commit {} cannot be read any more",
                    revision.short()
                )));
            }
        }
        let held = self.baseline_at(id, revision);
        let Some(unit) = self.units.get(id) else { return Ok(()) };
        let previous = unit.mark.previous.as_ref().filter(|previous| previous.revision == *revision);
        let facts = self.facts.get(id);
        let is_empty = facts.is_some_and(|facts| facts.current_content == CurrentUnitContent::Empty);
        let Some(held) = held else {
            return Err(MissingCommit::Gone(format!("commit {} does not have it", revision.short())));
        };
        if !is_empty && previous.is_none_or(|previous| previous.content != held.content.digest) {
            return Err(MissingCommit::Gone(format!("commit {} renders differently now", revision.short())));
        }
        let hold = hold.filter(|_| matches!(unit.render_state, UnitRenderState::Head { .. }));
        let wave = facts.map_or(0, |facts| facts.wave);
        let refusal = self.refusals.iter().find(|it| it.is_reason_of(hold, wave));
        let refused = refusal.map(|it| RefusedVersion { digest: it.digest, head: it.head.clone() });
        let mark = UnitRolloutAnnotations {
            since: Some(unit.start_time(now)),
            previous: previous.cloned(),
            refused,
        };
        if let Some(unit) = self.units.get_mut(id) {
            unit.render_state = UnitRenderState::Held(UnitBaseline { is_of_earlier_process: false, ..held });
            unit.mark = mark;
            unit.timers.reset();
        }
        self.unobserved_units.insert(id.clone());
        Ok(())
    }

    /// The choice for a unit whose commit cannot be read.
    fn fallback_choice(
        &self,
        id: &UnitId,
        because: String,
        hold: Option<RolloutHold>,
    ) -> (RenderChoice, Option<RolloutHold>) {
        let because = because.into();
        match self.units.get(id).map(|unit| &unit.render_state) {
            Some(UnitRenderState::Head { .. }) => {
                (RenderChoice::Head, Some(RolloutHold::RevertFailed { because }))
            }
            Some(UnitRenderState::PartlyApplied(_)) => {
                (RenderChoice::Frozen, Some(RolloutHold::Frozen { because, waits: hold.map(Box::new) }))
            }
            _ => (RenderChoice::Nothing, hold),
        }
    }
}

/// Why a commit cannot be used.
enum MissingCommit {
    NotRead,
    Gone(String),
}

impl UnitEntry {
    /// The time from which it has the new content. Of two marks the newer one counts, because annotations have a resolution of
    /// seconds.
    fn start_time(&self, now: Timestamp) -> Timestamp {
        let next = self.mark.since.map(|before| before.as_second().saturating_add(1));
        Timestamp::from_second(now.as_second().max(next.unwrap_or(i64::MIN))).unwrap_or(now)
    }

    /// Assigns the head's render. Returns whether the unit had another one before.
    fn assign_head(&mut self, facts: &UnitFacts, head: Option<&Revision>, now: Timestamp) -> bool {
        if matches!(self.render_state, UnitRenderState::Head { .. }) {
            return false;
        }
        self.revision = if facts.is_behind { head.cloned() } else { facts.revision.clone() };
        if facts.is_behind {
            let ran = match &self.render_state {
                UnitRenderState::Held(held) if facts.condition == UnitCondition::Done => {
                    Some(PreviousContent { revision: held.revision.clone(), content: held.content.digest })
                }
                _ => self.mark.previous.take(),
            };
            self.skips_hooks = facts.is_revert();
            self.mark =
                UnitRolloutAnnotations { since: Some(self.start_time(now)), previous: ran, refused: None };
            self.timers.reset();
        }
        self.render_state = UnitRenderState::Head { was_whole: !facts.is_behind };
        true
    }
}
