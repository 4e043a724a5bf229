//! How a job ends, and the conditions that say so.

use std::time::Duration;

use serde_json::{Value, json};

use super::context::Context;
use super::job_pods::Pods;
use crate::object;
use crate::store::Key;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ending {
    Success,
    Failure { reason: &'static str, message: &'static str },
}

const EXCEEDED: Ending = Ending::Failure {
    reason: "BackoffLimitExceeded",
    message: "Job has reached the specified backoff limit",
};
const TOO_LATE: Ending =
    Ending::Failure { reason: "DeadlineExceeded", message: "Job was active longer than specified deadline" };
const UNKNOWN: Ending = Ending::Failure { reason: "", message: "" };

pub(super) fn is_finished(job: &Value) -> bool {
    object::condition_is_true(job, "Complete") || object::condition_is_true(job, "Failed")
}

/// Is it over, and how? What was decided before stays decided.
pub(super) fn ending(
    context: &mut Context<'_>,
    key: &Key,
    job: &Value,
    pods: &Pods,
    status: &Value,
) -> Option<Ending> {
    if object::condition_is_true(job, "SuccessCriteriaMet") {
        return Some(Ending::Success);
    }
    if let Some(target) = object::condition(job, "FailureTarget") {
        let decided = [EXCEEDED, TOO_LATE]
            .into_iter()
            .find(|one| matches!(one, Ending::Failure { reason, .. } if target["reason"] == *reason));
        return Some(decided.unwrap_or(UNKNOWN));
    }
    let limit = object::integer(job, &["spec", "backoffLimit"]);
    let failed = object::integer(job, &["status", "failed"]) + pods.failed.len() as i64;
    if failed > limit || (pods.restarts > 0 && pods.restarts >= limit) {
        return Some(EXCEEDED);
    }
    if job["spec"]["suspend"] != true && is_late(context, key, job, status) {
        return Some(TOO_LATE);
    }
    let succeeded = pods.succeeded_in_all(job);
    let complete = match object::at(job, &["spec", "completions"]).and_then(Value::as_i64) {
        Some(completions) => succeeded >= completions,
        None => succeeded > 0 && pods.active.is_empty(),
    };
    complete.then_some(Ending::Success)
}

fn is_late(context: &mut Context<'_>, key: &Key, job: &Value, status: &Value) -> bool {
    if object::at(job, &["spec", "activeDeadlineSeconds"]).is_none() {
        return false;
    }
    let deadline = object::seconds(job, &["spec", "activeDeadlineSeconds"]);
    let started = object::text(status, &["startTime"]).unwrap_or("");
    let passed = context.state.clock.seconds_since(started).unwrap_or(0).max(0).unsigned_abs();
    let left = deadline.saturating_sub(Duration::from_secs(passed));
    if left.is_zero() {
        return true;
    }
    context.again_once(key, left);
    false
}

/// `SuccessCriteriaMet` or `FailureTarget`: decided, while pods may still end.
pub(super) fn note_ending(status: &mut Value, ending: &Ending, now: &str) {
    match ending {
        Ending::Success => set(status, "SuccessCriteriaMet", true, REACHED.0, REACHED.1, now),
        Ending::Failure { reason, message } => set(status, "FailureTarget", true, reason, message, now),
    }
}

const REACHED: (&str, &str) = ("CompletionsReached", "Reached expected number of succeeded pods");

pub(super) fn finish(status: &mut Value, ending: &Ending, now: &str) {
    match ending {
        Ending::Success => {
            set(status, "Complete", true, REACHED.0, REACHED.1, now);
            object::set_default(status, &["completionTime"], now);
        }
        Ending::Failure { reason, message } => set(status, "Failed", true, reason, message, now),
    }
}

/// True when that is new: a job that never was suspended has no such condition.
pub(super) fn note_suspension(status: &mut Value, suspended: bool, now: &str) -> bool {
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
