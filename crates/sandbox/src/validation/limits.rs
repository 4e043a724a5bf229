//! Validates ResourceQuotas, LimitRanges and PriorityClasses.

use std::collections::BTreeSet;

use serde_json::json;

use super::field_cursor::FieldCursor;
use super::formats;
use super::pod::{check_quantity_value, container_resource, is_standard_quota_resource, resource_name};
use super::validation_errors::ValidationErrors;
use crate::quantity::Quantity;

const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
const PAIRS: &[(&str, &str)] = &[("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")];

pub(super) fn check_quota(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    let hard = spec.at("hard");
    for (resource, amount) in hard.entries() {
        resource_name(resource, &amount, problems);
        if !resource.contains('/') && !is_standard_quota_resource(resource) {
            problems.invalid_value(&amount, &json!(resource), "must be a standard resource for quota");
        }
        check_quantity_value(resource, &amount, problems);
    }
    let scopes = spec.at("scopes");
    for scope in scopes.items() {
        if !SCOPES.contains(&scope.text()) {
            problems.invalid(&scopes, "unsupported scope");
        }
        for (resource, _) in hard.entries() {
            if is_standard_quota_resource(resource) && !scope_holds(scope.text(), resource) {
                problems.invalid(&scopes, "unsupported scope applied to resource");
            }
        }
    }
    let has = |wanted: &str| scopes.items().any(|scope| scope.is(wanted));
    for _ in PAIRS.iter().filter(|(left, right)| has(left) && has(right)) {
        problems.invalid(&scopes, "conflicting scopes");
    }
    check_scope_selector(&spec, problems);
}

/// Does the scope apply to the resource?
fn scope_holds(scope: &str, resource: &str) -> bool {
    let is_compute = matches!(
        resource,
        "cpu" | "memory" | "limits.cpu" | "limits.memory" | "requests.cpu" | "requests.memory"
    );
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => resource == "pods" || is_compute,
    }
}

fn check_scope_selector(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let selector = spec.at("scopeSelector");
    let requirements = selector.at("matchExpressions");
    for requirement in requirements.items() {
        // the server forgets the index
        let named = |field: &'static str| requirements.called(field, requirement.at(field).value());
        let (scope, operator, values) = (named("scopeName"), named("operator"), named("values"));
        if !SCOPES.contains(&scope.text()) {
            problems.invalid_value(&scope, &json!(scope.text()), "unsupported scope");
        }
        let is_plain = matches!(
            scope.text(),
            "BestEffort" | "NotBestEffort" | "Terminating" | "NotTerminating" | "CrossNamespacePodAffinity"
        );
        if is_plain && !operator.is("Exists") {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            problems.invalid_value(&operator, &json!(operator.text()), why);
        }
        match operator.text() {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let why =
                        "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                    problems.required(&values, why);
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let why =
                        "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                    problems.invalid(&values, why);
                }
            }
            other => problems.invalid_value(&operator, &json!(other), "not a valid selector operator"),
        }
    }
}

pub(super) fn check_quota_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    let set = |object: &FieldCursor| {
        let scopes = object.at("spec.scopes").value().as_array().cloned().unwrap_or_default();
        scopes.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect::<BTreeSet<_>>()
    };
    if set(live) != set(new) {
        problems.invalid(&new.at("spec.scopes"), "field is immutable");
    }
}

pub(super) fn check_limit_range(object: &FieldCursor, problems: &mut ValidationErrors) {
    let mut kinds = BTreeSet::new();
    let spec = object.at("spec");
    for limit in spec.at("limits").items() {
        let kind = limit.at("type");
        let wrong = formats::qualified_name(kind.text());
        let is_known = matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim");
        if wrong.is_empty() && !is_known && !kind.text().contains('/') {
            problems.invalid(&kind, "must be a standard limit type or fully qualified");
        }
        for message in wrong {
            problems.invalid_value(&kind, &json!(kind.text()), &message);
        }
        if !kinds.insert(kind.text()) {
            problems.duplicate(&kind, &json!(kind.text()));
        }
        check_limit(&limit, problems);
    }
}

