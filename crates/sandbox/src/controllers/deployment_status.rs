//! A deployment's counters and conditions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::controller_condition::{self, set_counter};
use super::deployment_rollout::DeploymentRollout;
use super::rolling_limits::RollingLimits;
use super::rolling_update;
use crate::object;

impl DeploymentRollout<'_, '_> {
    fn set_status(&mut self, status: Value) {
        if self.deployment["status"] != status {
            Arc::make_mut(&mut self.deployment)["status"] = status;
        }
    }

    /// Decides the condition `Progressing`; others keep their place, a changed one goes last.
    pub(super) fn set_progressing(&mut self, status: &str, reason: &str, message: &str) {
        let now = self.context.state.clock.timestamp();
        controller_condition::replace(
            &mut Arc::make_mut(&mut self.deployment)["status"],
            &controller_condition::with_update_time("Progressing", status, reason, message, &now),
        );
    }
}

/// Pausing and resuming are noted at once, so that no deadline passes meanwhile.
pub(super) fn record_pause(rollout: &mut DeploymentRollout<'_, '_>) {
    let reason = progress_reason(&rollout.deployment).to_owned();
    if !rollout.has_deadline() || reason == "ProgressDeadlineExceeded" {
        return;
    }
    match (rollout.deployment["spec"]["paused"] == true, reason == "DeploymentPaused") {
        (true, false) => rollout.set_progressing("Unknown", "DeploymentPaused", "Deployment is paused"),
        (false, true) => rollout.set_progressing("Unknown", "DeploymentResumed", "Deployment is resumed"),
        _ => return,
    }
    rollout.write_status(true);
    // what follows in this look comes too late
    rollout.scaled = true;
}

fn progress_reason(deployment: &Value) -> &str {
    object::condition(deployment, "Progressing").and_then(|one| one["reason"].as_str()).unwrap_or("")
}

pub(super) fn is_complete(deployment: &Value, status: &Value) -> bool {
    let desired = object::integer(deployment, &["spec", "replicas"]);
    ["updatedReplicas", "replicas", "availableReplicas"]
        .iter()
        .all(|field| object::integer(status, &[field]) == desired)
        && object::integer(status, &["observedGeneration"]) >= object::generation(deployment)
}

/// Writes counters and availability, without progress.
pub(super) fn write_counts(rollout: &mut DeploymentRollout<'_, '_>) {
    let status = status_with_counts(rollout);
    rollout.set_status(status);
    let may_lose = rollout.scaled;
    rollout.write_status(may_lose);
}

pub(super) fn write_progress(rollout: &mut DeploymentRollout<'_, '_>) {
    let mut status = status_with_counts(rollout);
    let now = rollout.context.state.clock.timestamp();
    let current = object::condition(&rollout.deployment, "Progressing").cloned();
    let settled = object::integer(&status, &["replicas"]) == object::integer(&status, &["updatedReplicas"])
        && progress_reason(&rollout.deployment) == "NewReplicaSetAvailable";
    if !rollout.has_deadline() {
        controller_condition::remove(&mut status, "Progressing");
    } else if !settled {
        let what = match &rollout.new_set {
            Some(set) => format!("ReplicaSet \"{}\"", object::name(set)),
            None => format!("Deployment \"{}\"", object::name(&rollout.deployment)),
        };
        let progressing = |status: &str, reason: &str, what: String| {
            controller_condition::with_update_time("Progressing", status, reason, &what, &now)
        };
        if is_complete(&rollout.deployment, &status) {
            let said =
                progressing("True", "NewReplicaSetAvailable", format!("{what} has successfully progressed."));
            controller_condition::replace(&mut status, &said);
        } else if has_progressed(&rollout.deployment["status"], &status) {
            let mut said = progressing("True", "ReplicaSetUpdated", format!("{what} is progressing."));
            if let Some(current) = current.filter(|one| one["status"] == "True") {
                said["lastTransitionTime"] = current["lastTransitionTime"].clone();
            }
            controller_condition::remove(&mut status, "Progressing");
            controller_condition::replace(&mut status, &said);
        } else if has_timed_out(rollout) {
            let said = progressing(
                "False",
                "ProgressDeadlineExceeded",
                format!("{what} has timed out progressing."),
            );
            controller_condition::replace(&mut status, &said);
        }
    }
    copy_failure(rollout, &mut status, &now);
    rollout.set_status(status);
    let may_lose = rollout.scaled;
    rollout.write_status(may_lose);
    schedule_deadline_check(rollout);
}

