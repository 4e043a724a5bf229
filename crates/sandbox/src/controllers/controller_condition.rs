//! Conditions in a status.

use serde_json::{Value, json};

use crate::object;

/// The desired state of one condition.
#[derive(Debug, Clone)]
pub(super) struct ControllerCondition<'c> {
    pub(super) kind: &'c str,
    pub(super) is_true: bool,
    pub(super) reason: &'c str,
    pub(super) message: &'c str,
}

impl ControllerCondition<'_> {
    /// Writes the condition in place, or at the end, if it changed. Its transition time changes only with its status.
    pub(super) fn write_if_changed(&self, status: &mut Value, now: &str) {
        let text = if self.is_true { "True" } else { "False" };
        let mut condition = json!({"type": self.kind, "status": text, "lastTransitionTime": now});
        if !self.reason.is_empty() {
            condition["reason"] = json!(self.reason);
        }
        if !self.message.is_empty() {
            condition["message"] = json!(self.message);
        }
        if !status["conditions"].is_array() {
            status["conditions"] = json!([]);
        }
        let Some(conditions) = status["conditions"].as_array_mut() else { return };
        match conditions.iter_mut().find(|one| one["type"] == self.kind) {
            Some(old) => {
                let said = |one: &Value, field: &str| one[field].as_str().unwrap_or("").to_owned();
                if ["status", "reason", "message"]
                    .iter()
                    .all(|field| said(old, field) == said(&condition, field))
                {
                    return;
                }
                if old["status"] == condition["status"] {
                    condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
                }
                *old = condition;
            }
            None => conditions.push(condition),
        }
    }
}

/// A condition with `lastUpdateTime`.
pub(super) fn with_update_time(kind: &str, status: &str, reason: &str, message: &str, now: &str) -> Value {
    json!({"type": kind, "status": status, "lastUpdateTime": now, "lastTransitionTime": now,
        "reason": reason, "message": message})
}

/// Puts a condition at the end in place of the one of its type, unless that has the same status and
/// reason; the transition time moves only when the status does.
pub(super) fn replace(status: &mut Value, condition: &Value) {
    let kind = condition["type"].as_str().unwrap_or("");
    let mut condition = condition.clone();
    let present = object::list(status, &["conditions"]).iter().find(|one| one["type"] == kind);
    if let Some(present) = present
        && present["status"] == condition["status"]
    {
        if present["reason"] == condition["reason"] {
            return;
        }
        condition["lastTransitionTime"] = present["lastTransitionTime"].clone();
    }
    remove(status, kind);
    match status["conditions"].as_array_mut() {
        Some(conditions) => conditions.push(condition),
        None => status["conditions"] = json!([condition]),
    }
}

pub(super) fn remove(status: &mut Value, kind: &str) {
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.retain(|one| one["type"] != kind);
        if conditions.is_empty() {
            object::take(status, &["conditions"]);
        }
    }
}

/// Counters of a status: zero is left out, as `omitempty` does.
pub(super) fn set_counter(status: &mut Value, field: &str, number: i64) {
    if number == 0 {
        object::take(status, &[field]);
    } else {
        status[field] = json!(number);
    }
}
