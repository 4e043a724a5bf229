//! Validates the CEL rules of a definition.

use serde_json::{Value, json};

use super::names::not_supported;
use crate::api_error::FieldError;
use crate::custom::rules;
use crate::custom::schema::{is, list, text};

const REASONS: &[&str] =
    &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Validates the rules of the schema at `path`, without types and costs.
pub(super) fn mistakes(shape: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (at, rule) in list(shape, "x-kubernetes-validations").iter().enumerate() {
        of_rule(rule, shape, &format!("{path}.x-kubernetes-validations[{at}]"), errors);
    }
}

fn of_rule(rule: &Value, shape: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const EMPTY: &str = "must be non-empty if specified";
    const BROKEN: &str = "must not contain line breaks";
    let said = |name: &str| text(rule, name);
    let place = |name: &str| format!("{path}.{name}");
    let invalid = |name: &str, why: &str| FieldError::invalid(place(name), &json!(said(name)), why);
    let is_blank = |name: &str| said(name).trim().is_empty();
    let is_broken = |name: &str| said(name).trim().contains('\n');
    let is_empty = |name: &str| !said(name).is_empty() && is_blank(name);
    if is_blank("rule") {
        errors.push(FieldError::required(place("rule"), "rule is not specified"));
    }
    if is_empty("message") {
        errors.push(invalid("message", EMPTY));
    } else if is_broken("message") {
        errors.push(invalid("message", BROKEN));
    } else if is_broken("rule") && is_blank("message") {
        let why = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(place("message"), why));
    }
    if is_empty("messageExpression") {
        let why = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(place("messageExpression"), why));
    }
    if !said("reason").is_empty() && !REASONS.contains(&said("reason")) {
        errors.push(not_supported(place("reason"), said("reason"), REASONS));
    }
    let field_path = said("fieldPath");
    if is_empty("fieldPath") {
        errors.push(invalid("fieldPath", EMPTY));
    }
    if field_path.contains('\n') {
        errors.push(invalid("fieldPath", BROKEN));
    }
    if !field_path.is_empty() && rules::field_path(field_path, shape).is_none() {
        errors.push(invalid("fieldPath", "must be a valid path"));
    }
    if is(rule, "optionalOldSelf") && rules::uses_old_value(said("rule")) == Some(false) {
        let why = "may not be set if oldSelf is not used in rule";
        errors.push(FieldError::invalid(place("optionalOldSelf"), &json!(true), why));
    }
}
