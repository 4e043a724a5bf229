//! The ReplicaSet controller.

use serde_json::{Value, json};

use super::controller_condition::{self, set_counter};
use super::controller_context::{ControllerContext, key_of};
use super::event_component::EventComponent;
use super::pods;
use crate::object;
use crate::selectors::LabelSelector;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs::{RequestDeleteOptions, WriteCaller};

/// No more pods than this are made or deleted in one look; what they cause calls again for the rest.
const MAX_CHANGES: usize = 500;

/// The failure in the `ReplicaFailure` condition.
struct ReplicaFailure {
    reason: &'static str,
    message: String,
}

/// The status counts the pods from before this reconcile, as the real controller's does. Pods that it creates or
/// deletes now appear in the next one.
pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, set: &Value) {
    let found = context.owned(set, "pods");
    let active: Vec<ParsedObject> = found.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
    let ending = found.iter().filter(|pod| object::is_deleting(pod) && !pods::is_finished(pod)).count();
    let failure = if object::is_deleting(set) { None } else { scale_pods(context, key, set, &active) };
    write_status(context, key, set, &active, ending, failure);
}

fn scale_pods(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    set: &Value,
    active: &[ParsedObject],
) -> Option<ReplicaFailure> {
    let wanted = object::integer(set, &["spec", "replicas"]).max(0) as usize;
    for _ in 0..wanted.saturating_sub(active.len()).min(MAX_CHANGES) {
        if let Err(error) =
            pods::create(context, set, "ReplicaSet", pods::from_template(set, "apps/v1", "ReplicaSet"))
        {
            context.retry_with_backoff(key);
            return Some(ReplicaFailure { reason: "FailedCreate", message: error.to_string() });
        }
    }
    for pod in surplus_pods(context, set, active, wanted) {
        context.delete(&key_of("pods", &pod), &RequestDeleteOptions::default());
        let message = format!("Deleted pod: {}", object::name(&pod));
        context.event(set, EventComponent::ReplicaSet, "Normal", "SuccessfulDelete", &message);
    }
    context.memory.failures.remove(key);
    None
}

/// Pods that are too many, in the order in which they go: not assigned, pending, not ready, cheap,
/// beside many others of their owner, ready since shortly, restarted often, young.
fn surplus_pods(
    context: &ControllerContext<'_>,
    set: &Value,
    active: &[ParsedObject],
    wanted: usize,
) -> Vec<ParsedObject> {
    let excess = active.len().saturating_sub(wanted).min(MAX_CHANGES);
    if excess == 0 || excess == active.len() {
        return active[..excess].to_vec();
    }
    let neighbours = sibling_pods(context, set);
    let mut order = active.to_vec();
    order.sort_by_cached_key(|pod| {
        let node = object::text(pod, &["spec", "nodeName"]).unwrap_or("");
        let beside = neighbours
            .iter()
            .filter(|other| object::text(other, &["spec", "nodeName"]) == Some(node))
            .count();
        let ready_since = context.memory.pod_runs.get(object::uid(pod)).and_then(|run| run.ready_since);
        let restarts = object::list(pod, &["status", "containerStatuses"])
            .iter()
            .map(|one| object::integer(one, &["restartCount"]))
            .max();
        let cost = object::annotation(pod, "controller.kubernetes.io/pod-deletion-cost")
            .and_then(|text| text.parse::<i64>().ok())
            .unwrap_or(0);
        let phase = object::text(pod, &["status", "phase"]) == Some("Running");
        (
            (!node.is_empty(), phase, pods::is_ready(pod), cost),
            (std::cmp::Reverse(beside), std::cmp::Reverse(ready_since), std::cmp::Reverse(restarts)),
            std::cmp::Reverse(object::text(pod, &["metadata", "creationTimestamp"]).unwrap_or("").to_owned()),
            object::uid(pod).to_owned(),
        )
    });
    order.truncate(excess);
    order
}

/// The pods of all sets of the same owner.
fn sibling_pods(context: &ControllerContext<'_>, set: &Value) -> Vec<ParsedObject> {
    let Some(owner) = object::controller(set).and_then(|owner| owner["uid"].as_str()) else {
        return context.owned(set, "pods");
    };
    let owner = json!({"metadata": {"uid": owner}});
    let sets = context.owned(&owner, "replicasets.apps");
    sets.iter().flat_map(|set| context.owned(set, "pods")).filter(|pod| pods::is_active(pod)).collect()
}

fn write_status(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    set: &Value,
    active: &[ParsedObject],
    ending: usize,
    failure: Option<ReplicaFailure>,
) {
    let min_ready = object::seconds(set, &["spec", "minReadySeconds"]);
    let labels = LabelSelector::of_map(&set["spec"]["template"]["metadata"]["labels"]);
    let ready = active.iter().filter(|pod| pods::is_ready(pod)).count();
    let labelled = active.iter().filter(|pod| labels.matches(pod)).count();
    let available = pods::count_available(context, key, active, min_ready);
    let generation = object::generation(set);
    let now = context.state.clock.timestamp();
    context.change_status(key, &WriteCaller::controller(), |status| {
        status["replicas"] = json!(active.len());
        set_counter(status, "fullyLabeledReplicas", labelled as i64);
        set_counter(status, "readyReplicas", ready as i64);
        set_counter(status, "availableReplicas", available);
        status["terminatingReplicas"] = json!(ending);
        status["observedGeneration"] = json!(generation);
        match failure {
            Some(ReplicaFailure { reason, message }) => {
                let present =
                    object::list(status, &["conditions"]).iter().any(|one| one["type"] == "ReplicaFailure");
                if !present {
                    let said = json!({"type": "ReplicaFailure", "status": "True", "lastTransitionTime": now,
                        "reason": reason, "message": message});
                    controller_condition::replace(status, &said);
                }
            }
            None => controller_condition::remove(status, "ReplicaFailure"),
        }
    });
}
