//! What a unit has, and how it does with it: from its objects, their annotations, and the last plan.

use std::sync::Arc;

use jiff::Timestamp;

use super::baseline::content_of;
use super::{AppEntry, HeadUnit, PastCommit, Run, UnitEntry, head_digest};
use crate::controller::cluster_entry::{ClusterEntry, Reach as ClusterReach};
use crate::controller::target::TargetEntry;
use crate::model::{ClusterState, Digest, Live, Observation, Revision, Status, UnitMark};
use crate::plan::{Action, Plan};
use crate::render::UnitContent;
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

impl AppEntry {
    /// Looks at one unit. What it has is found out where that is not known yet.
    pub fn observe(&mut self, id: &UnitId, seen: Seen<'_>) {
        let Some(at_head) = self.head.units.get(id).cloned() else { return };
        let Some(unit) = self.units.get(id) else { return };
        let reach = reach(&at_head, seen);
        let live = LiveUnit::of(self, id, &at_head, unit, seen);
        let run =
            if reach == Reach::Ready { self.run_of(id, unit, &at_head, &live) } else { unit.run.clone() };
        let basis = match (&reach, &run) {
            (_, Run::Head) => Basis::Head,
            (_, Run::Held(held)) => Basis::Other(held.content),
            (_, Run::Half(_)) => Basis::Half,
            (_, Run::Unknown) => self.unknown(&live),
        };
        // What was begun a moment ago is on no object yet.
        let mark = match unit.mark.since.max(live.mark.since) {
            since if since == live.mark.since && since.is_some() => live.mark.clone(),
            _ => unit.mark.clone(),
        };
        let counts = reach == Reach::Ready && !self.app.paused;
        // A taint keeps it out of the cluster: nobody waits for it there.
        let is_kept_out = !live.is_any_ours
            && seen.target.settings.taint.is_some()
            && seen.target.head.as_ref().is_ok_and(|head| !seen.cluster.holds_any_of(head));
        let condition = if is_kept_out { Condition::Done } else { condition(id, &at_head, seen) };
        let is_behind = !is_kept_out && (at_head.content.is_none() || live.is_behind);
        let Some(unit) = self.units.get_mut(id) else { return };
        unit.run = run;
        unit.mark = mark;
        self.unseen.remove(id);
        let mut facts = UnitFacts {
            wave: at_head.wave,
            head: head_digest(&at_head),
            reach,
            is_behind,
            basis,
            condition,
            revision: match &unit.run {
                Run::Held(held) => Some(held.revision.clone()),
                _ => live.revision,
            },
            mark: unit.mark.clone(),
            timers: unit.timers,
            after: None,
            pin: at_head.pin,
        };
        unit.timers.observe(facts.is_well(), counts, seen.now);
        facts.timers = unit.timers;
        self.facts.insert(id.clone(), facts);
    }

    fn run_of(&self, id: &UnitId, unit: &UnitEntry, at_head: &HeadUnit, live: &LiveUnit) -> Run {
        match &unit.run {
            Run::Head => Run::Head,
            Run::Held(held) => Run::Held(held.clone()),
            Run::Half(held) if live.is_whole(&content_of(&held.rendered, &self.head, id)) => {
                Run::Held(held.clone())
            }
            Run::Half(held) => Run::Half(held.clone()),
            Run::Unknown => self.found(id, at_head, live),
        }
    }

    /// By its objects alone, in a process that did not apply them.
    fn found(&self, id: &UnitId, at_head: &HeadUnit, live: &LiveUnit) -> Run {
        let Some(head) = &at_head.content else { return Run::Unknown };
        if !live.is_any_ours {
            // Where the head has nothing for it, there is nothing to find.
            return if head.objects.is_empty() { Run::Head } else { Run::Unknown };
        }
        if !live.is_behind {
            return Run::Head;
        }
        let Some(held) = live.revision.as_ref().and_then(|revision| self.held_at(id, revision)) else {
            return Run::Unknown;
        };
        if held.content == head.digest {
            // It was begun, and is not there whole yet.
            return Run::Head;
        }
        match live.is_believable(&content_of(&held.rendered, &self.head, id)) {
            true => Run::Held(held),
            false => Run::Half(held),
        }
    }

    fn unknown(&self, live: &LiveUnit) -> Basis {
        if !live.is_any_ours {
            return match live.is_any {
                true => Basis::Unknown("what is there is not of this app".into()),
                false => Basis::Empty,
            };
        }
        let Some(revision) = &live.revision else {
            return Basis::Unknown("its objects do not say which commit they are of".into());
        };
        match self.commits.get(revision) {
            None | Some(PastCommit::Loading) => Basis::Loading,
            Some(PastCommit::Unknown) => Basis::Unknown(
                format!("commit {} cannot be read or rendered any more", revision.short()).into(),
            ),
            Some(PastCommit::Known(_)) => {
                Basis::Unknown(format!("commit {} does not have it here", revision.short()).into())
            }
        }
    }
}

