//! Services: what follows from the type, and the addresses and ports that the server hands out.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::default_rules;
use crate::api_error::{ApiError, FieldError};
use crate::cluster::SandboxState;
use crate::object::{self, set_default};
use crate::registry::ResourceKind;
use crate::validation;

/// Node ports are taken from here on.
const FIRST_PORT: u64 = 30_000;
const PORTS: u64 = 2_768;

pub(super) fn fill(new: &mut Value) {
    default_rules::apply_rules(default_rules::SERVICE, new);
    let kind = type_of(new);
    let spec = object::value_mut(new, &["spec"]);
    match object::text(spec, &["sessionAffinity"]) {
        Some("None") => {
            object::take(spec, &["sessionAffinityConfig"]);
        }
        Some("ClientIP") => {
            set_default(spec, &["sessionAffinityConfig", "clientIP", "timeoutSeconds"], 10_800)
        }
        _ => {}
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(port.get("targetPort"), None | Some(Value::Null))
            || port["targetPort"] == 0
            || port["targetPort"] == ""
        {
            port["targetPort"] = port["port"].clone();
        }
    }
    if is_known(&kind) {
        set_default(spec, &["internalTrafficPolicy"], "Cluster");
    }
    if is_external(&kind, spec) {
        set_default(spec, &["externalTrafficPolicy"], "Cluster");
    }
    if kind == "LoadBalancer" {
        set_default(spec, &["allocateLoadBalancerNodePorts"], true);
    }
}

fn is_known(kind: &str) -> bool {
    matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer")
}

fn is_external(kind: &str, spec: &Value) -> bool {
    let is_addressed = kind == "ClusterIP" && !object::list(spec, &["externalIPs"]).is_empty();
    matches!(kind, "NodePort" | "LoadBalancer") || is_addressed
}

fn type_of(service: &Value) -> String {
    object::text(service, &["spec", "type"]).unwrap_or("").to_owned()
}

/// An updated service keeps its allocations, except those that its new type does not use.
pub(crate) fn keep_allocated(live: &Value, new: &mut Value) {
    let (before, after) = (type_of(live), type_of(new));
    let Some(spec) = new.get_mut("spec") else { return };
    if after != "ExternalName" && before != "ExternalName" {
        let same = object::value_at(live, &["spec", "clusterIP"]) == object::value_at(spec, &["clusterIP"]);
        if object::text(spec, &["clusterIP"]).is_none_or(str::is_empty)
            && object::list(spec, &["clusterIPs"]).is_empty()
        {
            for field in ["clusterIP", "clusterIPs"] {
                if let Some(value) = object::value_at(live, &["spec", field]) {
                    object::set(spec, &[field], value.clone());
                }
            }
        } else if same && object::list(spec, &["clusterIPs"]).is_empty() {
            let kept = live["spec"]["clusterIPs"].clone();
            object::set(spec, &["clusterIPs"], kept);
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = object::value_at(live, &["spec", field]) {
                set_default(spec, &[field], value.clone());
            }
        }
        keep_ports(live, spec, &after);
    }
    if before != after {
        drop_unused_fields(live, spec, &after);
    }
    if after == "ExternalName" && before != "ExternalName" {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if object::value_at(live, &["spec", field]) == spec.get(field) {
                object::take(spec, &[field]);
            }
        }
    }
    if before == "LoadBalancer" && after != "LoadBalancer" {
        // a real server removes the address a little later, without an event
        object::set(new, &["status", "loadBalancer"], json!({}));
    }
}

/// Drops unchanged fields that the new type does not use.
fn drop_unused_fields(live: &Value, spec: &mut Value, kind: &str) {
    let is_same = |spec: &Value, field: &str| {
        object::value_at(live, &["spec", field]) == object::value_at(spec, &[field])
    };
    let numbers = |list: &[Value]| -> BTreeSet<u64> {
        list.iter().filter_map(|port| port["nodePort"].as_u64()).collect()
    };
    let before = numbers(object::list(live, &["spec", "ports"]));
    if !needs_node_ports(kind, spec) && numbers(object::list(spec, &["ports"])).is_subset(&before) {
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            object::take(port, &["nodePort"]);
        }
    }
    let unused = [
        ("externalTrafficPolicy", !is_external(kind, spec)),
        ("healthCheckNodePort", !needs_health_check(kind, spec)),
        ("allocateLoadBalancerNodePorts", kind != "LoadBalancer"),
        ("loadBalancerClass", kind != "LoadBalancer"),
    ];
    for (field, is_unused) in unused {
        if is_unused && is_same(spec, field) {
            object::take(spec, &[field]);
        }
    }
}

