//! Workloads with progressive delivery inside a cluster: `Rollout` of Argo Rollouts, `Canary` of Flagger.
//!
//! Each counts as one member of a wave and is Current after its last step. A pause between steps is InProgress; only
//! `spec.paused`, which a person sets, is Suspended.

use serde_json::Value;

use super::generic;
use super::json_fields::{is_true, items, outdated_status, sentence, text};
use crate::model::{Health, HealthStatus};

/// `argoproj.io` Rollout. Versions before 1.0 have no phase.
pub fn rollout(object: &Value) -> Health {
    if let Some(old) = outdated_status(object, false) {
        return old;
    }
    let message = || text(object, "/status/message").map(sentence).filter(|words| !words.is_empty());
    let with =
        |words: &str| message().map_or_else(|| words.to_owned(), |message| format!("{words}: {message}"));
    if is_true(object, "/spec/paused") {
        return Health::new(HealthStatus::Suspended, "the rollout is paused".to_owned());
    }
    if !items(object, "/status/pauseConditions").is_empty() {
        let step = object.pointer("/status/currentStepIndex").and_then(Value::as_i64);
        let words = step.map_or_else(|| "paused".to_owned(), |step| format!("paused at step {step}"));
        return Health::new(HealthStatus::InProgress, with(&words));
    }
    match text(object, "/status/phase") {
        Some("Healthy") => Health::current(),
        Some("Degraded") => Health::new(HealthStatus::Failed, with("Degraded")),
        Some(phase) => Health::new(HealthStatus::InProgress, with(&sentence(phase))),
        None => generic::health(object),
    }
}

/// `flagger.app` Canary.
pub fn canary(object: &Value) -> Health {
    let phase = text(object, "/status/phase").unwrap_or_default();
    match phase {
        "Initialized" | "Succeeded" => Health::current(),
        "Failed" => {
            let conditions = items(object, "/status/conditions");
            let message = conditions.iter().find_map(|condition| text(condition, "/message"));
            let words = message
                .map_or_else(|| "Failed".to_owned(), |message| format!("Failed: {}", sentence(message)));
            Health::new(HealthStatus::Failed, words)
        }
        "Terminating" | "Terminated" => Health::new(HealthStatus::Terminating, phase.to_owned()),
        "" => Health::new(HealthStatus::InProgress, "Flagger has not processed it yet".to_owned()),
        phase => Health::new(HealthStatus::InProgress, sentence(phase)),
    }
}