/// Whether the cluster of a unit takes part.
fn reach(at_head: &HeadUnit, seen: Seen<'_>) -> Reach {
    let cluster = seen.cluster;
    if cluster.cluster.state == ClusterState::Maintaining {
        return Reach::LeftOut("in maintenance".into());
    }
    match &cluster.reach {
        ClusterReach::Offline { detail, .. } => return Reach::LeftOut(detail.as_str().into()),
        ClusterReach::Connecting => return Reach::Unread,
        ClusterReach::Ready => {}
    }
    let Ok(head) = &seen.target.head else { return Reach::Ready };
    let is_listed = cluster.has_listed(head.objects.iter().map(|object| &object.kind));
    if !is_listed || seen.target.stale || cluster.facts.is_none() || !cluster.is_complete() {
        return Reach::Unread;
    }
    let Some(content) = &at_head.content else { return Reach::Ready };
    // Where nothing of ours is, somebody else's may be: that is looked up by name.
    let observation = seen.observation();
    let is_ours = content.objects.iter().any(|(id, _)| observation.objects.contains_key(id));
    let can_be_asked = |id: &crate::model::ObjectId| {
        head.object(id)
            .is_some_and(|object| observation.served.get(&object.kind) == Some(&id.namespace.is_some()))
    };
    let is_known = |id: &crate::model::ObjectId| {
        observation.strangers.contains_key(id) || observation.absent.contains(id) || !can_be_asked(id)
    };
    match is_ours || content.objects.iter().all(|(id, _)| is_known(id)) {
        true => Reach::Ready,
        false => Reach::Unread,
    }
}

/// The objects of a unit as they are.
struct LiveUnit {
    /// Of those that the head renders: by id, what each is without its scale.
    is_any: bool,
    is_any_ours: bool,
    is_behind: bool,
    /// The newest commit that they are of.
    revision: Option<Revision>,
    mark: UnitMark,
    contents: Vec<(crate::model::ObjectId, Option<Digest>)>,
}

impl LiveUnit {
    fn of(app: &AppEntry, id: &UnitId, at_head: &HeadUnit, unit: &UnitEntry, seen: Seen<'_>) -> Self {
        let name = app.app.id.to_string();
        let observation = seen.observation();
        let mut live = Self {
            is_any: false,
            is_any_ours: false,
            is_behind: false,
            revision: None,
            mark: UnitMark::default(),
            contents: Vec::new(),
        };
        let baseline = match &unit.run {
            Run::Held(held) | Run::Half(held) => Some(&held.rendered),
            Run::Head | Run::Unknown => None,
        };
        let at = |revision: &Revision| app.position(revision);
        for (object, expected) in at_head.content.iter().flat_map(|content| &content.objects) {
            let ours = observation.objects.get(object).filter(|it| *it.app == *name && !it.deleting);
            live.is_any |=
                observation.objects.contains_key(object) || observation.strangers.contains_key(object);
            let Some(ours) = ours else {
                live.is_behind |= !is_not_due(seen.target.plan.as_deref(), object);
                continue;
            };
            live.is_any_ours = true;
            let content = content(ours, object, seen, baseline.map(Arc::as_ref));
            live.is_behind |= content != Some(*expected);
            live.contents.push((object.clone(), content));
            live.note(ours, &at);
        }
        // Those that only the baseline has.
        if let Some(baseline) = baseline {
            for (object, _) in content_of(baseline, &app.head, id).objects {
                let is_of_head = at_head.content.as_ref().is_some_and(|head| head.get(&object).is_some());
                let ours = observation.objects.get(&object).filter(|it| *it.app == *name && !it.deleting);
                if let (Some(ours), false) = (ours, is_of_head) {
                    live.contents.push((object.clone(), content(ours, &object, seen, Some(baseline))));
                }
            }
        }
        live
    }

    fn note(&mut self, live: &Live, position: &dyn Fn(&Revision) -> usize) {
        if let Some(revision) = live.revision.as_deref().map(Revision::from)
            && self.revision.as_ref().is_none_or(|known| position(&revision) < position(known))
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

    /// Every object of this content is there so.
    fn is_whole(&self, content: &UnitContent) -> bool {
        content.objects.iter().all(|(id, expected)| self.has(id) == Some(Some(*expected)))
    }

    /// What is there of it is so.
    fn is_believable(&self, content: &UnitContent) -> bool {
        content.objects.iter().all(|(id, expected)| self.has(id).is_none_or(|found| found == Some(*expected)))
    }

    fn has(&self, id: &crate::model::ObjectId) -> Option<Option<Digest>> {
        self.contents.iter().find(|(known, _)| known == id).map(|(_, content)| *content)
    }
}

/// What an object is without its scale: as it says, else as the render that has its hash.
fn content(
    live: &Live,
    id: &crate::model::ObjectId,
    seen: Seen<'_>,
    baseline: Option<&crate::model::Rendered>,
) -> Option<Digest> {
    if let Some(content) = live.content() {
        return Some(content);
    }
    let head = seen.target.head.as_deref().ok();
    let renders = [head, baseline, seen.target.render.as_deref().ok()].into_iter().flatten();
    let mut objects = renders.filter_map(|rendered| rendered.object(id));
    objects.find(|object| live.hash == Some(object.hash)).map(|object| object.content())
}

/// A hook that does not come with this release.
fn is_not_due(plan: Option<&Plan>, object: &crate::model::ObjectId) -> bool {
    plan.is_some_and(|plan| plan.steps.iter().any(|step| step.object == *object && step.is_hook_not_due()))
}

/// How a unit does with what it has.
fn condition(id: &UnitId, at_head: &HeadUnit, seen: Seen<'_>) -> Condition {
    let Seen { target, cluster, .. } = seen;
    if at_head.content.is_none() {
        let mistake = target.head.as_ref().err().and_then(|mistakes| mistakes.first());
        return Condition::Failed(
            mistake.map_or_else(|| "cannot be rendered".into(), |it| it.to_string().into()),
        );
    }
    let Ok(rendered) = &target.render else { return Condition::Progressing("not rendered yet".into()) };
    if target.plan.is_none() && target.failure.is_none() {
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
