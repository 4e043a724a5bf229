//! Ports, host ports, name servers, host aliases.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::pod_validation::PodValidation;
use crate::validation::field_cursor::FieldCursor;
use crate::validation::formats;
use crate::validation::validation_errors::ValidationErrors;

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// A number from 1 to 65535, or the name of a port.
pub(crate) fn check_port(port: &FieldCursor, problems: &mut ValidationErrors) {
    match port.value() {
        Value::String(name) => problems.invalid_each(port, formats::port_name(name)),
        number => {
            let number = number.as_i64().unwrap_or(0);
            for message in formats::port_number(number) {
                problems.invalid_value(port, &json!(number), &message);
            }
        }
    }
}

pub(super) fn check_container_ports(ports: &FieldCursor, problems: &mut ValidationErrors) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let (name, number, host) = (port.at("name"), port.at("containerPort"), port.at("hostPort"));
        if !name.is_empty() {
            let wrong = formats::port_name(name.text());
            if !wrong.is_empty() {
                problems.invalid_each(&name, wrong);
            } else if !names.insert(name.text()) {
                problems.duplicate(&name, name.value());
            }
        }
        if number.number() == 0 {
            problems.required(&number, "");
        } else {
            problems.invalid_each(&number, formats::port_number(number.number()));
        }
        if host.number() != 0 {
            problems.invalid_each(&host, formats::port_number(host.number()));
        }
        problems.check_one_of(&port.at("protocol"), PROTOCOLS);
    }
}

/// No two ports of these containers take the same port of the host.
pub(super) fn check_conflicts(containers: &FieldCursor, problems: &mut ValidationErrors) {
    check_conflicts_in(containers, containers, problems);
}

/// As [`check_conflicts`] for `some` of the containers, reported for the list `named`.
pub(super) fn check_conflicts_in(named: &FieldCursor, some: &FieldCursor, problems: &mut ValidationErrors) {
    let mut taken = BTreeSet::new();
    for (at, container) in some.items().enumerate() {
        let (container_at, ports) = (named.item(at), container.at("ports"));
        let ports_at = container_at.at("ports");
        for (index, port) in ports.items().enumerate() {
            let host = port.at("hostPort").number();
            if host == 0 {
                continue;
            }
            let key = format!("{}/{}/{host}", port.at("protocol").text(), port.at("hostIP").text());
            if taken.contains(&key) {
                let port_at = ports_at.item(index);
                problems.duplicate(&port_at.at("hostPort"), &json!(key));
            }
            taken.insert(key);
        }
    }
}

/// In the host's network a port of the container is a port of the host.
pub(super) fn check_host_ports(pod: &PodValidation<'_, '_>, problems: &mut ValidationErrors) {
    if !pod.spec.at("hostNetwork").is_true() {
        return;
    }
    for container in pod.spec.at("containers").items() {
        for port in container.at("ports").items() {
            let host = port.at("hostPort");
            let must_match = pod.name.is_some() || host.number() != 0;
            if must_match && host.number() != port.at("containerPort").number() {
                let why = "must match `containerPort` when `hostNetwork` is true";
                problems.invalid_value(&host, &json!(host.number()), why);
            }
        }
    }
}

pub(super) fn check_dns(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let config = spec.at("dnsConfig");
    let servers = config.at("nameservers");
    if spec.at("dnsPolicy").is("None") {
        if !config.is_set() {
            return problems.required(&config, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return problems.required(&servers, why);
        }
    }
    if servers.len() > 3 {
        problems.invalid(&servers, "must not have more than 3 nameservers");
    }
    for server in servers.items() {
        problems.invalid_each(&server, formats::ip(server.text()));
    }
    let searches = config.at("searches");
    if searches.len() > 32 {
        problems.invalid(&searches, "must not have more than 32 search paths");
    }
    if searches.items().map(|search| search.text().len() + 1).sum::<usize>() > 2_049 {
        let why = "must not have more than 2048 characters (including spaces) in the search list";
        problems.invalid(&searches, why);
    }
    for search in searches.items() {
        let text = search.text().strip_suffix('.').unwrap_or(search.text());
        if search.text() != "." {
            for message in formats::dns_search(text) {
                problems.invalid_value(&search, &json!(text), &message);
            }
        }
    }
    for option in config.at("options").items() {
        if option.at("name").is_empty() {
            problems.required(&option, "must not be empty");
        }
    }
}

pub(super) fn check_host_aliases(aliases: &FieldCursor, problems: &mut ValidationErrors) {
    for alias in aliases.items() {
        let ip = alias.at("ip");
        for message in formats::ip(ip.text()) {
            problems.invalid_value(&ip, &json!(ip.text()), &message);
        }
        for name in alias.at("hostnames").items() {
            problems.invalid_each(&name, formats::dns_subdomain(name.text()));
        }
    }
}