/// Node ports that were handed out stay with their port.
fn keep_ports(live: &Value, spec: &mut Value, kind: &str) {
    if !needs_node_ports(kind, spec) {
        return;
    }
    let before = object::list(live, &["spec", "ports"]).to_vec();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let old =
            before.iter().find(|old| old["port"] == port["port"] && old["protocol"] == port["protocol"]);
        if let Some(number) = old.and_then(|old| object::value_at(old, &["nodePort"])) {
            set_default(port, &["nodePort"], number.clone());
        }
    }
    if let Some(number) = object::value_at(live, &["spec", "healthCheckNodePort"])
        && needs_health_check(kind, spec)
    {
        set_default(spec, &["healthCheckNodePort"], number.clone());
    }
}

fn needs_node_ports(kind: &str, spec: &Value) -> bool {
    kind == "NodePort" || kind == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false
}

fn needs_health_check(kind: &str, spec: &Value) -> bool {
    kind == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

/// Addresses and node ports.
pub(super) fn allocate(
    state: &mut SandboxState,
    resource: &ResourceKind,
    new: &mut Value,
    dry_run: bool,
) -> Result<(), ApiError> {
    let kind = type_of(new);
    if !is_known(&kind) {
        return Ok(());
    }
    let name = object::name(new).to_owned();
    let refuse = |errors: &[FieldError]| ApiError::invalid(resource, &name, errors);
    // the older field and the first of the newer one are the same
    let spec = object::value_mut(new, &["spec"]);
    let first = object::text(spec, &["clusterIP"]).unwrap_or("").to_owned();
    if !first.is_empty() && object::list(spec, &["clusterIPs"]).is_empty() {
        object::set(spec, &["clusterIPs"], json!([first]));
    }
    let wrong = validation::service_addresses(new);
    if !wrong.is_empty() {
        return Err(refuse(&wrong));
    }
    let is_new = object::value_at(new, &["metadata", "resourceVersion"]).is_none();
    fill_families(object::value_mut(new, &["spec"])).map_err(|error| refuse(&[error]))?;
    if first.is_empty() && object::list(new, &["spec", "clusterIPs"]).is_empty() {
        let address = free_address(state, dry_run);
        object::set(new, &["spec", "clusterIP"], address.as_str());
        object::set(new, &["spec", "clusterIPs"], json!([address]));
    } else if is_new && first != "None" {
        check_address(state, &first).map_err(|why| {
            let shown = format!("Invalid value: [\"{first}\"]: failed to allocate IP {first}: {why}");
            refuse(&[FieldError::unsupported_value("spec.clusterIPs", &shown)])
        })?;
    }
    if needs_node_ports(&kind, &new["spec"]) {
        allocate_ports(state, new, dry_run).map_err(|error| refuse(&[error]))?;
    }
    if needs_health_check(&kind, &new["spec"]) {
        let number = free_port(state, &taken_ports(state, new));
        set_default(new, &["spec", "healthCheckNodePort"], number);
    }
    Ok(())
}

/// The next address; a dry run takes none.
fn free_address(state: &mut SandboxState, dry_run: bool) -> String {
    let number = state.last_addresses.0;
    if !dry_run {
        state.last_addresses.0 += 1;
    }
    format!("10.96.{}.{}", (number / 250) % 250, number % 250 + 1)
}

/// A requested address must be of this cluster and free.
fn check_address(state: &SandboxState, address: &str) -> Result<(), String> {
    if !address.starts_with("10.96.") {
        return Err(format!(
            "the provided IP ({address}) is not in the valid range. The range of valid IPs is 10.96.0.0/16"
        ));
    }
    let mut services = state.store.list("services", None);
    if services.any(|service| object::text(service, &["spec", "clusterIP"]) == Some(address)) {
        return Err("provided IP is already allocated".to_owned());
    }
    Ok(())
}

/// The node ports of all other services.
fn taken_ports(state: &SandboxState, new: &Value) -> BTreeSet<u64> {
    let others = state.store.list("services", None).filter(|other| object::uid(other) != object::uid(new));
    others
        .flat_map(|other| {
            let ports = object::list(other, &["spec", "ports"]).iter().map(|port| &port["nodePort"]);
            ports.chain([&other["spec"]["healthCheckNodePort"]]).filter_map(Value::as_u64).collect::<Vec<_>>()
        })
        .collect()
}

fn free_port(state: &mut SandboxState, taken: &BTreeSet<u64>) -> u64 {
    let first = state.seed.below(PORTS);
    let mut all = (0..PORTS).map(|at| FIRST_PORT + (first + at) % PORTS);
    all.find(|port| !taken.contains(port)).unwrap_or(FIRST_PORT + first)
}

/// Ports of one number share their node port, whatever their protocol. A dry run promises nothing.
fn allocate_ports(state: &mut SandboxState, new: &mut Value, dry_run: bool) -> Result<(), FieldError> {
    let mut taken = taken_ports(state, new);
    let mut given: Vec<(Value, u64)> = Vec::new();
    let ports = object::list(new, &["spec", "ports"]).to_vec();
    for (at, port) in ports.iter().enumerate() {
        let Some(said) = object::value_at(port, &["nodePort"]).and_then(Value::as_i64) else { continue };
        let refuse = |why: &str| {
            FieldError::unsupported_value(
                format!("spec.ports[{at}].nodePort"),
                &format!("Invalid value: {said}: {why}"),
            )
        };
        let port_number = u64::try_from(said).unwrap_or(0);
        let in_range = (FIRST_PORT..FIRST_PORT + PORTS).contains(&port_number);
        let is_known = given.iter().any(|(_, known)| *known == port_number);
        if !dry_run && !in_range {
            let why = "provided port is not in the valid range. The range of valid ports is 30000-32767";
            return Err(refuse(why));
        }
        if taken.contains(&port_number) && !is_known {
            return Err(refuse("provided port is already allocated"));
        }
        given.push((port["port"].clone(), port_number));
    }
    for port in new["spec"].get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if object::value_at(port, &["nodePort"]).is_some() {
            continue;
        }
        let known = given.iter().find(|(number, _)| *number == port["port"]).map(|(_, known)| *known);
        let number = known.unwrap_or_else(|| free_port(state, &taken));
        taken.insert(number);
        given.push((port["port"].clone(), number));
        object::set(port, &["nodePort"], number);
    }
    Ok(())
}

