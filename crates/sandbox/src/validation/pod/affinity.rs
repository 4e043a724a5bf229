//! Validates node and pod affinity.

use crate::validation::field_cursor::FieldCursor;
use crate::validation::formats;
use crate::validation::metadata;
use crate::validation::selector;
use crate::validation::validation_errors::ValidationErrors;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn check(affinity: &FieldCursor, problems: &mut ValidationErrors) {
    let nodes = affinity.at("nodeAffinity");
    if nodes.has(REQUIRED) {
        node_selector(&nodes.at(REQUIRED), problems);
    }
    for term in nodes.at(PREFERRED).items() {
        check_weight(&term, problems);
        node_selector_term(&term.at("preference"), true, problems);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.at(kind);
        for term in pods.at(REQUIRED).items() {
            pod_term(&term, problems);
        }
        for term in pods.at(PREFERRED).items() {
            check_weight(&term, problems);
            pod_term(&term.at("podAffinityTerm"), problems);
        }
    }
}

fn check_weight(term: &FieldCursor, problems: &mut ValidationErrors) {
    let weight = term.at("weight");
    if !(1..=100).contains(&weight.number()) {
        problems.invalid_value(&weight, &weight.number().into(), "must be in the range 1-100");
    }
}

pub(crate) fn node_selector(selector: &FieldCursor, problems: &mut ValidationErrors) {
    let terms = selector.at("nodeSelectorTerms");
    if terms.is_empty() {
        return problems.required(&terms, "must have at least one node selector term");
    }
    node_selector_terms_only(&terms, problems);
}

fn node_selector_terms_only(terms: &FieldCursor, problems: &mut ValidationErrors) {
    for term in terms.items() {
        node_selector_term(&term, false, problems);
    }
}

fn node_selector_term(term: &FieldCursor, any_value: bool, problems: &mut ValidationErrors) {
    for requirement in term.at("matchExpressions").items() {
        let (operator, values) = (requirement.at("operator"), requirement.at("values"));
        if matches!(operator.text(), "Gt" | "Lt") {
            if values.len() != 1 {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                problems.required(&values, why);
            }
        } else {
            selector::check_operator(&requirement, problems);
        }
        metadata::label_name(&requirement.at("key"), problems);
        if !any_value {
            for value in values.items() {
                problems.invalid_each(&value, formats::label_value(value.text()));
            }
        }
    }
    for requirement in term.at("matchFields").items() {
        let (operator, values, key) =
            (requirement.at("operator"), requirement.at("values"), requirement.at("key"));
        if !matches!(operator.text(), "In" | "NotIn") {
            problems.invalid_value(&operator, &operator.text().into(), "not a valid selector operator");
        } else if values.len() != 1 {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            problems.required(&values, why);
        }
        if !key.is("metadata.name") {
            problems.invalid_value(&key, &key.text().into(), "not a valid field selector key");
            continue;
        }
        for value in values.items() {
            problems.invalid_each(&value, formats::dns_subdomain(value.text()));
        }
    }
}

fn pod_term(term: &FieldCursor, problems: &mut ValidationErrors) {
    for field in ["labelSelector", "namespaceSelector"] {
        selector::check(&term.at(field), problems);
    }
    for name in term.at("namespaces").items() {
        let namespace = term.called("namespace", name.value());
        problems.invalid_each(&namespace, formats::dns_label(name.text()));
    }
    selector::check_label_keys(term, &["matchLabelKeys", "mismatchLabelKeys"], problems);
    let topology = term.at("topologyKey");
    if topology.is_empty() {
        problems.required(&topology, "can not be empty");
    }
    metadata::label_name(&topology, problems);
}
