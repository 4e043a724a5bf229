//! Probes and lifecycle hooks.

use serde_json::json;

use super::network;
use super::pod_validation::PodValidation;
use crate::validation::field_cursor::FieldCursor;
use crate::validation::formats;
use crate::validation::validation_errors::ValidationErrors;

pub(super) fn check_lifecycle(
    pod: &PodValidation<'_, '_>,
    container: &FieldCursor,
    problems: &mut ValidationErrors,
) {
    let lifecycle = container.at("lifecycle");
    for hook in ["postStart", "preStop"] {
        if lifecycle.has(hook) {
            check_handler(pod, &lifecycle.at(hook), &["exec", "httpGet", "tcpSocket", "sleep"], problems);
        }
    }
    let signal = lifecycle.at("stopSignal");
    if signal.is_set() && pod.operating_system().is_empty() {
        problems.forbidden(&signal, "may not be set for containers with empty `spec.os.name`");
    }
}

pub(super) fn check_all(
    pod: &PodValidation<'_, '_>,
    container: &FieldCursor,
    problems: &mut ValidationErrors,
) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.at(name);
        if !probe.is_set() {
            continue;
        }
        check(pod, &probe, problems);
        if name == "readinessProbe" {
            let grace = probe.at("terminationGracePeriodSeconds");
            if grace.is_set() {
                problems.invalid(&grace, "must not be set for readinessProbes");
            }
        } else if probe.at("successThreshold").number() != 1 {
            problems.invalid(&probe.at("successThreshold"), "must be 1");
        }
    }
}

fn check(pod: &PodValidation<'_, '_>, probe: &FieldCursor, problems: &mut ValidationErrors) {
    check_handler(pod, probe, &["exec", "httpGet", "tcpSocket", "grpc"], problems);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        problems.check_not_negative(&probe.at(field));
    }
    let grace = probe.at("terminationGracePeriodSeconds");
    if grace.integer().is_some_and(|seconds| seconds <= 0) {
        problems.invalid(&grace, "must be greater than 0");
    }
}

/// Exactly one of these.
fn check_handler(
    pod: &PodValidation<'_, '_>,
    owner: &FieldCursor,
    known: &[&str],
    problems: &mut ValidationErrors,
) {
    let mut handlers = known.iter().filter(|handler| owner.has(handler));
    match handlers.next() {
        None => problems.required(owner, "must specify a handler type"),
        Some(handler) => check_action(pod, handler, &owner.at(handler), problems),
    }
    for another in handlers {
        problems.forbidden(&owner.at(another), "may not specify more than 1 handler type");
    }
}

fn check_action(
    pod: &PodValidation<'_, '_>,
    kind: &str,
    action: &FieldCursor,
    problems: &mut ValidationErrors,
) {
    match kind {
        "exec" if action.at("command").is_empty() => problems.required(&action.at("command"), ""),
        "httpGet" => check_http(action, problems),
        "tcpSocket" | "grpc" => network::check_port(&action.at("port"), problems),
        "sleep" => {
            let (seconds, grace) = (action.at("seconds").number(), pod.grace_seconds.unwrap_or(0));
            if pod.grace_seconds.is_some() && !(0..=grace).contains(&seconds) {
                let why =
                    format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                problems.invalid_value(action, &json!(seconds), &why);
            }
        }
        _ => {}
    }
}

fn check_http(action: &FieldCursor, problems: &mut ValidationErrors) {
    if action.at("path").is_empty() {
        problems.required(&action.at("path"), "");
    }
    network::check_port(&action.at("port"), problems);
    if !matches!(action.at("scheme").text(), "HTTP" | "HTTPS") {
        problems.not_supported(&action.at("scheme"), &["HTTP", "HTTPS"]);
    }
    let headers = action.at("httpHeaders");
    for header in headers.items() {
        let name = header.at("name").text();
        for message in formats::header_name(name) {
            problems.invalid_value(&headers, &json!(name), &message);
        }
    }
}
