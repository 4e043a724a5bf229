//! Endpoints and their slices, leases, events.

use std::collections::BTreeSet;

use serde_json::json;

use super::field_cursor::FieldCursor;
use super::service::check_endpoint_ip;
use super::validation_errors::ValidationErrors;
use super::{formats, metadata};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

pub(super) fn check_endpoints(object: &FieldCursor, problems: &mut ValidationErrors) {
    for subset in object.at("subsets").items() {
        let (ready, waiting, ports) =
            (subset.at("addresses"), subset.at("notReadyAddresses"), subset.at("ports"));
        if ready.is_empty() && waiting.is_empty() {
            problems.required(&subset, "must specify `addresses` or `notReadyAddresses`");
        }
        for list in [ready, waiting] {
            for address in list.items() {
                check_address(&address, problems);
            }
        }
        for port in ports.items() {
            let (name, number) = (port.at("name"), port.at("port"));
            if name.is_empty() && ports.len() > 1 {
                problems.required(&name, "");
            } else if !name.is_empty() {
                problems.invalid_each(&name, formats::dns_label(name.text()));
            }
            for message in formats::port_number(number.number()) {
                problems.invalid_value(&number, &json!(number.number()), &message);
            }
            problems.check_one_of(&port.at("protocol"), PROTOCOLS);
        }
    }
}

fn check_address(address: &FieldCursor, problems: &mut ValidationErrors) {
    let (ip, host) = (address.at("ip"), address.at("hostname"));
    for message in formats::ip(ip.text()) {
        problems.invalid_value(&ip, &json!(ip.text()), &message);
    }
    if !host.is_empty() {
        problems.invalid_each(&host, formats::dns_label(host.text()));
    }
    check_endpoint_ip(&ip, problems);
}

pub(super) fn check_slice(object: &FieldCursor, problems: &mut ValidationErrors) {
    let kind = object.at("addressType");
    if kind.is_empty() {
        problems.required(&kind, "");
    } else {
        problems.check_if_one_of(&kind, &["FQDN", "IPv4", "IPv6"]);
    }
    let endpoints = object.at("endpoints");
    if endpoints.len() > 1_000 {
        problems.too_many(&endpoints, 1_000);
    }
    for endpoint in endpoints.items() {
        check_endpoint(&endpoint, kind.text(), problems);
    }
    let mut names = BTreeSet::new();
    for port in object.at("ports").items() {
        let name = port.at("name");
        if !name.is_empty() {
            problems.invalid_each(&name, formats::dns_label(name.text()));
        }
        if !names.insert(name.text()) {
            problems.duplicate(&name, &json!(name.text()));
        }
        problems.check_one_of(&port.at("protocol"), PROTOCOLS);
        let number = port.at("port");
        if number.is_set() {
            problems.invalid_each(&number, formats::port_number(number.number()));
        }
    }
}

fn check_endpoint(endpoint: &FieldCursor, kind: &str, problems: &mut ValidationErrors) {
    let addresses = endpoint.at("addresses");
    if addresses.is_empty() {
        problems.required(&addresses, "must contain at least 1 address");
    } else if addresses.len() > 100 {
        problems.too_many(&addresses, 100);
    }
    for address in addresses.items() {
        let is_of_kind = formats::parse_ip(address.text()).is_some_and(|ip| ip.is_ipv6() == (kind == "IPv6"));
        match kind {
            "IPv4" | "IPv6" if !is_of_kind => {
                let family = if kind == "IPv4" { "an IPv4" } else { "an IPv6" };
                problems.invalid(&address, &format!("must be {family} address"));
            }
            "IPv4" | "IPv6" => check_endpoint_ip(&address, problems),
            _ => problems.invalid_each(&address, formats::dns_subdomain(address.text())),
        }
    }
    let host = endpoint.at("hostname");
    if host.is_set() {
        problems.invalid_each(&host, formats::dns_label(host.text()));
    }
    let topology = endpoint.at("deprecatedTopology");
    metadata::labels(&topology, problems);
}

pub(super) fn check_lease(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    let (seconds, moves) = (spec.at("leaseDurationSeconds"), spec.at("leaseTransitions"));
    if seconds.integer().is_some_and(|seconds| seconds <= 0) {
        problems.invalid(&seconds, "must be greater than 0");
    }
    if moves.integer().is_some_and(|moves| moves < 0) {
        problems.invalid(&moves, "must be greater than or equal to 0");
    }
}

/// An event is where its object is.
pub(super) fn check_event(object: &FieldCursor, involved: &str, problems: &mut ValidationErrors) {
    let place = object.at(involved);
    let (namespace, own) = (place.at("namespace"), object.at("metadata.namespace"));
    let expected = if namespace.is_empty() { "default" } else { namespace.text() };
    if own.text() != expected {
        let named = object.called("involvedObject.namespace", namespace.value());
        problems.invalid_value(&named, &json!(namespace.text()), "does not match event.namespace");
    }
}
