//! Any other kind: the conventions that most controllers follow.

use serde_json::Value;

use super::json_fields::{StatusCondition, outdated_condition, outdated_status};
use crate::model::{Health, HealthStatus};

/// The conditions that show whether an object works.
pub const GOALS: [&str; 2] = ["Ready", "Available"];

/// Stalled and Reconciling exist only in abnormal states. Ready, or else Available, decides. Without any of them
/// there is nothing to wait for. The deciding condition must be of the newest spec, if it reports its generation.
pub fn health(object: &Value) -> Health {
    if let Some(old) = outdated_status(object, false) {
        return old;
    }
    let holds = |name| StatusCondition::of(object, name).filter(|condition| condition.has_status("True"));
    for (name, status) in [("Stalled", HealthStatus::Failed), ("Reconciling", HealthStatus::InProgress)] {
        if let Some(condition) = holds(name) {
            return outdated_condition(object, name)
                .unwrap_or_else(|| Health::new(status, condition.summary()));
        }
    }
    let goal = GOALS.into_iter().find_map(|name| Some((name, StatusCondition::of(object, name)?)));
    let Some((name, goal)) = goal else { return Health::current() };
    if let Some(old) = outdated_condition(object, name) {
        return old;
    }
    // "Not ready yet" and "never ready" look the same here: the rollout's deadline decides.
    if goal.has_status("True") {
        Health::current()
    } else {
        Health::new(HealthStatus::InProgress, goal.summary())
    }
}
