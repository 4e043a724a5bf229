//! Services: types, ports, addresses.

use serde_json::{Value, json};

use crate::cluster::State;
use crate::object::{self, set_default};

pub(super) fn fill(state: &mut State, new: &mut Value, dry_run: bool) {
    set_default(new, &["spec", "type"], "ClusterIP");
    set_default(new, &["spec", "sessionAffinity"], "None");
    for port in new["spec"].get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        set_default(port, &["protocol"], "TCP");
        let number = port["port"].clone();
        set_default(port, &["targetPort"], number);
    }
    let kind = object::text(new, &["spec", "type"]).unwrap_or("").to_owned();
    if kind != "ExternalName" {
        fill_address(state, new, dry_run);
        set_default(new, &["spec", "internalTrafficPolicy"], "Cluster");
        set_default(new, &["spec", "ipFamilies"], json!(["IPv4"]));
        set_default(new, &["spec", "ipFamilyPolicy"], "SingleStack");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        set_default(new, &["spec", "externalTrafficPolicy"], "Cluster");
        let first = state.seed.below(2_767);
        for (at, port) in
            new["spec"].get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
        {
            set_default(port, &["nodePort"], 30_000 + (first + at as u64) % 2_767);
        }
    }
    if kind == "LoadBalancer" {
        set_default(new, &["spec", "allocateLoadBalancerNodePorts"], true);
    }
    set_default(new, &["status"], json!({"loadBalancer": {}}));
}

fn fill_address(state: &mut State, new: &mut Value, dry_run: bool) {
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
}
