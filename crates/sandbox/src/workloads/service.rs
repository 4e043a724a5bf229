//! Load balancer addresses of Services and Ingresses.

use std::time::Duration;

use serde_json::{Value, json};

use super::context::Context;
use super::endpoints;
use crate::object;
use crate::store::Key;
use crate::verbs::Caller;

/// How long a load balancer takes to get its address.
const BALANCER_TAKES: Duration = Duration::from_secs(2);

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, service: &Value) {
    if object::text(service, &["spec", "type"]) == Some("LoadBalancer") {
        balance(context, key, service);
    }
    if selector_of(service).is_some() {
        endpoints::reconcile(context, service);
    }
}

/// The selector of a service that has endpoints by pods.
pub(super) fn selector_of(service: &Value) -> Option<&Value> {
    let selector = object::at(service, &["spec", "selector"])?;
    let says_nothing = selector.as_object().is_none_or(serde_json::Map::is_empty);
    let is_elsewhere = object::text(service, &["spec", "type"]) == Some("ExternalName");
    (!says_nothing && !is_elsewhere).then_some(selector)
}

/// Gives an Ingress, or a Service of type LoadBalancer, its address.
pub(super) fn balance(context: &mut Context<'_>, key: &Key, value: &Value) {
    if !object::list(value, &["status", "loadBalancer", "ingress"]).is_empty() {
        return;
    }
    let uid = object::uid(value).to_owned();
    let since = *context.memory.progress.entry(uid).or_insert(context.now);
    let ready = since + BALANCER_TAKES.min(context.state.options.pod_start.1);
    if context.now < ready {
        return context.again_at(key, ready);
    }
    context.state.addresses.0 += 1;
    let address = format!("192.0.2.{}", context.state.addresses.0 % 250 + 1);
    let is_service = key.resource == "services";
    let caller = Caller::named("cloud-controller-manager");
    context.change_status(key, &caller, |status| {
        status["loadBalancer"] = if is_service {
            json!({"ingress": [{"ip": address, "ipMode": "VIP"}]})
        } else {
            json!({"ingress": [{"ip": address}]})
        };
    });
}
