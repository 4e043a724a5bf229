//! The Job controller: creates pods until enough succeeded or too many failed.
//!
//! A finalizer keeps each pod until it is counted: first its uid is written to `uncountedTerminatedPods`, then the
//! finalizer is removed, then the counter is incremented.

use std::time::Duration;

use serde_json::{Value, json};

use super::controller_condition::set_counter;
use super::controller_context::{ControllerContext, key_of};
use super::event_component::EventComponent;
use super::job_indexes;
use super::job_pods::{self, JobPods, drop_finalizer};
use super::job_status::{self as status_of, JobOutcome};
use crate::object;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs::{DeletionPropagation, RequestDeleteOptions, WriteCaller};

/// The `managedBy` value of jobs of this controller.
const CONTROLLER: &str = "kubernetes.io/job-controller";
/// Changes of pods are batched for this long.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// No more pods than this are made or deleted in one look; what they cause calls again for the rest.
const MAX_CHANGES: i64 = 500;
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(600);

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, job: &Value) {
    if status_of::is_finished(job) {
        return expire(context, key, job);
    }
    if object::text(job, &["spec", "managedBy"]).is_some_and(|manager| manager != CONTROLLER) {
        // another controller's, which is not here
        return;
    }
    if object::is_deleting(job) || is_batching_changes(context, key, job) {
        return;
    }
    reconcile_once(context, key, job);
}

/// A changed spec is reconciled at once, other changes after the batch delay.
fn is_batching_changes(context: &mut ControllerContext<'_>, key: &StoreKey, job: &Value) -> bool {
    if context.state.options.job_run.is_zero() {
        return false;
    }
    let (now, generation) = (context.now, object::generation(job));
    let batch = context.memory.job_batches.entry(object::uid(job).to_owned()).or_insert((-1, None));
    match batch {
        (known, due) if *known != generation => {
            *batch = (generation, *due);
            batch.1 = None;
            false
        }
        (_, Some(due)) if *due <= now => {
            batch.1 = None;
            false
        }
        (_, Some(_)) => true,
        (_, due) => {
            *due = Some(now + BATCH_DELAY);
            context.requeue_after(key, BATCH_DELAY);
            true
        }
    }
}

fn reconcile_once(context: &mut ControllerContext<'_>, key: &StoreKey, job: &Value) {
    let pods = JobPods::of(context, job);
    let suspended = job["spec"]["suspend"] == true;
    let mut status = object::value_at(job, &["status"]).cloned().unwrap_or_else(|| json!({}));
    let now = context.state.clock.timestamp();
    if !suspended {
        object::set_default(&mut status, &["startTime"], now.as_str());
    }
    let ending = status_of::job_outcome(context, key, job, &pods, &status);
    let mut active = pods.active.len() as i64;
    let mut ended: Vec<ParsedObject> = Vec::new();
    match (&ending, suspended) {
        (Some(ending), _) => {
            ended = delete_all(context, job, &pods.active);
            active = 0;
            status_of::set_outcome_target(&mut status, ending, &now);
        }
        (None, true) => {
            ended = delete_all(context, job, &pods.active);
            active = 0;
            object::take(&mut status, &["startTime"]);
            if status_of::set_suspension(&mut status, true, &now) {
                context.event(job, EventComponent::Job, "Normal", "Suspended", "Job suspended");
            }
        }
        (None, false) => {
            if status_of::set_suspension(&mut status, false, &now) {
                object::set(&mut status, &["startTime"], now.as_str());
                context.event(job, EventComponent::Job, "Normal", "Resumed", "Job resumed");
            }
            active += scale_pods(context, key, job, &pods);
        }
    }
    set_counter(&mut status, "active", active);
    status["ready"] = json!(if active == 0 { 0 } else { pods.ready });
    status["terminating"] = json!(pods.terminating + ended.len() as i64);
    object::set_default(&mut status, &["uncountedTerminatedPods"], json!({}));
    // pods that are suspended or not needed are not counted; those that a failure cuts off have failed
    let is_failure = matches!(ending, Some(JobOutcome::Failure { .. }));
    let failed_now: &[ParsedObject] = if is_failure { &ended } else { &[] };
    if !is_failure && (suspended || ending.is_some()) {
        ended.iter().for_each(|pod| drop_finalizer(context, pod));
    }
    write_status(context, key, job, status, &pods, failed_now, ending.as_ref());
}

