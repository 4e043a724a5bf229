//! The `eviction` subresource: a delete that asks the pod's disruption budget first.

use http::StatusCode;
use serde_json::{Value, json};

use super::{ObjectUpdate, RequestDeleteOptions, WriteCaller, delete, get};
use crate::api_error::ApiError;
use crate::cluster::SandboxState;
use crate::controllers::disruption_condition;
use crate::object;
use crate::selectors::LabelSelector;
use crate::store::ParsedObject;
use crate::wire::route::RequestTarget;

const BUDGETS: &str = "poddisruptionbudgets.policy";
const SEVERAL_BUDGETS: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
const BUDGET_VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

pub(crate) fn evict(
    state: &mut SandboxState,
    target: &RequestTarget,
    eviction: &Value,
    dry_run: bool,
) -> Result<Value, ApiError> {
    let pod_target = RequestTarget { subresource: String::new(), ..target.clone() };
    let said = object::name(eviction);
    if !said.is_empty() && said != target.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let pod = get(state, &pod_target)?;
    let mut options = RequestDeleteOptions::of_body(&eviction["deleteOptions"])?;
    options.dry_run |= dry_run;
    // what does not run cannot be disrupted
    let runs = !matches!(object::text(&pod, &["status", "phase"]), Some("Pending" | "Succeeded" | "Failed"));
    if runs && !object::is_deleting(&pod) {
        use_budget(state, &pod, options.dry_run)?;
    }
    if !options.dry_run && !object::is_deleting(&pod) {
        add_disruption_condition(state, &pod_target, &pod)?;
    }
    options.resource_version = None;
    delete(state, &pod_target, &options)?;
    Ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}))
}

fn use_budget(state: &mut SandboxState, pod: &ParsedObject, dry_run: bool) -> Result<(), ApiError> {
    let budgets: Vec<ParsedObject> = state
        .store
        .selectors_matching(BUDGETS, pod)
        .filter(|budget| LabelSelector::of(&budget["spec"]["selector"]).matches(pod))
        .cloned()
        .collect();
    let budget = match budgets.as_slice() {
        [] => return Ok(()),
        [budget] => budget.clone(),
        _ => return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", SEVERAL_BUDGETS)),
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
        return Err(budget_error(&message, Some(10)));
    }
    if allowed <= 0 && number("currentHealthy") > number("desiredHealthy") {
        let message = format!("The disruption budget {name} does not allow evicting pods currently");
        return Err(budget_error(&message, None));
    }
    if allowed <= 0 {
        let message = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number("desiredHealthy"),
            number("currentHealthy")
        );
        return Err(budget_error(&message, None));
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

fn budget_error(why: &str, retry_after: Option<u32>) -> ApiError {
    let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", BUDGET_VIOLATED);
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
    if let Some(seconds) = retry_after {
        details["retryAfterSeconds"] = json!(seconds);
    }
    error.details = Some(Box::new(details));
    error
}

/// Adds the `DisruptionTarget` condition to the pod.
fn add_disruption_condition(
    state: &mut SandboxState,
    target: &RequestTarget,
    pod: &ParsedObject,
) -> Result<(), ApiError> {
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

fn write(state: &mut SandboxState, resource: &str, live: ParsedObject, new: Value) -> Result<(), ApiError> {
    let Some(kind) = state.registry.resource(resource).cloned() else {
        return Err(ApiError::no_such_resource());
    };
    let caller = WriteCaller::with_manager("kube-apiserver");
    ObjectUpdate { live, new, subresource: "status".to_owned() }.store_tracked(state, &kind, &caller)?;
    Ok(())
}
