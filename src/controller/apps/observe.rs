//! Observes a unit: its content and its health, from its objects, their annotations, and the last plan.

use std::sync::Arc;

use jiff::Timestamp;

use super::{AppEntry, HeadUnit, PastCommit, UnitBaseline, UnitEntry, UnitRenderState, head_digest};
use crate::controller::cluster_entry::{ClusterEntry, ConnectionState};
use crate::controller::target_entry::TargetEntry;
use crate::controller::volume_claims::is_idle_claim;
use crate::model::{
    ClusterState, Digest, HealthStatus, LiveObject, ObjectId, Observation, RenderedObject, RenderedTarget,
    Revision, UnitRolloutAnnotations,
};
use crate::plan::{Plan, PlanAction, StepReason};
use crate::render::{UnitContent, is_hook_run};
use crate::rollout::{CurrentUnitContent, UnitCondition, UnitFacts, UnitId, UnitParticipation};

/// A target and the state of its cluster.
#[derive(Clone, Copy, Debug)]
pub struct TargetView<'a> {
    pub target: &'a TargetEntry,
    pub cluster: &'a ClusterEntry,
    pub now: Timestamp,
}

impl TargetView<'_> {
    fn observation(&self) -> &Observation {
        &self.cluster.observation
    }
}

/// The result of a search for the render of a unit.
enum UnitRenderLookup {
    Run(UnitRenderState),
    /// None of its objects exists, in anybody's ownership; or none that makes pods.
    Empty,
    /// This commit must be read first.
    NeedsCommit(Revision),
    /// The render cannot be determined; the reason.
    Undetermined(Arc<str>),
}

impl AppEntry {
    /// Observes one unit, and finds its render if it is unknown. Returns whether anything changed.
    pub fn observe_unit(&mut self, id: &UnitId, seen: TargetView<'_>) -> bool {
        let Some(at_head) = self.head.units.get(id).cloned() else { return false };
        let Some(unit) = self.units.get(id) else { return false };
        let reach = participation(&at_head, unit, seen);
        let mut live = LiveUnit::of(self, id, &at_head, &unit.render_state, seen);
        let found = match reach {
            UnitParticipation::Ready => self.find_render(id, unit, &at_head, &live, seen),
            UnitParticipation::Unread | UnitParticipation::LeftOut(_) => {
                UnitRenderLookup::Run(unit.render_state.clone())
            }
        };
        if let (UnitRenderState::Unknown, UnitRenderLookup::Run(run)) = (&unit.render_state, &found) {
            // Objects that the head lacks are evidence too.
            live = LiveUnit::of(self, id, &at_head, run, seen);
        }
        let (run, basis, revision) = match found {
            UnitRenderLookup::Run(UnitRenderState::Head { was_whole }) => {
                let was_whole = was_whole || !live.is_behind;
                (UnitRenderState::Head { was_whole }, CurrentUnitContent::Head, live.revision.clone())
            }
            UnitRenderLookup::Run(UnitRenderState::Held(held)) => {
                let (content, revision) = (held.content.digest, held.revision.clone());
                (UnitRenderState::Held(held), CurrentUnitContent::Other(content), Some(revision))
            }
            UnitRenderLookup::Run(UnitRenderState::PartlyApplied(held)) => (
                UnitRenderState::PartlyApplied(held),
                CurrentUnitContent::PartlyApplied,
                live.revision.clone(),
            ),
            UnitRenderLookup::Run(UnitRenderState::Unknown) => {
                (UnitRenderState::Unknown, CurrentUnitContent::Loading, live.revision.clone())
            }
            UnitRenderLookup::Empty => (UnitRenderState::Unknown, CurrentUnitContent::Empty, None),
            UnitRenderLookup::NeedsCommit(revision) => {
                self.forget_outdated(&revision, id, seen);
                (UnitRenderState::Unknown, CurrentUnitContent::Loading, Some(revision))
            }
            UnitRenderLookup::Undetermined(because) => {
                (UnitRenderState::Unknown, CurrentUnitContent::Unknown(because), live.revision.clone())
            }
        };
        // A taint excludes it from the cluster, so no wave waits for it there.
        let is_kept_out = !live.has_own_object
            && seen.target.settings.taint.is_some()
            && seen.target.head.as_ref().is_ok_and(|head| !seen.cluster.holds_any_of(head));
        let condition = if is_kept_out { UnitCondition::Done } else { condition(id, &at_head, &run, seen) };
        let is_behind = !is_kept_out && live.is_behind;
        // A policy denial is not a failure of the version: it causes no revert.
        let counts = reach == UnitParticipation::Ready && !self.app.paused && !is_denied(id, seen.target);
        let Some(unit) = self.units.get_mut(id) else { return false };
        if !matches!(unit.render_state, UnitRenderState::Head { .. })
            && matches!(run, UnitRenderState::Head { .. })
        {
            unit.revision.clone_from(&live.revision);
        }
        unit.render_state = run;
        // Content that was started a moment ago is not on any object yet.
        if live.mark.since.is_some() && live.mark.since >= unit.mark.since {
            unit.mark = live.mark;
        }
        self.unobserved_units.remove(id);
        let before = self.facts.get(id);
        let mut facts = UnitFacts {
            wave: at_head.wave,
            head: head_digest(&at_head),
            participation: reach,
            is_behind,
            current_content: basis,
            condition,
            revision,
            mark: unit.mark.clone(),
            timers: unit.timers,
            predecessor_hold: before.and_then(|before| before.predecessor_hold.clone()),
            render_error: at_head.content.is_none().then(|| render_error(seen.target)),
            pin: at_head.pin,
        };
        unit.timers.observe(facts.is_well(), counts, seen.now);
        facts.timers = unit.timers;
        let is_other = before != Some(&facts);
        self.facts.insert(id.clone(), facts);
        is_other
    }

