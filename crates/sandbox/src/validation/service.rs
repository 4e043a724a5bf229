//! Services.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::field_cursor::FieldCursor;
use super::pod::check_port;
use super::validation_errors::ValidationErrors;
use super::{formats, metadata};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";

fn is_headless(spec: &FieldCursor) -> bool {
    let addresses = spec.at("clusterIPs");
    addresses.len() == 1 && addresses.item(0).is("None")
}

fn is_balanced(spec: &FieldCursor) -> bool {
    spec.at("type").is("LoadBalancer")
}

/// Reached from outside the cluster.
fn is_external(spec: &FieldCursor) -> bool {
    let kind = spec.at("type");
    is_balanced(spec) || kind.is("NodePort") || kind.is("ClusterIP") && !spec.at("externalIPs").is_empty()
}

fn needs_health_check(spec: &FieldCursor) -> bool {
    is_balanced(spec) && spec.at("externalTrafficPolicy").is("Local")
}

pub(super) fn check(object: &FieldCursor, live: Option<&FieldCursor>, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    check_type(&spec, problems);
    let ports = spec.at("ports");
    let mut names = BTreeSet::new();
    for port in ports.items() {
        check_service_port(&port, ports.len() > 1, &mut names, problems);
    }
    metadata::labels(&spec.at("selector"), problems);
    check_affinity(&spec, problems);
    check_addresses(&spec, live, problems);
    for ip in spec.at("externalIPs").items() {
        let wrong = formats::ip(ip.text());
        if wrong.is_empty() {
            check_endpoint_ip(&ip, problems);
        } else {
            problems.invalid_each(&ip, wrong);
        }
    }
    problems.check_one_of(&spec.at("type"), TYPES);
    check_port_numbers(&spec, problems);
    check_balancer(object, problems);
    check_traffic(&spec, problems);
}

fn check_type(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let (kind, headless) = (spec.at("type"), is_headless(spec));
    if spec.at("ports").is_empty() && !headless && !kind.is("ExternalName") {
        problems.required(&spec.at("ports"), "");
    }
    match kind.text() {
        "LoadBalancer" | "NodePort" if headless => {
            let why = format!("may not be set to 'None' for {} services", kind.text());
            problems.invalid(&spec.at("clusterIPs").item(0), &why);
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !spec.at(field).is_empty() {
                    problems.forbidden(&spec.at(field), "may not be set for ExternalName services");
                }
            }
            let name = spec.at("externalName");
            let text = name.text().strip_suffix('.').unwrap_or(name.text());
            if text.is_empty() {
                problems.required(&name, "");
            } else {
                for message in formats::dns_subdomain(text) {
                    problems.invalid_value(&name, &json!(text), &message);
                }
            }
        }
        _ => {}
    }
}

fn check_service_port<'v>(
    port: &FieldCursor<'_, 'v>,
    named: bool,
    names: &mut BTreeSet<&'v str>,
    problems: &mut ValidationErrors,
) {
    let (name, number) = (port.at("name"), port.at("port"));
    if !name.is_empty() {
        problems.invalid_each(&name, formats::dns_label(name.text()));
        if !names.insert(name.text()) {
            problems.duplicate(&name, name.value());
        }
    } else if named {
        problems.required(&name, "");
    }
    for message in formats::port_number(number.number()) {
        problems.invalid_value(&number, &json!(number.number()), &message);
    }
    problems.check_one_of(&port.at("protocol"), PROTOCOLS);
    check_port(&port.at("targetPort"), problems);
    let protocol = port.at("appProtocol");
    if protocol.is_set() {
        metadata::label_name(&protocol, problems);
    }
}

fn check_affinity(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let affinity = spec.at("sessionAffinity");
    problems.check_one_of(&affinity, &["ClientIP", "None"]);
    let timeout = spec.at("sessionAffinityConfig.clientIP.timeoutSeconds");
    if affinity.is("ClientIP") && timeout.is_set() && !(1..=86_400).contains(&timeout.number()) {
        problems.invalid(&timeout, "must be greater than 0 and less than 86400");
    }
}

