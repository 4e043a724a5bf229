//! Job and CronJob.

use serde_json::Value;

use super::json_fields::{StatusCondition, count, integer, is_true, items, text};
use crate::model::{Health, HealthStatus};

/// A Job has ended if the condition is True: a resumed Job keeps `Suspended` with False.
pub fn job(object: &Value) -> Health {
    let holds = |name| StatusCondition::of(object, name).filter(|condition| condition.has_status("True"));
    if let Some(failed) = holds("Failed").or_else(|| holds("FailureTarget")) {
        return Health::new(HealthStatus::Failed, failed.summary());
    }
    if holds("Complete").is_some() {
        return Health::new(HealthStatus::Current, "completed");
    }
    if is_true(object, "/spec/suspend") {
        return Health::new(HealthStatus::Suspended, "suspended");
    }
    let succeeded = count(object, "/status/succeeded");
    let mut reason = match integer(object, "/spec/completions") {
        Some(wanted) => format!("{succeeded}/{wanted} completions"),
        None => format!("{succeeded} completions"),
    };
    for (number, word) in
        [(count(object, "/status/active"), "active"), (count(object, "/status/failed"), "failed")]
    {
        if number > 0 {
            reason.push_str(&format!(", {number} {word}"));
        }
    }
    Health::new(HealthStatus::InProgress, reason)
}

/// A CronJob is Current once it is stored. It fails if its last run failed.
pub fn cron_job(object: &Value) -> Health {
    if is_true(object, "/spec/suspend") {
        return Health::new(HealthStatus::Suspended, "suspended");
    }
    let scheduled = text(object, "/status/lastScheduleTime");
    let succeeded = text(object, "/status/lastSuccessfulTime");
    let active = items(object, "/status/active").len();
    match (scheduled, succeeded) {
        (None, _) => Health::new(HealthStatus::Current, "not scheduled yet"),
        (Some(_), _) if active > 0 => Health::new(HealthStatus::Current, format!("{active} active")),
        // Either no run succeeded, or the server does not report it: no reason for an alarm.
        (Some(_), None) => Health::new(HealthStatus::Current, "no run has succeeded yet"),
        // Both are in UTC and in one format, so text order is time order.
        (Some(scheduled), Some(succeeded)) if succeeded < scheduled => {
            Health::new(HealthStatus::Failed, format!("the run of {scheduled} did not succeed"))
        }
        (Some(_), Some(_)) => Health::current(),
    }
}
