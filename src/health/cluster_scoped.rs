//! CustomResourceDefinition, APIService, Namespace.

use serde_json::Value;

use super::read::{Condition, text};
use crate::model::{Health, Status};

pub fn definition(object: &Value) -> Health {
    if let Some(refused) = Condition::of(object, "NamesAccepted").filter(|c| c.is("False")) {
        return Health::new(Status::Failed, refused.words());
    }
    if let Some(loose) = Condition::of(object, "NonStructuralSchema").filter(|c| c.is("True")) {
        return Health::new(Status::Failed, loose.words());
    }
    match Condition::of(object, "Established") {
        Some(established) if established.is("True") => Health::current(),
        Some(established) if established.is("False") && !established.has_reason("Installing") => {
            Health::new(Status::Failed, established.words())
        }
        _ => Health::new(Status::InProgress, "not established yet"),
    }
}

pub fn api_service(object: &Value) -> Health {
    match Condition::of(object, "Available") {
        Some(available) if available.is("True") => Health::current(),
        Some(available) => Health::new(Status::InProgress, available.words()),
        None => Health::new(Status::InProgress, "no status yet"),
    }
}

pub fn namespace(object: &Value) -> Health {
    if text(object, "/status/phase") == Some("Terminating") {
        return Health::new(Status::Terminating, "being deleted");
    }
    Health::current()
}
