//! The HorizontalPodAutoscaler controller. There are no metrics: the annotation `sim.tutti.dev/replicas: "5"` on the autoscaler sets
//! the replicas that metrics would request. It writes through `scale`, as the real one does.

use std::time::Duration;

use serde_json::{Value, json};

use super::controller_condition::{ControllerCondition, set_counter};
use super::controller_context::ControllerContext;
use super::event_component::EventComponent;
use crate::api_error::ApiError;
use crate::object;
use crate::store::StoreKey;
use crate::verbs::{self, ScaleChange, WriteCaller};
use crate::wire::route::RequestTarget;

const REPLICAS_ANNOTATION: &str = "sim.tutti.dev/replicas";
/// How often the real one looks.
const PERIOD: Duration = Duration::from_secs(15);
const NO_METRICS: &str = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
const SUBJECT: &str = "cpu resource utilization (percentage of request)";

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, scaler: &Value) {
    if !context.is_due(key, PERIOD) {
        return;
    }
    let now = context.state.clock.timestamp();
    let mut status = object::value_at(scaler, &["status"]).cloned().unwrap_or_else(|| json!({}));
    object::set_default(&mut status, &["desiredReplicas"], 0);
    let able = |status: &mut Value, is_true: bool, reason: &str, message: &str| {
        ControllerCondition { kind: "AbleToScale", is_true, reason, message }.write_if_changed(status, &now);
    };
    let (target, scale) = match target_of(context, scaler) {
        Ok(found) => found,
        Err(why) => {
            context.event(scaler, EventComponent::HorizontalPodAutoscaler, "Warning", "FailedGetScale", &why);
            let message = format!("the HPA controller was unable to get the target's current scale: {why}");
            able(&mut status, false, "FailedGetScale", &message);
            return write(context, key, status);
        }
    };
    let current = object::integer(&scale, &["spec", "replicas"]);
    let decision = decide(scaler, current);
    able(&mut status, true, decision.able_to_scale.0, decision.able_to_scale.1);
    set_counter(&mut status, "currentReplicas", current);
    conditions(&mut status, &decision, &now);
    if decision.replicas != current {
        if let Err(error) =
            rescale(context, scaler, (&target, scale), decision.replicas, &decision.reason_text)
        {
            let message = format!("the HPA controller was unable to update the target scale: {error}");
            able(&mut status, false, "FailedUpdateScale", &message);
            return write(context, key, status);
        }
        let message =
            format!("the HPA controller was able to update the target scale to {}", decision.replicas);
        able(&mut status, true, "SucceededRescale", &message);
        status["lastScaleTime"] = json!(now);
    }
    // without metrics nothing new is desired
    if decision.has_metrics || !decision.asked_metrics {
        status["desiredReplicas"] = json!(decision.replicas);
    }
    if !decision.has_metrics && decision.asked_metrics {
        for (reason, message) in [
            ("FailedGetResourceMetric", NO_METRICS.to_owned()),
            (
                "FailedComputeMetricsReplicas",
                format!(
                    "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {NO_METRICS}"
                ),
            ),
        ] {
            context.event(scaler, EventComponent::HorizontalPodAutoscaler, "Warning", reason, &message);
        }
    }
    write(context, key, status);
}

struct ScalingDecision {
    replicas: i64,
    reason_text: String,
    able_to_scale: (&'static str, &'static str),
    /// Metrics were there.
    has_metrics: bool,
    /// Metrics were looked for: not while the replicas are out of bounds, or none.
    asked_metrics: bool,
    scaling_limited: Option<(&'static str, &'static str)>,
}

