//! Network policies and disruption budgets.

use serde_json::{Value, json};

use super::field_cursor::FieldCursor;
use super::validation_errors::ValidationErrors;
use super::workload::{check_share, check_whole};
use super::{formats, selector};

pub(super) fn check_network_policy(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    selector::check(&spec.at("podSelector"), problems);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.at(direction).items() {
            for port in rule.at("ports").items() {
                check_policy_port(&port, problems);
            }
            for peer in rule.at(peers).items() {
                check_peer(&peer, problems);
            }
        }
    }
    let types = spec.at("policyTypes");
    if types.len() > 2 {
        return problems.invalid(&types, "may not specify more than two policyTypes");
    }
    for kind in types.items() {
        problems.check_if_one_of(&kind, &["Ingress", "Egress"]);
    }
}

fn check_policy_port(entry: &FieldCursor, problems: &mut ValidationErrors) {
    let (protocol, port, end) = (entry.at("protocol"), entry.at("port"), entry.at("endPort"));
    problems.check_if_one_of(&protocol, &["TCP", "UDP", "SCTP"]);
    match port.value() {
        Value::Null => {
            if end.is_set() {
                problems.invalid(&end, "may not be specified when `port` is not specified");
            }
        }
        Value::String(name) => {
            if end.is_set() {
                problems.invalid(&end, "may not be specified when `port` is non-numeric");
            }
            problems.invalid_each(&port, formats::port_name(name));
        }
        _ => {
            problems.invalid_each(&port, formats::port_number(port.number()));
            if end.is_set() {
                if end.number() < port.number() {
                    problems.invalid_value(&end, port.value(), "must be greater than or equal to `port`");
                }
                problems.invalid_each(&end, formats::port_number(end.number()));
            }
        }
    }
}

fn check_peer(peer: &FieldCursor, problems: &mut ValidationErrors) {
    let (pods, namespaces, block) =
        (peer.at("podSelector"), peer.at("namespaceSelector"), peer.at("ipBlock"));
    selector::check(&pods, problems);
    selector::check(&namespaces, problems);
    if block.is_set() {
        check_block(&block, problems);
    }
    match [pods, namespaces, block].iter().filter(|one| one.is_set()).count() {
        0 => problems.required(peer, "must specify a peer"),
        1 => {}
        _ if block.is_set() => problems.forbidden(peer, "may not specify both ipBlock and another peer"),
        _ => {}
    }
}

fn check_block(block: &FieldCursor, problems: &mut ValidationErrors) {
    let whole = block.at("cidr");
    if whole.is_empty() {
        return problems.required(&whole, "");
    }
    problems.invalid_each(&whole, formats::cidr(whole.text()));
    let Some((address, length)) = formats::parse_cidr(whole.text()) else { return };
    for except in block.at("except").items() {
        problems.invalid_each(&except, formats::cidr(except.text()));
        let Some((inner, inner_length)) = formats::parse_cidr(except.text()) else { continue };
        if inner_length <= length || !formats::is_within(inner, address, length) {
            problems.invalid(&except, "must be a strict subset of `cidr`");
        }
    }
}

pub(super) fn check_budget(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    let (least, most) = (spec.at("minAvailable"), spec.at("maxUnavailable"));
    if least.is_set() && most.is_set() {
        let shown = json!({"MaxUnavailable": most.value(), "MinAvailable": least.value(),
            "Selector": spec.at("selector").value(),
            "UnhealthyPodEvictionPolicy": spec.at("unhealthyPodEvictionPolicy").value()});
        problems.invalid_value(&spec, &shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for share in [least, most].iter().filter(|share| share.is_set()) {
        check_share(share, problems);
        check_whole(share, problems);
    }
    selector::check(&spec.at("selector"), problems);
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    problems.check_if_one_of(&spec.at("unhealthyPodEvictionPolicy"), &policies);
}
