//! Service. An Ingress is Current at once: with several controllers its status is often never written.

use serde_json::Value;

use super::json_fields::{items, text};
use crate::model::{Health, HealthStatus};

pub fn service(object: &Value) -> Health {
    if text(object, "/spec/type") != Some("LoadBalancer") {
        return Health::current();
    }
    match items(object, "/status/loadBalancer/ingress").len() {
        0 => Health::new(HealthStatus::InProgress, "0 load balancer addresses"),
        _ => Health::current(),
    }
}
