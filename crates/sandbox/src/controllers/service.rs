//! Load balancer addresses of Services and Ingresses.

use std::time::Duration;

use serde_json::{Value, json};

use super::controller_context::ControllerContext;
use super::{endpoints, label_lookup};
use crate::object;
use crate::store::StoreKey;
use crate::verbs::WriteCaller;

/// How long a load balancer takes to get its address.
const LOAD_BALANCER_DELAY: Duration = Duration::from_secs(2);

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, service: &Value) {
    if object::text(service, &["spec", "type"]) == Some("LoadBalancer") {
        assign_load_balancer(context, key, service);
    }
    if label_lookup::selector_of(service).is_some() {
        endpoints::reconcile(context, service);
    }
}

/// Gives an Ingress, or a Service of type LoadBalancer, its address.
pub(super) fn assign_load_balancer(context: &mut ControllerContext<'_>, key: &StoreKey, value: &Value) {
    if !object::list(value, &["status", "loadBalancer", "ingress"]).is_empty() {
        return;
    }
    let uid = object::uid(value).to_owned();
    let since = *context.memory.last_progress.entry(uid).or_insert(context.now);
    let ready = since + LOAD_BALANCER_DELAY.min(context.state.options.pod_start.1);
    if context.now < ready {
        return context.requeue_at(key, ready);
    }
    context.state.last_addresses.0 += 1;
    let address = format!("192.0.2.{}", context.state.last_addresses.0 % 250 + 1);
    let is_service = key.resource == "services";
    let caller = WriteCaller::with_manager("cloud-controller-manager");
    context.change_status(key, &caller, |status| {
        status["loadBalancer"] = if is_service {
            json!({"ingress": [{"ip": address, "ipMode": "VIP"}]})
        } else {
            json!({"ingress": [{"ip": address}]})
        };
    });
}
