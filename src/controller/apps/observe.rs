//! Observes a unit: its content and its health, from its objects, their annotations, and the last plan.

use std::sync::Arc;

use jiff::Timestamp;

use super::{AppEntry, HeadUnit, Held, PastCommit, Run, UnitEntry, head_digest};
use crate::controller::claims::is_idle_claim;
use crate::controller::cluster_entry::{ClusterEntry, Reach as ClusterReach};
use crate::controller::target::TargetEntry;
use crate::model::{
    ClusterState, Digest, Live, ObjectId, Observation, Rendered, RenderedObject, Revision, Status, UnitMark,
};
use crate::plan::{Action, Plan, Reason};
use crate::render::{UnitContent, is_run};
use crate::rollout::{Basis, Condition, Reach, UnitFacts, UnitId};

/// A target and the state of its cluster.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub target: &'a TargetEntry,
    pub cluster: &'a ClusterEntry,
    pub now: Timestamp,
}

impl Seen<'_> {
    fn observation(&self) -> &Observation {
        &self.cluster.observation
    }
}

/// The result of a search for the render of a unit.
enum Found {
    Run(Run),
    /// None of its objects exists, in anybody's ownership; or none that makes pods.
    Empty,
    /// This commit must be read first.
    Read(Revision),
    /// The render cannot be determined; the reason.
    Undetermined(Arc<str>),
}

impl AppEntry {
    /// Observes one unit, and finds its render if it is unknown. Returns whether anything changed.
    pub fn observe(&mut self, id: &UnitId, seen: Seen<'_>) -> bool {
        let Some(at_head) = self.head.units.get(id).cloned() else { return false };
        let Some(unit) = self.units.get(id) else { return false };
        let reach = reach(&at_head, unit, seen);
        let mut live = LiveUnit::of(self, id, &at_head, &unit.run, seen);
        let found = match reach {
            Reach::Ready => self.find(id, unit, &at_head, &live, seen),
            Reach::Unread | Reach::LeftOut(_) => Found::Run(unit.run.clone()),
        };
        if let (Run::Unknown, Found::Run(run)) = (&unit.run, &found) {
            // Objects that the head lacks are evidence too.
            live = LiveUnit::of(self, id, &at_head, run, seen);
        }
        let (run, basis, revision) = match found {
            Found::Run(Run::Head { was_whole }) => {
                let was_whole = was_whole || !live.is_behind;
                (Run::Head { was_whole }, Basis::Head, live.revision.clone())
            }
            Found::Run(Run::Held(held)) => {
                let (content, revision) = (held.content.digest, held.revision.clone());
                (Run::Held(held), Basis::Other(content), Some(revision))
            }
            Found::Run(Run::Half(held)) => (Run::Half(held), Basis::Half, live.revision.clone()),
            Found::Run(Run::Unknown) => (Run::Unknown, Basis::Loading, live.revision.clone()),
            Found::Empty => (Run::Unknown, Basis::Empty, None),
            Found::Read(revision) => {
                self.forget_outdated(&revision, id, seen);
                (Run::Unknown, Basis::Loading, Some(revision))
            }
            Found::Undetermined(because) => (Run::Unknown, Basis::Unknown(because), live.revision.clone()),
        };
        // A taint excludes it from the cluster, so no wave waits for it there.
        let is_kept_out = !live.is_any_ours
            && seen.target.settings.taint.is_some()
            && seen.target.head.as_ref().is_ok_and(|head| !seen.cluster.holds_any_of(head));
        let condition = if is_kept_out { Condition::Done } else { condition(id, &at_head, &run, seen) };
        let is_behind = !is_kept_out && live.is_behind;
        // A policy denial is not a failure of the version: it causes no revert.
        let counts = reach == Reach::Ready && !self.app.paused && !is_denied(id, seen.target);
        let Some(unit) = self.units.get_mut(id) else { return false };
        if !matches!(unit.run, Run::Head { .. }) && matches!(run, Run::Head { .. }) {
            unit.revision.clone_from(&live.revision);
        }
        unit.run = run;
        // Content that was started a moment ago is not on any object yet.
        if live.mark.since.is_some() && live.mark.since >= unit.mark.since {
            unit.mark = live.mark;
        }
        self.unseen.remove(id);
        let before = self.facts.get(id);
        let mut facts = UnitFacts {
            wave: at_head.wave,
            head: head_digest(&at_head),
            reach,
            is_behind,
            basis,
            condition,
            revision,
            mark: unit.mark.clone(),
            timers: unit.timers,
            after: before.and_then(|before| before.after.clone()),
            mistake: at_head.content.is_none().then(|| mistake(seen.target)),
            pin: at_head.pin,
        };
        unit.timers.observe(facts.is_well(), counts, seen.now);
        facts.timers = unit.timers;
        let is_other = before != Some(&facts);
        self.facts.insert(id.clone(), facts);
        is_other
    }

