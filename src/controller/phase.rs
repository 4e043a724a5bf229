//! The phase of a target and its reason. Computed from the state, never stored.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::cluster_entry::{ClusterEntry, ConnectionState};
use super::state::ControllerState;
use super::target_entry::TargetEntry;
use super::volume_claims::{self, is_idle_claim};
use crate::fleet::Target;
use crate::model::{ClusterState, GroupVersionKind, HealthStatus, InstanceMode, ObjectId, RenderedTarget};
use crate::plan::{Plan, PlanAction, PlanStep, StepReason};
use crate::report::{TargetPhase, status_text};

impl ControllerState {
    /// The phase and its cause as text.
    pub(super) fn phase(&self, id: &Target) -> (TargetPhase, String) {
        let (Some(entry), Some(cluster)) = (self.targets.get(id), self.clusters.get(&id.cluster)) else {
            return (TargetPhase::Pending, String::new());
        };
        if let Some(awaited) = entry.awaited() {
            return (TargetPhase::Pending, awaited.message.clone());
        }
        let rendered = match &entry.render {
            Ok(rendered) => rendered,
            Err(_) if self.is_provisional(id, entry) => {
                return (TargetPhase::Pending, "connecting".to_owned());
            }
            Err(mistakes) => {
                return (TargetPhase::Invalid, mistakes.first().map(ToString::to_string).unwrap_or_default());
            }
        };
        if entry.app.unmanaged {
            return (TargetPhase::Unmanaged, String::new());
        }
        // A command that compares needs answers for paused apps too: a missing answer is shown first.
        let is_answered = entry.failure.is_none()
            && entry.plan.is_some()
            && matches!(cluster.connection_state, ConnectionState::Ready);
        if entry.app.paused && (is_answered || !self.settings.dry_runs) {
            return (TargetPhase::Paused, String::new());
        }
        match &cluster.connection_state {
            ConnectionState::Offline { detail, .. } => {
                return (TargetPhase::Unreachable, format!("cluster unreachable: {detail}"));
            }
            ConnectionState::Connecting => return (TargetPhase::Pending, "connecting".to_owned()),
            ConnectionState::Ready => {}
        }
        if let Some(failure) = &entry.failure {
            // It is retried in a moment; the probes decide whether the cluster is offline.
            let phase = if failure.lasting { TargetPhase::Refused } else { TargetPhase::Pending };
            return (phase, failure.text.clone());
        }
        if entry.is_undecided {
            let unseen = cluster.watch_error().filter(|_| !cluster.is_complete());
            return (TargetPhase::Pending, unseen.unwrap_or_else(|| "reading the live objects".to_owned()));
        }
        let Some(plan) = &entry.plan else {
            let observing = || cluster.watch_error().unwrap_or_else(|| "observing".to_owned());
            return (TargetPhase::Pending, if cluster.is_complete() { String::new() } else { observing() });
        };
        if let Some(taint) = plan.blocking_taint() {
            return (TargetPhase::KeptOut, format!("the cluster has the taint {taint}"));
        }
        if let Some(refused) = first_step_message(plan, PlanAction::Refuse) {
            return (TargetPhase::Refused, refused);
        }
        if let Some((hook, failed)) = failed_hook(plan, cluster) {
            let cause = entry.causes.of(hook).map(|cause| format!("{failed}; {cause}"));
            return (TargetPhase::Degraded, cause.unwrap_or_else(|| self.with_search_note(id, hook, failed)));
        }
        let held = plan
            .steps
            .iter()
            .filter(|step| step.action != step.intended_action() && step.intended_action().is_write())
            .count();
        if held > 0 && self.mode() == InstanceMode::Observe {
            return (TargetPhase::OutOfSync, format!("{} planned", status_text::count_noun(held, "write")));
        }
        if held > 0 && cluster.cluster.state == ClusterState::Maintaining {
            return (TargetPhase::Waiting, "the cluster is in maintenance".to_owned());
        }
        if let Some(undone) = repeated_drift(entry, plan) {
            // A pause does not hide the health of the app.
            let (phase, detail) = self.health_phase(id, entry, plan, cluster);
            return if phase.is_failure() { (phase, detail) } else { (TargetPhase::Pending, undone) };
        }
        if self.in_flight.is_running(id) || entry.is_due || !plan.is_empty() {
            let unseen = cluster.watch_error().filter(|_| !cluster.is_complete());
            return (TargetPhase::Pending, unseen.unwrap_or_else(|| "applying".to_owned()));
        }
        let mut waiting = plan.steps.iter().filter(|step| step.action == PlanAction::Wait);
        if let Some(step) = waiting.find(|step| !step.reason.is_wait_for_own_app()) {
            return (TargetPhase::Waiting, step_message(step));
        }
        let faring = self.health_phase(id, entry, plan, cluster);
        // It may render more objects once the kind is served.
        let unserved =
            if faring.0 == TargetPhase::Running { unserved_definition(rendered, cluster) } else { None };
        let faring = unserved.map_or(faring, |unserved| (TargetPhase::Progressing, unserved));
        self.with_rollout_hold(id, faring)
    }

