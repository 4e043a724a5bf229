//! The phase of a target and its reason. Computed from the state, never stored.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::claims::{self, is_idle_claim};
use super::cluster_entry::{ClusterEntry, Reach};
use super::target::TargetEntry;
use super::world::World;
use crate::fleet::Target;
use crate::model::{ClusterState, Kind, Mode, ObjectId, Rendered, Status};
use crate::plan::{Action, Plan, Reason, Step};
use crate::report::{Phase, words};

impl World {
    /// The phase and its cause as text.
    pub(super) fn phase(&self, id: &Target) -> (Phase, String) {
        let (Some(entry), Some(cluster)) = (self.targets.get(id), self.clusters.get(&id.cluster)) else {
            return (Phase::Pending, String::new());
        };
        if let Some(awaited) = entry.awaited() {
            return (Phase::Pending, awaited.message.clone());
        }
        let rendered = match &entry.render {
            Ok(rendered) => rendered,
            Err(_) if self.is_provisional(id, entry) => return (Phase::Pending, "connecting".to_owned()),
            Err(mistakes) => {
                return (Phase::Invalid, mistakes.first().map(ToString::to_string).unwrap_or_default());
            }
        };
        if entry.app.unmanaged {
            return (Phase::Unmanaged, String::new());
        }
        // A command that compares needs answers for paused apps too: a missing answer is shown first.
        let is_answered =
            entry.failure.is_none() && entry.plan.is_some() && matches!(cluster.reach, Reach::Ready);
        if entry.app.paused && (is_answered || !self.settings.foresee) {
            return (Phase::Paused, String::new());
        }
        match &cluster.reach {
            Reach::Offline { detail, .. } => {
                return (Phase::Unreachable, format!("cluster unreachable: {detail}"));
            }
            Reach::Connecting => return (Phase::Pending, "connecting".to_owned()),
            Reach::Ready => {}
        }
        if let Some(failure) = &entry.failure {
            // It is retried in a moment; the probes decide whether the cluster is offline.
            let phase = if failure.lasting { Phase::Refused } else { Phase::Pending };
            return (phase, failure.text.clone());
        }
        if entry.is_undecided {
            let unseen = cluster.trouble().filter(|_| !cluster.is_complete());
            return (Phase::Pending, unseen.unwrap_or_else(|| "reading what runs here".to_owned()));
        }
        let Some(plan) = &entry.plan else {
            let observing = || cluster.trouble().unwrap_or_else(|| "observing".to_owned());
            return (Phase::Pending, if cluster.is_complete() { String::new() } else { observing() });
        };
        if let Some(taint) = plan.kept_out() {
            return (Phase::KeptOut, format!("the cluster has the taint {taint}"));
        }
        if let Some(refused) = first(plan, Action::Refuse) {
            return (Phase::Refused, refused);
        }
        if let Some((hook, failed)) = failed_hook(plan, cluster) {
            let cause = entry.causes.of(hook).map(|cause| format!("{failed}; {cause}"));
            return (Phase::Degraded, cause.unwrap_or_else(|| self.with_search(id, hook, failed)));
        }
        let held =
            plan.steps.iter().filter(|step| step.action != step.intent() && step.intent().is_write()).count();
        if held > 0 && self.mode() == Mode::Observe {
            return (Phase::OutOfSync, format!("{} planned", words::count(held, "write")));
        }
        if held > 0 && cluster.cluster.state == ClusterState::Maintaining {
            return (Phase::Waiting, "the cluster is in maintenance".to_owned());
        }
        if let Some(undone) = undone(entry, plan) {
            // A pause does not hide the health of the app.
            let (phase, detail) = self.fares(id, entry, plan, cluster);
            return if phase.is_failure() { (phase, detail) } else { (Phase::Pending, undone) };
        }
        if self.in_flight.is_running(id) || entry.due || !plan.is_empty() {
            let unseen = cluster.trouble().filter(|_| !cluster.is_complete());
            return (Phase::Pending, unseen.unwrap_or_else(|| "applying".to_owned()));
        }
        let mut waiting = plan.steps.iter().filter(|step| step.action == Action::Wait);
        if let Some(step) = waiting.find(|step| !step.reason.waits_for_its_app()) {
            return (Phase::Waiting, told(step));
        }
        let faring = self.fares(id, entry, plan, cluster);
        // It may render more objects once the kind is served.
        let unserved = if faring.0 == Phase::Running { not_served(rendered, cluster) } else { None };
        let faring = unserved.map_or(faring, |unserved| (Phase::Progressing, unserved));
        self.in_rollout(id, faring)
    }

    /// The phase of a target, with the hold of its rollout.
    fn in_rollout(&self, id: &Target, (phase, detail): (Phase, String)) -> (Phase, String) {
        let Some(entry) = self.apps.get(&id.app).filter(|_| !phase.is_failure()) else {
            return (phase, detail);
        };
        if entry.decision.is_none() {
            return (Phase::Pending, String::new());
        }
        if let Some(failure) = self.rollout_failure(id) {
            return (Phase::Degraded, failure);
        }
        // Of several holds the one that a person can end comes first.
        match self.holds(id).min_by_key(|(_, hold)| !hold.waits_for_a_person()) {
            Some((_, hold)) if phase.is_done() => {
                let phase = if hold.is_failure() { Phase::Degraded } else { Phase::Waiting };
                (phase, hold.to_string())
            }
            _ => (phase, detail),
        }
    }

