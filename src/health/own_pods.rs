//! Which pods tell why a workload does not progress.

use serde_json::Value;

use super::read::{count, integer, items, text};

/// Where the pods of a workload are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnPods {
    /// By this selector, as a list request takes it, in the namespace of the workload.
    Selected(String),
    /// It is a pod.
    Itself,
}

/// Whether objects of a kind have pods of their own that can be listed; in any group but where the name is common.
pub fn have_pods(group: &str, kind: &str) -> bool {
    match kind {
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "CloneSet" | "UnitedDeployment"
        | "BroadcastJob" => true,
        "Job" => group == "batch",
        "ReplicationController" => group.is_empty(),
        _ => false,
    }
}

/// `None`: it has no pods, or none that anything is to be asked about.
pub fn own_pods(object: &Value) -> Option<OwnPods> {
    let kind = text(object, "/kind")?;
    let group = text(object, "/apiVersion")?.split_once('/').map_or("", |(group, _)| group);
    if group.is_empty() && kind == "Pod" {
        return Some(OwnPods::Itself);
    }
    if !have_pods(group, kind) || (kind == "Job" && runs_quietly(object)) {
        return None;
    }
    let selector = match kind {
        // It has no selector of its own.
        "BroadcastJob" => format!("broadcastjob-controller-uid={}", text(object, "/metadata/uid")?),
        "ReplicationController" => pairs(object.pointer("/spec/selector")?).join(","),
        _ => of_labels(object.pointer("/spec/selector")?)?,
    };
    (!selector.is_empty()).then_some(OwnPods::Selected(selector))
}

/// A Job that has not ended is not well, but while its pods run there is nothing to ask.
fn runs_quietly(job: &Value) -> bool {
    let active = count(job, "/status/active");
    active > 0
        && count(job, "/status/failed") == 0
        && integer(job, "/status/ready").is_some_and(|ready| ready >= active)
}

/// A label selector in the text form; `None` for one that cannot be said in it.
fn of_labels(selector: &Value) -> Option<String> {
    let mut parts = pairs(selector.get("matchLabels").unwrap_or(&Value::Null));
    for expression in items(selector, "/matchExpressions") {
        let key = text(expression, "/key")?;
        let values: Option<Vec<&str>> = items(expression, "/values").iter().map(Value::as_str).collect();
        let values = values?.join(",");
        parts.push(match text(expression, "/operator")? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    Some(parts.join(","))
}

fn pairs(labels: &Value) -> Vec<String> {
    let labels = labels.as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| value.as_str().map(|value| format!("{key}={value}"))).collect()
}
