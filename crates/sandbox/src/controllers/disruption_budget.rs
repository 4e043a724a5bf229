//! The PodDisruptionBudget controller: computes how many pods may be evicted now.

use serde_json::{Value, json};

use super::controller_context::{ControllerContext, key_of};
use super::event_component::EventComponent;
use super::{label_lookup, pods, rolling_limits};
use crate::cluster::SandboxState;
use crate::object;
use crate::selectors::LabelSelector;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs::WriteCaller;

const RESOURCE: &str = "poddisruptionbudgets.policy";

/// The budgets whose selector finds a pod.
pub(super) fn budgets_of_pod(state: &SandboxState, pod: &Value) -> Vec<StoreKey> {
    state
        .store
        .selectors_matching(RESOURCE, pod)
        .filter(|budget| LabelSelector::of(&budget["spec"]["selector"]).matches(pod))
        .map(|budget| key_of(RESOURCE, budget))
        .collect()
}

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, budget: &Value) {
    let selector = LabelSelector::of(&budget["spec"]["selector"]);
    let mut found = label_lookup::pods_selected_by(context.state, object::namespace(budget), &selector);
    // one without a selector finds nothing, an empty one everything
    let is_selecting = budget["spec"]["selector"].is_object();
    found.retain(|pod| is_selecting && !pods::is_finished(pod));
    if found.is_empty() {
        let message = "No matching pods found";
        context.event(budget, EventComponent::Disruption, "Normal", "NoPods", message);
    }
    let (expected, desired) = required_pods(context, budget, &found);
    // pods that were evicted and not seen to end yet are not healthy any more
    let evicted =
        object::value_at(budget, &["status", "disruptedPods"]).cloned().unwrap_or_else(|| json!({}));
    let still = |pod: &&ParsedObject| evicted.get(object::name(pod)).is_some() && !object::is_deleting(pod);
    let disrupted: serde_json::Map<String, Value> = found
        .iter()
        .filter(still)
        .map(|pod| (object::name(pod).to_owned(), evicted[object::name(pod)].clone()))
        .collect();
    let healthy = found
        .iter()
        .filter(|pod| {
            pods::is_ready(pod) && !object::is_deleting(pod) && evicted.get(object::name(pod)).is_none()
        })
        .count() as i64;
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let generation = object::generation(budget);
    let now = context.state.clock.timestamp();
    context.change_status(key, &WriteCaller::controller(), |status| {
        status["disruptionsAllowed"] = json!(allowed);
        status["currentHealthy"] = json!(healthy);
        status["desiredHealthy"] = json!(desired);
        status["expectedPods"] = json!(expected);
        status["observedGeneration"] = json!(generation);
        if disrupted.is_empty() {
            object::take(status, &["disruptedPods"]);
        } else {
            status["disruptedPods"] = json!(disrupted);
        }
        let before = object::list(status, &["conditions"]).first().cloned();
        status["conditions"] = json!([condition(before.as_ref(), allowed, generation, &now)]);
    });
}

/// The condition `DisruptionAllowed`.
pub(crate) fn condition(before: Option<&Value>, allowed: i64, generation: i64, now: &str) -> Value {
    let (text, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let since = before
        .filter(|one| one["status"] == text)
        .map_or_else(|| json!(now), |one| one["lastTransitionTime"].clone());
    json!({"type": "DisruptionAllowed", "status": text, "observedGeneration": generation,
        "lastTransitionTime": since, "reason": reason, "message": ""})
}

/// The expected pods, and how many must be healthy.
fn required_pods(context: &ControllerContext<'_>, budget: &Value, found: &[ParsedObject]) -> (i64, i64) {
    let present = found.len() as i64;
    if let Some(most) = object::value_at(budget, &["spec", "maxUnavailable"]) {
        let expected = expected_pods(context, found);
        return (expected, (expected - rolling_limits::resolve(most, expected, true)).max(0));
    }
    match object::value_at(budget, &["spec", "minAvailable"]) {
        Some(least) if least.is_string() => {
            let expected = expected_pods(context, found);
            (expected, rolling_limits::resolve(least, expected, true))
        }
        Some(least) => (present, least.as_i64().unwrap_or(0)),
        // an empty budget allows no eviction
        None => (0, 0),
    }
}

/// The replicas of all controllers of the pods.
fn expected_pods(context: &ControllerContext<'_>, found: &[ParsedObject]) -> i64 {
    let mut owners: Vec<StoreKey> = found
        .iter()
        .filter_map(|pod| object::controller(pod)?["uid"].as_str())
        .filter_map(|uid| context.state.store.by_uid(uid))
        .collect();
    owners.sort();
    owners.dedup();
    let mut scales: Vec<StoreKey> = Vec::new();
    for owner in owners {
        let Some(set) = context.state.store.object_at(&owner) else { continue };
        let above = object::controller(set)
            .and_then(|above| above["uid"].as_str())
            .and_then(|uid| context.state.store.by_uid(uid));
        let scale = above.unwrap_or(owner);
        if !scales.contains(&scale) {
            scales.push(scale);
        }
    }
    scales
        .iter()
        .filter_map(|key| context.state.store.object_at(key))
        .map(|owner| object::integer(owner, &["spec", "replicas"]))
        .sum()
}