/// Writes the status in the steps that keep every pod counted exactly once.
fn write_status(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    job: &Value,
    mut status: Value,
    pods: &JobPods,
    cut_off: &[ParsedObject],
    ending: Option<&JobOutcome>,
) {
    let indexed = object::text(job, &["spec", "completionMode"]) == Some("Indexed");
    let uids = |pods: &[&ParsedObject]| -> Vec<String> {
        pods.iter().map(|pod| object::uid(pod).to_owned()).collect()
    };
    let succeeded: Vec<&ParsedObject> = pods.succeeded.iter().collect();
    let failed: Vec<&ParsedObject> = pods.failed.iter().chain(cut_off).collect();
    if indexed {
        let indexes = job_pods::completed_indexes(job, pods);
        set_counter(&mut status, "succeeded", indexes.len() as i64);
        if !indexes.is_empty() {
            status["completedIndexes"] = json!(job_indexes::format_indexes(&indexes));
        }
    } else if !succeeded.is_empty() {
        status["uncountedTerminatedPods"]["succeeded"] = json!(uids(&succeeded));
    }
    if !failed.is_empty() {
        status["uncountedTerminatedPods"]["failed"] = json!(uids(&failed));
    }
    write(context, key, &status);
    let ignored: Vec<&ParsedObject> = pods.ignored.iter().collect();
    for pod in succeeded.iter().chain(&failed).chain(&ignored) {
        drop_finalizer(context, pod);
    }
    status["uncountedTerminatedPods"] = json!({});
    if !indexed {
        let total = object::integer(&status, &["succeeded"]) + succeeded.len() as i64;
        set_counter(&mut status, "succeeded", total);
    }
    let total = object::integer(&status, &["failed"]) + failed.len() as i64;
    set_counter(&mut status, "failed", total);
    // the final condition is written when no pod terminates any more
    if let Some(ending) = ending
        && object::integer(&status, &["terminating"]) == 0
    {
        let now = context.state.clock.timestamp();
        status_of::finish(&mut status, ending, &now);
        let (kind, reason, message) = match ending {
            JobOutcome::Success { .. } => ("Normal", "Completed", "Job completed"),
            JobOutcome::Failure { reason, message } => ("Warning", reason.as_str(), message.as_str()),
        };
        context.event(job, EventComponent::Job, kind, reason, message);
    }
    let failures = (failed.len() + ignored.len()) as i64;
    if failures > 0 {
        let uid = object::uid(job).to_owned();
        let before = context.memory.job_failures.get(&uid).map_or(0, |(count, _)| *count);
        context.memory.job_failures.insert(uid, (before + failures, context.now));
        context.requeue_after(key, Duration::ZERO);
    } else if !succeeded.is_empty() {
        // after a success the next failure waits as briefly as the first
        context.memory.job_failures.remove(object::uid(job));
    }
    write(context, key, &status);
}

fn write(context: &mut ControllerContext<'_>, key: &StoreKey, status: &Value) {
    let status = status.clone();
    context.change_status(key, &WriteCaller::controller(), |live| *live = status);
}

fn delete_all(context: &mut ControllerContext<'_>, job: &Value, pods: &[ParsedObject]) -> Vec<ParsedObject> {
    for pod in pods {
        context.delete(&key_of("pods", pod), &RequestDeleteOptions::default());
        let message = format!("Deleted pod: {}", object::name(pod));
        context.event(job, EventComponent::Job, "Normal", "SuccessfulDelete", &message);
    }
    pods.to_vec()
}

/// Makes pods that are missing, ends those that are too many: the change of their number.
fn scale_pods(context: &mut ControllerContext<'_>, key: &StoreKey, job: &Value, pods: &JobPods) -> i64 {
    let active = pods.active.len() as i64;
    let parallelism = object::integer(job, &["spec", "parallelism"]);
    let succeeded = pods.succeeded_in_all(job);
    let wanted = match object::value_at(job, &["spec", "completions"]).and_then(Value::as_i64) {
        Some(completions) => parallelism.min(completions - succeeded),
        None if succeeded > 0 => active.min(parallelism),
        None => parallelism,
    }
    .max(0);
    if active > wanted {
        let excess = (active - wanted).min(MAX_CHANGES) as usize;
        delete_all(context, job, &pods.active[..excess]);
        return -(excess as i64);
    }
    // pods that still end keep their place when only failed ones are replaced
    let only_failed = object::text(job, &["spec", "podReplacementPolicy"]) == Some("Failed");
    let missing = wanted - active - if only_failed { pods.terminating } else { 0 };
    if missing <= 0 || is_backing_off(context, key, job, pods) {
        return 0;
    }
    let mut made = 0;
    for index in job_pods::missing_indexes(job, pods, missing.min(MAX_CHANGES) as usize) {
        match job_pods::create(context, job, index) {
            Ok(_) => made += 1,
            Err(_) => {
                context.retry_with_backoff(key);
                break;
            }
        }
    }
    made
}

/// After a failure the next pod waits, twice as long each time.
fn is_backing_off(context: &mut ControllerContext<'_>, key: &StoreKey, job: &Value, pods: &JobPods) -> bool {
    if !pods.failed.is_empty() || !pods.ignored.is_empty() {
        // they are counted first; that calls again
        return true;
    }
    let Some((failures, since)) = context.memory.job_failures.get(object::uid(job)).copied() else {
        return false;
    };
    let doublings = u32::try_from(failures - 1).unwrap_or(0).min(6);
    let wait = (FIRST_BACK_OFF * 2_u32.pow(doublings)).min(LONGEST_BACK_OFF);
    if context.now >= since + wait {
        return false;
    }
    context.requeue_at(key, since + wait);
    true
}

/// A finished job goes after its time to live, its pods with it.
fn expire(context: &mut ControllerContext<'_>, key: &StoreKey, job: &Value) {
    if object::value_at(job, &["spec", "ttlSecondsAfterFinished"]).is_none() || object::is_deleting(job) {
        return;
    }
    let uid = object::uid(job).to_owned();
    let finished = *context.memory.last_progress.entry(uid).or_insert(context.now);
    let ends = finished + object::seconds(job, &["spec", "ttlSecondsAfterFinished"]);
    if context.now < ends {
        return context.requeue_at(key, ends);
    }
    context.delete(
        key,
        &RequestDeleteOptions {
            propagation: DeletionPropagation::Foreground,
            ..RequestDeleteOptions::default()
        },
    );
}