    fn find_render(
        &self,
        id: &UnitId,
        unit: &UnitEntry,
        at_head: &HeadUnit,
        live: &LiveUnit,
        seen: TargetView<'_>,
    ) -> UnitRenderLookup {
        match &unit.render_state {
            // The head has the unit's content again.
            UnitRenderState::Held(_) if !live.is_behind => {
                UnitRenderLookup::Run(UnitRenderState::Head { was_whole: true })
            }
            run @ (UnitRenderState::Head { .. } | UnitRenderState::Held(_)) => {
                UnitRenderLookup::Run(run.clone())
            }
            UnitRenderState::PartlyApplied(held) if live.has_all(&held.content, seen, &held.rendered) => {
                UnitRenderLookup::Run(UnitRenderState::Held(held.clone()))
            }
            // Found in the same way as by another process.
            UnitRenderState::PartlyApplied(_) | UnitRenderState::Unknown => {
                self.find_by_objects(id, unit, at_head, live, seen)
            }
        }
    }

    /// Finds the render from the objects alone, in a process that did not apply them.
    fn find_by_objects(
        &self,
        id: &UnitId,
        unit: &UnitEntry,
        at_head: &HeadUnit,
        live: &LiveUnit,
        seen: TargetView<'_>,
    ) -> UnitRenderLookup {
        let Some(head) = &at_head.content else {
            return UnitRenderLookup::Undetermined("the head cannot be rendered here".into());
        };
        if !live.has_own_object {
            return match live.has_any_object {
                true => UnitRenderLookup::Undetermined(
                    "the objects there belong to another app or to none".into(),
                ),
                // The head has no objects for the unit.
                false if head.objects.is_empty() => {
                    UnitRenderLookup::Run(UnitRenderState::Head { was_whole: true })
                }
                false => self.find_by_undesired_objects(id, live, seen),
            };
        }
        if !live.is_behind {
            return UnitRenderLookup::Run(UnitRenderState::Head { was_whole: true });
        }
        let Some(mut revision) = live.revision.clone() else {
            return UnitRenderLookup::Undetermined("its objects do not name their commit".into());
        };
        let held = loop {
            let held = match self.load_baseline(id, &revision, seen) {
                Ok(held) => held,
                Err(found) => return found,
            };
            // Objects that only this commit has may be of a newer commit.
            let newest = held.content.objects.iter().filter_map(|(object, _)| live.revision_of(object, seen));
            match newest.min_by_key(|it| self.position(it)) {
                Some(newer) if self.position(&newer) < self.position(&revision) => revision = newer,
                _ => break held,
            }
        };
        let has_nothing_else = live.has_nothing_but(&[&held], seen);
        if has_nothing_else && live.lacks_pods(&held, seen) {
            // Content that is equal in all versions does not show the version.
            return UnitRenderLookup::Empty;
        }
        if held.content.digest == head.digest {
            // It was started and is not complete yet.
            return UnitRenderLookup::Run(UnitRenderState::Head { was_whole: false });
        }
        if has_nothing_else {
            return UnitRenderLookup::Run(UnitRenderState::Held(held));
        }
        // Parts of two commits: this one and the one before.
        let mark = if live.mark.since >= unit.mark.since { &live.mark } else { &unit.mark };
        let Some(previous) = &mark.previous else {
            return UnitRenderLookup::Undetermined("its objects are not all of one commit".into());
        };
        match self.load_baseline(id, &previous.revision, seen) {
            Ok(before) if live.has_nothing_but(&[&held, &before], seen) => {
                UnitRenderLookup::Run(UnitRenderState::PartlyApplied(held))
            }
            Ok(_) => UnitRenderLookup::Undetermined("its objects are not all of one commit".into()),
            Err(found) => found,
        }
    }