fn decide(scaler: &Value, current: i64) -> ScalingDecision {
    let least = object::value_at(scaler, &["spec", "minReplicas"]).and_then(Value::as_i64).unwrap_or(1);
    let most = object::integer(scaler, &["spec", "maxReplicas"]);
    let decision = |replicas: i64, why: &str, measured: bool, asked_metrics: bool| ScalingDecision {
        replicas,
        reason_text: why.to_owned(),
        able_to_scale: if measured {
            ("ReadyForNewScale", "recommended size matches current size")
        } else {
            ("SucceededGetScale", "the HPA controller was able to get the target's current scale")
        },
        has_metrics: measured,
        asked_metrics,
        scaling_limited: None,
    };
    if current == 0 {
        // who wants no replicas wants no scaling either
        return decision(0, "", false, false);
    }
    if current > most {
        return decision(most, "Current number of replicas above Spec.MaxReplicas", false, false);
    }
    if current < least {
        return decision(least, "Current number of replicas below Spec.MinReplicas", false, false);
    }
    let Some(wished) =
        object::annotation(scaler, REPLICAS_ANNOTATION).and_then(|text| text.parse::<i64>().ok())
    else {
        return decision(current, "", false, true);
    };
    let why = if wished > current {
        format!("{SUBJECT} above target")
    } else {
        "All metrics below target".to_owned()
    };
    let limited = if wished > most {
        ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
    } else if wished < least {
        ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
    } else {
        ("DesiredWithinRange", "the desired count is within the acceptable range")
    };
    ScalingDecision {
        scaling_limited: Some(limited),
        ..decision(wished.clamp(least, most), &why, true, true)
    }
}

fn conditions(status: &mut Value, decision: &ScalingDecision, now: &str) {
    if decision.replicas == 0 {
        let message = "scaling is disabled since the replica count of the target is zero";
        ControllerCondition { kind: "ScalingActive", is_true: false, reason: "ScalingDisabled", message }
            .write_if_changed(status, now);
    } else if decision.has_metrics {
        let message = format!("the HPA was able to successfully calculate a replica count from {SUBJECT}");
        ControllerCondition {
            kind: "ScalingActive",
            is_true: true,
            reason: "ValidMetricFound",
            message: &message,
        }
        .write_if_changed(status, now);
    } else if decision.asked_metrics {
        let message = format!("the HPA was unable to compute the replica count: {NO_METRICS}");
        ControllerCondition {
            kind: "ScalingActive",
            is_true: false,
            reason: "FailedGetResourceMetric",
            message: &message,
        }
        .write_if_changed(status, now);
    }
    if let Some((reason, message)) = decision.scaling_limited {
        let is_true = reason != "DesiredWithinRange";
        ControllerCondition { kind: "ScalingLimited", is_true, reason, message }
            .write_if_changed(status, now);
    }
}

/// The scale of the target, or why there is none.
fn target_of(context: &ControllerContext<'_>, scaler: &Value) -> Result<(RequestTarget, Value), String> {
    let reference = &scaler["spec"]["scaleTargetRef"];
    let text = |field: &str| reference[field].as_str().unwrap_or("");
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", "v1"));
    let found = context
        .state
        .registry
        .all()
        .find(|kind| kind.kind == text("kind") && kind.group == group && kind.version == version);
    let Some(kind) = found.cloned() else {
        return Err(format!("no matches for kind \"{}\" in group \"{group}\"", text("kind")));
    };
    if !kind.has_subresource("scale") {
        return Err(ApiError::no_such_resource().to_string());
    }
    let target = RequestTarget {
        kind,
        namespace: object::namespace(scaler).to_owned(),
        name: text("name").to_owned(),
        subresource: "scale".to_owned(),
    };
    let scale = verbs::read_scale(context.state, &target).map_err(|error| error.to_string())?;
    Ok((target, scale))
}

fn rescale(
    context: &mut ControllerContext<'_>,
    scaler: &Value,
    (target, mut scale): (&RequestTarget, Value),
    replicas: i64,
    why: &str,
) -> Result<(), ApiError> {
    object::set(&mut scale, &["spec", "replicas"], replicas);
    let change = ScaleChange::Replace(scale);
    let written = verbs::write_scale(context.state, target, change, &WriteCaller::controller());
    let size = format!("New size: {replicas}; reason: {why}");
    let (kind, reason, message) = match &written {
        Ok(_) => ("Normal", "SuccessfulRescale", size),
        Err(error) => ("Warning", "FailedRescale", format!("{size}; error: {error}")),
    };
    context.event(scaler, EventComponent::HorizontalPodAutoscaler, kind, reason, &message);
    written.map(drop)
}

fn write(context: &mut ControllerContext<'_>, key: &StoreKey, status: Value) {
    context.change_status(key, &WriteCaller::controller(), |live| *live = status);
}
