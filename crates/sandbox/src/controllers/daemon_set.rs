//! DaemonSets: one pod on every node.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::controller_condition::set_counter;
use super::controller_context::{ControllerContext, key_of};
use super::event_component::EventComponent;
use super::{controller_revision, pods, rolling_limits, scheduler};
use crate::object;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs::{RequestDeleteOptions, WriteCaller};

/// Its pods by node, those that are being ended too.
type PodsByNode = BTreeMap<String, Vec<ParsedObject>>;

struct DaemonSetUpdate<'s> {
    value: &'s Value,
    nodes: Vec<String>,
    hash: String,
    min_ready: Duration,
}

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, value: &Value) {
    let update = controller_revision::ensure_current(context, value, "DaemonSet", controller_revision::LABEL);
    let set = DaemonSetUpdate {
        value,
        nodes: nodes_for(context, value),
        hash: controller_revision::hash_of(&update),
        min_ready: object::seconds(value, &["spec", "minReadySeconds"]),
    };
    if !object::is_deleting(value) {
        let found = pods_by_node(context, value);
        let (mut doomed, mut lacking) = one_pod_per_node(&set, &found);
        if doomed.is_empty() && lacking.is_empty() {
            (doomed, lacking) = replace_outdated(context, &set, &found);
        }
        let failed = lacking.iter().any(|node| !create(context, &set, node));
        for pod in &doomed {
            context.delete(&key_of("pods", pod), &RequestDeleteOptions::default());
            let message = format!("Deleted pod: {}", object::name(pod));
            context.event(value, EventComponent::DaemonSet, "Normal", "SuccessfulDelete", &message);
        }
        if failed {
            context.retry_with_backoff(key);
        }
    }
    write_status(context, key, &set);
    let used: Vec<String> = context
        .owned(value, "pods")
        .iter()
        .map(|pod| label(pod, controller_revision::LABEL).to_owned())
        .collect();
    let present = set.hash;
    controller_revision::clean_up(context, value, |one| {
        let hash = controller_revision::hash_of(one);
        hash == present || used.contains(&hash)
    });
}

/// The nodes that the template selects.
fn nodes_for(context: &ControllerContext<'_>, set: &Value) -> Vec<String> {
    let wanted =
        object::value_at(set, &["spec", "template", "spec", "nodeSelector"]).and_then(Value::as_object);
    context
        .state
        .store
        .list("nodes", None)
        .filter(|node| {
            wanted
                .into_iter()
                .flatten()
                .all(|(label, value)| node["metadata"]["labels"].get(label) == Some(value))
        })
        .map(|node| object::name(node).to_owned())
        .collect()
}

fn node_of(pod: &Value) -> &str {
    object::text(pod, &["spec", "nodeName"]).or_else(|| scheduler::pinned_node(pod)).unwrap_or("")
}

fn pods_by_node(context: &ControllerContext<'_>, set: &Value) -> PodsByNode {
    let mut found = PodsByNode::new();
    for pod in context.owned(set, "pods") {
        found.entry(node_of(&pod).to_owned()).or_default().push(pod);
    }
    found
}

fn label<'p>(pod: &'p Value, name: &str) -> &'p str {
    object::text(pod, &["metadata", "labels", name]).unwrap_or("")
}

fn is_updated(pod: &Value, set: &DaemonSetUpdate<'_>) -> bool {
    label(pod, controller_revision::LABEL) == set.hash
}

/// Pods that must go, and nodes that lack one, without regard to templates.
fn one_pod_per_node(set: &DaemonSetUpdate<'_>, found: &PodsByNode) -> (Vec<ParsedObject>, Vec<String>) {
    let (mut doomed, mut lacking) = (Vec::new(), Vec::new());
    let surges = surge(set, set.nodes.len() as i64) > 0;
    for node in &set.nodes {
        let here = found.get(node).map_or(&[][..], Vec::as_slice);
        let mut alive: Vec<&ParsedObject> = Vec::new();
        for pod in here.iter().filter(|pod| !object::is_deleting(pod)) {
            if pods::is_finished(pod) { doomed.push(pod.clone()) } else { alive.push(pod) }
        }
        if here.is_empty() || (surges && alive.is_empty() && doomed.is_empty()) {
            lacking.push(node.clone());
        }
        if !surges {
            doomed.extend(alive.iter().skip(1).map(|pod| (*pod).clone()));
        }
    }
    for (_, pods) in found.iter().filter(|(node, _)| !set.nodes.contains(node)) {
        doomed.extend(pods.iter().filter(|pod| !object::is_deleting(pod)).cloned());
    }
    (doomed, lacking)
}

fn rolling_limit(set: &DaemonSetUpdate<'_>, field: &str, default: i64, nodes: i64) -> i64 {
    object::value_at(set.value, &["spec", "updateStrategy", "rollingUpdate", field])
        .map_or(default, |value| rolling_limits::resolve(value, nodes, true))
}