    /// Finds the render from objects of the app that the head lacks: the head may have renamed all objects.
    fn find_by_undesired_objects(
        &self,
        id: &UnitId,
        live: &LiveUnit,
        seen: TargetView<'_>,
    ) -> UnitRenderLookup {
        let strays = seen.cluster.undesired_objects.iter();
        let mut revisions: Vec<Revision> =
            strays.filter_map(|stray| live.revision_of(stray, seen)).filter(|it| self.is_known(it)).collect();
        revisions.sort_by_key(|revision| self.position(revision));
        revisions.dedup();
        for revision in revisions {
            match self.load_baseline(id, &revision, seen) {
                Ok(held) if live.has_any(&held, seen) && live.has_nothing_but(&[&held], seen) => {
                    return UnitRenderLookup::Run(UnitRenderState::Held(held));
                }
                Err(UnitRenderLookup::NeedsCommit(revision)) => {
                    return UnitRenderLookup::NeedsCommit(revision);
                }
                Ok(_) | Err(_) => {}
            }
        }
        UnitRenderLookup::Empty
    }

    /// A unit at a commit, for the current cluster.
    fn load_baseline(
        &self,
        id: &UnitId,
        revision: &Revision,
        seen: TargetView<'_>,
    ) -> Result<UnitBaseline, UnitRenderLookup> {
        match self.commits.get(revision).filter(|commit| !commit.is_outdated(id, seen)) {
            None | Some(PastCommit::Loading) => Err(UnitRenderLookup::NeedsCommit(revision.clone())),
            Some(PastCommit::Unknown { .. }) => Err(UnitRenderLookup::Undetermined(
                format!("commit {} cannot be read or rendered", revision.short()).into(),
            )),
            Some(PastCommit::Known(_)) => self.baseline_at(id, revision).ok_or_else(|| {
                UnitRenderLookup::Undetermined(
                    format!("commit {} does not have it here", revision.short()).into(),
                )
            }),
        }
    }

    /// Drops the commit, so that it is read again.
    fn forget_outdated(&mut self, revision: &Revision, id: &UnitId, seen: TargetView<'_>) {
        if self.commits.get(revision).is_some_and(|commit| commit.is_outdated(id, seen)) {
            self.commits.remove(revision);
        }
    }
}

