//! The events of a kubelet about a pod, with the kubelet's messages.

use std::time::Duration;

use serde_json::Value;

use super::controller_context::ControllerContext;
use super::event_component::EventComponent::Kubelet;
use super::pod_failure::PodFailure;
use super::pod_status::pull_error;
use crate::object;

/// Once for each container: its name as the field of the event.
fn each(
    context: &mut ControllerContext<'_>,
    pod: &Value,
    only_struck: bool,
    kind: &str,
    reason: &str,
    message: impl Fn(&Value) -> String,
) {
    for container in object::list(pod, &["spec", "containers"]) {
        if only_struck && !PodFailure::of(pod).is_some_and(|failure| failure.affects(pod, container)) {
            continue;
        }
        let field = format!("spec.containers{{{}}}", container["name"].as_str().unwrap_or(""));
        context.event_at(pod, &field, Kubelet, kind, reason, &message(container));
    }
}

fn image(container: &Value) -> &str {
    container["image"].as_str().unwrap_or("")
}

fn identity(pod: &Value) -> String {
    format!("{}_{}({})", object::name(pod), object::namespace(pod), object::uid(pod))
}

pub(super) fn pulling(context: &mut ControllerContext<'_>, pod: &Value) {
    each(context, pod, false, "Normal", "Pulling", |one| format!("Pulling image \"{}\"", image(one)));
}

pub(super) fn started(context: &mut ControllerContext<'_>, pod: &Value, took: Duration) {
    let took = go_seconds(took);
    each(context, pod, false, "Normal", "Pulled", |one| {
        let image = image(one);
        format!(
            "Successfully pulled image \"{image}\" in {took} ({took} including waiting). Image size: 29320911 bytes."
        )
    });
    restarted(context, pod);
}

pub(super) fn restarted(context: &mut ControllerContext<'_>, pod: &Value) {
    each(context, pod, false, "Normal", "Created", |_| "Container created".to_owned());
    each(context, pod, false, "Normal", "Started", |_| "Container started".to_owned());
}

pub(super) fn pull_failed(context: &mut ControllerContext<'_>, pod: &Value) {
    each(context, pod, true, "Warning", "Failed", |one| {
        let image = image(one);
        format!("Failed to pull image \"{image}\": {}", pull_error(image))
    });
    each(context, pod, true, "Warning", "Failed", |_| "Error: ErrImagePull".to_owned());
}

pub(super) fn pull_backs_off(context: &mut ControllerContext<'_>, pod: &Value) {
    each(context, pod, true, "Normal", "BackOff", |one| format!("Back-off pulling image \"{}\"", image(one)));
    each(context, pod, true, "Warning", "Failed", |_| "Error: ImagePullBackOff".to_owned());
}

pub(super) fn restart_backs_off(context: &mut ControllerContext<'_>, pod: &Value) {
    let pod_name = identity(pod);
    each(context, pod, false, "Warning", "BackOff", |one| {
        let name = one["name"].as_str().unwrap_or("");
        format!("Back-off restarting failed container {name} in pod {pod_name}")
    });
}

pub(super) fn unhealthy(context: &mut ControllerContext<'_>, pod: &Value) {
    let message = "Readiness probe failed: HTTP probe failed with statuscode: 503";
    each(context, pod, false, "Warning", "Unhealthy", |_| message.to_owned());
}

pub(super) fn killing(context: &mut ControllerContext<'_>, pod: &Value) {
    each(context, pod, false, "Normal", "Killing", |one| {
        format!("Stopping container {}", one["name"].as_str().unwrap_or(""))
    });
}

pub(super) fn evicted(context: &mut ControllerContext<'_>, pod: &Value) {
    context.event(pod, Kubelet, "Warning", "Evicted", super::pod_status::EVICTED);
}

/// As Go prints short durations: `0s`, `350ms`, `1.2s`.
fn go_seconds(duration: Duration) -> String {
    match duration.as_millis() {
        0 => "0s".to_owned(),
        millis if millis < 1000 => format!("{millis}ms"),
        millis => format!("{}s", millis as f64 / 1000.0),
    }
}