pub(super) fn check_addresses(
    spec: &FieldCursor,
    live: Option<&FieldCursor>,
    problems: &mut ValidationErrors,
) {
    if spec.at("type").is("ExternalName") {
        return;
    }
    let (first, all, families) = (spec.at("clusterIP"), spec.at("clusterIPs"), spec.at("ipFamilies"));
    if first.is_empty() && !all.is_empty() {
        problems.invalid(&all, "must be empty when `clusterIP` is not specified");
    } else if !first.is_empty() && all.is_empty() {
        problems.required(&all, "");
    } else if !first.is_empty() && all.item(0).text() != first.text() {
        problems.invalid(&all, "first value must match `clusterIP`");
    }
    let mut seen = BTreeSet::new();
    for family in families.items() {
        problems.check_if_one_of(&family, &["IPv4", "IPv6"]);
        if !seen.insert(family.text()) {
            problems.duplicate(&family, family.value());
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    problems.check_if_one_of(&spec.at("ipFamilyPolicy"), &policies);
    let kept = |ip: &FieldCursor| {
        live.is_some_and(|live| live.at("spec.clusterIPs").items().any(|one| one.value() == ip.value()))
    };
    let before = problems.len();
    for ip in all.items() {
        if all.item(0).is("None") && all.len() > 1 && ip.is("None") {
            problems.invalid(&all, "'None' must be the first and only value");
        } else if !ip.is("None") && !kept(&ip) {
            problems.invalid_each(&ip, formats::ip(ip.text()));
        }
    }
    if all.len() > 2 {
        problems.invalid(&all, "may only hold up to 2 values");
    }
    if problems.len() > before {
        return;
    }
    let is_v6 = |ip: &str| ip.contains(':');
    if all.len() == 2 && is_v6(all.item(0).text()) == is_v6(all.item(1).text()) {
        problems.invalid(&all, "may specify no more than one IP for each IP family");
    }
    if is_headless(spec) {
        return;
    }
    for (at, (ip, family)) in all.items().zip(families.items()).enumerate() {
        if matches!(family.text(), "IPv4" | "IPv6") && is_v6(ip.text()) != family.is("IPv6") {
            let why = format!("expected an {} value as indicated by `ipFamilies[{at}]`", family.text());
            problems.invalid(&ip, &why);
        }
    }
}

/// An address that a client can reach.
pub(super) fn check_endpoint_ip(ip: &FieldCursor, problems: &mut ValidationErrors) {
    let Some(address) = formats::parse_ip(ip.text()) else {
        return problems.invalid_value(ip, &json!(ip.text()), "must be a valid IP address");
    };
    if address.is_unspecified() {
        problems.invalid(ip, &format!("may not be unspecified ({})", ip.text()));
    }
    if address.is_loopback() {
        problems.invalid(ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (link_local, link_multicast) = match address {
        std::net::IpAddr::V4(v4) => (v4.is_link_local(), v4.octets().starts_with(&[224, 0, 0])),
        std::net::IpAddr::V6(v6) => {
            (v6.segments()[0] & 0xffc0 == 0xfe80, v6.segments()[0] & 0xff0f == 0xff02)
        }
    };
    if link_local {
        problems.invalid(ip, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if link_multicast {
        problems.invalid(ip, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

fn check_port_numbers(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let ports = spec.at("ports");
    if spec.at("type").is("ClusterIP") {
        for port in ports.items().filter(|port| port.at("nodePort").number() != 0) {
            problems.forbidden(&port.at("nodePort"), "may not be used when `type` is 'ClusterIP'");
        }
    }
    let mut taken = BTreeSet::new();
    for port in ports.items().filter(|port| port.at("nodePort").number() != 0) {
        let node = port.at("nodePort");
        if !taken.insert((port.at("protocol").text(), node.number())) {
            problems.duplicate(&node, node.value());
        }
    }
    let mut taken = BTreeSet::new();
    for port in ports.items() {
        let (protocol, number) = (port.at("protocol").text(), port.at("port").number());
        if !taken.insert((protocol, number)) {
            let message = format!(
                "Duplicate value: {{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}",
                Value::from(protocol)
            );
            problems.add(&port, "FieldValueDuplicate", message);
        }
    }
}

fn check_balancer(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    let ranges = spec.called("LoadBalancerSourceRanges", spec.at("loadBalancerSourceRanges").value());
    if !ranges.is_empty() && !is_balanced(&spec) {
        problems.forbidden(&ranges, ONLY_BALANCED);
    }
    for range in ranges.items() {
        let text = range.text().trim();
        for message in formats::cidr(text) {
            problems.invalid_value(&range, &json!(text), &message);
        }
    }
    let annotations = object.at("metadata.annotations");
    let annotated = annotations.key("service.beta.kubernetes.io/load-balancer-source-ranges");
    if ranges.is_empty() && annotated.is_set() {
        if !is_balanced(&spec) {
            problems.forbidden(&annotated, ONLY_BALANCED);
        }
        for range in annotated.text().split(',').map(str::trim).filter(|range| !range.is_empty()) {
            for message in formats::cidr(range) {
                problems.invalid_value(&annotated, &json!(range), &message);
            }
        }
    }
    let allocate = spec.at("allocateLoadBalancerNodePorts");
    if allocate.is_set() && !is_balanced(&spec) {
        problems.forbidden(&allocate, ONLY_BALANCED);
    }
    check_class(&spec, problems);
}

fn check_class(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let class = spec.at("loadBalancerClass");
    if class.is_set() && is_balanced(spec) {
        metadata::label_name(&class, problems);
    } else if class.is_set() {
        problems.forbidden(&class, ONLY_BALANCED);
    }
}

fn check_traffic(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let (outside, check) = (spec.at("externalTrafficPolicy"), spec.at("healthCheckNodePort"));
    if is_external(spec) {
        problems.check_one_of(&outside, &["Cluster", "Local"]);
    } else if !outside.is_empty() {
        problems.invalid(&outside, "may only be set for externally-accessible services");
    }
    if !needs_health_check(spec) {
        if check.number() != 0 {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            problems.invalid(&check, why);
        }
    } else if check.number() == 0 {
        problems.required(&check, "");
    } else {
        problems.invalid_each(&check, formats::port_number(check.number()));
    }
    let inside = spec.at("internalTrafficPolicy");
    let known = matches!(spec.at("type").text(), "ClusterIP" | "NodePort" | "LoadBalancer");
    if !inside.is_set() && known {
        problems.required(&inside, "");
    }
    problems.check_if_one_of(&inside, &["Cluster", "Local"]);
    let distributions = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    problems.check_if_one_of(&spec.at("trafficDistribution"), &distributions);
}

/// Addresses, families and classes stay once they are set.
pub(super) fn check_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    let (before, after) = (live.at("spec"), new.at("spec"));
    if !before.at("type").is("ExternalName") && !after.at("type").is("ExternalName") {
        let headless = (is_headless(&before), is_headless(&after));
        if headless != (true, true) {
            check_addresses_kept(&before, &after, problems);
        }
        if headless == (false, false) {
            check_families_kept(&before, &after, problems);
        }
    }
    let class = after.at("loadBalancerClass");
    let both = is_balanced(&before) && is_balanced(&after);
    if both && before.at("loadBalancerClass").value() != class.value() {
        problems.invalid(&class, "may not change once set");
    }
    check_class(&after, problems);
    let check = after.at("healthCheckNodePort");
    let checked = needs_health_check(&before) && needs_health_check(&after);
    if checked && before.at("healthCheckNodePort").value() != check.value() {
        problems.forbidden(&check, "field is immutable");
    }
}

fn check_addresses_kept(before: &FieldCursor, after: &FieldCursor, problems: &mut ValidationErrors) {
    let (old, new) = (before.at("clusterIPs"), after.at("clusterIPs"));
    let mut changed = |at: usize, why: &str| problems.invalid_value(&new.item(at), new.value(), why);
    if old.len() == new.len() {
        for (at, (old, new)) in old.items().zip(new.items()).enumerate() {
            if old.value() != new.value() {
                changed(at, "may not change once set");
            }
        }
        return;
    }
    if new.is_empty() {
        changed(0, "primary clusterIP can not be unset");
    } else if !old.is_empty() && new.item(0).value() != old.item(0).value() {
        changed(0, "may not change once set");
    }
    let policy = after.at("ipFamilyPolicy");
    if old.len() > new.len() && new.len() == 1 && !policy.is("SingleStack") {
        problems.invalid(&policy, "must be set to 'SingleStack' when releasing the secondary clusterIP");
    }
}

fn check_families_kept(before: &FieldCursor, after: &FieldCursor, problems: &mut ValidationErrors) {
    let (old, new) = (before.at("ipFamilies"), after.at("ipFamilies"));
    if old.len() == new.len() {
        for (old, family) in old.items().zip(new.items()) {
            if old.value() != family.value() {
                problems.invalid_value(&new.item(0), new.value(), "may not change once set");
            }
        }
        return;
    }
    let addresses = after.at("clusterIPs");
    if old.len() > new.len() && addresses.is_empty() {
        problems.invalid_value(&new.item(0), new.value(), "primary ipFamily can not be unset");
    }
    if !new.is_empty() && !old.is_empty() && new.item(0).value() != old.item(0).value() {
        problems.invalid_value(&new.item(0), addresses.value(), "may not change once set");
    }
    let policy = after.at("ipFamilyPolicy");
    if old.len() > new.len() && new.len() == 1 && !policy.is("SingleStack") {
        problems.invalid(&policy, "must be set to 'SingleStack' when releasing the secondary ipFamily");
    }
}
