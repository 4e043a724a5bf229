//! Endpoints and EndpointSlices of services.

use serde_json::{Value, json};

use super::controller_context::{ControllerContext, key_of};
use super::{label_lookup, pods};
use crate::object;
use crate::selectors::LabelSelector;
use crate::store::{NamespacedName, ParsedObject, StoreKey};

const SLICES: &str = "endpointslices.discovery.k8s.io";
const ENDPOINTS: &str = "endpoints";
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const NAME: &str = "kubernetes.io/service-name";
const SLICE_MANAGER: &str = "endpointslice.kubernetes.io/managed-by";
const ENDPOINTS_MANAGER: &str = "endpoints.kubernetes.io/managed-by";
/// One slice holds so many addresses.
const MOST_IN_SLICE: usize = 100;

pub(super) fn reconcile(context: &mut ControllerContext<'_>, service: &Value) {
    let selector = LabelSelector::of_map(&service["spec"]["selector"]);
    let mut found = label_lookup::pods_selected_by(context.state, object::namespace(service), &selector);
    found.retain(|pod| !pods::is_finished(pod) && object::value_at(pod, &["status", "podIP"]).is_some());
    found.sort_by(|left, right| object::name(left).cmp(object::name(right)));
    let trigger = last_change(context, service, &found);
    write_slices(context, service, &found, trigger.as_deref());
    write_endpoints(context, service, &found, trigger.as_deref());
}

/// When the last pod became ready, or the service was created; a removed pod sets no time.
fn last_change(context: &ControllerContext<'_>, service: &Value, found: &[ParsedObject]) -> Option<String> {
    let known = context.owned(service, SLICES);
    let listed: usize = known.iter().map(|slice| object::list(slice, &["endpoints"]).len()).sum();
    if listed > found.iter().filter(|pod| !object::is_deleting(pod)).count() {
        return None;
    }
    let ready = found
        .iter()
        .filter_map(|pod| object::condition(pod, "Ready").and_then(|one| one["lastTransitionTime"].as_str()));
    let made = object::text(service, &["metadata", "creationTimestamp"]);
    ready.chain(made).max().map(str::to_owned)
}

