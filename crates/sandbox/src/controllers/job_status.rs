//! The end of a job, and its conditions.

use std::time::Duration;

use serde_json::{Value, json};

use super::controller_context::ControllerContext;
use super::job_pods::{self, JobPods};
use super::job_policy;
use crate::object;
use crate::store::StoreKey;

/// The reason and the message of the conditions that tell it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JobOutcome {
    Success { reason: String, message: String },
    Failure { reason: String, message: String },
}

const COMPLETIONS_REACHED: (&str, &str) = ("CompletionsReached", "Reached expected number of succeeded pods");
const BACKOFF_EXCEEDED: (&str, &str) =
    ("BackoffLimitExceeded", "Job has reached the specified backoff limit");
const DEADLINE_EXCEEDED: (&str, &str) = ("DeadlineExceeded", "Job was active longer than specified deadline");

impl JobOutcome {
    fn success((reason, message): (&str, &str)) -> Self {
        Self::Success { reason: reason.to_owned(), message: message.to_owned() }
    }

    fn failure((reason, message): (&str, &str)) -> Self {
        Self::Failure { reason: reason.to_owned(), message: message.to_owned() }
    }
}

fn reason_and_message(condition: &Value) -> (&str, &str) {
    let text = |field: &str| object::text(condition, &[field]).unwrap_or_default();
    (text("reason"), text("message"))
}

pub(super) fn is_finished(job: &Value) -> bool {
    object::condition_is_true(job, "Complete") || object::condition_is_true(job, "Failed")
}

/// The outcome of a job, if any. A decided outcome never changes.
pub(super) fn job_outcome(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    job: &Value,
    pods: &JobPods,
    status: &Value,
) -> Option<JobOutcome> {
    if let Some(met) = object::condition(job, "SuccessCriteriaMet").filter(|met| met["status"] == "True") {
        return Some(JobOutcome::success(reason_and_message(met)));
    }
    if let Some(target) = object::condition(job, "FailureTarget") {
        return Some(JobOutcome::failure(reason_and_message(target)));
    }
    if let Some(why) = &pods.fatal {
        return Some(JobOutcome::failure(("PodFailurePolicy", why)));
    }
    let limit = object::integer(job, &["spec", "backoffLimit"]);
    let failed = object::integer(job, &["status", "failed"]) + pods.failed.len() as i64;
    if failed > limit || (pods.restarts > 0 && pods.restarts >= limit) {
        return Some(JobOutcome::failure(BACKOFF_EXCEEDED));
    }
    if job["spec"]["suspend"] != true && is_past_deadline(context, key, job, status) {
        return Some(JobOutcome::failure(DEADLINE_EXCEEDED));
    }
    if let Some(why) = job_policy::success_message(job, &job_pods::completed_indexes(job, pods)) {
        return Some(JobOutcome::success(("SuccessPolicy", &why)));
    }
    let succeeded = pods.succeeded_in_all(job);
    let complete = match object::value_at(job, &["spec", "completions"]).and_then(Value::as_i64) {
        Some(completions) => succeeded >= completions,
        None => succeeded > 0 && pods.active.is_empty(),
    };
    complete.then(|| JobOutcome::success(COMPLETIONS_REACHED))
}

fn is_past_deadline(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    job: &Value,
    status: &Value,
) -> bool {
    if object::value_at(job, &["spec", "activeDeadlineSeconds"]).is_none() {
        return false;
    }
    let deadline = object::seconds(job, &["spec", "activeDeadlineSeconds"]);
    let started = object::text(status, &["startTime"]).unwrap_or("");
    let passed = context.state.clock.seconds_since(started).unwrap_or(0).max(0).unsigned_abs();
    let left = deadline.saturating_sub(Duration::from_secs(passed));
    if left.is_zero() {
        return true;
    }
    context.requeue_once(key, left);
    false
}

/// `SuccessCriteriaMet` or `FailureTarget`: decided, while pods may still end.
pub(super) fn set_outcome_target(status: &mut Value, ending: &JobOutcome, now: &str) {
    match ending {
        JobOutcome::Success { reason, message } => {
            set(status, "SuccessCriteriaMet", true, reason, message, now)
        }
        JobOutcome::Failure { reason, message } => set(status, "FailureTarget", true, reason, message, now),
    }
}

pub(super) fn finish(status: &mut Value, ending: &JobOutcome, now: &str) {
    match ending {
        JobOutcome::Success { reason, message } => {
            set(status, "Complete", true, reason, message, now);
            object::set_default(status, &["completionTime"], now);
        }
        JobOutcome::Failure { reason, message } => set(status, "Failed", true, reason, message, now),
    }
}

/// True when that is new: a job that never was suspended has no such condition.
pub(super) fn set_suspension(status: &mut Value, suspended: bool, now: &str) -> bool {
    let told = object::list(status, &["conditions"]).iter().find(|one| one["type"] == "Suspended");
    let was = told.is_some_and(|one| one["status"] == "True");
    if was == suspended {
        return false;
    }
    let (reason, message) =
        if suspended { ("JobSuspended", "Job suspended") } else { ("JobResumed", "Job resumed") };
    set(status, "Suspended", suspended, reason, message, now);
    true
}

/// In place when the condition is there, else at the end.
fn set(status: &mut Value, kind: &str, is_true: bool, reason: &str, message: &str, now: &str) {
    let condition = json!({"type": kind, "status": if is_true { "True" } else { "False" },
        "lastProbeTime": now, "lastTransitionTime": now, "reason": reason, "message": message});
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|one| one["type"] == kind) {
        Some(present) if present["status"] == condition["status"] => {}
        Some(present) => *present = condition,
        None => conditions.push(condition),
    }
}
