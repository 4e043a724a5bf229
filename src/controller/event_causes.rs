//! Finds the causes of workloads without pods from their events.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::{Client, EventPage, EventSubject};
use crate::health::{PodCause, pod_creation_failure};

/// Workloads that are queried one by one when the list of their kind was too long.
const MAX_SINGLE_LOOKUPS: usize = 10;

/// The reasons why controllers create no pods for these workloads of a namespace, by uid. A workload is left out if its events
/// were not read in time or were too many. Each kind costs one list.
pub async fn causes_from_events(
    client: &Client,
    namespace: &str,
    workloads: &[&Value],
    until: Instant,
) -> HashMap<String, Option<PodCause>> {
    let mut kinds: BTreeMap<&str, Vec<(&str, &Value)>> = BTreeMap::new();
    for workload in workloads {
        let uid = workload.pointer("/metadata/uid").and_then(Value::as_str);
        let kind = workload.pointer("/kind").and_then(Value::as_str);
        if let (Some(kind), Some(uid)) = (kind, uid) {
            kinds.entry(kind).or_default().push((uid, workload));
        }
    }
    let mut causes = HashMap::new();
    for (kind, workloads) in kinds {
        let about = match &workloads[..] {
            [(uid, _)] => EventSubject::Uid(uid),
            _ => EventSubject::Kind(kind),
        };
        match tokio::time::timeout_at(until, client.events_about(namespace, about)).await {
            Ok(Ok(page)) => {
                causes.extend(causes_by_uid(&workloads, &page));
                // Their events are after the end of the list.
                let left_out = workloads.iter().filter(|(uid, _)| !causes.contains_key(*uid));
                for (uid, workload) in left_out.take(MAX_SINGLE_LOOKUPS).copied().collect::<Vec<_>>() {
                    let asked = client.events_about(namespace, EventSubject::Uid(uid));
                    if let Ok(Ok(page)) = tokio::time::timeout_at(until, asked).await {
                        causes.extend(causes_by_uid(&[(uid, workload)], &page));
                    }
                }
            }
            Ok(Err(error)) => tracing::debug!(%error, "the events could not be listed"),
            Err(_) => tracing::debug!("the events were not listed in time"),
        }
    }
    causes
}

fn causes_by_uid(workloads: &[(&str, &Value)], page: &EventPage) -> HashMap<String, Option<PodCause>> {
    let mut events: HashMap<&str, Vec<&Value>> = HashMap::new();
    for event in &page.events {
        if let Some(uid) = event.pointer("/involvedObject/uid").and_then(Value::as_str) {
            events.entry(uid).or_default().push(event);
        }
    }
    let known = workloads.iter().filter_map(|(uid, workload)| {
        let own = events.get(uid).map_or(&[][..], Vec::as_slice);
        let is_known = !own.is_empty() || !page.is_truncated;
        is_known.then(|| ((*uid).to_owned(), pod_creation_failure(workload, own.iter().copied())))
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_assigned_to_their_workloads() {
        let event = |uid: &str, reason: &str| {
            json!({"involvedObject": {"uid": uid}, "reason": reason, "message": format!("Error creating: {uid} is forbidden"),
                "lastTimestamp": "2026-11-20T00:00:20Z"})
        };
        let job = |name: &str| json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "uid": name}});
        let (a, b, c) = (job("a"), job("b"), job("c"));
        let workloads = [("a", &a), ("b", &b), ("c", &c)];
        let events = ["a", "x", "b"].map(|uid| event(uid, "FailedCreate")).into_iter();
        let events: Vec<Value> = events.chain([event("b", "Other")]).collect();
        for is_cut in [false, true] {
            let causes =
                causes_by_uid(&workloads, &EventPage { events: events.clone(), is_truncated: is_cut });
            let told = |uid: &str| {
                causes.get(uid).map(|cause| cause.as_ref().map(ToString::to_string).unwrap_or_default())
            };
            assert_eq!(told("a").as_deref(), Some("FailedCreate a (a is forbidden)"));
            assert_eq!(told("b").as_deref(), Some("FailedCreate b (b is forbidden)"));
            // No event is about it, or its events were not read.
            assert_eq!(told("c").as_deref(), (!is_cut).then_some(""));
        }
    }
}
