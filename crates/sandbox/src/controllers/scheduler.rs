//! The scheduler: assigns a node to every pod, or records why no node fits.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::controller_condition::ControllerCondition;
use super::controller_context::ControllerContext;
use super::event_component::EventComponent;
use super::pod_failure::PodFailure;
use super::resource_requests;
use crate::object;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs::WriteCaller;

/// A pod that fits nowhere is tried again after this long.
const TRY_AGAIN: Duration = Duration::from_secs(300);
const ZONE_LABELS: &[&str] = &["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Schedules a pod; true when it has a node.
pub(super) fn schedule_pod(context: &mut ControllerContext<'_>, key: &StoreKey, pod: &Value) -> bool {
    if object::text(pod, &["spec", "schedulerName"]).is_some_and(|name| name != "default-scheduler") {
        // left to a scheduler that is not here
        return false;
    }
    if !object::list(pod, &["spec", "schedulingGates"]).is_empty() {
        return false;
    }
    let nodes: Vec<ParsedObject> = context.state.store.list("nodes", None).cloned().collect();
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    let mut fitting = Vec::new();
    for node in &nodes {
        match rejection_reason(pod, node) {
            Some(why) => *refusals.entry(why).or_default() += 1,
            None => fitting.push(node),
        }
    }
    let chosen = context.state.seed.below(fitting.len() as u64) as usize;
    match fitting.get(chosen) {
        Some(node) => bind(context, key, node),
        None => mark_unschedulable(context, key, nodes.len(), &refusals),
    }
    !fitting.is_empty()
}

fn rejection_reason(pod: &Value, node: &Value) -> Option<String> {
    if PodFailure::of(pod) == Some(PodFailure::Unschedulable) {
        return Some("Insufficient cpu".to_owned());
    }
    let labels = &node["metadata"]["labels"];
    let wanted = object::value_at(pod, &["spec", "nodeSelector"]).and_then(Value::as_object);
    let pinned = pinned_node(pod);
    let elsewhere = wanted.into_iter().flatten().any(|(label, value)| labels.get(label) != Some(value))
        || pinned.is_some_and(|pinned| pinned != object::name(node));
    if elsewhere {
        return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    if node["spec"]["unschedulable"] == true && pinned.is_none() {
        return Some("node(s) were unschedulable".to_owned());
    }
    ["cpu", "memory"]
        .into_iter()
        .find(|resource| {
            let room = resource_requests::thousandths(&node["status"]["allocatable"][*resource])
                .unwrap_or(i128::MAX);
            resource_requests::requested_by_pod(pod, "requests", resource).is_some_and(|asked| asked > room)
        })
        .map(|resource| format!("Insufficient {resource}"))
}

/// The node that a DaemonSet's pod is made for.
pub(super) fn pinned_node(pod: &Value) -> Option<&str> {
    pod.pointer(
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0",
    )?
    .as_str()
}

/// A binding belongs to no manager, as the server writes it.
fn bind(context: &mut ControllerContext<'_>, key: &StoreKey, node: &ParsedObject) {
    let Some(pod) = context.state.store.object_at(key).cloned() else { return };
    let now = context.state.clock.timestamp();
    let mut bound = (*pod).clone();
    for label in ZONE_LABELS {
        if let Some(zone) = node["metadata"]["labels"].get(label) {
            object::set(&mut bound, &["metadata", "labels", label], zone.clone());
        }
    }
    object::set(&mut bound, &["spec", "nodeName"], object::name(node));
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": now});
    object::set(&mut bound, &["status", "conditions"], json!([scheduled]));
    let bound = context.state.store.put("pods", bound);
    let message = format!(
        "Successfully assigned {}/{} to {}",
        object::namespace(&bound),
        object::name(&bound),
        object::name(node)
    );
    context.event(&bound, EventComponent::Scheduler, "Normal", "Scheduled", &message);
}

fn mark_unschedulable(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    nodes: usize,
    refusals: &BTreeMap<String, usize>,
) {
    let Some(pod) = context.state.store.object_at(key).cloned() else { return };
    let last_try = context.memory.failed_scheduling.get(object::uid(&pod)).copied();
    if last_try.is_some_and(|last| context.now < last + TRY_AGAIN) {
        return;
    }
    context.memory.failed_scheduling.insert(object::uid(&pod).to_owned(), context.now);
    let mut why: Vec<String> = refusals.iter().map(|(why, count)| format!("{count} {why}")).collect();
    why.sort();
    let message = if nodes == 0 {
        "no nodes available to schedule pods".to_owned()
    } else {
        format!(
            "0/{nodes} nodes are available: {}. no new claims to deallocate, preemption: 0/{nodes} nodes are available: {nodes} Preemption is not helpful for scheduling.",
            why.join(", ")
        )
    };
    let now = context.state.clock.timestamp();
    let generation = object::generation(&pod);
    context.change_status(key, &WriteCaller::scheduler(), |status| {
        ControllerCondition {
            kind: "PodScheduled",
            is_true: false,
            reason: "Unschedulable",
            message: &message,
        }
        .write_if_changed(status, &now);
        let conditions = status["conditions"].as_array_mut();
        for condition in conditions.into_iter().flatten().filter(|one| one["type"] == "PodScheduled") {
            condition["observedGeneration"] = json!(generation);
        }
    });
    context.event(&pod, EventComponent::Scheduler, "Warning", "FailedScheduling", &message);
    context.requeue_after(key, TRY_AGAIN);
}
