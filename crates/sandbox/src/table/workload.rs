//! Kinds that run pods, and the autoscaler.

use serde_json::{Value, json};

use super::age;
use super::cell_text::{containers, labels_or_none, selector, selector_or_none};
use super::row_object::RowObject;
use crate::object;

pub(super) fn cell(view: &RowObject<'_>, plural: &str, column: &str) -> Option<Value> {
    let template: &[&str] = match plural {
        "cronjobs" => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => &["spec", "template", "spec"],
    };
    Some(match (plural, column) {
        (_, "Containers") => containers(view.at(template), "name"),
        (_, "Images") => containers(view.at(template), "image"),
        ("deployments", "Selector") => json!(selector(view.at(&["spec", "selector"]))),
        ("cronjobs", "Selector") => selector_or_none(view.at(&["spec", "jobTemplate", "spec", "selector"])),
        (_, "Selector") => selector_or_none(view.at(&["spec", "selector"])),
        ("deployments" | "statefulsets", "Ready") => {
            let ready = object::integer(view.object, &["status", "readyReplicas"]);
            json!(format!("{ready}/{}", object::integer(view.object, &["spec", "replicas"])))
        }
        ("deployments", "Up-to-date") => view.count(&["status", "updatedReplicas"]),
        ("deployments", "Available") => view.count(&["status", "availableReplicas"]),
        ("replicasets" | "replicationcontrollers", "Desired") => view.count(&["spec", "replicas"]),
        ("replicasets" | "replicationcontrollers", "Current") => view.count(&["status", "replicas"]),
        ("replicasets" | "replicationcontrollers", "Ready") => view.count(&["status", "readyReplicas"]),
        ("daemonsets", column) => return daemon_set(view, column),
        ("jobs", column) => return job(view, column),
        ("cronjobs", column) => return cron_job(view, column),
        ("horizontalpodautoscalers", column) => return autoscaler(view, column),
        ("controllerrevisions", "Controller") => match object::controller(view.object) {
            None => json!("<none>"),
            Some(owner) => {
                let version = owner["apiVersion"].as_str().unwrap_or("");
                let group = version.split_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
                let kind = owner["kind"].as_str().unwrap_or("");
                json!(format!("{}/{}", format!("{kind}{group}").to_lowercase(), object::name_of(owner)))
            }
        },
        ("controllerrevisions", "Revision") => view.count(&["revision"]),
        _ => return None,
    })
}

fn daemon_set(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "Desired" => view.count(&["status", "desiredNumberScheduled"]),
        "Current" => view.count(&["status", "currentNumberScheduled"]),
        "Ready" => view.count(&["status", "numberReady"]),
        "Up-to-date" => view.count(&["status", "updatedNumberScheduled"]),
        "Available" => view.count(&["status", "numberAvailable"]),
        "Node Selector" => labels_or_none(view.at(&["spec", "template", "spec", "nodeSelector"])),
        _ => return None,
    })
}

fn job(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "Status" => {
            let is = |kind: &&str| object::condition_is_true(view.object, kind);
            let found = |kinds: &[&'static str]| kinds.iter().copied().find(|kind| is(kind));
            let text = found(&["Complete", "Failed"])
                .or_else(|| object::is_deleting(view.object).then_some("Terminating"))
                .or_else(|| found(&["Suspended", "FailureTarget", "SuccessCriteriaMet"]))
                .unwrap_or("Running");
            json!(text)
        }
        "Completions" => {
            let done = object::integer(view.object, &["status", "succeeded"]);
            let parallel = object::integer(view.object, &["spec", "parallelism"]);
            match view.at(&["spec", "completions"]) {
                Some(wanted) => json!(format!("{done}/{wanted}")),
                None if parallel > 1 => json!(format!("{done}/1 of {parallel}")),
                None => json!(format!("{done}/1")),
            }
        }
        "Duration" => {
            let ago = |path: &[&str]| view.clock.seconds_since(view.text(path));
            let start = ago(&["status", "startTime"]);
            let end = ago(&["status", "completionTime"]).unwrap_or(0);
            json!(start.map(|start| age::format_age(start - end)).unwrap_or_default())
        }
        _ => return None,
    })
}

fn cron_job(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "Schedule" => json!(view.text(&["spec", "schedule"])),
        "Timezone" => view.text_or(&["spec", "timeZone"], "<none>"),
        "Suspend" => match view.at(&["spec", "suspend"]).and_then(Value::as_bool) {
            Some(true) => json!("True"),
            Some(false) => json!("False"),
            None => json!("<unset>"),
        },
        "Active" => json!(view.size(&["status", "active"])),
        "Last Schedule" => match view.text(&["status", "lastScheduleTime"]) {
            "" => json!("<none>"),
            time => json!(view.age_since(time)),
        },
        _ => return None,
    })
}

fn autoscaler(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "Reference" => {
            let target = &view.object["spec"]["scaleTargetRef"];
            json!(format!("{}/{}", target["kind"].as_str().unwrap_or(""), object::name_of(target)))
        }
        "Targets" => json!(targets(view)),
        "MinPods" => match view.at(&["spec", "minReplicas"]) {
            Some(least) => json!(least.to_string()),
            None => json!("<unset>"),
        },
        "MaxPods" => view.count(&["spec", "maxReplicas"]),
        "Replicas" => view.count(&["status", "currentReplicas"]),
        _ => return None,
    })
}

fn targets(view: &RowObject<'_>) -> String {
    let specs = view.list(&["spec", "metrics"]);
    let statuses = view.list(&["status", "currentMetrics"]);
    let said: Vec<String> = specs
        .iter()
        .enumerate()
        .map(|(at, spec)| target(spec, statuses.get(at).unwrap_or(&Value::Null)))
        .collect();
    let shown = said.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(", ");
    match said.len() {
        0 => "<none>".to_owned(),
        count if count > 2 => format!("{shown} + {} more...", count - 2),
        _ => shown,
    }
}

fn target(spec: &Value, status: &Value) -> String {
    let source = match spec["type"].as_str().unwrap_or("") {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = &spec[source]["target"];
    let current = &status[source]["current"];
    let plain = |value: &Value, absent: &str| value.as_str().unwrap_or(absent).to_owned();
    let percent = |value: &Value, absent: &str| {
        value.as_i64().map_or_else(|| absent.to_owned(), |percent| format!("{percent}%"))
    };
    let average = wanted.get("averageValue").filter(|value| !value.is_null());
    match (source, average) {
        ("resource" | "containerResource", Some(average)) => {
            let name = spec[source]["name"].as_str().unwrap_or("");
            format!("{name}: {}/{}", plain(&current["averageValue"], "<unknown>"), plain(average, ""))
        }
        ("resource" | "containerResource", None) => {
            let name = spec[source]["name"].as_str().unwrap_or("");
            let now = percent(&current["averageUtilization"], "<unknown>");
            format!("{name}: {now}/{}", percent(&wanted["averageUtilization"], "<auto>"))
        }
        ("pods", average) => {
            let wanted = plain(average.unwrap_or(&Value::Null), "");
            format!("{}/{wanted}", plain(&current["averageValue"], "<unknown>"))
        }
        (_, Some(average)) => {
            format!("{}/{} (avg)", plain(&current["averageValue"], "<unknown>"), plain(average, ""))
        }
        (_, None) => format!("{}/{}", plain(&current["value"], "<unknown>"), plain(&wanted["value"], "")),
    }
}
