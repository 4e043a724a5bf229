//! Label selectors.

use std::collections::BTreeSet;

use serde_json::json;

use super::field_cursor::FieldCursor;
use super::validation_errors::ValidationErrors;
use super::{formats, metadata};

pub(super) fn check(selector: &FieldCursor, problems: &mut ValidationErrors) {
    metadata::labels(&selector.at("matchLabels"), problems);
    for requirement in selector.at("matchExpressions").items() {
        check_operator(&requirement, problems);
        metadata::label_name(&requirement.at("key"), problems);
        for value in requirement.at("values").items() {
            problems.invalid_each(&value, formats::label_value(value.text()));
        }
    }
}

/// Values are required for operators that use them, and forbidden elsewhere.
pub(super) fn check_operator(requirement: &FieldCursor, problems: &mut ValidationErrors) {
    let (operator, values) = (requirement.at("operator"), requirement.at("values"));
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => {
            problems.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            problems.forbidden(&values, why);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => problems.invalid_value(&operator, &json!(other), "not a valid selector operator"),
    }
}

pub(super) fn is_empty(selector: &FieldCursor) -> bool {
    selector.at("matchLabels").is_empty() && selector.at("matchExpressions").is_empty()
}

/// Can the server make a selector of it?
pub(super) fn is_usable(selector: &FieldCursor) -> bool {
    let mut problems = ValidationErrors::default();
    check(selector, &mut problems);
    problems.len() == 0
}

/// The label keys whose values a pod itself brings to a selector.
pub(super) fn check_label_keys(owner: &FieldCursor, fields: &[&str], problems: &mut ValidationErrors) {
    let selector = owner.at("labelSelector");
    for field in fields {
        let keys = owner.at(field);
        if !keys.is_empty() && !selector.is_set() {
            problems.forbidden(&keys, "must not be specified when labelSelector is not set");
            continue;
        }
        for key in keys.items() {
            metadata::label_name(&key, problems);
        }
    }
    let keys = owner.at("matchLabelKeys");
    let mut known: BTreeSet<&str> = selector.at("matchLabels").entries().map(|(key, _)| key).collect();
    for expression in selector.at("matchExpressions").items() {
        let key = expression.at("key").text();
        if let Some(at) = keys.items().position(|one| one.text() == key)
            && known.contains(key)
        {
            let why = "exists in both matchLabelKeys and labelSelector";
            problems.invalid_value(&owner.item(at), &json!(key), why);
        }
        known.insert(key);
    }
    for key in keys.items() {
        if owner.at("mismatchLabelKeys").items().any(|other| other.value() == key.value()) {
            problems.invalid(&key, "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}