/// Whether the cluster of a unit takes part in the rollout.
fn participation(at_head: &HeadUnit, unit: &UnitEntry, seen: TargetView<'_>) -> UnitParticipation {
    let cluster = seen.cluster;
    if cluster.cluster.state == ClusterState::Maintaining {
        return UnitParticipation::LeftOut("in maintenance".into());
    }
    match &cluster.connection_state {
        ConnectionState::Offline { detail, .. } => return UnitParticipation::LeftOut(detail.as_str().into()),
        ConnectionState::Connecting => return UnitParticipation::Unread,
        ConnectionState::Ready => {}
    }
    if seen.target.is_stale || cluster.capabilities.is_none() {
        return UnitParticipation::Unread;
    }
    let Ok(head) = &seen.target.head else { return UnitParticipation::Ready };
    let baseline = match &unit.render_state {
        UnitRenderState::Held(held) | UnitRenderState::PartlyApplied(held) => Some(&held.rendered),
        UnitRenderState::Head { .. } | UnitRenderState::Unknown => None,
    };
    let objects = baseline.into_iter().chain([head]).flat_map(|rendered| rendered.objects.iter());
    if !cluster.has_listed(objects.map(|object| &object.kind)) {
        return UnitParticipation::Unread;
    }
    if matches!(unit.render_state, UnitRenderState::Head { .. } | UnitRenderState::Held(_)) {
        return UnitParticipation::Ready;
    }
    let Some(content) = &at_head.content else { return UnitParticipation::Ready };
    // Without own objects, objects of other owners may exist; a lookup by name finds them.
    let observation = seen.observation();
    let is_ours = content.objects.iter().any(|(id, _)| observation.objects.contains_key(id));
    let can_be_asked = |id: &ObjectId| {
        head.object(id)
            .is_some_and(|object| observation.served_kinds.get(&object.kind) == Some(&id.namespace.is_some()))
    };
    let is_known = |id: &ObjectId| {
        observation.unmanaged_objects.contains_key(id) || observation.absent.contains(id) || !can_be_asked(id)
    };
    match is_ours || content.objects.iter().all(|(id, _)| is_known(id)) {
        true => UnitParticipation::Ready,
        false => UnitParticipation::Unread,
    }
}

/// The live objects of a unit.
struct LiveUnit {
    /// An object of the head's render exists, in anybody's ownership.
    has_any_object: bool,
    has_own_object: bool,
    is_behind: bool,
    /// The newest commit of its objects.
    revision: Option<Revision>,
    mark: UnitRolloutAnnotations,
    /// As its objects name it.
    app: String,
}

impl LiveUnit {
    fn of(
        app: &AppEntry,
        id: &UnitId,
        at_head: &HeadUnit,
        run: &UnitRenderState,
        seen: TargetView<'_>,
    ) -> Self {
        let mut live = Self {
            has_any_object: false,
            has_own_object: false,
            // Content that cannot be rendered is not live.
            is_behind: at_head.content.is_none(),
            revision: None,
            mark: UnitRolloutAnnotations::default(),
            app: app.app.id.to_string(),
        };
        let baseline = match run {
            UnitRenderState::Held(held) | UnitRenderState::PartlyApplied(held) => Some(held),
            UnitRenderState::Head { .. } | UnitRenderState::Unknown => None,
        };
        let observation = seen.observation();
        for (object, expected) in at_head.content.iter().flat_map(|content| &content.objects) {
            live.has_any_object |= observation.objects.contains_key(object)
                || observation.unmanaged_objects.contains_key(object);
            let Some(ours) = live.own_object(object, seen) else {
                live.is_behind |= !is_hook_not_due(seen.target.plan.as_deref(), object);
                continue;
            };
            live.has_own_object = true;
            let rendered = baseline.map(|held| &*held.rendered);
            live.is_behind |= live_content(ours, object, seen, rendered) != Some(*expected);
            live.note(ours, app);
        }
        let of_baseline = baseline.iter().flat_map(|held| &held.content.objects);
        for (object, _) in of_baseline.filter(|(object, _)| app.head.owner_of(&id.cluster, object).is_none())
        {
            if let Some(ours) = live.own_object(object, seen) {
                live.note(ours, app);
            }
        }
        live
    }

