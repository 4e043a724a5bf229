//! What a unit has, and how it does with it: from its objects, their annotations, and the last plan.

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

/// A target, and what its cluster shows.
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

/// What a look at a unit found that it has.
enum Found {
    Run(Run),
    /// Nothing of it is there, anybody's; or nothing that makes pods.
    Empty,
    /// This commit has to be read first.
    Read(Revision),
    /// It cannot be told: why.
    Undetermined(Arc<str>),
}

impl AppEntry {
    /// Takes in what one unit is now, and finds out what it has where that is not known yet. Whether anything is other than before.
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
            // Objects that the head does not have say something of it too.
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
        // A taint keeps it out of the cluster: nobody waits for it there.
        let is_kept_out = !live.is_any_ours
            && seen.target.settings.taint.is_some()
            && seen.target.head.as_ref().is_ok_and(|head| !seen.cluster.holds_any_of(head));
        let condition = if is_kept_out { Condition::Done } else { condition(id, &at_head, &run, seen) };
        let is_behind = !is_kept_out && live.is_behind;
        // What a policy denies is no failure of the version: it is not taken back for that.
        let counts = reach == Reach::Ready && !self.app.paused && !is_denied(id, seen.target);
        let Some(unit) = self.units.get_mut(id) else { return false };
        if !matches!(unit.run, Run::Head { .. }) && matches!(run, Run::Head { .. }) {
            unit.revision.clone_from(&live.revision);
        }
        unit.run = run;
        // What was begun a moment ago is on no object yet.
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
            // The head came back to what it has.
            Run::Held(_) if !live.is_behind => Found::Run(Run::Head { was_whole: true }),
            run @ (Run::Head { .. } | Run::Held(_)) => Found::Run(run.clone()),
            Run::Half(held) if live.has_all(&held.content, seen, &held.rendered) => {
                Found::Run(Run::Held(held.clone()))
            }
            // As a process finds it that did not write it.
            Run::Half(_) | Run::Unknown => self.find_by_objects(id, unit, at_head, live, seen),
        }
    }

    /// By its objects alone, in a process that did not apply them.
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
                // Where the head has nothing for it, there is nothing to find.
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
            // What only this commit has may be of a newer one.
            let newest = held.content.objects.iter().filter_map(|(object, _)| live.revision_of(object, seen));
            match newest.min_by_key(|it| self.position(it)) {
                Some(newer) if self.position(&newer) < self.position(&revision) => revision = newer,
                _ => break held,
            }
        };
        let has_nothing_else = live.has_nothing_but(&[&held], seen);
        if has_nothing_else && live.lacks_pods(&held, seen) {
            // What does not change from version to version does not say which version ran.
            return Found::Empty;
        }
        if held.content.digest == head.digest {
            // It was begun, and is not there whole yet.
            return Found::Run(Run::Head { was_whole: false });
        }
        if has_nothing_else {
            return Found::Run(Run::Held(held));
        }
        // Parts of two commits: of this one, and of the one before it.
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

    /// By objects of the app that the head does not have: it may have given all of them other names.
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

    /// A unit as a commit has it, as the cluster is now.
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

    /// It is read again.
    fn forget_outdated(&mut self, revision: &Revision, id: &UnitId, seen: Seen<'_>) {
        if self.commits.get(revision).is_some_and(|commit| commit.is_outdated(id, seen)) {
            self.commits.remove(revision);
        }
    }
}

/// Whether the cluster of a unit takes part.
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
    // Where nothing of ours is, somebody else's may be: that is looked up by name.
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

/// The objects of a unit as they are.
struct LiveUnit {
    /// Something is there of what the head renders for it, anybody's.
    is_any: bool,
    is_any_ours: bool,
    is_behind: bool,
    /// The newest commit that they are of.
    revision: Option<Revision>,
    mark: UnitMark,
    /// As its objects say it.
    app: String,
}

impl LiveUnit {
    fn of(app: &AppEntry, id: &UnitId, at_head: &HeadUnit, run: &Run, seen: Seen<'_>) -> Self {
        let mut live = Self {
            is_any: false,
            is_any_ours: false,
            // What cannot be rendered is nowhere.
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

    /// Every object of this content is there so.
    fn has_all(&self, expected: &UnitContent, seen: Seen<'_>, rendered: &Rendered) -> bool {
        expected.objects.iter().all(|(object, expected)| {
            let ours = self.ours(object, seen);
            ours.is_some_and(|ours| content(ours, object, seen, Some(rendered)) == Some(*expected))
        })
    }

    /// An object of this content is there, whatever it is.
    fn has_any(&self, held: &Held, seen: Seen<'_>) -> bool {
        held.content.objects.iter().any(|(object, _)| self.ours(object, seen).is_some())
    }

    /// Nothing is there of what makes pods in a commit.
    fn lacks_pods(&self, held: &Held, seen: Seen<'_>) -> bool {
        let of_unit = held.content.objects.iter().filter_map(|(id, _)| held.rendered.object(id));
        let mut workloads = of_unit.filter(|object| object.makes_pods()).peekable();
        workloads.peek().is_some() && workloads.all(|object| self.ours(&object.id, seen).is_none())
    }

    /// Each object that is there is as one of these has it.
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

/// What an object is without its scale: as it says, else as the render that has its hash.
fn content(live: &Live, id: &ObjectId, seen: Seen<'_>, baseline: Option<&Rendered>) -> Option<Digest> {
    if let Some(content) = live.content() {
        return Some(content);
    }
    let head = seen.target.head.as_deref().ok();
    let renders = [baseline, head, seen.target.render.as_deref().ok()].into_iter().flatten();
    let mut objects = renders.filter_map(|rendered| rendered.object(id));
    objects.find(|object| live.hash == Some(object.hash)).map(|object| object.content())
}

/// A hook that does not come with this release.
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

/// How a unit does with what it has.
fn condition(id: &UnitId, at_head: &HeadUnit, run: &Run, seen: Seen<'_>) -> Condition {
    let Seen { target, cluster, .. } = seen;
    if at_head.content.is_none() {
        return Condition::Failed(mistake(target));
    }
    let Ok(rendered) = &target.render else { return Condition::Progressing("not rendered yet".into()) };
    let of_unit = || {
        rendered.objects.iter().filter(|object| rendered.unit_of(object) == &*id.pod_set && !is_run(object))
    };
    // A new head is not in the render yet that the target has, as with another number of pods.
    let head = target.head.as_ref().ok().filter(|_| matches!(run, Run::Head { .. }));
    let is_applied = |object: &RenderedObject| {
        let wanted = head.and_then(|head| head.object(&object.id)).unwrap_or(object);
        let live = cluster.observation.objects.get(&object.id);
        live.is_some_and(|live| live.hash == Some(wanted.hash))
    };
    // What was there before this process, or before the last plan was dropped, is judged as it is: but for what is put back.
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
