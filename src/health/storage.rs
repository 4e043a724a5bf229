//! PersistentVolumeClaim and PersistentVolume.

use serde_json::Value;

use super::json_fields::{StatusCondition, sentence, text};
use crate::model::{Health, HealthStatus};

pub fn claim(object: &Value) -> Health {
    match text(object, "/status/phase") {
        Some("Bound") => match StatusCondition::of(object, "Resizing").filter(|c| c.has_status("True")) {
            Some(resizing) => Health::new(HealthStatus::InProgress, resizing.summary()),
            None => Health::current(),
        },
        Some("Lost") => Health::new(HealthStatus::Failed, "its volume is lost"),
        // Also for a claim whose class waits for the first pod, which may come later: so nothing waits for claims.
        // The class is not part of the claim; the controller reads it if no running pod uses the claim.
        Some(phase) => Health::new(HealthStatus::InProgress, sentence(&format!("{phase}, not bound"))),
        None => Health::new(HealthStatus::InProgress, "no status yet"),
    }
}

/// The storage class of an unbound claim for which no pod has selected a node.
pub fn unbound_class(object: &Value) -> Option<&str> {
    // The cheapest check first: every watch event is checked here.
    if object["kind"] != "PersistentVolumeClaim" || object["apiVersion"] != "v1" {
        return None;
    }
    // The scheduler writes it with the first pod that uses the claim.
    let is_chosen = object.pointer("/metadata/annotations/volume.kubernetes.io~1selected-node").is_some();
    let is_unbound =
        text(object, "/status/phase") == Some("Pending") && text(object, "/spec/volumeName").is_none();
    text(object, "/spec/storageClassName").filter(|_| is_unbound && !is_chosen)
}

pub fn volume(object: &Value) -> Health {
    match text(object, "/status/phase") {
        Some("Available" | "Bound" | "Released") => Health::current(),
        Some("Failed") => {
            let words = text(object, "/status/message").or_else(|| text(object, "/status/reason"));
            Health::new(HealthStatus::Failed, sentence(words.unwrap_or("reclaiming it failed")))
        }
        Some(phase) => Health::new(HealthStatus::InProgress, sentence(phase)),
        None => Health::new(HealthStatus::InProgress, "no status yet"),
    }
}
