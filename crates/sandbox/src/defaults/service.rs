//! Services: types, ports, addresses.

use serde_json::{Value, json};

use crate::cluster::State;
use crate::object::{self, set_default};

pub(super) fn fill(new: &mut Value) {
    set_default(new, &["spec", "type"], "ClusterIP");
    set_default(new, &["spec", "sessionAffinity"], "None");
    for port in ports(new) {
        set_default(port, &["protocol"], "TCP");
        let number = port["port"].clone();
        set_default(port, &["targetPort"], number);
    }
    let kind = type_of(new);
    if kind != "ExternalName" {
        set_default(new, &["spec", "internalTrafficPolicy"], "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        set_default(new, &["spec", "externalTrafficPolicy"], "Cluster");
    }
    if kind == "LoadBalancer" {
        set_default(new, &["spec", "allocateLoadBalancerNodePorts"], true);
    }
    set_default(new, &["status"], json!({"loadBalancer": {}}));
}

fn type_of(service: &Value) -> String {
    object::text(service, &["spec", "type"]).unwrap_or("").to_owned()
}

fn ports(service: &mut Value) -> impl Iterator<Item = &mut Value> {
    service.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten()
}

/// Addresses and node ports.
pub(super) fn allocate(state: &mut State, new: &mut Value, dry_run: bool) {
    let kind = type_of(new);
    if kind == "ExternalName" {
        return;
    }
    if object::text(new, &["spec", "clusterIP"]).is_none_or(str::is_empty) {
        let number = state.addresses.0;
        if !dry_run {
            state.addresses.0 += 1;
        }
        let address = format!("10.96.{}.{}", (number / 250) % 250, number % 250 + 1);
        object::set(new, &["spec", "clusterIP"], address);
    }
    let address = new["spec"]["clusterIP"].clone();
    set_default(new, &["spec", "clusterIPs"], json!([address]));
    // without a selector a headless service may hold endpoints of both families
    let both = address == "None" && object::at(new, &["spec", "selector"]).is_none();
    let (families, policy) =
        if both { (json!(["IPv4", "IPv6"]), "RequireDualStack") } else { (json!(["IPv4"]), "SingleStack") };
    set_default(new, &["spec", "ipFamilies"], families);
    set_default(new, &["spec", "ipFamilyPolicy"], policy);
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        let first = state.seed.below(2_767);
        for (at, port) in ports(new).enumerate() {
            set_default(port, &["nodePort"], 30_000 + (first + at as u64) % 2_767);
        }
    }
}