    fn find(
        &self,
        id: &UnitId,
        unit: &UnitEntry,
        at_head: &HeadUnit,
        live: &LiveUnit,
        seen: Seen<'_>,
    ) -> Found {
        match &unit.run {
            // The head has the unit's content again.
            Run::Held(_) if !live.is_behind => Found::Run(Run::Head { was_whole: true }),
            run @ (Run::Head { .. } | Run::Held(_)) => Found::Run(run.clone()),
            Run::Half(held) if live.has_all(&held.content, seen, &held.rendered) => {
                Found::Run(Run::Held(held.clone()))
            }
            // Found in the same way as by another process.
            Run::Half(_) | Run::Unknown => self.find_by_objects(id, unit, at_head, live, seen),
        }
    }

    /// Finds the render from the objects alone, in a process that did not apply them.
    fn find_by_objects(
        &self,
        id: &UnitId,
        unit: &UnitEntry,
        at_head: &HeadUnit,
        live: &LiveUnit,
        seen: Seen<'_>,
    ) -> Found {
        let Some(head) = &at_head.content else {
            return Found::Undetermined("the head cannot be rendered here".into());
        };
        if !live.is_any_ours {
            return match live.is_any {
                true => Found::Undetermined("what is there is not of this app".into()),
                // The head has no objects for the unit.
                false if head.objects.is_empty() => Found::Run(Run::Head { was_whole: true }),
                false => self.find_by_strays(id, live, seen),
            };
        }
        if !live.is_behind {
            return Found::Run(Run::Head { was_whole: true });
        }
        let Some(mut revision) = live.revision.clone() else {
            return Found::Undetermined("its objects do not say which commit they are of".into());
        };
        let held = loop {
            let held = match self.at(id, &revision, seen) {
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
            return Found::Empty;
        }
        if held.content.digest == head.digest {
            // It was started and is not complete yet.
            return Found::Run(Run::Head { was_whole: false });
        }
        if has_nothing_else {
            return Found::Run(Run::Held(held));
        }
        // Parts of two commits: this one and the one before.
        let mark = if live.mark.since >= unit.mark.since { &live.mark } else { &unit.mark };
        let Some(previous) = &mark.previous else {
            return Found::Undetermined("its objects are of no one commit".into());
        };
        match self.at(id, &previous.revision, seen) {
            Ok(before) if live.has_nothing_but(&[&held, &before], seen) => Found::Run(Run::Half(held)),
            Ok(_) => Found::Undetermined("its objects are of no one commit".into()),
            Err(found) => found,
        }
    }

    /// Finds the render from objects of the app that the head lacks: the head may have renamed all objects.
    fn find_by_strays(&self, id: &UnitId, live: &LiveUnit, seen: Seen<'_>) -> Found {
        let strays = seen.cluster.strays.iter();
        let mut revisions: Vec<Revision> =
            strays.filter_map(|stray| live.revision_of(stray, seen)).filter(|it| self.is_known(it)).collect();
        revisions.sort_by_key(|revision| self.position(revision));
        revisions.dedup();
        for revision in revisions {
            match self.at(id, &revision, seen) {
                Ok(held) if live.has_any(&held, seen) && live.has_nothing_but(&[&held], seen) => {
                    return Found::Run(Run::Held(held));
                }
                Err(Found::Read(revision)) => return Found::Read(revision),
                Ok(_) | Err(_) => {}
            }
        }
        Found::Empty
    }

    /// A unit at a commit, for the current cluster.
    fn at(&self, id: &UnitId, revision: &Revision, seen: Seen<'_>) -> Result<Held, Found> {
        match self.commits.get(revision).filter(|commit| !commit.is_outdated(id, seen)) {
            None | Some(PastCommit::Loading) => Err(Found::Read(revision.clone())),
            Some(PastCommit::Unknown { .. }) => Err(Found::Undetermined(
                format!("commit {} cannot be read or rendered", revision.short()).into(),
            )),
            Some(PastCommit::Known(_)) => self.held_at(id, revision).ok_or_else(|| {
                Found::Undetermined(format!("commit {} does not have it here", revision.short()).into())
            }),
        }
    }

    /// Drops the commit, so that it is read again.
    fn forget_outdated(&mut self, revision: &Revision, id: &UnitId, seen: Seen<'_>) {
        if self.commits.get(revision).is_some_and(|commit| commit.is_outdated(id, seen)) {
            self.commits.remove(revision);
        }
    }
}

/// Whether the cluster of a unit takes part in the rollout.
fn reach(at_head: &HeadUnit, unit: &UnitEntry, seen: Seen<'_>) -> Reach {
    let cluster = seen.cluster;
    if cluster.cluster.state == ClusterState::Maintaining {
        return Reach::LeftOut("in maintenance".into());
    }
    match &cluster.reach {
        ClusterReach::Offline { detail, .. } => return Reach::LeftOut(detail.as_str().into()),
        ClusterReach::Connecting => return Reach::Unread,
        ClusterReach::Ready => {}
    }
    if seen.target.stale || cluster.facts.is_none() {
        return Reach::Unread;
    }
    let Ok(head) = &seen.target.head else { return Reach::Ready };
    let baseline = match &unit.run {
        Run::Held(held) | Run::Half(held) => Some(&held.rendered),
        Run::Head { .. } | Run::Unknown => None,
    };
    let objects = baseline.into_iter().chain([head]).flat_map(|rendered| rendered.objects.iter());
    if !cluster.has_listed(objects.map(|object| &object.kind)) {
        return Reach::Unread;
    }
    if matches!(unit.run, Run::Head { .. } | Run::Held(_)) {
        return Reach::Ready;
    }
    let Some(content) = &at_head.content else { return Reach::Ready };
    // Without own objects, objects of other owners may exist; a lookup by name finds them.
    let observation = seen.observation();
    let is_ours = content.objects.iter().any(|(id, _)| observation.objects.contains_key(id));
    let can_be_asked = |id: &ObjectId| {
        head.object(id)
            .is_some_and(|object| observation.served.get(&object.kind) == Some(&id.namespace.is_some()))
    };
    let is_known = |id: &ObjectId| {
        observation.strangers.contains_key(id) || observation.absent.contains(id) || !can_be_asked(id)
    };
    match is_ours || content.objects.iter().all(|(id, _)| is_known(id)) {
        true => Reach::Ready,
        false => Reach::Unread,
    }
}

/// The live objects of a unit.
struct LiveUnit {
    /// An object of the head's render exists, in anybody's ownership.
    is_any: bool,
    is_any_ours: bool,
    is_behind: bool,
    /// The newest commit of its objects.
    revision: Option<Revision>,
    mark: UnitMark,
    /// As its objects name it.
    app: String,
}

impl LiveUnit {
    fn of(app: &AppEntry, id: &UnitId, at_head: &HeadUnit, run: &Run, seen: Seen<'_>) -> Self {
        let mut live = Self {
            is_any: false,
            is_any_ours: false,
            // Content that cannot be rendered is not live.
            is_behind: at_head.content.is_none(),
            revision: None,
            mark: UnitMark::default(),
            app: app.app.id.to_string(),
        };
        let baseline = match run {
            Run::Held(held) | Run::Half(held) => Some(held),
            Run::Head { .. } | Run::Unknown => None,
        };
        let observation = seen.observation();
        for (object, expected) in at_head.content.iter().flat_map(|content| &content.objects) {
            live.is_any |=
                observation.objects.contains_key(object) || observation.strangers.contains_key(object);
            let Some(ours) = live.ours(object, seen) else {
                live.is_behind |= !is_not_due(seen.target.plan.as_deref(), object);
                continue;
            };
            live.is_any_ours = true;
            let rendered = baseline.map(|held| &*held.rendered);
            live.is_behind |= content(ours, object, seen, rendered) != Some(*expected);
            live.note(ours, app);
        }
        let of_baseline = baseline.iter().flat_map(|held| &held.content.objects);
        for (object, _) in of_baseline.filter(|(object, _)| app.head.owner_of(&id.cluster, object).is_none())
        {
            if let Some(ours) = live.ours(object, seen) {
                live.note(ours, app);
            }
        }
        live
    }