fn check_limit(limit: &FieldCursor, problems: &mut ValidationErrors) {
    let is_pod = limit.at("type").is("Pod");
    let mut resources = BTreeSet::new();
    for list in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let amounts = limit.at(list);
        if list == "maxLimitRequestRatio" {
            check_claim_limit(limit, problems);
        }
        if is_pod && list.starts_with("default") {
            if !amounts.is_empty() {
                problems.forbidden(&amounts, "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        for (resource, amount) in amounts.entries() {
            if matches!(limit.at("type").text(), "Pod" | "Container") {
                container_resource(resource, &amount, problems);
            } else {
                resource_name(resource, &amount, problems);
            }
            resources.insert(resource);
        }
    }
    for resource in resources {
        check_order(limit, resource, is_pod, problems);
    }
}

fn check_claim_limit(limit: &FieldCursor, problems: &mut ValidationErrors) {
    let has = |list: &str| limit.at(list).key("storage").is_set();
    if limit.at("type").is("PersistentVolumeClaim") && !has("min") && !has("max") {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        problems.required(&limit.at("limits"), why);
    }
}

/// `min ≤ defaultRequest ≤ default ≤ max`.
fn check_order(limit: &FieldCursor, resource: &str, is_pod: bool, problems: &mut ValidationErrors) {
    let amount = |list: &str| {
        let is_left_out = is_pod && list.starts_with("default");
        Quantity::parse(limit.at(list).key(resource).text()).ok().filter(|_| !is_left_out)
    };
    // less, its name, more, its name, where it is said, what is shown
    let rules = [
        ("min", "min value", "max", "max value", "min", "min"),
        ("min", "min value", "defaultRequest", "default request value", "defaultRequest", "defaultRequest"),
        ("defaultRequest", "default request value", "max", "max value", "defaultRequest", "defaultRequest"),
        (
            "defaultRequest",
            "default request value",
            "default",
            "default limit value",
            "defaultRequest",
            "defaultRequest",
        ),
        ("min", "min value", "default", "default value", "default", "min"),
        ("default", "default value", "max", "max value", "default", "max"),
    ];
    for (less, less_name, more, more_name, said, shown) in rules {
        let (Some(low), Some(high)) = (amount(less), amount(more)) else { continue };
        if low.compare(&high).is_gt() {
            let why =
                format!("{less_name} {} is greater than {more_name} {}", low.canonical(), high.canonical());
            let list = limit.at(said);
            problems.invalid_value(&list.key(resource), limit.at(shown).key(resource).value(), &why);
        }
    }
    let ratios = limit.at("maxLimitRequestRatio");
    if let (Some(ratio), Ok(one)) = (amount("maxLimitRequestRatio"), Quantity::parse("1"))
        && ratio.compare(&one).is_lt()
    {
        problems.invalid(&ratios.key(resource), &format!("ratio {} is less than 1", ratio.canonical()));
    }
}

const HIGHEST: i64 = 1_000_000_000;

pub(super) fn check_priority(object: &FieldCursor, problems: &mut ValidationErrors) {
    let (name, value) = (object.at("metadata.name"), object.at("value"));
    let known = match name.text() {
        "system-node-critical" => Some(2_000_001_000),
        "system-cluster-critical" => Some(2_000_000_000),
        _ => None,
    };
    if name.text().starts_with("system-") && known != Some(value.number()) {
        let what = match known {
            Some(known) => format!("value of {} PriorityClass must be {known}", name.text()),
            None => format!("{} is not a known system priority class", name.text()),
        };
        let why = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {what}"
        );
        problems.forbidden(&name, &why);
    } else if known.is_none() && value.number() > HIGHEST {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        problems.forbidden(&value, &why);
    }
    let policy = object.at("preemptionPolicy");
    if policy.is_set() {
        problems.check_one_of(&policy, &["PreemptLowerPriority", "Never"]);
    }
}

pub(super) fn check_priority_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    if live.at("value").number() != new.at("value").number() {
        problems.forbidden(&new.at("value"), "may not be changed in an update.");
    }
    let policy = "preemptionPolicy";
    problems.check_unchanged(&live.at(policy), &new.at(policy), "field is immutable");
}
