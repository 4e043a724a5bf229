//! Services, endpoints, ingresses, network policies.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cell_text::{first_few, labels_or_none, selector_or_none};
use super::row_object::RowObject;
use crate::object;

pub(super) fn cell(view: &RowObject<'_>, plural: &str, column: &str) -> Option<Value> {
    match plural {
        "services" => service(view, column),
        "ingresses" => ingress(view, column),
        "endpoints" if column == "Endpoints" => Some(json!(endpoints(view))),
        "endpointslices" => slice(view, column),
        "networkpolicies" if column == "Pod-Selector" => {
            Some(selector_or_none(view.at(&["spec", "podSelector"])))
        }
        "ingressclasses" => ingress_class(view, column),
        "servicecidrs" if column == "CIDRs" => Some(json!(words(view.list(&["spec", "cidrs"])).join(","))),
        "ipaddresses" if column == "ParentRef" => Some(json!(parent(&view.object["spec"]["parentRef"]))),
        _ => None,
    }
}

fn words(list: &[Value]) -> Vec<String> {
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn service(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "Type" => json!(view.text(&["spec", "type"])),
        "Cluster-IP" => {
            let first = view.list(&["spec", "clusterIPs"]).first().and_then(Value::as_str);
            json!(first.unwrap_or("<none>"))
        }
        "External-IP" => json!(external_address(view)),
        "Port(s)" => {
            let ports: Vec<String> = view.list(&["spec", "ports"]).iter().map(port).collect();
            if ports.is_empty() { json!("<none>") } else { json!(ports.join(",")) }
        }
        "Selector" => labels_or_none(view.at(&["spec", "selector"])),
        _ => return None,
    })
}

fn port(port: &Value) -> String {
    let protocol = port["protocol"].as_str().unwrap_or("TCP");
    match object::integer(port, &["nodePort"]) {
        0 => format!("{}/{protocol}", port["port"]),
        node => format!("{}:{node}/{protocol}", port["port"]),
    }
}

fn external_address(view: &RowObject<'_>) -> String {
    let mut own = words(view.list(&["spec", "externalIPs"]));
    match view.text(&["spec", "type"]) {
        "ClusterIP" | "NodePort" if own.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => own.join(","),
        "LoadBalancer" => {
            let balanced = load_balancer_addresses(view);
            if !balanced.is_empty() {
                own.insert(0, balanced);
            }
            if own.is_empty() { "<pending>".to_owned() } else { own.join(",") }
        }
        "ExternalName" => view.text(&["spec", "externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses of a load balancer.
fn load_balancer_addresses(view: &RowObject<'_>) -> String {
    let addresses: BTreeSet<&str> = view
        .list(&["status", "loadBalancer", "ingress"])
        .iter()
        .filter_map(|one| object::text(one, &["ip"]).or(object::text(one, &["hostname"])))
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

fn ingress(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "Class" => view.text_or(&["spec", "ingressClassName"], "<none>"),
        "Hosts" => {
            let rules = view.list(&["spec", "rules"]);
            let hosts: Vec<&str> =
                rules.iter().take(3).filter_map(|rule| object::text(rule, &["host"])).collect();
            match hosts.len() {
                0 => json!("*"),
                _ if rules.len() > 3 => json!(format!("{} + {} more...", hosts.join(","), rules.len() - 3)),
                _ => json!(hosts.join(",")),
            }
        }
        "Address" => json!(load_balancer_addresses(view)),
        "Ports" if view.list(&["spec", "tls"]).is_empty() => json!("80"),
        "Ports" => json!("80, 443"),
        _ => return None,
    })
}

fn ingress_class(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "Name" => {
            let default = object::annotation(view.object, "ingressclass.kubernetes.io/is-default-class")
                == Some("true");
            let mark = if default { " (default)" } else { "" };
            json!(format!("{}{mark}", object::name(view.object)))
        }
        "Controller" => json!(view.text(&["spec", "controller"])),
        "Parameters" => match view.at(&["spec", "parameters"]) {
            None => json!("<none>"),
            Some(one) => {
                let group = one["apiGroup"].as_str().map(|group| format!(".{group}")).unwrap_or_default();
                let kind = one["kind"].as_str().unwrap_or("");
                json!(format!("{kind}{group}/{}", object::name_of(one)))
            }
        },
        _ => return None,
    })
}

fn endpoints(view: &RowObject<'_>) -> String {
    let mut all = Vec::new();
    for subset in view.list(&["subsets"]) {
        let addresses = words_of(object::list(subset, &["addresses"]), "ip");
        let ports = object::list(subset, &["ports"]);
        if ports.is_empty() {
            all.extend(addresses.iter().cloned());
        }
        for port in ports {
            let joined = |ip: &String| match ip.contains(':') {
                true => format!("[{ip}]:{}", port["port"]),
                false => format!("{ip}:{}", port["port"]),
            };
            all.extend(addresses.iter().map(joined));
        }
    }
    if all.is_empty() { "<none>".to_owned() } else { first_few(&all, 3) }
}

fn words_of(list: &[Value], field: &str) -> Vec<String> {
    list.iter().filter_map(|one| one[field].as_str()).map(str::to_owned).collect()
}

fn slice(view: &RowObject<'_>, column: &str) -> Option<Value> {
    let or_unset = |all: Vec<String>| match all.len() {
        0 => json!("<unset>"),
        _ => json!(first_few(&all, 3)),
    };
    Some(match column {
        "AddressType" => json!(view.text(&["addressType"])),
        "Ports" => or_unset(
            view.list(&["ports"])
                .iter()
                .map(|port| match (port["port"].as_i64(), port["name"].as_str()) {
                    (Some(number), _) => number.to_string(),
                    (None, Some(name)) => name.to_owned(),
                    (None, None) => "*".to_owned(),
                })
                .collect(),
        ),
        "Endpoints" => or_unset(
            view.list(&["endpoints"])
                .iter()
                .flat_map(|one| words(object::list(one, &["addresses"])))
                .collect(),
        ),
        _ => return None,
    })
}

fn parent(reference: &Value) -> String {
    let part = |field: &str| reference[field].as_str().filter(|text| !text.is_empty());
    let resource = match (part("resource"), part("group")) {
        (Some(resource), Some(group)) => Some(format!("{resource}.{group}")),
        (resource, _) => resource.map(str::to_owned),
    };
    let parts = [resource.as_deref(), part("namespace"), part("name")];
    parts.into_iter().flatten().collect::<Vec<_>>().join("/")
}