fn write_slices(
    context: &mut ControllerContext<'_>,
    service: &Value,
    found: &[ParsedObject],
    trigger: Option<&str>,
) {
    let namespace = object::namespace(service).to_owned();
    let known = context.owned(service, SLICES);
    let mut labels = object::value_at(service, &["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    labels[NAME] = json!(object::name(service));
    labels[SLICE_MANAGER] = json!("endpointslice-controller.k8s.io");
    if object::text(service, &["spec", "clusterIP"]) == Some("None") {
        labels["service.kubernetes.io/headless"] = json!("");
    }
    let mut chunks: Vec<&[ParsedObject]> = found.chunks(MOST_IN_SLICE).collect();
    if chunks.is_empty() {
        chunks.push(&[]);
    }
    for (number, chunk) in chunks.iter().enumerate() {
        let endpoints: Vec<Value> = chunk.iter().map(|pod| endpoint(context, service, pod)).collect();
        let ports: Vec<Value> = chunk.first().map_or_else(Vec::new, |pod| {
            service_ports(service).filter_map(|port| slice_port(port, pod)).collect()
        });
        let Some(slice) = known.get(number) else {
            let mut slice = json!({
                "metadata": {"generateName": format!("{}-", object::name(service)), "labels": labels,
                    "ownerReferences": [object::controller_reference(service, "v1", "Service")]},
                "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
            });
            if let Some(trigger) = trigger {
                object::set(&mut slice, &["metadata", "annotations", TRIGGER], trigger);
            }
            context.create(SLICES, &namespace, slice);
            continue;
        };
        let same = slice["endpoints"].as_array().map_or(&[][..], Vec::as_slice) == endpoints
            && slice["ports"].as_array().map_or(&[][..], Vec::as_slice) == ports
            && slice["metadata"]["labels"] == labels;
        if !same {
            context.change(&key_of(SLICES, slice), |slice| {
                slice["metadata"]["labels"] = labels.clone();
                slice["endpoints"] = json!(endpoints);
                slice["ports"] = json!(ports);
                note_trigger(slice, trigger);
            });
        }
    }
    for slice in known.iter().skip(chunks.len()) {
        context.delete(&key_of(SLICES, slice), &crate::verbs::RequestDeleteOptions::default());
    }
}

fn note_trigger(object: &mut Value, trigger: Option<&str>) {
    if let Some(trigger) = trigger {
        return object::set(object, &["metadata", "annotations", TRIGGER], trigger);
    }
    if let Some(annotations) = object["metadata"].get_mut("annotations") {
        object::take(annotations, &[TRIGGER]);
        if annotations.as_object().is_some_and(serde_json::Map::is_empty) {
            object::take(object, &["metadata", "annotations"]);
        }
    }
}

fn reference(pod: &Value) -> Value {
    json!({"kind": "Pod", "namespace": object::namespace(pod), "name": object::name(pod),
        "uid": object::uid(pod)})
}

fn endpoint(context: &ControllerContext<'_>, service: &Value, pod: &Value) -> Value {
    let (ready, ending) = (pods::is_ready(pod), object::is_deleting(pod));
    let published = service["spec"]["publishNotReadyAddresses"] == true;
    let node = object::text(pod, &["spec", "nodeName"]).unwrap_or("");
    let mut endpoint = json!({
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": published || (ready && !ending), "serving": ready, "terminating": ending},
        "targetRef": reference(pod),
        "nodeName": node,
    });
    let key = StoreKey { resource: "nodes".to_owned(), name: NamespacedName::new("", node) };
    let zone = context.state.store.object_at(&key);
    if let Some(zone) = zone.and_then(|node| node["metadata"]["labels"].get("topology.kubernetes.io/zone")) {
        endpoint["zone"] = zone.clone();
    }
    let subdomain = object::text(pod, &["spec", "subdomain"]);
    if subdomain == Some(object::name(service))
        && let Some(hostname) = object::text(pod, &["spec", "hostname"])
    {
        endpoint["hostname"] = json!(hostname);
    }
    endpoint
}

fn service_ports(service: &Value) -> impl Iterator<Item = &Value> {
    object::list(service, &["spec", "ports"]).iter()
}

/// A name as the target is looked up in the pod; a pod without it has no such port.
fn target_port(port: &Value, pod: &Value) -> Option<i64> {
    let Some(name) = port["targetPort"].as_str() else {
        return Some(port["targetPort"].as_i64().unwrap_or_else(|| object::integer(port, &["port"])));
    };
    object::list(pod, &["spec", "containers"])
        .iter()
        .flat_map(|container| object::list(container, &["ports"]))
        .find(|one| one["name"] == name && one["protocol"] == port["protocol"])?["containerPort"]
        .as_i64()
}

fn slice_port(port: &Value, pod: &Value) -> Option<Value> {
    let number = target_port(port, pod)?;
    let mut made = json!({"name": port["name"].as_str().unwrap_or(""), "protocol": port["protocol"],
        "port": number});
    if let Some(protocol) = port.get("appProtocol") {
        made["appProtocol"] = protocol.clone();
    }
    Some(made)
}

/// The older form: one object of the service's name.
fn write_endpoints(
    context: &mut ControllerContext<'_>,
    service: &Value,
    found: &[ParsedObject],
    trigger: Option<&str>,
) {
    let namespace = object::namespace(service).to_owned();
    let mut labels = object::value_at(service, &["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    labels[ENDPOINTS_MANAGER] = json!("endpoint-controller");
    if object::text(service, &["spec", "clusterIP"]) == Some("None") {
        labels["service.kubernetes.io/headless"] = json!("");
    }
    let published = service["spec"]["publishNotReadyAddresses"] == true;
    let (mut ready, mut unready, mut ports) = (Vec::new(), Vec::new(), Vec::new());
    for pod in found.iter().filter(|pod| !object::is_deleting(pod)) {
        let address = json!({"ip": pod["status"]["podIP"], "nodeName": pod["spec"]["nodeName"],
            "targetRef": reference(pod)});
        if published || pods::is_ready(pod) {
            ready.push(address)
        } else {
            unready.push(address)
        }
        ports = service_ports(service).filter_map(|port| endpoints_port(port, pod)).collect();
    }
    let mut subset = json!({});
    for (field, addresses) in [("addresses", ready), ("notReadyAddresses", unready)] {
        if !addresses.is_empty() {
            subset[field] = json!(addresses);
        }
    }
    let subsets = if subset.as_object().is_some_and(serde_json::Map::is_empty) {
        None
    } else {
        subset["ports"] = json!(ports);
        Some(json!([subset]))
    };
    let key = StoreKey {
        resource: ENDPOINTS.to_owned(),
        name: NamespacedName::new(&namespace, object::name(service)),
    };
    let Some(live) = context.state.store.object_at(&key).cloned() else {
        let mut made = json!({"metadata": {"name": object::name(service), "labels": labels}});
        if let Some(subsets) = subsets {
            made["subsets"] = subsets;
        }
        note_trigger(&mut made, trigger);
        context.create(ENDPOINTS, &namespace, made);
        return;
    };
    if live.get("subsets") == subsets.as_ref() && live["metadata"]["labels"] == labels {
        return;
    }
    context.change(&key, |live| {
        live["metadata"]["labels"] = labels;
        match subsets {
            Some(subsets) => live["subsets"] = subsets,
            None => _ = object::take(live, &["subsets"]),
        }
        note_trigger(live, trigger);
    });
}

fn endpoints_port(port: &Value, pod: &Value) -> Option<Value> {
    let mut made = json!({"port": target_port(port, pod)?, "protocol": port["protocol"]});
    if let Some(name) = port["name"].as_str().filter(|name| !name.is_empty()) {
        made["name"] = json!(name);
    }
    Some(made)
}

/// The older form has no owner; it goes with its service.
pub(super) fn forget(context: &mut ControllerContext<'_>, service: &StoreKey) {
    let key = StoreKey { resource: ENDPOINTS.to_owned(), name: service.name.clone() };
    let ours = context.state.store.object_at(&key).is_some_and(|endpoints| {
        object::text(endpoints, &["metadata", "labels", ENDPOINTS_MANAGER]) == Some("endpoint-controller")
    });
    if ours {
        context.delete(&key, &crate::verbs::RequestDeleteOptions::default());
    }
}
