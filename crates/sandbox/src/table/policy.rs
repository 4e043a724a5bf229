//! Access, disruption, admission, scheduling, leases.

use serde_json::{Value, json};

use super::age;
use super::row_object::RowObject;
use crate::object;

pub(super) fn cell(view: &RowObject<'_>, plural: &str, column: &str) -> Option<Value> {
    Some(match (plural, column) {
        ("rolebindings" | "clusterrolebindings", column) => return binding(view, column),
        ("poddisruptionbudgets", "Min Available") => int_or_percent(view.at(&["spec", "minAvailable"])),
        ("poddisruptionbudgets", "Max Unavailable") => int_or_percent(view.at(&["spec", "maxUnavailable"])),
        ("poddisruptionbudgets", "Allowed Disruptions") => view.count(&["status", "disruptionsAllowed"]),
        ("priorityclasses", "Value") => view.count(&["value"]),
        ("priorityclasses", "Global-Default") => view.flag(&["globalDefault"], false),
        ("priorityclasses", "PreemptionPolicy") => json!(view.text(&["preemptionPolicy"])),
        ("leases", "Holder") => json!(view.text(&["spec", "holderIdentity"])),
        ("runtimeclasses", "Handler") => json!(view.text(&["handler"])),
        ("mutatingwebhookconfigurations" | "validatingwebhookconfigurations", "Webhooks") => {
            json!(view.size(&["webhooks"]))
        }
        ("validatingadmissionpolicies", "Validations") => json!(view.size(&["spec", "validations"])),
        ("mutatingadmissionpolicies", "Mutations") => json!(view.size(&["spec", "mutations"])),
        ("validatingadmissionpolicies" | "mutatingadmissionpolicies", "ParamKind") => {
            match view.at(&["spec", "paramKind"]) {
                None => json!("<unset>"),
                Some(kind) => json!(format!(
                    "{}/{}",
                    kind["apiVersion"].as_str().unwrap_or(""),
                    kind["kind"].as_str().unwrap_or("")
                )),
            }
        }
        ("validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings", "PolicyName") => {
            json!(view.text(&["spec", "policyName"]))
        }
        ("validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings", "ParamRef") => {
            match (view.text(&["spec", "paramRef", "namespace"]), view.text(&["spec", "paramRef", "name"])) {
                (_, "") => json!("<unset>"),
                ("", name) => json!(format!("*/{name}")),
                (namespace, name) => json!(format!("{namespace}/{name}")),
            }
        }
        ("certificatesigningrequests", column) => return signing_request(view, column),
        ("flowschemas", column) => return flow_schema(view, column),
        ("prioritylevelconfigurations", column) => return priority_level(view, column),
        ("resourceclaims", "State") => {
            let allocated = view.at(&["status", "allocation"]).is_some();
            let reserved = view.size(&["status", "reservedFor"]) > 0;
            let state = match (allocated, reserved) {
                (true, true) => "allocated,reserved",
                (true, false) => "allocated",
                _ => "pending",
            };
            json!(state)
        }
        ("resourceslices", "Node") => json!(view.text(&["spec", "nodeName"])),
        ("resourceslices", "Driver") => json!(view.text(&["spec", "driver"])),
        ("resourceslices", "Pool") => json!(view.text(&["spec", "pool", "name"])),
        _ => return None,
    })
}

/// A number, a percentage, or `N/A`.
fn int_or_percent(value: Option<&Value>) -> Value {
    match value {
        None => json!("N/A"),
        Some(Value::String(text)) => json!(text),
        Some(other) => json!(other.to_string()),
    }
}

fn binding(view: &RowObject<'_>, column: &str) -> Option<Value> {
    let subjects = |kind: &str| {
        let all = view.list(&["subjects"]).iter().filter(|one| one["kind"] == kind);
        let names: Vec<String> = all
            .map(|one| match (kind, object::text(one, &["namespace"])) {
                ("ServiceAccount", Some(namespace)) => format!("{namespace}/{}", object::name_of(one)),
                _ => object::name_of(one).to_owned(),
            })
            .collect();
        json!(names.join(", "))
    };
    Some(match column {
        "Role" => json!(format!("{}/{}", view.text(&["roleRef", "kind"]), view.text(&["roleRef", "name"]))),
        "Users" => subjects("User"),
        "Groups" => subjects("Group"),
        "ServiceAccounts" => subjects("ServiceAccount"),
        _ => return None,
    })
}

fn signing_request(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "SignerName" => view.text_or(&["spec", "signerName"], "<none>"),
        "Requestor" => json!(view.text(&["spec", "username"])),
        "RequestedDuration" => match view.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64) {
            None => json!("<none>"),
            Some(seconds) => json!(age::format_age(seconds)),
        },
        "Condition" => {
            let is = |kind: &str| object::condition(view.object, kind).is_some();
            let mut said = match (is("Denied"), is("Approved")) {
                (true, _) => "Denied".to_owned(),
                (_, true) => "Approved".to_owned(),
                _ => "Pending".to_owned(),
            };
            if is("Failed") {
                said.push_str(",Failed");
            }
            if !view.text(&["status", "certificate"]).is_empty() {
                said.push_str(",Issued");
            }
            json!(said)
        }
        _ => return None,
    })
}

fn flow_schema(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "PriorityLevel" => json!(view.text(&["spec", "priorityLevelConfiguration", "name"])),
        "MatchingPrecedence" => view.count(&["spec", "matchingPrecedence"]),
        "DistinguisherMethod" => view.text_or(&["spec", "distinguisherMethod", "type"], "<none>"),
        "MissingPL" => {
            let dangling = object::condition(view.object, "Dangling");
            json!(dangling.and_then(|one| one["status"].as_str()).unwrap_or("?"))
        }
        _ => return None,
    })
}

fn priority_level(view: &RowObject<'_>, column: &str) -> Option<Value> {
    let queuing = &["spec", "limited", "limitResponse", "queuing"];
    let of_queue = |field: &str| {
        let path = [queuing.as_slice(), &[field]].concat();
        view.at(&path).cloned().unwrap_or_else(|| json!("<none>"))
    };
    Some(match column {
        "Type" => json!(view.text(&["spec", "type"])),
        "NominalConcurrencyShares" => {
            let shares = view.at(&["spec", "limited", "nominalConcurrencyShares"]);
            shares.cloned().unwrap_or_else(|| json!("<none>"))
        }
        "Queues" => of_queue("queues"),
        "HandSize" => of_queue("handSize"),
        "QueueLengthLimit" => of_queue("queueLengthLimit"),
        _ => return None,
    })
}