    /// The phase of a target, with the hold of its rollout.
    fn with_rollout_hold(
        &self,
        id: &Target,
        (phase, detail): (TargetPhase, String),
    ) -> (TargetPhase, String) {
        let Some(entry) = self.rollout_apps.get(&id.app).filter(|_| !phase.is_failure()) else {
            return (phase, detail);
        };
        if entry.decision.is_none() {
            return (TargetPhase::Pending, String::new());
        }
        if let Some(failure) = self.rollout_failure(id) {
            return (TargetPhase::Degraded, failure);
        }
        // Of several holds the one that a person can end comes first.
        match self.holds(id).min_by_key(|(_, hold)| !hold.waits_for_a_person()) {
            Some((_, hold)) if phase.is_done() => {
                let phase = if hold.is_failure() { TargetPhase::Degraded } else { TargetPhase::Waiting };
                (phase, hold.to_string())
            }
            _ => (phase, detail),
        }
    }

    /// The health of a target that is applied, then its open reports. Of several causes the one comes first that only a new
    /// revision ends. Otherwise it is the cause of the worst object, which says more than the object's own status.
    fn health_phase(
        &self,
        id: &Target,
        entry: &TargetEntry,
        plan: &Plan,
        cluster: &ClusterEntry,
    ) -> (TargetPhase, String) {
        let Ok(rendered) = &entry.render else { return (TargetPhase::Pending, String::new()) };
        let (phase, worst, detail) = health_of(entry, rendered, plan, cluster);
        match phase {
            TargetPhase::Progressing | TargetPhase::Degraded => {
                let of_worst = || entry.causes.of(worst?).map(|cause| (phase, cause.to_string()));
                let decisive =
                    entry.causes.decisive().map(|cause| (TargetPhase::Degraded, cause.to_string()));
                decisive.or_else(of_worst).unwrap_or_else(|| {
                    let searched = worst.map(|worst| self.with_search_note(id, worst, detail.clone()));
                    (phase, searched.unwrap_or(detail))
                })
            }
            TargetPhase::Running => match plan.steps.iter().find(|step| is_left_unchanged(&step.reason)) {
                Some(drifted) => (TargetPhase::OutOfSync, step_message(drifted)),
                None => (phase, detail),
            },
            _ => (phase, detail),
        }
    }

    /// The text of a workload, with a note while its cause is searched: a missing cause does not mean that there is none.
    fn with_search_note(&self, id: &Target, workload: &ObjectId, words: String) -> String {
        if self.searches.is_pending(id, workload, Instant::now()) {
            return format!("{words}; its cause is not read yet");
        }
        words
    }
}

/// A definition of the app whose kind the cluster does not serve yet.
fn unserved_definition(rendered: &RenderedTarget, cluster: &ClusterEntry) -> Option<String> {
    let served = &cluster.observation.served_kinds;
    let unserved = rendered.objects.iter().find(|object| {
        let Some((group, kind)) = &object.defines else { return false };
        let mut of_group = served.range(GroupVersionKind::new(group, "", "")..).map(|(known, _)| known);
        // The kinds are sorted: those of a group are adjacent.
        !of_group.by_ref().take_while(|known| *known.group == **group).any(|known| *known.kind == **kind)
    })?;
    Some(format!("{}: its kind is not served yet", unserved.id))
}

