//! CustomResourceDefinition, APIService, Namespace.

use serde_json::Value;

use super::json_fields::{StatusCondition, text};
use crate::model::{Health, HealthStatus};

pub fn definition(object: &Value) -> Health {
    if let Some(refused) = StatusCondition::of(object, "NamesAccepted").filter(|c| c.has_status("False")) {
        return Health::new(HealthStatus::Failed, refused.summary());
    }
    if let Some(loose) = StatusCondition::of(object, "NonStructuralSchema").filter(|c| c.has_status("True")) {
        return Health::new(HealthStatus::Failed, loose.summary());
    }
    match StatusCondition::of(object, "Established") {
        Some(established) if established.has_status("True") => Health::current(),
        Some(established) if established.has_status("False") && !established.has_reason("Installing") => {
            Health::new(HealthStatus::Failed, established.summary())
        }
        _ => Health::new(HealthStatus::InProgress, "not established yet"),
    }
}

pub fn api_service(object: &Value) -> Health {
    match StatusCondition::of(object, "Available") {
        Some(available) if available.has_status("True") => Health::current(),
        Some(available) => Health::new(HealthStatus::InProgress, available.summary()),
        None => Health::new(HealthStatus::InProgress, "no status yet"),
    }
}

pub fn namespace(object: &Value) -> Health {
    if text(object, "/status/phase") == Some("Terminating") {
        return Health::new(HealthStatus::Terminating, "being deleted");
    }
    Health::current()
}
