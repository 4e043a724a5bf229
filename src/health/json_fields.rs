//! Reads fields of arbitrary JSON: a value of an unexpected shape counts as missing.

use serde_json::Value;

use crate::model::{GroupVersionKind, Health, HealthStatus, short_line};

/// Longest stored reason, in characters: one line of a table or a commit status.
const REASON_LIMIT: usize = 300;

pub fn kind(object: &Value) -> Option<GroupVersionKind> {
    let api_version = text(object, "/apiVersion")?;
    Some(GroupVersionKind::from_api_version(api_version, text(object, "/kind")?))
}

/// A text that exists and is not empty.
pub fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// An integer; larger values become the maximum of i64.
pub fn integer(value: &Value, pointer: &str) -> Option<i64> {
    let number = value.pointer(pointer)?;
    number.as_i64().or_else(|| number.as_u64().map(|large| i64::try_from(large).unwrap_or(i64::MAX)))
}

/// A generation. Some controllers (Argo Rollouts) write it as a text.
fn generation_of(value: &Value, pointer: &str) -> Option<i64> {
    integer(value, pointer).or_else(|| text(value, pointer)?.parse().ok())
}

/// A count, which the API server omits if it is 0; never negative.
pub fn count(value: &Value, pointer: &str) -> i64 {
    integer(value, pointer).unwrap_or(0).max(0)
}

pub fn is_true(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

/// A list; empty if missing.
pub fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[derive(Clone, Copy, Debug)]
pub struct StatusCondition<'a> {
    value: &'a Value,
}

impl<'a> StatusCondition<'a> {
    /// The condition of this type among `conditions`.
    pub fn find(conditions: &'a [Value], name: &str) -> Option<Self> {
        conditions.iter().find(|value| text(value, "/type") == Some(name)).map(|value| Self { value })
    }

    /// The condition of this type in the object's status.
    pub fn of(object: &'a Value, name: &str) -> Option<Self> {
        Self::find(items(object, "/status/conditions"), name)
    }

    pub fn has_status(self, status: &str) -> bool {
        text(self.value, "/status") == Some(status)
    }

    pub fn has_reason(self, reason: &str) -> bool {
        self.reason() == Some(reason)
    }

    pub fn reason(self) -> Option<&'a str> {
        text(self.value, "/reason")
    }

    /// It is of an older spec.
    pub fn is_older_than(self, object: &Value) -> bool {
        let wanted = integer(object, "/metadata/generation");
        generation_of(self.value, "/observedGeneration")
            .zip(wanted)
            .is_some_and(|(seen, wanted)| seen < wanted)
    }

    /// Reason and message as one sentence; the type if it has neither.
    pub fn summary(self) -> String {
        match (self.reason(), text(self.value, "/message")) {
            (Some(reason), Some(message)) if message.contains(reason) => sentence(message),
            (Some(reason), Some(message)) => sentence(&format!("{reason}: {message}")),
            (None, Some(message)) => sentence(message),
            (Some(reason), None) => sentence(reason),
            (None, None) => {
                let name = text(self.value, "/type").unwrap_or("condition");
                sentence(&format!("{name} is {}", text(self.value, "/status").unwrap_or("not set")))
            }
        }
    }
}

/// InProgress until the controller has observed the newest spec. `required`: the kind always reports
/// `observedGeneration` once it was observed.
pub fn outdated_status(object: &Value, required: bool) -> Option<Health> {
    let generation = integer(object, "/metadata/generation")?;
    match generation_of(object, "/status/observedGeneration") {
        Some(observed) if observed >= generation => None,
        Some(observed) => Some(Health::new(
            HealthStatus::InProgress,
            format!("generation {generation} is not observed yet, the status is of {observed}"),
        )),
        None if required => Some(Health::new(
            HealthStatus::InProgress,
            format!("generation {generation} is not observed yet"),
        )),
        None => None,
    }
}

/// InProgress if the condition of this type is of an older spec.
pub fn outdated_condition(object: &Value, name: &str) -> Option<Health> {
    StatusCondition::of(object, name)
        .filter(|condition| condition.is_older_than(object))
        .map(|_| Health::new(HealthStatus::InProgress, format!("{name} is of an older generation")))
}

/// One line without control characters, of bounded length.
pub fn sentence(text: &str) -> String {
    short_line(text, REASON_LIMIT)
}

/// `1 replica`, `3 replicas`.
pub fn pluralize(count: i64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