    fn ours<'a>(&self, object: &ObjectId, seen: Seen<'a>) -> Option<&'a Live> {
        let live = seen.cluster.observation.objects.get(object)?;
        (*live.app == *self.app && !live.deleting).then_some(live)
    }

    fn note(&mut self, live: &Live, app: &AppEntry) {
        if let Some(revision) = live.revision.as_deref().map(Revision::from)
            && self.revision.as_ref().is_none_or(|known| app.position(&revision) < app.position(known))
        {
            self.revision = Some(revision);
        }
        if let Some(mark) = live.rollout().map(|mark| &mark.unit)
            && mark.since >= self.mark.since
            && !mark.is_empty()
        {
            self.mark = mark.clone();
        }
    }

    fn revision_of(&self, object: &ObjectId, seen: Seen<'_>) -> Option<Revision> {
        self.ours(object, seen)?.revision.as_deref().map(Revision::from)
    }

    /// All objects of this content are live with that content.
    fn has_all(&self, expected: &UnitContent, seen: Seen<'_>, rendered: &Rendered) -> bool {
        expected.objects.iter().all(|(object, expected)| {
            let ours = self.ours(object, seen);
            ours.is_some_and(|ours| content(ours, object, seen, Some(rendered)) == Some(*expected))
        })
    }

    /// An object of this content exists, with any content.
    fn has_any(&self, held: &Held, seen: Seen<'_>) -> bool {
        held.content.objects.iter().any(|(object, _)| self.ours(object, seen).is_some())
    }

    /// None of the pod-making objects of a commit exists.
    fn lacks_pods(&self, held: &Held, seen: Seen<'_>) -> bool {
        let of_unit = held.content.objects.iter().filter_map(|(id, _)| held.rendered.object(id));
        let mut workloads = of_unit.filter(|object| object.makes_pods()).peekable();
        workloads.peek().is_some() && workloads.all(|object| self.ours(&object.id, seen).is_none())
    }

    /// Each live object has the content of one of these commits.
    fn has_nothing_but(&self, commits: &[&Held], seen: Seen<'_>) -> bool {
        let mut objects = commits.iter().flat_map(|held| &held.content.objects).map(|(object, _)| object);
        objects.all(|object| {
            let Some(ours) = self.ours(object, seen) else { return true };
            commits.iter().any(|held| {
                let found = content(ours, object, seen, Some(&held.rendered));
                found.is_some() && found == held.content.get(object)
            })
        })
    }
}

