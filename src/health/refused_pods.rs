//! Why a workload has no pods: its controller may not make them (a quota, an account that is not there, admission), and says so in
//! an event alone.

use serde_json::Value;

use super::Cause;
use super::read::{count, integer, is_true, sentence, text};

/// Whether workloads of a kind tell that their pods are refused by an event, and by nothing of their own.
pub fn tell_by_events(group: &str, kind: &str) -> bool {
    match kind {
        "StatefulSet" | "DaemonSet" | "BroadcastJob" => true,
        "Job" => group == "batch",
        _ => false,
    }
}

/// It wants pods and has none, or none of those that should be made by now: all that are there are ready. `has_pods`: as a list shows.
pub fn lacks_pods(workload: &Value, has_pods: bool) -> bool {
    let kind = text(workload, "/kind").unwrap_or_default();
    let group =
        text(workload, "/apiVersion").and_then(|it| it.split_once('/')).map_or("", |(group, _)| group);
    if !tell_by_events(group, kind) {
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

/// What recorders write before the newest of many messages that are alike.
const COMBINED: &str = "(combined from similar events): ";

/// What the events about a workload say of it, unless a pod was made since.
pub fn refused_pods<'e>(workload: &Value, events: impl IntoIterator<Item = &'e Value>) -> Option<Cause> {
    let is_told = |event: &&Value| {
        matches!(text(event, "/reason"), Some("FailedCreate" | "FailedCreatePod" | "SuccessfulCreate"))
    };
    let newest = events.into_iter().filter(is_told).max_by_key(|event| seen(event))?;
    let reason = text(newest, "/reason").filter(|reason| *reason != "SuccessfulCreate")?;
    let message = text(newest, "/message")?;
    // The rest names the pod, or says again which workload it is.
    let message = message.strip_prefix(COMBINED).unwrap_or(message);
    let words = message.strip_prefix("Error creating: ");
    let words = words.or_else(|| message.split_once(" failed error: ").map(|(_, words)| words));
    let name = text(workload, "/metadata/name")?;
    Some(Cause {
        pod: name.to_owned(),
        reason: reason.to_owned(),
        detail: Some(sentence(&without_suffix(words.unwrap_or(message), name))),
        decisive: false,
        crash: None,
        line: None,
    })
}

/// Each attempt gives the pod another name, and would be another cause: only the part that stays is told.
fn without_suffix(words: &str, workload: &str) -> String {
    const SUFFIX: usize = 5;
    let beginning = format!("\"{workload}-");
    let Some((before, rest)) = words.split_once(&beginning) else { return words.to_owned() };
    let Some((pod, after)) = rest.split_once('"') else { return words.to_owned() };
    // Of a Job with indexes the index stands before it; the pods of a StatefulSet have nothing else.
    let (stays, suffix) = pod.rsplit_once('-').map_or(("", pod), |(index, _)| pod.split_at(index.len() + 1));
    let is_made = suffix.len() == SUFFIX && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let pod = if is_made { stays } else { pod };
    format!("{before}{beginning}{pod}\"{after}")
}

/// When it happened last: old and new reporters write that in different fields.
fn seen(event: &Value) -> &str {
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    times.iter().filter_map(|time| text(event, time)).max().unwrap_or_default()
}
