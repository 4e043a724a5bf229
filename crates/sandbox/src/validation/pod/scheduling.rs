//! Gates, spreading and tolerations.

use std::collections::BTreeSet;

use serde_json::json;

use crate::validation::field_cursor::FieldCursor;
use crate::validation::formats;
use crate::validation::metadata;
use crate::validation::selector;
use crate::validation::validation_errors::ValidationErrors;

pub(super) fn check_gates(spec: &FieldCursor, problems: &mut ValidationErrors) {
    for gate in spec.at("readinessGates").items() {
        metadata::label_name(&gate.at("conditionType"), problems);
    }
    let mut seen = BTreeSet::new();
    for gate in spec.at("schedulingGates").items() {
        let name = gate.at("name").text();
        for message in formats::qualified_name(name) {
            problems.invalid_value(&gate, &json!(name), &message);
        }
        if !seen.insert(name) {
            problems.duplicate(&gate, &json!(name));
        }
    }
}

pub(super) fn check_spread(constraints: &FieldCursor, problems: &mut ValidationErrors) {
    let key_of = |constraint: &FieldCursor| {
        format!("{{{}, {}}}", constraint.at("topologyKey").text(), constraint.at("whenUnsatisfiable").text())
    };
    for (at, constraint) in constraints.items().enumerate() {
        let (skew, when) = (constraint.at("maxSkew"), constraint.at("whenUnsatisfiable"));
        if skew.number() <= 0 {
            problems.invalid_value(&skew, &json!(skew.number()), "must be greater than zero");
        }
        if constraint.at("topologyKey").is_empty() {
            problems.required(&constraint.at("topologyKey"), "can not be empty");
        }
        if !matches!(when.text(), "DoNotSchedule" | "ScheduleAnyway") {
            problems.not_supported(&when, &["DoNotSchedule", "ScheduleAnyway"]);
        }
        let key = key_of(&constraint);
        if constraints.items().skip(at + 1).any(|other| key_of(&other) == key) {
            problems.duplicate(&constraint.at("{topologyKey, whenUnsatisfiable}"), &json!(key));
        }
        check_domains(&constraint, problems);
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            problems.check_if_one_of(&constraint.at(policy), &["Honor", "Ignore"]);
        }
        selector::check_label_keys(&constraint, &["matchLabelKeys"], problems);
        selector::check(&constraint.at("labelSelector"), problems);
    }
}

fn check_domains(constraint: &FieldCursor, problems: &mut ValidationErrors) {
    let (domains, when) = (constraint.at("minDomains"), constraint.at("whenUnsatisfiable"));
    if !domains.is_set() {
        return;
    }
    problems.check_positive(&domains);
    if !when.is("DoNotSchedule") {
        let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", when.text());
        problems.invalid(&domains, &why);
    }
}

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) fn check_tolerations(tolerations: &FieldCursor, problems: &mut ValidationErrors) {
    for toleration in tolerations.items() {
        let (key, operator) = (toleration.at("key"), toleration.at("operator"));
        let (value, effect) = (toleration.at("value"), toleration.at("effect"));
        if key.is_empty() {
            if !operator.is("Exists") {
                let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
                problems.invalid_value(&operator, &json!(operator.text()), why);
            }
        } else {
            metadata::label_name(&key, problems);
        }
        if toleration.has("tolerationSeconds") && !effect.is("NoExecute") {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            problems.invalid_value(&effect, &json!(effect.text()), why);
        }
        match operator.text() {
            "" | "Equal" => {
                let wrong = formats::label_value(value.text());
                if !wrong.is_empty() {
                    problems.invalid_value(&operator, value.value(), &wrong.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                problems.invalid_value(
                    &operator,
                    value.value(),
                    "value must be empty when `operator` is 'Exists'",
                );
            }
            "Exists" => {}
            "Lt" | "Gt" => problems.not_supported(&operator, &["Equal", "Exists", "Lt", "Gt"]),
            _ => problems.not_supported(&operator, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            problems.check_if_one_of(&effect, EFFECTS);
        }
    }
}