fn surge(set: &DaemonSetUpdate<'_>, nodes: i64) -> i64 {
    rolling_limit(set, "maxSurge", 0, nodes)
}

/// Replaces pods of an old template: in place, as many at once as may be unavailable, or beside the
/// old ones, as many at once as may be too many.
fn replace_outdated(
    context: &ControllerContext<'_>,
    set: &DaemonSetUpdate<'_>,
    found: &PodsByNode,
) -> (Vec<ParsedObject>, Vec<String>) {
    let nothing = (Vec::new(), Vec::new());
    if object::text(set.value, &["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return nothing;
    }
    let nodes = set.nodes.len() as i64;
    let most_surge = surge(set, nodes);
    let mut room =
        if most_surge > 0 { most_surge } else { rolling_limit(set, "maxUnavailable", 1, nodes).max(1) };
    let (mut ill, mut candidates) = (Vec::new(), Vec::new());
    let mut done = Vec::new();
    for (node, here) in found {
        let alive: Vec<&ParsedObject> = here.iter().filter(|pod| !object::is_deleting(pod)).collect();
        let new = alive.iter().find(|pod| is_updated(pod, set));
        let old = alive.iter().find(|pod| !is_updated(pod, set));
        match (new, old) {
            (Some(new), Some(old)) if most_surge > 0 => {
                if pods::is_available(context, new, set.min_ready) {
                    done.push((*old).clone())
                } else {
                    room -= 1
                }
            }
            (Some(new), None) => {
                room -= i64::from(most_surge == 0 && !pods::is_available(context, new, set.min_ready))
            }
            (None, Some(old)) if pods::is_available(context, old, set.min_ready) => {
                candidates.push((node, (*old).clone()))
            }
            (None, Some(old)) => {
                ill.push((node, (*old).clone()));
                room -= i64::from(most_surge == 0);
            }
            _ => room -= i64::from(most_surge == 0),
        }
    }
    candidates.truncate(room.max(0) as usize);
    let chosen = ill.into_iter().chain(candidates);
    if most_surge > 0 {
        return (done, chosen.map(|(node, _)| node.clone()).collect());
    }
    (chosen.map(|(_, pod)| pod).collect(), Vec::new())
}

const TOLERATED: &[(&str, &str)] = &[
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
];

/// Creates a pod for one node, with the tolerations of a DaemonSet; true on success.
fn create(context: &mut ControllerContext<'_>, set: &DaemonSetUpdate<'_>, node: &str) -> bool {
    let mut pod = pods::from_template(set.value, "apps/v1", "DaemonSet");
    object::set(&mut pod, &["metadata", "labels", controller_revision::LABEL], set.hash.as_str());
    let generation = object::annotation(set.value, crate::defaults::TEMPLATE_GENERATION).unwrap_or("1");
    object::set(&mut pod, &["metadata", "labels", "pod-template-generation"], generation);
    object::set(
        &mut pod,
        &["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"],
        json!({"nodeSelectorTerms": [{"matchFields":
            [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}),
    );
    let mut tolerations = object::list(&pod, &["spec", "tolerations"]).to_vec();
    for (taint, effect) in TOLERATED {
        tolerations.push(json!({"key": format!("node.kubernetes.io/{taint}"), "operator": "Exists",
            "effect": effect}));
    }
    pod["spec"]["tolerations"] = json!(tolerations);
    pods::create(context, set.value, "DaemonSet", pod).is_ok()
}

fn write_status(context: &mut ControllerContext<'_>, key: &StoreKey, set: &DaemonSetUpdate<'_>) {
    let found = pods_by_node(context, set.value);
    // the oldest pod of a node speaks for it
    let speakers: Vec<ParsedObject> = set
        .nodes
        .iter()
        .filter_map(|node| {
            found.get(node)?.iter().min_by_key(|pod| {
                (object::text(pod, &["metadata", "creationTimestamp"]).unwrap_or(""), object::revision(pod))
            })
        })
        .cloned()
        .collect();
    let ready = speakers.iter().filter(|pod| pods::is_ready(pod)).count();
    let updated = speakers.iter().filter(|pod| is_updated(pod, set)).count() as i64;
    let available = pods::count_available(context, key, &speakers, set.min_ready);
    let misscheduled = found.keys().filter(|node| !set.nodes.contains(node)).count();
    let desired = set.nodes.len() as i64;
    let generation = object::generation(set.value);
    context.change_status(key, &WriteCaller::controller(), |status| {
        status["currentNumberScheduled"] = json!(speakers.len());
        status["desiredNumberScheduled"] = json!(desired);
        status["numberMisscheduled"] = json!(misscheduled);
        status["numberReady"] = json!(ready);
        set_counter(status, "numberAvailable", available);
        set_counter(status, "numberUnavailable", desired - available);
        set_counter(status, "updatedNumberScheduled", updated);
        status["observedGeneration"] = json!(generation);
    });
}
