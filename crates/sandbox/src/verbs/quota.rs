//! Admission by ResourceQuotas and LimitRanges. Both refuse with 403.
//!
//! Quotas with scopes are ignored.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::cluster::SandboxState;
use crate::controllers::resource_requests;
use crate::object;
use crate::registry::ResourceKind;
use crate::store::ParsedObject;

const QUOTAS: &str = "resourcequotas";

/// Refuses a new object that exceeds a quota or bound of its namespace.
pub(super) fn check_limits(state: &SandboxState, kind: &ResourceKind, new: &Value) -> Result<(), ApiError> {
    if !kind.namespaced {
        return Ok(());
    }
    if kind.has_resource_name("pods") {
        check_bounds(state, kind, new)?;
    }
    let quotas: Vec<ParsedObject> = state
        .store
        .list(QUOTAS, Some(object::namespace(new)))
        .filter(|quota| is_simulated(quota))
        .cloned()
        .collect();
    quotas.iter().try_for_each(|quota| check_quota(state, kind, new, quota))
}

fn is_simulated(quota: &Value) -> bool {
    object::list(quota, &["spec", "scopes"]).is_empty()
        && object::value_at(quota, &["spec", "scopeSelector"]).is_none()
}

fn hard_limits(quota: &Value) -> BTreeMap<&str, &Value> {
    let hard = object::value_at(quota, &["spec", "hard"]).and_then(Value::as_object);
    hard.into_iter().flatten().map(|(name, limit)| (name.as_str(), limit)).collect()
}

fn check_quota(
    state: &SandboxState,
    kind: &ResourceKind,
    new: &Value,
    quota: &Value,
) -> Result<(), ApiError> {
    let resource = kind.resource();
    let refuse = |why: String| Err(ApiError::forbidden(kind, object::name(new), &why));
    let mut lacking = Vec::new();
    let mut exceeded: Vec<(String, String, String)> = Vec::new();
    for (name, limit) in hard_limits(quota) {
        let Some(asked) = requested_amount(&resource, new, name) else {
            if resource == "pods" && is_computed(name) {
                lacking.push(name);
            }
            continue;
        };
        let used = used_amount(state, object::namespace(new), name);
        let most = resource_requests::thousandths(limit).unwrap_or(i128::MAX);
        if asked > 0 && used + asked > most {
            exceeded.push((
                format!("{name}={}", format_amount(asked, name)),
                format!("{name}={}", format_amount(used, name)),
                format!("{name}={}", format_amount(most, name)),
            ));
        }
    }
    if !lacking.is_empty() {
        let names: Vec<String> =
            lacking.iter().map(|name| format!("{name} for: {}", containers_of(new))).collect();
        return refuse(format!("failed quota: {}: must specify {}", object::name(quota), names.join("; ")));
    }
    if exceeded.is_empty() {
        return Ok(());
    }
    let join =
        |part: fn(&(String, String, String)) -> &str| exceeded.iter().map(part).collect::<Vec<_>>().join(",");
    refuse(format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        object::name(quota),
        join(|one| one.0.as_str()),
        join(|one| one.1.as_str()),
        join(|one| one.2.as_str())
    ))
}

fn containers_of(pod: &Value) -> String {
    let names = object::list(pod, &["spec", "containers"]).iter().filter_map(|one| one["name"].as_str());
    names.collect::<Vec<_>>().join(",")
}

fn is_computed(name: &str) -> bool {
    pod_resource_of(name).is_some()
}

/// The list and the resource of a pod that a quota's name means.
fn pod_resource_of(name: &str) -> Option<(&'static str, &str)> {
    let resource = |text| matches!(text, "cpu" | "memory" | "ephemeral-storage");
    match name.split_once('.') {
        None if resource(name) => Some(("requests", name)),
        Some(("requests", text)) if resource(text) => Some(("requests", text)),
        Some(("limits", text)) if resource(text) => Some(("limits", text)),
        _ => None,
    }
}