/// It differs from Git, and the plan does not change it.
fn is_left_unchanged(reason: &StepReason) -> bool {
    matches!(reason, StepReason::DriftReported { .. } | StepReason::Overruled)
}

/// An object that was repaired before and changed again. The text has no time of the next try and no number above ten, because
/// each changed text is posted.
fn repeated_drift(entry: &TargetEntry, plan: &Plan) -> Option<String> {
    let mut writes = plan.writes().filter(|step| !step.is_drift_check());
    let (step, times) = writes.find_map(|step| Some((step, entry.repair_count(&step.object)?)))?;
    let times = if times > 10 {
        "more than 10 times".to_owned()
    } else {
        status_text::count_noun(times as usize, "time")
    };
    Some(format!(
        "{}: put back {times}, and changed again each time; retried after delays of up to 5 minutes",
        step.object
    ))
}

/// The first step with this action, and its reason.
fn first_step_message(plan: &Plan, action: PlanAction) -> Option<String> {
    plan.steps.iter().find(|step| step.action == action).map(step_message)
}

fn step_message(step: &PlanStep) -> String {
    format!("{}: {}", step.object, step.reason)
}

/// A failed hook that other objects wait for.
fn failed_hook<'p>(plan: &'p Plan, cluster: &ClusterEntry) -> Option<(&'p ObjectId, String)> {
    plan.steps.iter().find_map(|step| {
        let StepReason::WaitsForHook { hook, .. } = &step.reason else { return None };
        let health = &cluster.observation.objects.get(hook)?.health;
        (health.status == HealthStatus::Failed).then(|| (hook, format!("{hook}: {}", health.reason)))
    })
}

/// The worst health among the rendered objects, and its object. An object that waits for a hook is skipped: the hook counts.
fn health_of<'r>(
    entry: &TargetEntry,
    rendered: &'r RenderedTarget,
    plan: &Plan,
    cluster: &ClusterEntry,
) -> (TargetPhase, Option<&'r ObjectId>, String) {
    let mut worst = (TargetPhase::Running, None, String::new());
    let waiting: BTreeMap<&ObjectId, &PlanStep> = plan
        .steps
        .iter()
        .filter(|step| step.reason.is_wait_for_own_app())
        .map(|step| (&step.object, step))
        .collect();
    let hooks_not_due = plan.steps.iter().filter(|step| step.is_hook_not_due()).map(|step| &step.object);
    let not_counted: BTreeSet<&ObjectId> = waiting.keys().copied().chain(hooks_not_due).collect();
    for object in rendered.objects.iter().filter(|object| !not_counted.contains(&object.id)) {
        let (phase, detail) = match cluster.observation.objects.get(&object.id) {
            Some(live) => {
                let phase = match live.health.status {
                    // It was held before its pods came.
                    HealthStatus::Suspended if !live.can_replace() => TargetPhase::Paused,
                    HealthStatus::Current | HealthStatus::Suspended => continue,
                    HealthStatus::InProgress if is_idle_claim(&object.id, entry, cluster) => {
                        if worst.2.is_empty() {
                            worst.2 = format!("{}: {}", object.id, volume_claims::IDLE_CLAIM_MESSAGE);
                        }
                        continue;
                    }
                    HealthStatus::InProgress | HealthStatus::Terminating => TargetPhase::Progressing,
                    HealthStatus::Failed => TargetPhase::Degraded,
                    HealthStatus::NotFound | HealthStatus::Unknown => TargetPhase::Pending,
                };
                (phase, live.health.reason.clone())
            }
            None => (TargetPhase::Pending, "not there yet".to_owned()),
        };
        if phase > worst.0 {
            worst = (phase, Some(&object.id), format!("{}: {detail}", object.id));
        }
    }
    match waiting.into_values().next() {
        Some(step) if worst.0.is_done() => (TargetPhase::Progressing, None, step_message(step)),
        _ => worst,
    }
}