    /// The health of a target that is applied, then its open reports. Of several causes the one comes first that only a new
    /// revision ends. Otherwise it is the cause of the worst object, which says more than the object's own status.
    fn fares(
        &self,
        id: &Target,
        entry: &TargetEntry,
        plan: &Plan,
        cluster: &ClusterEntry,
    ) -> (Phase, String) {
        let Ok(rendered) = &entry.render else { return (Phase::Pending, String::new()) };
        let (phase, worst, detail) = health_of(entry, rendered, plan, cluster);
        match phase {
            Phase::Progressing | Phase::Degraded => {
                let of_worst = || entry.causes.of(worst?).map(|cause| (phase, cause.to_string()));
                let decisive = entry.causes.decisive().map(|cause| (Phase::Degraded, cause.to_string()));
                decisive.or_else(of_worst).unwrap_or_else(|| {
                    let searched = worst.map(|worst| self.with_search(id, worst, detail.clone()));
                    (phase, searched.unwrap_or(detail))
                })
            }
            Phase::Running => match plan.steps.iter().find(|step| is_left_as_it_is(&step.reason)) {
                Some(drifted) => (Phase::OutOfSync, told(drifted)),
                None => (phase, detail),
            },
            _ => (phase, detail),
        }
    }

    /// The text of a workload, with a note while its cause is searched: a missing cause does not mean that there is none.
    fn with_search(&self, id: &Target, workload: &ObjectId, words: String) -> String {
        if self.searches.is_to_come(id, workload, Instant::now()) {
            return format!("{words}; cause still to come");
        }
        words
    }
}

/// A definition of the app whose kind the cluster does not serve yet.
fn not_served(rendered: &Rendered, cluster: &ClusterEntry) -> Option<String> {
    let served = &cluster.observation.served;
    let unserved = rendered.objects.iter().find(|object| {
        let Some((group, kind)) = &object.defines else { return false };
        let mut of_group = served.range(Kind::new(group, "", "")..).map(|(known, _)| known);
        // The kinds are sorted: those of a group are adjacent.
        !of_group.by_ref().take_while(|known| *known.group == **group).any(|known| *known.kind == **kind)
    })?;
    Some(format!("{}: its kind is not served yet", unserved.id))
}

/// It differs from Git, and the plan does not change it.
fn is_left_as_it_is(reason: &Reason) -> bool {
    matches!(reason, Reason::DriftReported { .. } | Reason::Overruled)
}

/// An object that was repaired before and changed again. The text has no time of the next try and no number above ten, because
/// each changed text is posted.
fn undone(entry: &TargetEntry, plan: &Plan) -> Option<String> {
    let mut writes = plan.writes().filter(|step| !step.decides_a_doubt());
    let (step, times) = writes.find_map(|step| Some((step, entry.times_put_back(&step.object)?)))?;
    let times =
        if times > 10 { "more than 10 times".to_owned() } else { words::count(times as usize, "time") };
    Some(format!(
        "{}: put back {times}, and changed again each time; tried again after pauses of up to 5 minutes",
        step.object
    ))
}

/// The first step with this action, and its reason.
fn first(plan: &Plan, action: Action) -> Option<String> {
    plan.steps.iter().find(|step| step.action == action).map(told)
}

fn told(step: &Step) -> String {
    format!("{}: {}", step.object, step.reason)
}

/// A failed hook that other objects wait for.
fn failed_hook<'p>(plan: &'p Plan, cluster: &ClusterEntry) -> Option<(&'p ObjectId, String)> {
    plan.steps.iter().find_map(|step| {
        let Reason::WaitsForHook { hook, .. } = &step.reason else { return None };
        let health = &cluster.observation.objects.get(hook)?.health;
        (health.status == Status::Failed).then(|| (hook, format!("{hook}: {}", health.reason)))
    })
}

/// The worst health among the rendered objects, and its object. An object that waits for a hook is skipped: the hook counts.
fn health_of<'r>(
    entry: &TargetEntry,
    rendered: &'r Rendered,
    plan: &Plan,
    cluster: &ClusterEntry,
) -> (Phase, Option<&'r ObjectId>, String) {
    let mut worst = (Phase::Running, None, String::new());
    let waiting: BTreeMap<&ObjectId, &Step> = plan
        .steps
        .iter()
        .filter(|step| step.reason.waits_for_its_app())
        .map(|step| (&step.object, step))
        .collect();
    let hooks_not_due = plan.steps.iter().filter(|step| step.is_hook_not_due()).map(|step| &step.object);
    let not_counted: BTreeSet<&ObjectId> = waiting.keys().copied().chain(hooks_not_due).collect();
    for object in rendered.objects.iter().filter(|object| !not_counted.contains(&object.id)) {
        let (phase, detail) = match cluster.observation.objects.get(&object.id) {
            Some(live) => {
                let phase = match live.health.status {
                    // It was held before its pods came.
                    Status::Suspended if !live.can_take_over() => Phase::Paused,
                    Status::Current | Status::Suspended => continue,
                    Status::InProgress if is_idle_claim(&object.id, entry, cluster) => {
                        if worst.2.is_empty() {
                            worst.2 = format!("{}: {}", object.id, claims::IDLE);
                        }
                        continue;
                    }
                    Status::InProgress | Status::Terminating => Phase::Progressing,
                    Status::Failed => Phase::Degraded,
                    Status::NotFound | Status::Unknown => Phase::Pending,
                };
                (phase, live.health.reason.clone())
            }
            None => (Phase::Pending, "not there yet".to_owned()),
        };
        if phase > worst.0 {
            worst = (phase, Some(&object.id), format!("{}: {detail}", object.id));
        }
    }
    match waiting.into_values().next() {
        Some(step) if worst.0.is_done() => (Phase::Progressing, None, told(step)),
        _ => worst,
    }
}
