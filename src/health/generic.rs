//! Any other kind: the conventions that most controllers follow.

use serde_json::Value;

use super::read::{Condition, old_condition, old_status};
use crate::model::{Health, Status};

/// What an object is for.
pub const GOALS: [&str; 2] = ["Ready", "Available"];

/// Stalled and Reconciling speak of abnormal states and are there only then; Ready, or else
/// Available, is what the object is for. Without any of them there is nothing to wait for. What decides has to be of the
/// newest spec: a condition may say of which it is.
pub fn health(object: &Value) -> Health {
    if let Some(old) = old_status(object, false) {
        return old;
    }
    let holds = |name| Condition::of(object, name).filter(|condition| condition.is("True"));
    for (name, status) in [("Stalled", Status::Failed), ("Reconciling", Status::InProgress)] {
        if let Some(condition) = holds(name) {
            return old_condition(object, name).unwrap_or_else(|| Health::new(status, condition.words()));
        }
    }
    let goal = GOALS.into_iter().find_map(|name| Some((name, Condition::of(object, name)?)));
    let Some((name, goal)) = goal else { return Health::current() };
    if let Some(old) = old_condition(object, name) {
        return old;
    }
    // Not ready cannot be told from never ready by itself: that is for the rollout's deadline.
    if goal.is("True") { Health::current() } else { Health::new(Status::InProgress, goal.words()) }
}