/// The amount of a quota's resource that an object requests, in thousandths; `None` without a request.
fn requested_amount(resource: &str, object: &Value, name: &str) -> Option<i128> {
    if name.strip_prefix("count/").unwrap_or(name) == resource {
        return Some(1000);
    }
    match (resource, name) {
        ("services", "services.loadbalancers") => {
            Some(if object["spec"]["type"] == "LoadBalancer" { 1000 } else { 0 })
        }
        ("persistentvolumeclaims", "requests.storage") => {
            resource_requests::thousandths(&object["spec"]["resources"]["requests"]["storage"])
        }
        ("pods", name) => {
            let (list, resource) = pod_resource_of(name)?;
            resource_requests::requested_by_pod(object, list, resource)
        }
        _ => None,
    }
}

/// The amount of a quota's resource that the objects of a namespace use.
fn used_amount(state: &SandboxState, namespace: &str, name: &str) -> i128 {
    let resource = match name {
        "services.loadbalancers" => "services",
        "requests.storage" => "persistentvolumeclaims",
        name if is_computed(name) => "pods",
        name => name.strip_prefix("count/").unwrap_or(name),
    };
    let ended = |object: &Value| {
        resource == "pods"
            && matches!(object::text(object, &["status", "phase"]), Some("Succeeded" | "Failed"))
    };
    state
        .store
        .list(resource, Some(namespace))
        .filter(|object| name.starts_with("count/") || !ended(object))
        .filter_map(|object| requested_amount(resource, object, name))
        .sum()
}

/// `status.used` of a quota.
pub(crate) fn usage(state: &SandboxState, quota: &Value) -> Value {
    let names = hard_limits(quota);
    let namespace = object::namespace(quota);
    names
        .into_keys()
        .map(|name| (name.to_owned(), json!(format_amount(used_amount(state, namespace, name), name))))
        .collect()
}

/// Thousandths as a quantity: whole, or in thousandths; memory in powers of 1024.
fn format_amount(thousandths: i128, name: &str) -> String {
    if thousandths % 1000 != 0 {
        return format!("{thousandths}m");
    }
    let mut number = thousandths / 1000;
    let mut suffix = "";
    if name.ends_with("memory") || name.ends_with("storage") {
        for unit in ["Ki", "Mi", "Gi", "Ti"] {
            if number == 0 || number % 1024 != 0 {
                break;
            }
            number /= 1024;
            suffix = unit;
        }
    }
    format!("{number}{suffix}")
}

/// The most and the least that LimitRanges allow a container.
fn check_bounds(state: &SandboxState, kind: &ResourceKind, pod: &Value) -> Result<(), ApiError> {
    for range in state.store.list("limitranges", Some(object::namespace(pod))) {
        for limit in object::list(range, &["spec", "limits"]).iter().filter(|one| one["type"] == "Container")
        {
            for container in object::list(pod, &["spec", "containers"]) {
                if let Some(why) = out_of_bounds(limit, container) {
                    return Err(ApiError::forbidden(kind, object::name(pod), &why));
                }
            }
        }
    }
    Ok(())
}

fn out_of_bounds(limit: &Value, container: &Value) -> Option<String> {
    let is_less: fn(i128, i128) -> bool = |asked, least| asked < least;
    let is_more: fn(i128, i128) -> bool = |given, most| given > most;
    let bounds =
        [("min", "minimum", "requests", "request", is_less), ("max", "maximum", "limits", "limit", is_more)];
    for (side, word, list, one, is_out) in bounds {
        for (resource, bound) in limit[side].as_object().into_iter().flatten() {
            let said = &container["resources"][list][resource.as_str()];
            let why = match resource_requests::thousandths(said) {
                None => format!("no {one} is specified"),
                Some(amount) if is_out(amount, resource_requests::thousandths(bound)?) => {
                    format!("{one} is {}", text(said))
                }
                Some(_) => continue,
            };
            return Some(format!("{word} {resource} usage per Container is {}, but {why}", text(bound)));
        }
    }
    None
}

fn text(quantity: &Value) -> String {
    quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned)
}
