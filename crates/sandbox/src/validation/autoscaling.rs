//! Autoscalers.

use serde_json::json;

use super::field_cursor::FieldCursor;
use super::formats;
use super::validation_errors::ValidationErrors;
use crate::quantity::Quantity;

const METRICS: &[&str] = &["ContainerResource", "External", "Object", "Pods", "Resource"];

pub(super) fn check(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    let (least, most) = (spec.at("minReplicas"), spec.at("maxReplicas"));
    if least.integer().is_some_and(|replicas| replicas < 1) {
        problems.invalid(&least, "must be greater than or equal to 1");
    }
    match most.number() {
        0 => problems.required(&most, "must be set and greater than 0"),
        number if number < 0 => problems.invalid(&most, "must be greater than or equal to 1"),
        _ => {}
    }
    if least.is_set() && most.number() < least.number() {
        let why = "must be greater than or equal to `minReplicas`";
        problems.invalid_value(&most, &json!(most.number()), why);
    }
    check_reference(&spec.at("scaleTargetRef"), problems);
    let version = spec.at("scaleTargetRef.apiVersion");
    if !version.text().contains('/') {
        problems.invalid_value(&version, &json!(version.text()), "apiVersion must specify API group");
    }
    for metric in spec.at("metrics").items() {
        check_metric(&metric, problems);
    }
    for rules in ["scaleUp", "scaleDown"] {
        let behavior = spec.at("behavior");
        let rules = behavior.at(rules);
        if rules.is_set() {
            check_rules(&rules, problems);
        }
    }
}

fn check_reference(target: &FieldCursor, problems: &mut ValidationErrors) {
    for field in ["kind", "name"] {
        let part = target.at(field);
        if part.is_empty() {
            problems.required(&part, "");
        } else {
            problems.invalid_each(&part, formats::path_segment(part.text()));
        }
    }
    let version = target.at("apiVersion");
    if version.text().matches('/').count() > 1 {
        problems.invalid(&version, &format!("unexpected GroupVersion string: {}", version.text()));
    }
}

fn check_metric(metric: &FieldCursor, problems: &mut ValidationErrors) {
    let kind = metric.at("type");
    if kind.is_empty() {
        problems.required(&kind, "must specify a metric source type");
    }
    let is_known = METRICS.contains(&kind.text());
    if !is_known {
        problems.not_supported(&kind, METRICS);
    }
    let sources = ["object", "external", "pods", "resource", "containerResource"];
    let mut found = sources.iter().filter(|source| metric.has(source));
    if let Some(first) = found.next() {
        check_source(first, &metric.at(first), problems);
    }
    let expected = match kind.text() {
        "Object" => "object",
        "External" => "external",
        "Pods" => "pods",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => "",
    };
    if !is_known {
        problems.not_supported(&kind, METRICS);
    } else if !metric.has(expected) {
        problems.required(&metric.at(expected), "must populate information for the given metric source");
    }
    let present = sources.iter().filter(|source| metric.has(source)).count();
    for other in sources.iter().filter(|source| present != 1 && metric.has(source) && **source != expected) {
        problems.forbidden(&metric.at(other), "must populate the given metric source only");
    }
}

fn check_source(kind: &str, source: &FieldCursor, problems: &mut ValidationErrors) {
    let target = source.at("target");
    let (value, average) = (target.at("value"), target.at("averageValue"));
    match kind {
        "resource" | "containerResource" => {
            if source.at("name").is_empty() {
                problems.required(&source.at("name"), "must specify a resource name");
            }
            let container = source.at("container");
            if kind == "containerResource" && container.is_empty() {
                problems.required(&container, "must specify a container");
            } else if kind == "containerResource" {
                problems.invalid_each(&container, formats::dns_label(container.text()));
            }
            check_target(&target, problems);
            let share = target.at("averageUtilization");
            if !share.is_set() && !average.is_set() {
                problems.required(&share, "must set either a target raw value or a target utilization");
            } else if share.is_set() && average.is_set() {
                problems.forbidden(&average, "may not set both a target raw value and a target utilization");
            }
            return;
        }
        "object" => check_reference(&source.at("describedObject"), problems),
        _ => {}
    }
    let name = source.at("metric.name");
    if name.is_empty() {
        problems.required(&name, "must specify a metric name");
    } else {
        problems.invalid_each(&name, formats::path_segment(name.text()));
    }
    check_target(&target, problems);
    match (kind, value.is_set(), average.is_set()) {
        ("object", false, false) => {
            problems.required(&average, "must set either a target value or averageValue");
        }
        ("external", false, false) => {
            let why = "must set either a target value for metric or a per-pod target";
            problems.required(&average, why);
        }
        ("external", true, true) => {
            let why = "may not set both a target value for metric and a per-pod target";
            problems.forbidden(&value, why);
        }
        ("pods", _, false) => problems.required(&average, "must specify a positive target averageValue"),
        _ => {}
    }
}

fn check_target(target: &FieldCursor, problems: &mut ValidationErrors) {
    let kind = target.at("type");
    if kind.is_empty() {
        problems.required(&kind, "must specify a metric target type");
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        let why = "must be either Utilization, Value, or AverageValue";
        problems.invalid_value(&kind, &json!(kind.text()), why);
    }
    for field in ["value", "averageValue"] {
        let amount = target.at(field);
        if Quantity::parse(amount.text()).is_ok_and(|one| one.is_negative() || one.is_zero()) {
            problems.invalid(&amount, "must be positive");
        }
    }
    let share = target.at("averageUtilization");
    if share.integer().is_some_and(|share| share < 1) {
        problems.invalid(&share, "must be greater than 0");
    }
}

fn check_rules(rules: &FieldCursor, problems: &mut ValidationErrors) {
    let window = rules.at("stabilizationWindowSeconds");
    if window.number() < 0 {
        problems.invalid(&window, "must be greater than or equal to zero");
    }
    if window.number() > 3_600 {
        problems.invalid(&window, "must be less than or equal to 3600");
    }
    problems.check_if_one_of(&rules.at("selectPolicy"), &["Disabled", "Max", "Min"]);
    let policies = rules.at("policies");
    if policies.is_empty() {
        problems.required(&policies, "must specify at least one Policy");
    }
    for policy in policies.items() {
        let (kind, period) = (policy.at("type"), policy.at("periodSeconds"));
        if !matches!(kind.text(), "Pods" | "Percent") {
            problems.not_supported(&kind, &["Percent", "Pods"]);
        }
        for field in [policy.at("value"), period] {
            if field.number() <= 0 {
                problems.invalid_value(&field, &json!(field.number()), "must be greater than zero");
            }
        }
        if period.number() > 1_800 {
            problems.invalid(&period, "must be less than or equal to 1800");
        }
    }
    let tolerance = rules.at("tolerance");
    if Quantity::parse(tolerance.text()).is_ok_and(|one| one.is_negative()) {
        problems.invalid(&tolerance, "must be greater than or equal to 0");
    }
}
