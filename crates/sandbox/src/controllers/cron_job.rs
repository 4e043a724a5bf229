//! The CronJob controller: creates jobs by the schedule.

use std::time::Duration;

use serde_json::{Value, json};

use super::controller_context::{ControllerContext, key_of};
use super::cron_job_schedule::CronJobSchedule;
use super::event_component::EventComponent;
use super::job_status;
use crate::object;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs::{RequestDeleteOptions, WriteCaller};

const SCHEDULED_ANNOTATION: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, cron: &Value) {
    let mut status = object::value_at(cron, &["status"]).cloned().unwrap_or_else(|| json!({}));
    let jobs = context.owned(cron, "jobs.batch");
    record_finished(context, cron, &jobs, &mut status);
    clean_up(context, cron, &jobs);
    write(context, key, &status);
    if cron["spec"]["suspend"] == true {
        return;
    }
    let Some(schedule) = object::text(cron, &["spec", "schedule"]).and_then(CronJobSchedule::parse) else {
        let message = format!("unparseable schedule: {}", cron["spec"]["schedule"]);
        return context.event(cron, EventComponent::CronJob, "Warning", "UnparseableSchedule", &message);
    };
    let now = context.state.clock.seconds();
    let since = object::text(&status, &["lastScheduleTime"])
        .or_else(|| object::text(cron, &["metadata", "creationTimestamp"]))
        .and_then(|text| context.state.clock.seconds_since(text))
        .map_or(now, |age| now - age);
    let mut due = None;
    let mut next = schedule.next_after(since);
    while let Some(time) = next.filter(|time| *time <= now) {
        due = Some(time);
        next = schedule.next_after(time);
    }
    if let Some(time) = due {
        start(context, key, cron, &jobs, &mut status, time);
    }
    if let Some(next) = next {
        context.requeue_once(key, Duration::from_secs((next - now).max(1).unsigned_abs()));
    }
}

fn write(context: &mut ControllerContext<'_>, key: &StoreKey, status: &Value) {
    let status = status.clone();
    context.change_status(key, &WriteCaller::controller(), |live| *live = status);
}

/// Takes jobs that ended off the list of active ones.
fn record_finished(
    context: &mut ControllerContext<'_>,
    cron: &Value,
    jobs: &[ParsedObject],
    status: &mut Value,
) {
    let active = object::list(status, &["active"]).to_vec();
    let mut kept = Vec::new();
    for entry in active {
        let name = entry["name"].as_str().unwrap_or("").to_owned();
        match jobs.iter().find(|job| object::uid(job) == entry["uid"]) {
            Some(job) if job_status::is_finished(job) => {
                let kind = if object::condition_is_true(job, "Complete") { "Complete" } else { "Failed" };
                let message = format!("Saw completed job: {name}, condition: {kind}");
                context.event(cron, EventComponent::CronJob, "Normal", "SawCompletedJob", &message);
            }
            Some(_) => kept.push(entry),
            None => {
                let message = format!("Active job went missing: {name}");
                context.event(cron, EventComponent::CronJob, "Normal", "MissingJob", &message);
            }
        }
    }
    if kept.is_empty() {
        object::take(status, &["active"]);
    } else {
        status["active"] = json!(kept);
    }
    let succeeded = jobs.iter().filter_map(|job| object::text(job, &["status", "completionTime"])).max();
    if let Some(time) = succeeded.filter(|time| object::text(status, &["lastSuccessfulTime"]) < Some(time)) {
        status["lastSuccessfulTime"] = json!(time);
    }
}

/// Finished jobs beyond the history limits go, oldest first.
fn clean_up(context: &mut ControllerContext<'_>, cron: &Value, jobs: &[ParsedObject]) {
    for (kind, limit) in [("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")] {
        let Some(limit) = object::value_at(cron, &["spec", limit]).and_then(Value::as_u64) else { continue };
        let mut ended: Vec<&ParsedObject> = jobs
            .iter()
            .filter(|job| object::condition_is_true(job, kind) && !object::is_deleting(job))
            .collect();
        ended.sort_by_key(|job| object::text(job, &["status", "startTime"]).unwrap_or("").to_owned());
        let excess = ended.len().saturating_sub(limit as usize);
        for job in ended.into_iter().take(excess) {
            delete(context, cron, job);
        }
    }
}

fn delete(context: &mut ControllerContext<'_>, cron: &Value, job: &ParsedObject) {
    context.delete(&key_of("jobs.batch", job), &RequestDeleteOptions::default());
    let message = format!("Deleted job {}", object::name(job));
    context.event(cron, EventComponent::CronJob, "Normal", "SuccessfulDelete", &message);
}

fn start(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    cron: &Value,
    jobs: &[ParsedObject],
    status: &mut Value,
    time: i64,
) {
    let late = context.state.clock.seconds() - time;
    let deadline = object::value_at(cron, &["spec", "startingDeadlineSeconds"]).and_then(Value::as_i64);
    let scheduled = context.state.clock.timestamp_at(time);
    if deadline.is_some_and(|deadline| late > deadline) {
        let message = format!("Missed scheduled time to start a job: {scheduled}");
        return context.event(cron, EventComponent::CronJob, "Warning", "MissSchedule", &message);
    }
    let active: Vec<ParsedObject> = object::list(status, &["active"])
        .iter()
        .filter_map(|entry| jobs.iter().find(|job| object::uid(job) == entry["uid"]).cloned())
        .collect();
    if !active.is_empty() {
        match object::text(cron, &["spec", "concurrencyPolicy"]) {
            Some("Forbid") => {
                let message =
                    "Not starting job because prior execution is running and concurrency policy is Forbid";
                return context.event(cron, EventComponent::CronJob, "Normal", "JobAlreadyActive", message);
            }
            Some("Replace") => {
                for job in &active {
                    delete(context, cron, job);
                }
                object::take(status, &["active"]);
            }
            _ => {}
        }
    }
    let name = format!("{}-{}", object::name(cron), time / 60);
    let Ok(job) = context.try_create("jobs.batch", object::namespace(cron), job_of(cron, &name, &scheduled))
    else {
        return;
    };
    let message = format!("Created job {name}");
    context.event(cron, EventComponent::CronJob, "Normal", "SuccessfulCreate", &message);
    let entry = json!({"kind": "Job", "namespace": object::namespace(&job), "name": name,
        "uid": object::uid(&job), "apiVersion": "batch/v1",
        "resourceVersion": job["metadata"]["resourceVersion"]});
    match status.get_mut("active").and_then(Value::as_array_mut) {
        Some(active) => active.push(entry),
        None => status["active"] = json!([entry]),
    }
    status["lastScheduleTime"] = json!(scheduled);
    write(context, key, status);
}

fn job_of(cron: &Value, name: &str, scheduled: &str) -> Value {
    let template = &cron["spec"]["jobTemplate"];
    let mut metadata = json!({"name": name,
        "ownerReferences": [object::controller_reference(cron, "batch/v1", "CronJob")]});
    for field in ["labels", "annotations"] {
        if let Some(value) = object::value_at(template, &["metadata", field]) {
            metadata[field] = value.clone();
        }
    }
    object::set(&mut metadata, &["annotations", SCHEDULED_ANNOTATION], scheduled);
    json!({"metadata": metadata, "spec": template["spec"]})
}