    fn own_object<'a>(&self, object: &ObjectId, seen: TargetView<'a>) -> Option<&'a LiveObject> {
        let live = seen.cluster.observation.objects.get(object)?;
        (*live.app == *self.app && !live.deleting).then_some(live)
    }

    fn note(&mut self, live: &LiveObject, app: &AppEntry) {
        if let Some(revision) = live.revision.as_deref().map(Revision::from)
            && self.revision.as_ref().is_none_or(|known| app.position(&revision) < app.position(known))
        {
            self.revision = Some(revision);
        }
        if let Some(mark) = live.rollout_annotations().map(|mark| &mark.unit)
            && mark.since >= self.mark.since
            && !mark.is_empty()
        {
            self.mark = mark.clone();
        }
    }

    fn revision_of(&self, object: &ObjectId, seen: TargetView<'_>) -> Option<Revision> {
        self.own_object(object, seen)?.revision.as_deref().map(Revision::from)
    }

    /// All objects of this content are live with that content.
    fn has_all(&self, expected: &UnitContent, seen: TargetView<'_>, rendered: &RenderedTarget) -> bool {
        expected.objects.iter().all(|(object, expected)| {
            let ours = self.own_object(object, seen);
            ours.is_some_and(|ours| live_content(ours, object, seen, Some(rendered)) == Some(*expected))
        })
    }

    /// An object of this content exists, with any content.
    fn has_any(&self, held: &UnitBaseline, seen: TargetView<'_>) -> bool {
        held.content.objects.iter().any(|(object, _)| self.own_object(object, seen).is_some())
    }

    /// None of the pod-making objects of a commit exists.
    fn lacks_pods(&self, held: &UnitBaseline, seen: TargetView<'_>) -> bool {
        let of_unit = held.content.objects.iter().filter_map(|(id, _)| held.rendered.object(id));
        let mut workloads = of_unit.filter(|object| object.makes_pods()).peekable();
        workloads.peek().is_some() && workloads.all(|object| self.own_object(&object.id, seen).is_none())
    }

    /// Each live object has the content of one of these commits.
    fn has_nothing_but(&self, commits: &[&UnitBaseline], seen: TargetView<'_>) -> bool {
        let mut objects = commits.iter().flat_map(|held| &held.content.objects).map(|(object, _)| object);
        objects.all(|object| {
            let Some(ours) = self.own_object(object, seen) else { return true };
            commits.iter().any(|held| {
                let found = live_content(ours, object, seen, Some(&held.rendered));
                found.is_some() && found == held.content.get(object)
            })
        })
    }
}

/// The content digest of an object without its scale: from its annotation, else from the render with the same hash.
fn live_content(
    live: &LiveObject,
    id: &ObjectId,
    seen: TargetView<'_>,
    baseline: Option<&RenderedTarget>,
) -> Option<Digest> {
    if let Some(content) = live.content() {
        return Some(content);
    }
    let head = seen.target.head.as_deref().ok();
    let renders = [baseline, head, seen.target.render.as_deref().ok()].into_iter().flatten();
    let mut objects = renders.filter_map(|rendered| rendered.object(id));
    objects.find(|object| live.hash == Some(object.hash)).map(|object| object.content())
}

/// A hook that does not run with this release.
fn is_hook_not_due(plan: Option<&Plan>, object: &ObjectId) -> bool {
    plan.is_some_and(|plan| plan.steps.iter().any(|step| step.object == *object && step.is_hook_not_due()))
}

/// Why the head cannot be rendered for a target.
fn render_error(target: &TargetEntry) -> Arc<str> {
    let first = target.head.as_ref().err().and_then(|mistakes| mistakes.first());
    first.map_or_else(|| "cannot be rendered".into(), |it| it.to_string().into())
}

/// A policy denies an object of the unit.
fn is_denied(id: &UnitId, target: &TargetEntry) -> bool {
    let mut steps = target.plan.iter().flat_map(|plan| &plan.steps);
    steps.any(|step| *step.unit == *id.pod_set && matches!(step.reason.cause(), StepReason::Denied { .. }))
}

