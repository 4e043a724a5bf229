//! Why a workload has no pods: its controller may not create them (a quota, a missing account, admission), and only
//! an event says so.

use serde_json::Value;

use super::PodCause;
use super::json_fields::{count, integer, is_true, sentence, text};

/// Whether only an event shows that the pods of a kind are refused.
pub fn reports_by_events(group: &str, kind: &str) -> bool {
    match kind {
        "StatefulSet" | "DaemonSet" | "BroadcastJob" => true,
        "Job" => group == "batch",
        _ => false,
    }
}

/// Pods are missing, and all existing ones are ready. `has_pods`: as a list shows.
pub fn lacks_pods(workload: &Value, has_pods: bool) -> bool {
    let kind = text(workload, "/kind").unwrap_or_default();
    let group =
        text(workload, "/apiVersion").and_then(|it| it.split_once('/')).map_or("", |(group, _)| group);
    if !reports_by_events(group, kind) {
        return false;
    }
    let ready = |there: &str, ready: &str, wanted: i64| {
        let there = count(workload, there);
        there < wanted && count(workload, ready) >= there
    };
    match kind {
        "Job" => !has_pods && !is_true(workload, "/spec/suspend"),
        "StatefulSet" => {
            let wanted = integer(workload, "/spec/replicas").unwrap_or(1);
            wanted > 0 && (!has_pods || ready("/status/replicas", "/status/readyReplicas", wanted))
        }
        "DaemonSet" => {
            let wanted = count(workload, "/status/desiredNumberScheduled");
            wanted > 0 && ready("/status/currentNumberScheduled", "/status/numberReady", wanted)
        }
        _ => !has_pods,
    }
}

/// The prefix of the newest of many similar messages.
const COMBINED: &str = "(combined from similar events): ";

/// The newest refusal among the events of a workload, unless a pod was created since.
pub fn pod_creation_failure<'e>(
    workload: &Value,
    events: impl IntoIterator<Item = &'e Value>,
) -> Option<PodCause> {
    let is_told = |event: &&Value| {
        matches!(text(event, "/reason"), Some("FailedCreate" | "FailedCreatePod" | "SuccessfulCreate"))
    };
    let newest = events.into_iter().filter(is_told).max_by_key(|event| last_seen(event))?;
    let reason = text(newest, "/reason").filter(|reason| *reason != "SuccessfulCreate")?;
    let message = text(newest, "/message")?;
    // The rest names the pod, or repeats the workload.
    let message = message.strip_prefix(COMBINED).unwrap_or(message);
    let words = message.strip_prefix("Error creating: ");
    let words = words.or_else(|| message.split_once(" failed error: ").map(|(_, words)| words));
    let name = text(workload, "/metadata/name")?;
    Some(PodCause {
        pod: name.to_owned(),
        reason: reason.to_owned(),
        detail: Some(sentence(&without_suffix(words.unwrap_or(message), name))),
        is_decisive: false,
        crash: None,
        log_line: None,
    })
}

/// Removes the random suffix of the pod's name, which would make each attempt another cause.
fn without_suffix(words: &str, workload: &str) -> String {
    const SUFFIX: usize = 5;
    let beginning = format!("\"{workload}-");
    let Some((before, rest)) = words.split_once(&beginning) else { return words.to_owned() };
    let Some((pod, after)) = rest.split_once('"') else { return words.to_owned() };
    // In an indexed Job the index precedes it; pods of a StatefulSet have only an index.
    let (stays, suffix) = pod.rsplit_once('-').map_or(("", pod), |(index, _)| pod.split_at(index.len() + 1));
    let is_made = suffix.len() == SUFFIX && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let pod = if is_made { stays } else { pod };
    format!("{before}{beginning}{pod}\"{after}")
}

/// The last occurrence: old and new reporters write it in different fields.
fn last_seen(event: &Value) -> &str {
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    times.iter().filter_map(|time| text(event, time)).max().unwrap_or_default()
}