/// The content digest of an object without its scale: from its annotation, else from the render with the same hash.
fn content(live: &Live, id: &ObjectId, seen: Seen<'_>, baseline: Option<&Rendered>) -> Option<Digest> {
    if let Some(content) = live.content() {
        return Some(content);
    }
    let head = seen.target.head.as_deref().ok();
    let renders = [baseline, head, seen.target.render.as_deref().ok()].into_iter().flatten();
    let mut objects = renders.filter_map(|rendered| rendered.object(id));
    objects.find(|object| live.hash == Some(object.hash)).map(|object| object.content())
}

/// A hook that does not run with this release.
fn is_not_due(plan: Option<&Plan>, object: &ObjectId) -> bool {
    plan.is_some_and(|plan| plan.steps.iter().any(|step| step.object == *object && step.is_hook_not_due()))
}

/// Why the head cannot be rendered for a target.
fn mistake(target: &TargetEntry) -> Arc<str> {
    let first = target.head.as_ref().err().and_then(|mistakes| mistakes.first());
    first.map_or_else(|| "cannot be rendered".into(), |it| it.to_string().into())
}

/// A policy denies an object of the unit.
fn is_denied(id: &UnitId, target: &TargetEntry) -> bool {
    let mut steps = target.plan.iter().flat_map(|plan| &plan.steps);
    steps.any(|step| *step.unit == *id.pod_set && matches!(step.reason.cause(), Reason::Denied { .. }))
}