/// The families of addresses, of which this cluster has one.
fn fill_families(spec: &mut Value) -> Result<(), FieldError> {
    let headless = object::list(spec, &["clusterIPs"]).first().is_some_and(|one| one == "None");
    let selects = object::value_at(spec, &["selector"]).is_some();
    let said = object::list(spec, &["ipFamilies"]);
    if headless && !selects {
        // without a selector it may hold endpoints of both families
        set_default(spec, &["ipFamilyPolicy"], "RequireDualStack");
        if spec["ipFamilyPolicy"] != "SingleStack" {
            let mut families = object::list(spec, &["ipFamilies"]).to_vec();
            for family in ["IPv4", "IPv6"] {
                if !families.iter().any(|one| one == family) {
                    families.push(json!(family));
                }
            }
            object::set(spec, &["ipFamilies"], families);
        }
        set_default(spec, &["ipFamilies"], json!(["IPv4"]));
        return Ok(());
    }
    if spec["ipFamilyPolicy"] == "RequireDualStack" {
        let why =
            "Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services";
        return Err(FieldError::unsupported_value("spec.ipFamilyPolicy", why));
    }
    if let Some(at) = said.iter().position(|family| family == "IPv6") {
        let why = "Invalid value: \"IPv6\": not configured on this cluster";
        return Err(FieldError::unsupported_value(format!("spec.ipFamilies[{at}]"), why));
    }
    let addresses = object::list(spec, &["clusterIPs"]);
    let by_address = addresses.iter().position(|one| one.as_str().is_some_and(|one| one.contains(':')));
    if let Some(at) = by_address {
        let address = &spec["clusterIPs"][at];
        let why = format!("Invalid value: {address}: not configured on this cluster");
        return Err(FieldError::unsupported_value(format!("spec.clusterIPs[{at}]"), &why));
    }
    set_default(spec, &["ipFamilyPolicy"], "SingleStack");
    set_default(spec, &["ipFamilies"], json!(["IPv4"]));
    Ok(())
}
