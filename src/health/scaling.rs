//! HorizontalPodAutoscaler and PodDisruptionBudget.

use serde_json::Value;

use super::json_fields::{StatusCondition, items, outdated_status, text};
use crate::model::{Health, HealthStatus};

/// `autoscaling/v1` stores its conditions in this annotation.
const CONDITIONS_V1: &str = "/metadata/annotations/autoscaling.alpha.kubernetes.io~1conditions";

pub fn autoscaler(object: &Value) -> Health {
    let kept: Vec<Value>;
    let mut conditions = items(object, "/status/conditions");
    if conditions.is_empty()
        && let Some(text) = text(object, CONDITIONS_V1)
    {
        kept = serde_json::from_str(text).unwrap_or_default();
        conditions = &kept;
    }
    if conditions.is_empty() {
        return Health::new(HealthStatus::InProgress, "no status yet");
    }
    if let Some(unable) = StatusCondition::find(conditions, "AbleToScale").filter(|c| c.has_status("False"))
        && !unable.has_reason("BackoffBoth")
    {
        return Health::new(HealthStatus::Failed, unable.summary());
    }
    match StatusCondition::find(conditions, "ScalingActive").filter(|c| c.has_status("False")) {
        // A person scaled to 0: nothing to scale.
        Some(idle) if idle.has_reason("ScalingDisabled") => {
            Health::new(HealthStatus::Current, idle.summary())
        }
        // New pods have no metrics for about a minute; that does not fail a rollout.
        Some(idle) if idle.reason().is_some_and(is_about_metrics) => {
            Health::new(HealthStatus::Current, idle.summary())
        }
        Some(idle) => Health::new(HealthStatus::Failed, idle.summary()),
        None => Health::current(),
    }
}

fn is_about_metrics(reason: &str) -> bool {
    reason.starts_with("FailedGet") && reason.ends_with("Metric")
}

/// Too few pods for an eviction is a normal state, no fault of the budget.
pub fn disruption_budget(object: &Value) -> Health {
    if let Some(old) = outdated_status(object, false) {
        return old;
    }
    match StatusCondition::of(object, "DisruptionAllowed") {
        Some(allowed) if allowed.has_status("False") && !allowed.has_reason("InsufficientPods") => {
            Health::new(HealthStatus::Failed, allowed.summary())
        }
        _ => Health::current(),
    }
}