/// Copies the `ReplicaFailure` condition of a ReplicaSet to the deployment.
fn copy_failure(rollout: &DeploymentRollout<'_, '_>, status: &mut Value, now: &str) {
    let found = rollout
        .new_set
        .iter()
        .chain(&rollout.old_sets)
        .find_map(|set| object::condition(set, "ReplicaFailure"));
    match found {
        Some(failure) => {
            let mut said = failure.clone();
            said["lastUpdateTime"] = json!(now);
            controller_condition::replace(status, &said);
        }
        None => controller_condition::remove(status, "ReplicaFailure"),
    }
}

fn status_with_counts(rollout: &DeploymentRollout<'_, '_>) -> Value {
    let sum = |path: &[&str]| -> i64 { rollout.sets().map(|set| object::integer(set, path)).sum() };
    let available = sum(&["status", "availableReplicas"]);
    let updated = rollout.new_set.iter().map(|set| object::integer(set, &["status", "replicas"])).sum();
    let mut status = rollout.deployment["status"].clone();
    status["observedGeneration"] = json!(object::generation(&rollout.deployment));
    set_counter(&mut status, "replicas", sum(&["status", "replicas"]));
    set_counter(&mut status, "updatedReplicas", updated);
    set_counter(&mut status, "readyReplicas", sum(&["status", "readyReplicas"]));
    set_counter(&mut status, "availableReplicas", available);
    let wanted: i64 = rollout.sets().map(|set| rolling_update::replicas(set)).sum();
    set_counter(&mut status, "unavailableReplicas", (wanted - available).max(0));
    status["terminatingReplicas"] = json!(sum(&["status", "terminatingReplicas"]));
    let now = rollout.context.state.clock.timestamp();
    let (is_true, reason, message) = if available >= min_available(&rollout.deployment) {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    controller_condition::replace(
        &mut status,
        &controller_condition::with_update_time("Available", is_true, reason, message, &now),
    );
    status
}

/// How many pods of a deployment may be missing before it counts as unavailable.
fn min_available(deployment: &Value) -> i64 {
    object::integer(deployment, &["spec", "replicas"]) - RollingLimits::of(deployment).unavailable
}

fn has_progressed(before: &Value, after: &Value) -> bool {
    let grew = |field: &str| object::integer(after, &[field]) > object::integer(before, &[field]);
    let old = |status: &Value| {
        object::integer(status, &["replicas"]) - object::integer(status, &["updatedReplicas"])
    };
    grew("updatedReplicas") || old(after) < old(before) || grew("readyReplicas") || grew("availableReplicas")
}

fn has_timed_out(rollout: &DeploymentRollout<'_, '_>) -> bool {
    match progress_reason(&rollout.deployment) {
        "" | "NewReplicaSetAvailable" => false,
        "ProgressDeadlineExceeded" => true,
        _ => seconds_left(rollout).is_some_and(|left| left < 0),
    }
}

/// Until the deadline, counted from the last update of the condition.
fn seconds_left(rollout: &DeploymentRollout<'_, '_>) -> Option<i64> {
    let since = object::condition(&rollout.deployment, "Progressing")?["lastUpdateTime"].as_str()?;
    let passed = rollout.context.state.clock.seconds_since(since)?;
    Some(object::integer(&rollout.deployment, &["spec", "progressDeadlineSeconds"]) - passed)
}

/// Schedules a reconcile at the deadline.
fn schedule_deadline_check(rollout: &mut DeploymentRollout<'_, '_>) {
    let done = is_complete(&rollout.deployment, &rollout.deployment["status"])
        || matches!(
            progress_reason(&rollout.deployment),
            "" | "ProgressDeadlineExceeded" | "NewReplicaSetAvailable"
        );
    let (key, now) = (rollout.key, rollout.context.now);
    if !rollout.has_deadline() || done {
        return rollout.context.clear_deadlines(key);
    }
    if let Some(left) = seconds_left(rollout) {
        let at = now + Duration::from_secs(left.max(0).unsigned_abs() + 1);
        let deadlines = rollout.context.memory.deadlines.entry(key.clone()).or_default();
        deadlines.retain(|at| *at > now);
        if !deadlines.contains(&at) {
            deadlines.push(at);
        }
        rollout.context.requeue_at(key, at);
    }
}
