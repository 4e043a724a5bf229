//! Any other kind: the conventions that most controllers follow.

use serde_json::Value;

use super::read::{Condition, old_status};
use crate::model::{Health, Status};

/// Stalled and Reconciling speak of abnormal states and are there only then; Ready, or else
/// Available, is what the object is for. Without any of them there is nothing to wait for.
pub fn health(object: &Value) -> Health {
    if let Some(old) = old_status(object, false) {
        return old;
    }
    let holds = |name| Condition::of(object, name).filter(|condition| condition.is("True"));
    if let Some(stalled) = holds("Stalled") {
        return Health::new(Status::Failed, stalled.words());
    }
    if let Some(reconciling) = holds("Reconciling") {
        return Health::new(Status::InProgress, reconciling.words());
    }
    match Condition::of(object, "Ready").or_else(|| Condition::of(object, "Available")) {
        // Not ready cannot be told from never ready by itself: that is for the rollout's deadline.
        Some(goal) if !goal.is("True") => Health::new(Status::InProgress, goal.words()),
        _ => Health::current(),
    }
}