/// The health of a unit with its current content.
fn condition(id: &UnitId, at_head: &HeadUnit, run: &Run, seen: Seen<'_>) -> Condition {
    let Seen { target, cluster, .. } = seen;
    if at_head.content.is_none() {
        return Condition::Failed(mistake(target));
    }
    let Ok(rendered) = &target.render else { return Condition::Progressing("not rendered yet".into()) };
    let of_unit = || {
        rendered.objects.iter().filter(|object| rendered.unit_of(object) == &*id.pod_set && !is_run(object))
    };
    // The render of the target may not have the new head yet, for example with another number of pods.
    let head = target.head.as_ref().ok().filter(|_| matches!(run, Run::Head { .. }));
    let is_applied = |object: &RenderedObject| {
        let wanted = head.and_then(|head| head.object(&object.id)).unwrap_or(object);
        let live = cluster.observation.objects.get(&object.id);
        live.is_some_and(|live| live.hash == Some(wanted.hash))
    };
    // Without a plan, objects from before this process are judged as they are, except objects that are being repaired.
    let is_on_its_way = || match run {
        Run::Held(held) if held.is_of_earlier_process => held.content.objects.iter().any(|(id, _)| {
            let is_made_again = target.head.as_ref().is_ok_and(|head| head.object(id).is_some());
            is_made_again && !cluster.observation.objects.contains_key(id)
        }),
        _ => !of_unit().all(is_applied),
    };
    if target.plan.is_none() && target.failure.is_none() && is_on_its_way() {
        return Condition::Progressing("applying".into());
    }
    if let Some(failure) = &target.failure {
        let is_of_unit = failure.refused.is_empty()
            || failure.refused.iter().any(|(object, _)| {
                rendered.object(object).is_some_and(|object| rendered.unit_of(object) == &*id.pod_set)
            });
        if is_of_unit {
            let text = failure.text.as_str().into();
            return if failure.lasting { Condition::Failed(text) } else { Condition::Progressing(text) };
        }
    }
    let steps = target.plan.iter().flat_map(|plan| &plan.steps).filter(|step| *step.unit == *id.pod_set);
    let mut waits = None;
    for step in steps {
        let text = || -> Arc<str> { format!("{}: {}", step.object, step.reason).into() };
        match step.action {
            Action::Refuse if matches!(step.reason, Reason::Denied { .. }) => {
                waits = waits.or_else(|| Some(text()));
            }
            Action::Refuse => return Condition::Failed(text()),
            Action::Wait => waits = waits.or_else(|| Some(text())),
            action if action.is_write() && !step.decides_a_doubt() => {
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
            Status::Current => continue,
            Status::Suspended if live.can_take_over() => continue,
            Status::Failed => true,
            _ => false,
        };
        if worst.as_ref().is_none_or(|(known, _)| is_failed && !known) {
            let cause = target.causes.of(&object.id).map(ToString::to_string);
            let text = cause.unwrap_or_else(|| format!("{}: {}", object.id, live.health.reason));
            worst = Some((is_failed, text.into()));
        }
    }
    match (worst, waits) {
        (Some((true, because)), _) => Condition::Failed(because),
        (Some((false, because)), _) | (None, Some(because)) => Condition::Progressing(because),
        (None, None) => Condition::Done,
    }
}
