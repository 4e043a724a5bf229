//! Namespaces, nodes, events, configuration.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::cell_text::{containers, labels_or_none};
use super::row_object::RowObject;
use super::workload;
use crate::object;

pub(super) fn cell(view: &RowObject<'_>, plural: &str, column: &str) -> Option<Value> {
    Some(match (plural, column) {
        ("namespaces", "Status") => json!(view.text(&["status", "phase"])),
        ("configmaps", "Data") => json!(view.size(&["data"]) + view.size(&["binaryData"])),
        ("secrets", "Type") => json!(view.text(&["type"])),
        ("secrets", "Data") => json!(view.size(&["data"])),
        ("nodes", column) => return node(view, column),
        ("events", column) => return event(view, column),
        ("resourcequotas", "Request") => json!(quota(view, false)),
        ("resourcequotas", "Limit") => json!(quota(view, true)),
        ("podtemplates", "Containers") => containers(view.at(&["template", "spec"]), "name"),
        ("podtemplates", "Images") => containers(view.at(&["template", "spec"]), "image"),
        ("podtemplates", "Pod Labels") => labels_or_none(view.at(&["template", "metadata", "labels"])),
        ("replicationcontrollers", column) => return workload::cell(view, plural, column),
        _ => return None,
    })
}

fn node(view: &RowObject<'_>, column: &str) -> Option<Value> {
    let info = |field: &str| view.text_or(&["status", "nodeInfo", field], "<unknown>");
    Some(match column {
        "Status" => {
            let ready = match object::condition(view.object, "Ready") {
                None => "Unknown",
                Some(one) if one["status"] == "True" => "Ready",
                Some(_) => "NotReady",
            };
            let closed = view.at(&["spec", "unschedulable"]) == Some(&Value::Bool(true));
            json!(format!("{ready}{}", if closed { ",SchedulingDisabled" } else { "" }))
        }
        "Roles" => {
            let labels = view.at(&["metadata", "labels"]).and_then(Value::as_object);
            let roles: BTreeSet<&str> = labels
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                    None if key == "kubernetes.io/role" => value.as_str(),
                    role => role,
                })
                .filter(|role| !role.is_empty())
                .collect();
            let roles: Vec<&str> = roles.into_iter().collect();
            if roles.is_empty() { json!("<none>") } else { json!(roles.join(",")) }
        }
        "Version" => json!(view.text(&["status", "nodeInfo", "kubeletVersion"])),
        "Internal-IP" => json!(address(view, "InternalIP")),
        "External-IP" => json!(address(view, "ExternalIP")),
        "OS-Image" => info("osImage"),
        "Kernel-Version" => match view.text(&["status", "nodeInfo", "architecture"]) {
            "" => info("kernelVersion"),
            architecture => {
                let kernel = info("kernelVersion");
                json!(format!("{} ({architecture})", kernel.as_str().unwrap_or("")))
            }
        },
        "Container-Runtime" => info("containerRuntimeVersion"),
        _ => return None,
    })
}

fn address(view: &RowObject<'_>, kind: &str) -> String {
    let addresses = view.list(&["status", "addresses"]);
    let found = object::find_by(addresses, "type", kind).and_then(|one| one["address"].as_str());
    found.unwrap_or("<none>").to_owned()
}

/// Events have an older form and a newer one: each field is read from where it is.
fn event(view: &RowObject<'_>, column: &str) -> Option<Value> {
    let first_of = |paths: &[&[&str]]| {
        paths.iter().map(|path| view.text(path)).find(|text| !text.is_empty()).unwrap_or("").to_owned()
    };
    let first = first_of(&[&["firstTimestamp"], &["deprecatedFirstTimestamp"], &["eventTime"]]);
    let about = view.at(&["involvedObject"]).or(view.at(&["regarding"])).unwrap_or(&Value::Null);
    Some(match column {
        "Last Seen" => {
            let last = first_of(&[
                &["series", "lastObservedTime"],
                &["lastTimestamp"],
                &["deprecatedLastTimestamp"],
            ]);
            json!(view.age_since(if last.is_empty() { &first } else { &last }))
        }
        "Type" => json!(view.text(&["type"])),
        "Reason" => json!(view.text(&["reason"])),
        "Object" => {
            let kind = about["kind"].as_str().unwrap_or("").to_lowercase();
            match object::name_of(about) {
                "" => json!(kind),
                name => json!(format!("{kind}/{name}")),
            }
        }
        "Subobject" => json!(about["fieldPath"].as_str().unwrap_or("")),
        "Source" => {
            let component = first_of(&[
                &["source", "component"],
                &["deprecatedSource", "component"],
                &["reportingComponent"],
                &["reportingController"],
            ]);
            let host =
                first_of(&[&["source", "host"], &["deprecatedSource", "host"], &["reportingInstance"]]);
            if host.is_empty() { json!(component) } else { json!(format!("{component}, {host}")) }
        }
        "Message" => json!(first_of(&[&["message"], &["note"]]).trim()),
        "First Seen" => json!(view.age_since(&first)),
        "Count" => {
            let count =
                ["count", "deprecatedCount"].iter().map(|field| object::integer(view.object, &[field])).max();
            let series = view.at(&["series", "count"]).and_then(Value::as_i64);
            json!(series.or(count.filter(|count| *count > 0)).unwrap_or(1))
        }
        _ => return None,
    })
}

fn quota(view: &RowObject<'_>, limits: bool) -> String {
    let hard: BTreeMap<&String, &Value> =
        view.at(&["status", "hard"]).and_then(Value::as_object).into_iter().flatten().collect();
    let said: Vec<String> = hard
        .iter()
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, most)| {
            let used = view.at(&["status", "used", name]).and_then(Value::as_str).unwrap_or("0");
            format!("{name}: {used}/{}", most.as_str().unwrap_or(""))
        })
        .collect();
    said.join(", ")
}
