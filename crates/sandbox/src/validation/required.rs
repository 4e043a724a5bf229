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
        None => {
            errors.push(FieldError::required("spec.selector", ""));
            errors.push(mismatch(labels));
        }
        Some(selector) if !LabelSelector::of(selector).matches_labels(labels) => {
            errors.push(mismatch(labels));
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

fn mismatch(labels: &Value) -> FieldError {
    FieldError::invalid(
        "spec.template.metadata.labels",
        labels,
        "`selector` does not match template `labels`",
    )
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
    let mut errors = Vec::new();
    for (at, port) in ports.iter().enumerate() {
        if ports.len() > 1 && port["name"].as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(format!("spec.ports[{at}].name"), ""));
        }
        for field in ["port", "targetPort"] {
            if port[field].as_i64().is_none_or(|number| (1..=65535).contains(&number))
                && !port["port"].is_null()
            {
                continue;
            }
            let why = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(format!("spec.ports[{at}].{field}"), &port[field], why));
        }
    }
    errors
}
