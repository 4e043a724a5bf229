//! Requests and limits.

use serde_json::json;

use super::pod_validation::PodValidation;
use crate::quantity::Quantity;
use crate::validation::field_cursor::FieldCursor;
use crate::validation::formats;
use crate::validation::validation_errors::ValidationErrors;

const STANDARD: &[&str] = &["cpu", "memory", "ephemeral-storage"];
const QUOTA: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];

fn is_huge(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

pub(crate) fn is_standard_quota_resource(resource: &str) -> bool {
    QUOTA.contains(&resource) || is_huge(resource) || resource.starts_with("requests.hugepages-")
}

fn is_standard(resource: &str) -> bool {
    STANDARD.contains(&resource) || is_standard_quota_resource(resource) || resource == "storage"
}

/// Of Kubernetes itself.
fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

/// Of a device, and not of Kubernetes.
fn is_extended(resource: &str) -> bool {
    !is_native(resource)
        && !resource.starts_with("requests.")
        && formats::qualified_name(&format!("requests.{resource}")).is_empty()
}

/// More of these may be promised than there is.
fn may_overcommit(resource: &str) -> bool {
    is_native(resource) && !is_huge(resource)
}

pub(crate) fn resource_name(resource: &str, place: &FieldCursor, problems: &mut ValidationErrors) -> bool {
    let wrong = formats::qualified_name(resource);
    let is_name = wrong.is_empty();
    for message in wrong {
        problems.invalid_value(place, &json!(resource), &message);
    }
    if is_name && !resource.contains('/') && !is_standard(resource) {
        let why = "must be a standard resource type or fully qualified";
        problems.invalid_value(place, &json!(resource), why);
        return false;
    }
    is_name
}

pub(crate) fn container_resource(resource: &str, place: &FieldCursor, problems: &mut ValidationErrors) {
    resource_name(resource, place, problems);
    if !resource.contains('/') {
        if !STANDARD.contains(&resource) && !is_huge(resource) {
            problems.invalid_value(place, &json!(resource), "must be a standard resource for containers");
        }
    } else if !is_native(resource) && !is_extended(resource) {
        let why = "doesn't follow extended resource name standard";
        problems.invalid_value(place, &json!(resource), why);
    }
}

fn pod_resource(resource: &str, place: &FieldCursor, problems: &mut ValidationErrors) {
    let is_supported = matches!(resource, "cpu" | "memory") || is_huge(resource);
    if resource_name(resource, place, problems) && !is_supported {
        problems.not_supported_value(place, &json!(resource), &["cpu", "hugepages-", "memory"]);
    }
}

fn quantity(place: &FieldCursor) -> Option<Quantity> {
    Quantity::parse(place.text()).ok()
}

/// Not negative, and whole where there are no halves.
pub(crate) fn check_quantity_value(resource: &str, place: &FieldCursor, problems: &mut ValidationErrors) {
    let Some(amount) = quantity(place) else { return };
    if amount.is_negative() {
        let why = "must be greater than or equal to 0";
        problems.invalid_value(place, &json!(amount.canonical()), why);
    }
    let counts = is_extended(resource)
        || matches!(
            resource,
            "pods"
                | "resourcequotas"
                | "services"
                | "replicationcontrollers"
                | "secrets"
                | "persistentvolumeclaims"
                | "configmaps"
                | "services.nodeports"
                | "services.loadbalancers"
        );
    if counts && !amount.is_whole() {
        problems.invalid(place, "must be an integer");
    }
}

pub(super) fn check_container(resources: &FieldCursor, spec: &FieldCursor, problems: &mut ValidationErrors) {
    check(resources, container_resource, problems);
    check_claims(&resources.at("claims"), spec, problems);
}

pub(super) fn check_pod(pod: &PodValidation<'_, '_>, problems: &mut ValidationErrors) {
    let resources = pod.spec.at("resources");
    if !resources.is_set() {
        return;
    }
    if resources.has("claims") {
        problems.forbidden(&resources.at("claims"), "claims may not be set for Resources at pod-level");
    }
    check(&resources, pod_resource, problems);
}

fn check(
    resources: &FieldCursor,
    check_name: fn(&str, &FieldCursor, &mut ValidationErrors),
    problems: &mut ValidationErrors,
) {
    let (limits, requests) = (resources.at("limits"), resources.at("requests"));
    for (resource, limit) in limits.entries() {
        check_name(resource, &limit, problems);
        check_quantity_value(resource, &limit, problems);
        check_huge(resource, &limit, problems);
    }
    for (resource, request) in requests.entries() {
        check_name(resource, &request, problems);
        check_quantity_value(resource, &request, problems);
        check_limit(resource, &request, &limits, &requests, problems);
        check_huge(resource, &request, problems);
    }
    let has = |wanted: fn(&str) -> bool| {
        limits.entries().chain(requests.entries()).any(|(resource, _)| wanted(resource))
    };
    if has(is_huge) && !has(|resource| matches!(resource, "cpu" | "memory")) {
        problems.forbidden(resources, "HugePages require cpu or memory");
    }
}

/// Requests are at most the limit; what cannot be overcommitted is requested as a whole.
fn check_limit(
    resource: &str,
    request: &FieldCursor,
    limits: &FieldCursor,
    requests: &FieldCursor,
    problems: &mut ValidationErrors,
) {
    let limit = limits.key(resource);
    if !limit.is_set() {
        if !may_overcommit(resource) {
            problems.required(limits, "Limit must be set for non overcommitable resources");
        }
        return;
    }
    let (Some(request), Some(limit)) = (quantity(request), quantity(&limit)) else { return };
    let order = request.compare(&limit);
    let relation = match (order.is_eq(), may_overcommit(resource), order.is_gt()) {
        (false, false, _) => "must be equal to",
        (_, _, true) => "must be less than or equal to",
        _ => return,
    };
    let why = format!("{relation} {resource} limit of {}", limit.canonical());
    problems.invalid_value(requests, &json!(request.canonical()), &why);
}

/// Huge pages come whole.
fn check_huge(resource: &str, place: &FieldCursor, problems: &mut ValidationErrors) {
    let Some(size) = resource.strip_prefix("hugepages-").and_then(|size| Quantity::parse(size).ok()) else {
        return;
    };
    let Some(amount) = quantity(place) else { return };
    let (size, value) = (size.value(), amount.value());
    if size <= 0 || value % size != 0 {
        let why = format!("{} is not positive integer multiple of {resource}", amount.canonical());
        problems.invalid_value(place, &json!(amount.canonical()), &why);
    }
}

fn check_claims(claims: &FieldCursor, spec: &FieldCursor, problems: &mut ValidationErrors) {
    let named = spec.at("resourceClaims");
    for claim in claims.items() {
        let name = claim.at("name");
        if name.is_empty() {
            problems.required(&claim, "");
            continue;
        }
        if claims.value().as_array().is_some_and(|all| {
            all.iter().take_while(|one| !std::ptr::eq(*one, claim.value())).any(|one| one == claim.value())
        }) {
            problems.duplicate(&claim, name.value());
        }
        if !named.items().any(|one| one.at("name").text() == name.text()) {
            let mut names: Vec<&str> = named
                .value()
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|one| one["name"].as_str())
                .collect();
            names.sort_unstable();
            let rest = if names.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", names.join(", "))
            };
            let message = format!(
                "Not found: \"{}\": must be one of the names in pod.spec.resourceClaims{rest}",
                name.text()
            );
            problems.add(&claim, "FieldValueNotFound", message);
        }
    }
}

/// The unit in which a variable or file holds a resource.
pub(super) fn check_divisor(resource: &FieldCursor, problems: &mut ValidationErrors) {
    let (name, divisor) = (resource.at("resource"), resource.at("divisor"));
    let Some(unit) = quantity(&divisor).filter(|unit| !unit.is_zero()) else { return };
    let sizes = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let is_size = sizes.contains(&unit.canonical().as_str());
    let wrong = |what: &str| {
        format!("only divisor's values {} are supported with the {what} resource", sizes.join(", "))
    };
    let why = match name.text().split_once('.').map_or("", |(_, resource)| resource) {
        "cpu" if !matches!(unit.canonical().as_str(), "1m" | "1") => {
            "only divisor's values 1m and 1 are supported with the cpu resource".to_owned()
        }
        "memory" if !is_size => wrong("memory"),
        "ephemeral-storage" if !is_size => wrong("local ephemeral storage"),
        resource if is_huge(resource) && !is_size => wrong("hugepages"),
        _ => return,
    };
    problems.invalid_value(&divisor, &json!(name.text()), &why);
}
