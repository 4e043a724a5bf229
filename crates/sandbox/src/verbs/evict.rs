//! The `eviction` subresource: a delete that asks the pod's disruption budget first.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Caller, DeleteOptions, Update, delete, get};
use crate::cluster::State;
use crate::object;
use crate::selectors::LabelSelector;
use crate::status::ApiError;
use crate::store::Object;
use crate::wire::route::Target;
use crate::workloads::disruption_condition;

const BUDGETS: &str = "poddisruptionbudgets.policy";
const SEVERAL: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

pub(crate) fn evict(
    state: &mut State,
    target: &Target,
    eviction: &Value,
    dry_run: bool,
) -> Result<Value, ApiError> {
    let pod_target = Target { subresource: String::new(), ..target.clone() };
    let said = object::name(eviction);
    if !said.is_empty() && said != target.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let pod = get(state, &pod_target)?;
    let mut options = DeleteOptions::of_body(&eviction["deleteOptions"])?;
    options.dry_run |= dry_run;
    // what does not run cannot be disrupted
    let runs = !matches!(object::text(&pod, &["status", "phase"]), Some("Pending" | "Succeeded" | "Failed"));
    if runs && !object::is_deleting(&pod) {
        ask_budget(state, &pod, options.dry_run)?;
    }
    if !options.dry_run && !object::is_deleting(&pod) {
        note_target(state, &pod_target, &pod)?;
    }
    options.resource_version = None;
    delete(state, &pod_target, &options)?;
    Ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}))
}

fn ask_budget(state: &mut State, pod: &Object, dry_run: bool) -> Result<(), ApiError> {
    let budgets: Vec<Object> = state
        .store
        .selectors_matching(BUDGETS, pod)
        .filter(|budget| LabelSelector::of(&budget["spec"]["selector"]).matches(pod))
        .cloned()
        .collect();
    let budget = match budgets.as_slice() {
        [] => return Ok(()),
        [budget] => budget.clone(),
        _ => return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", SEVERAL)),
    };
    let number = |field: &str| object::integer(&budget, &["status", field]);
    let always = object::text(&budget, &["spec", "unhealthyPodEvictionPolicy"]) == Some("AlwaysAllow");
    // a pod that is not healthy takes nothing from a budget that holds
    let holds = number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
    if !object::condition_is_true(pod, "Ready") && (always || holds) {
        return Ok(());
    }
    let allowed = number("disruptionsAllowed");
    let name = object::name(&budget);
    if number("observedGeneration") < object::generation(&budget) {
        let message = format!("The disruption budget {name} is still being processed by the server.");
        return Err(violated(&message, Some(10)));
    }
    if allowed <= 0 && number("currentHealthy") > number("desiredHealthy") {
        let message = format!("The disruption budget {name} does not allow evicting pods currently");
        return Err(violated(&message, None));
    }
    if allowed <= 0 {
        let message = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number("desiredHealthy"),
            number("currentHealthy")
        );
        return Err(violated(&message, None));
    }
    if dry_run {
        return Ok(());
    }
    let now = state.clock.timestamp();
    let mut new = (*budget).clone();
    object::set(&mut new, &["status", "disruptionsAllowed"], allowed - 1);
    object::set(&mut new, &["status", "disruptedPods", object::name(pod)], now.as_str());
    let before = object::list(&budget, &["status", "conditions"]).first().cloned();
    let condition = disruption_condition(before.as_ref(), allowed - 1, object::generation(&budget), &now);
    object::set(&mut new, &["status", "conditions"], vec![condition]);
    write(state, BUDGETS, budget, new)
}

fn violated(why: &str, retry_after: Option<u32>) -> ApiError {
    let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", VIOLATES);
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
    if let Some(seconds) = retry_after {
        details["retryAfterSeconds"] = json!(seconds);
    }
    error.details = Some(Box::new(details));
    error
}

/// Adds the `DisruptionTarget` condition to the pod.
fn note_target(state: &mut State, target: &Target, pod: &Object) -> Result<(), ApiError> {
    let mut new = (**pod).clone();
    let condition = json!({"type": "DisruptionTarget", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": state.clock.timestamp(), "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting"});
    match new.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        Some(conditions) => conditions.push(condition),
        None => object::set(&mut new, &["status", "conditions"], vec![condition]),
    }
    write(state, &target.kind.resource(), pod.clone(), new)
}

fn write(state: &mut State, resource: &str, live: Object, new: Value) -> Result<(), ApiError> {
    let Some(kind) = state.registry.resource(resource).cloned() else {
        return Err(ApiError::no_such_resource());
    };
    let caller = Caller::named("kube-apiserver");
    Update { live, new, subresource: "status".to_owned() }.tracked(state, &kind, &caller)?;
    Ok(())
}