/// The health of a unit with its current content.
fn condition(id: &UnitId, at_head: &HeadUnit, run: &UnitRenderState, seen: TargetView<'_>) -> UnitCondition {
    let TargetView { target, cluster, .. } = seen;
    if at_head.content.is_none() {
        return UnitCondition::Failed(render_error(target));
    }
    let Ok(rendered) = &target.render else { return UnitCondition::Progressing("not rendered yet".into()) };
    let of_unit = || {
        rendered
            .objects
            .iter()
            .filter(|object| rendered.unit_of(object) == &*id.pod_set && !is_hook_run(object))
    };
    // The render of the target may not have the new head yet, for example with another number of pods.
    let head = target.head.as_ref().ok().filter(|_| matches!(run, UnitRenderState::Head { .. }));
    let is_applied = |object: &RenderedObject| {
        let wanted = head.and_then(|head| head.object(&object.id)).unwrap_or(object);
        let live = cluster.observation.objects.get(&object.id);
        live.is_some_and(|live| live.hash == Some(wanted.hash))
    };
    // Without a plan, objects from before this process are judged as they are, except objects that are being repaired.
    let is_on_its_way = || match run {
        UnitRenderState::Held(held) if held.is_of_earlier_process => {
            held.content.objects.iter().any(|(id, _)| {
                let is_made_again = target.head.as_ref().is_ok_and(|head| head.object(id).is_some());
                is_made_again && !cluster.observation.objects.contains_key(id)
            })
        }
        _ => !of_unit().all(is_applied),
    };
    if target.plan.is_none() && target.failure.is_none() && is_on_its_way() {
        return UnitCondition::Progressing("applying".into());
    }
    if let Some(failure) = &target.failure {
        let is_of_unit = failure.refused.is_empty()
            || failure.refused.iter().any(|(object, _)| {
                rendered.object(object).is_some_and(|object| rendered.unit_of(object) == &*id.pod_set)
            });
        if is_of_unit {
            let text = failure.text.as_str().into();
            return if failure.lasting {
                UnitCondition::Failed(text)
            } else {
                UnitCondition::Progressing(text)
            };
        }
    }
    let steps = target.plan.iter().flat_map(|plan| &plan.steps).filter(|step| *step.unit == *id.pod_set);
    let mut waits = None;
    for step in steps {
        let text = || -> Arc<str> { format!("{}: {}", step.object, step.reason).into() };
        match step.action {
            PlanAction::Refuse if matches!(step.reason, StepReason::Denied { .. }) => {
                waits = waits.or_else(|| Some(text()));
            }
            PlanAction::Refuse => return UnitCondition::Failed(text()),
            PlanAction::Wait => waits = waits.or_else(|| Some(text())),
            action if action.is_write() && !step.is_drift_check() => {
                waits = waits.or_else(|| Some(format!("{} is applied", step.object).into()));
            }
            _ => {}
        }
    }
    let mut worst: Option<(bool, Arc<str>)> = None;
    for object in rendered.objects.iter().filter(|object| rendered.unit_of(object) == &*id.pod_set) {
        let Some(live) = cluster.observation.objects.get(&object.id) else { continue };
        if is_idle_claim(&object.id, target, cluster) {
            continue;
        }
        let is_failed = match live.health.status {
            HealthStatus::Current => continue,
            HealthStatus::Suspended if live.can_replace() => continue,
            HealthStatus::Failed => true,
            _ => false,
        };
        if worst.as_ref().is_none_or(|(known, _)| is_failed && !known) {
            let cause = target.causes.of(&object.id).map(ToString::to_string);
            let text = cause.unwrap_or_else(|| format!("{}: {}", object.id, live.health.reason));
            worst = Some((is_failed, text.into()));
        }
    }
    match (worst, waits) {
        (Some((true, because)), _) => UnitCondition::Failed(because),
        (Some((false, because)), _) | (None, Some(because)) => UnitCondition::Progressing(because),
        (None, None) => UnitCondition::Done,
    }
}
