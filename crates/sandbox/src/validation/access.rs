//! Roles and their bindings.

use serde_json::{Value, json};

use super::field_cursor::FieldCursor;
use super::validation_errors::{ValidationErrors, same};
use super::{formats, selector};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn check_role(role: &FieldCursor, is_namespaced: bool, problems: &mut ValidationErrors) {
    for rule in role.at("rules").items() {
        let (verbs, urls) = (rule.at("verbs"), rule.at("nonResourceURLs"));
        if verbs.is_empty() {
            problems.required(&verbs, "verbs must contain at least one value");
        }
        if !urls.is_empty() {
            if is_namespaced {
                problems.invalid(&urls, "namespaced rules cannot apply to non-resource URLs");
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !rule.at(field).is_empty()) {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                problems.invalid(&urls, why);
            }
            continue;
        }
        for (field, what) in [("apiGroups", "api group"), ("resources", "resource")] {
            if rule.at(field).is_empty() {
                let why = format!("resource rules must supply at least one {what}");
                problems.required(&rule.at(field), &why);
            }
        }
    }
    let aggregation = role.at("aggregationRule");
    let selectors = aggregation.at("clusterRoleSelectors");
    if aggregation.is_set() && selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        problems.required(&selectors, why);
    }
    for selected in selectors.items() {
        selector::check(&selected, problems);
    }
}

pub(super) fn check_binding(binding: &FieldCursor, is_namespaced: bool, problems: &mut ValidationErrors) {
    let role = binding.at("roleRef");
    if !role.at("apiGroup").is(GROUP) {
        problems.not_supported(&role.at("apiGroup"), &[GROUP]);
    }
    let kinds: &[&str] = if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&role.at("kind").text()) {
        problems.not_supported(&role.at("kind"), kinds);
    }
    let name = role.at("name");
    if name.is_empty() {
        problems.required(&name, "");
    } else {
        problems.invalid_each(&name, formats::path_segment(name.text()));
    }
    for subject in binding.at("subjects").items() {
        check_subject(&subject, is_namespaced, problems);
    }
}

fn check_subject(subject: &FieldCursor, is_namespaced: bool, problems: &mut ValidationErrors) {
    let (kind, name, group) = (subject.at("kind"), subject.at("name"), subject.at("apiGroup"));
    if name.is_empty() {
        problems.required(&name, "");
    }
    match kind.text() {
        "ServiceAccount" => {
            if !name.is_empty() {
                problems.invalid_each(&name, formats::dns_subdomain(name.text()));
            }
            if !group.is_empty() {
                problems.not_supported(&group, &[""]);
            }
            if !is_namespaced && subject.at("namespace").is_empty() {
                problems.required(&subject.at("namespace"), "");
            }
        }
        "User" | "Group" => {
            if !group.is(GROUP) {
                problems.not_supported(&group, &[GROUP]);
            }
        }
        _ => problems.not_supported(&kind, &["ServiceAccount", "User", "Group"]),
    }
}

/// A binding never changes its role.
pub(super) fn check_binding_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    let role = new.at("roleRef");
    if !same(live.at("roleRef").value(), role.value()) {
        let part = |field: &str| Value::from(role.at(field).text());
        let shown = json!({"APIGroup": part("apiGroup"), "Kind": part("kind"), "Name": part("name")});
        problems.invalid_value(&role, &shown, "cannot change roleRef");
    }
}
