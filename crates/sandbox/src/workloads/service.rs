//! Services: the endpoints behind them, and the addresses of load balancers.

use std::time::Duration;

use serde_json::{Value, json};

use super::context::{Context, key_of};
use super::pods;
use crate::cluster::State;
use crate::object;
use crate::selectors::LabelSelector;
use crate::store::{Key, Object};
use crate::verbs::Caller;

/// How long a load balancer takes to get its address.
const BALANCER_TAKES: Duration = Duration::from_secs(2);

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, service: &Value) {
    if object::text(service, &["spec", "type"]) == Some("LoadBalancer") {
        balance(context, key, service);
    }
    if object::at(service, &["spec", "selector"]).is_some() {
        write_slice(context, service);
    }
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
    let caller = Caller::named("cloud-controller-manager");
    context.change_status(key, &caller, |status| {
        status["loadBalancer"] = json!({"ingress": [{"ip": address}]});
    });
}

/// The services whose selector finds a pod.
pub(super) fn of_pod(state: &State, pod: &Value) -> Vec<Key> {
    let namespace = object::namespace(pod);
    state
        .store
        .list("services", Some(namespace))
        .filter(|service| {
            object::at(service, &["spec", "selector"])
                .is_some_and(|selector| LabelSelector::of_map(selector).matches(pod))
        })
        .map(|service| key_of("services", service))
        .collect()
}

/// One slice for each service. It copies the service's labels, as the real controller does.
fn write_slice(context: &mut Context<'_>, service: &Value) {
    let namespace = object::namespace(service).to_owned();
    let selector = LabelSelector::of_map(&service["spec"]["selector"]);
    let mut found: Vec<Object> = context
        .state
        .store
        .list("pods", Some(&namespace))
        .filter(|pod| selector.matches(pod) && pods::is_active(pod))
        .filter(|pod| object::at(pod, &["status", "podIP"]).is_some())
        .cloned()
        .collect();
    found.sort_by(|left, right| object::name(left).cmp(object::name(right)));
    let endpoints: Vec<Value> = found.iter().map(|pod| endpoint(pod)).collect();
    let ports: Vec<Value> = object::list(service, &["spec", "ports"]).iter().map(slice_port).collect();
    let mut labels = object::at(service, &["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    labels["kubernetes.io/service-name"] = json!(object::name(service));
    labels["endpointslice.kubernetes.io/managed-by"] = json!("endpointslice-controller.k8s.io");
    let present = context.owned(service, "endpointslices.discovery.k8s.io");
    let Some(slice) = present.first() else {
        let slice = json!({
            "metadata": {"generateName": format!("{}-", object::name(service)), "labels": labels,
                "ownerReferences": [object::controller_reference(service, "v1", "Service")]},
            "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
        });
        context.create("endpointslices.discovery.k8s.io", &namespace, slice);
        return;
    };
    let key = key_of("endpointslices.discovery.k8s.io", slice);
    context.change(&key, |slice| {
        slice["metadata"]["labels"] = labels;
        slice["endpoints"] = json!(endpoints);
        slice["ports"] = json!(ports);
    });
}

fn endpoint(pod: &Value) -> Value {
    let ready = pods::is_ready(pod);
    json!({
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": ready, "serving": ready, "terminating": false},
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {"kind": "Pod", "name": object::name(pod), "namespace": object::namespace(pod),
            "uid": object::uid(pod)},
    })
}

fn slice_port(port: &Value) -> Value {
    let number = port["targetPort"].as_i64().unwrap_or_else(|| object::integer(port, &["port"]));
    json!({"name": port["name"].as_str().unwrap_or(""), "protocol": port["protocol"], "port": number})
}
