//! Services: what follows from the type, and the addresses and ports that the server hands out.

use serde_json::{Value, json};

use super::rules;
use crate::cluster::State;
use crate::object::{self, set_default};
use crate::registry::ResourceKind;
use crate::status::{ApiError, FieldError};

/// Node ports are taken from here on.
const FIRST_PORT: u64 = 30_000;
const PORTS: u64 = 2_768;

pub(super) fn fill(new: &mut Value) {
    rules::apply(rules::SERVICE, new);
    let kind = type_of(new);
    let spec = object::place(new, &["spec"]);
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

/// A service that changes keeps what it was given; what its new type has no use for is let go.
pub(crate) fn keep(live: &Value, new: &mut Value) {
    let (before, after) = (type_of(live), type_of(new));
    let Some(spec) = new.get_mut("spec") else { return };
    if after != "ExternalName" && before != "ExternalName" {
        let same = object::at(live, &["spec", "clusterIP"]) == object::at(spec, &["clusterIP"]);
        if object::text(spec, &["clusterIP"]).is_none_or(str::is_empty)
            && object::list(spec, &["clusterIPs"]).is_empty()
        {
            for field in ["clusterIP", "clusterIPs"] {
                if let Some(value) = object::at(live, &["spec", field]) {
                    object::set(spec, &[field], value.clone());
                }
            }
        } else if same && object::list(spec, &["clusterIPs"]).is_empty() {
            let kept = live["spec"]["clusterIPs"].clone();
            object::set(spec, &["clusterIPs"], kept);
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = object::at(live, &["spec", field]) {
                set_default(spec, &[field], value.clone());
            }
        }
        keep_ports(live, spec, &after);
    }
    if after == "ExternalName" && before != "ExternalName" {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if object::at(live, &["spec", field]) == spec.get(field) {
                object::take(spec, &[field]);
            }
        }
    }
}

/// Node ports that were handed out stay with their port.
fn keep_ports(live: &Value, spec: &mut Value, kind: &str) {
    if !takes_ports(kind, spec) {
        return;
    }
    let before = object::list(live, &["spec", "ports"]).to_vec();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let old =
            before.iter().find(|old| old["port"] == port["port"] && old["protocol"] == port["protocol"]);
        if let Some(number) = old.and_then(|old| object::at(old, &["nodePort"])) {
            set_default(port, &["nodePort"], number.clone());
        }
    }
    if let Some(number) = object::at(live, &["spec", "healthCheckNodePort"])
        && needs_health_check(kind, spec)
    {
        set_default(spec, &["healthCheckNodePort"], number.clone());
    }
}

fn takes_ports(kind: &str, spec: &Value) -> bool {
    kind == "NodePort" || kind == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false
}

fn needs_health_check(kind: &str, spec: &Value) -> bool {
    kind == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

/// Addresses and node ports.
pub(super) fn allocate(
    state: &mut State,
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
    let spec = object::place(new, &["spec"]);
    // the older field and the first of the newer one are the same
    let first = object::text(spec, &["clusterIP"]).unwrap_or("").to_owned();
    if !first.is_empty() && object::list(spec, &["clusterIPs"]).is_empty() {
        object::set(spec, &["clusterIPs"], json!([first]));
    }
    fill_families(spec).map_err(|error| refuse(&[error]))?;
    if first.is_empty() && object::list(spec, &["clusterIPs"]).is_empty() {
        let number = state.addresses.0;
        if !dry_run {
            state.addresses.0 += 1;
        }
        let address = format!("10.96.{}.{}", (number / 250) % 250, number % 250 + 1);
        object::set(spec, &["clusterIP"], address.as_str());
        object::set(spec, &["clusterIPs"], json!([address]));
    }
    if takes_ports(&kind, spec) {
        let first = state.seed.below(PORTS);
        for (at, port) in
            spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
        {
            set_default(port, &["nodePort"], FIRST_PORT + (first + at as u64) % PORTS);
        }
    }
    if needs_health_check(&kind, spec) {
        let number = FIRST_PORT + state.seed.below(PORTS);
        set_default(spec, &["healthCheckNodePort"], number);
    }
    Ok(())
}

/// The families of addresses, of which this cluster has one.
fn fill_families(spec: &mut Value) -> Result<(), FieldError> {
    let headless = object::list(spec, &["clusterIPs"]).first().is_some_and(|one| one == "None");
    let selects = object::at(spec, &["selector"]).is_some();
    let said = object::list(spec, &["ipFamilies"]);
    if headless && !selects && said.is_empty() && object::at(spec, &["ipFamilyPolicy"]).is_none() {
        // without a selector it may hold endpoints of both families
        object::set(spec, &["ipFamilies"], json!(["IPv4", "IPv6"]));
        object::set(spec, &["ipFamilyPolicy"], "RequireDualStack");
        return Ok(());
    }
    let by_address = object::list(spec, &["clusterIPs"])
        .iter()
        .filter_map(Value::as_str)
        .position(|address| address.contains(':'));
    if spec["ipFamilyPolicy"] == "RequireDualStack" && (!headless || selects) {
        let why =
            "Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services";
        return Err(FieldError::unsupported_here("spec.ipFamilyPolicy", why));
    }
    if let Some(at) = said.iter().position(|family| family == "IPv6").filter(|_| !headless || selects) {
        let why = "Invalid value: \"IPv6\": not configured on this cluster";
        return Err(FieldError::unsupported_here(format!("spec.ipFamilies[{at}]"), why));
    }
    if let Some(at) = by_address {
        let address = &spec["clusterIPs"][at];
        let why = format!("Invalid value: {address}: not configured on this cluster");
        return Err(FieldError::unsupported_here(format!("spec.clusterIPs[{at}]"), &why));
    }
    set_default(spec, &["ipFamilyPolicy"], "SingleStack");
    set_default(spec, &["ipFamilies"], json!(["IPv4"]));
    Ok(())
}
