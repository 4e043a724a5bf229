//! Jobs: pods until enough succeeded, or too many failed.

use std::time::Duration;

use serde_json::{Value, json};

use super::condition::{Condition, count};
use super::context::{Context, key_of};
use super::pods;
use crate::object;
use crate::store::{Key, Object};
use crate::verbs::{Caller, DeleteOptions};

/// What the pods of a job came to.
struct Tally {
    active: Vec<Object>,
    ready: i64,
    succeeded: i64,
    failed: i64,
    /// Failed pods, and restarts of containers inside pods.
    failures: i64,
}

const FIRST_BACK_OFF: Duration = Duration::from_secs(10);

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, job: &Value) {
    if object::condition_is_true(job, "Complete") || object::condition_is_true(job, "Failed") {
        return expire(context, key, job);
    }
    let tally = tally(context, job);
    let completions = object::integer(job, &["spec", "completions"]);
    if tally.succeeded >= completions {
        return finish(context, key, &tally, true);
    }
    if tally.failures > object::integer(job, &["spec", "backoffLimit"]) {
        for pod in &tally.active {
            context.delete(&key_of("pods", pod), &DeleteOptions::default());
        }
        return finish(context, key, &tally, false);
    }
    if job["spec"]["suspend"] == true {
        return suspend(context, key, &tally);
    }
    let wanted = object::integer(job, &["spec", "parallelism"]).min(completions - tally.succeeded);
    let missing = wanted - tally.active.len() as i64;
    if missing > 0 && !backs_off(context, key, job, &tally) {
        for _ in 0..missing {
            let pod = pods::from_template(job, "batch/v1", "Job");
            context.create("pods", object::namespace(job), pod);
        }
    }
    let tally = self::tally(context, job);
    write_counts(context, key, &tally, |_, _| {});
}

fn tally(context: &Context<'_>, job: &Value) -> Tally {
    let found = context.owned(job, "pods");
    let in_phase = |phase: &str| {
        found.iter().filter(|pod| object::text(pod, &["status", "phase"]) == Some(phase)).count() as i64
    };
    let active: Vec<Object> = found.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
    let restarts: i64 = active
        .iter()
        .flat_map(|pod| object::list(pod, &["status", "containerStatuses"]))
        .map(|container| object::integer(container, &["restartCount"]))
        .sum();
    Tally {
        ready: active.iter().filter(|pod| pods::is_ready(pod)).count() as i64,
        succeeded: in_phase("Succeeded"),
        failed: in_phase("Failed"),
        failures: in_phase("Failed") + restarts,
        active,
    }
}

/// After a failure the next pod waits, twice as long each time.
fn backs_off(context: &mut Context<'_>, key: &Key, job: &Value, tally: &Tally) -> bool {
    if tally.failed == 0 {
        return false;
    }
    let doublings = u32::try_from(tally.failed - 1).unwrap_or(0).min(5);
    let wait = FIRST_BACK_OFF * 2_u32.pow(doublings);
    let memory = context.memory.job_failures.entry(object::uid(job).to_owned());
    let (_, since) = *memory
        .and_modify(|(count, since)| {
            if *count < tally.failed {
                (*count, *since) = (tally.failed, context.now);
            }
        })
        .or_insert((tally.failed, context.now));
    if context.now >= since + wait {
        return false;
    }
    context.again_at(key, since + wait);
    true
}

fn write_counts(context: &mut Context<'_>, key: &Key, tally: &Tally, more: impl FnOnce(&mut Value, &str)) {
    let now = context.state.clock.timestamp();
    context.change_status(key, &Caller::controller(), |status| {
        object::set_default(status, &["startTime"], now.as_str());
        count(status, "active", tally.active.len() as i64);
        status["ready"] = json!(tally.ready);
        count(status, "succeeded", tally.succeeded);
        count(status, "failed", tally.failed);
        object::set_default(status, &["uncountedTerminatedPods"], json!({}));
        status["terminating"] = json!(0);
        more(status, &now);
    });
}

fn finish(context: &mut Context<'_>, key: &Key, tally: &Tally, success: bool) {
    let ended = Tally { active: Vec::new(), ready: 0, ..*tally };
    let (kinds, reason, message) = if success {
        (
            ["SuccessCriteriaMet", "Complete"],
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        )
    } else {
        (["FailureTarget", "Failed"], "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    };
    write_counts(context, key, &ended, |status, now| {
        for kind in kinds {
            Condition { kind, is_true: true, reason, message }.ensure(status, now, false);
        }
        if success {
            object::set_default(status, &["completionTime"], now);
        }
    });
}

fn suspend(context: &mut Context<'_>, key: &Key, tally: &Tally) {
    for pod in &tally.active {
        context.delete(&key_of("pods", pod), &DeleteOptions::default());
    }
    let idle = Tally { active: Vec::new(), ready: 0, ..*tally };
    write_counts(context, key, &idle, |status, now| {
        Condition { kind: "Suspended", is_true: true, reason: "JobSuspended", message: "Job suspended" }
            .ensure(status, now, false);
        object::take(status, &["startTime"]);
    });
}

/// A finished job goes after its time to live.
fn expire(context: &mut Context<'_>, key: &Key, job: &Value) {
    let Some(seconds) = object::at(job, &["spec", "ttlSecondsAfterFinished"]).and_then(Value::as_u64) else {
        return;
    };
    let uid = object::uid(job).to_owned();
    let finished = *context.memory.progress.entry(uid).or_insert(context.now);
    let ends = finished + Duration::from_secs(seconds);
    if context.now >= ends {
        context.delete(key, &DeleteOptions::default());
    } else {
        context.again_at(key, ends);
    }
}
