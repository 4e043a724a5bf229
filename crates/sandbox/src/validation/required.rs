//! Fields without which an object makes no sense.

use serde_json::{Value, json};

use crate::object;
use crate::registry::ResourceKind;
use crate::selectors::LabelSelector;
use crate::status::FieldError;

pub(super) fn check(kind: &ResourceKind, new: &Value) -> Vec<FieldError> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => workload(new),
        ("batch", "Job") => containers(new, &["spec", "template", "spec"]),
        ("batch", "CronJob") => {
            let mut errors = containers(new, &["spec", "jobTemplate", "spec", "template", "spec"]);
            if object::text(new, &["spec", "schedule"]).is_none_or(str::is_empty) {
                errors.push(FieldError::required("spec.schedule", ""));
            }
            errors
        }
        ("", "Pod") => containers(new, &["spec"]),
        ("", "Service") => service(new),
        _ => Vec::new(),
    }
}

fn workload(new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let labels = object::at(new, &["spec", "template", "metadata", "labels"]).unwrap_or(&Value::Null);
    match object::at(new, &["spec", "selector"]) {
        None => errors.push(FieldError::required("spec.selector", "")),
        Some(selector) if !LabelSelector::of(selector).matches_labels(labels) => {
            errors.push(FieldError::invalid(
                "spec.template.metadata.labels",
                labels,
                "`selector` does not match template `labels`",
            ));
        }
        Some(_) => {}
    }
    if let Some(replicas) = object::at(new, &["spec", "replicas"]).and_then(Value::as_i64)
        && replicas < 0
    {
        errors.push(FieldError::invalid(
            "spec.replicas",
            &json!(replicas),
            "must be greater than or equal to 0",
        ));
    }
    errors.extend(containers(new, &["spec", "template", "spec"]));
    errors
}

fn containers(new: &Value, pod_spec: &[&str]) -> Vec<FieldError> {
    let path = [pod_spec, &["containers"]].concat();
    let field = path.join(".");
    let list = object::list(new, &path);
    if list.is_empty() {
        return vec![FieldError::required(field, "")];
    }
    let mut errors = Vec::new();
    for (at, container) in list.iter().enumerate() {
        for required in ["name", "image"] {
            if container[required].as_str().is_none_or(str::is_empty) {
                errors.push(FieldError::required(format!("{field}[{at}].{required}"), ""));
            }
        }
    }
    errors
}

fn service(new: &Value) -> Vec<FieldError> {
    let external = object::text(new, &["spec", "type"]) == Some("ExternalName");
    let headless = object::text(new, &["spec", "clusterIP"]) == Some("None");
    let ports = object::list(new, &["spec", "ports"]);
    if ports.is_empty() && !external && !headless {
        return vec![FieldError::required("spec.ports", "")];
    }
    ports
        .iter()
        .enumerate()
        .filter(|(_, port)| !port["port"].as_i64().is_some_and(|port| (1..=65535).contains(&port)))
        .map(|(at, port)| {
            FieldError::invalid(
                format!("spec.ports[{at}].port"),
                &port["port"],
                "must be between 1 and 65535, inclusive",
            )
        })
        .collect()
}
