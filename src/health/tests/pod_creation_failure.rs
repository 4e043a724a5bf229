//! Workloads whose pods are refused at creation.

use serde_json::{Value, json};

use crate::health::{lacks_pods, pod_creation_failure};

fn workload(version: &str, kind: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": "web", "uid": "u1"}, "spec": spec, "status": status})
}

#[test]
fn events_are_needed_for_missing_pods() {
    let check = |version: &str, kind: &str, spec: Value, status: Value, has_pods: bool, expected: bool| {
        let workload = workload(version, kind, spec, status);
        assert_eq!(lacks_pods(&workload, has_pods), expected, "{workload} {has_pods}");
    };
    let job = |spec: Value, has_pods: bool, expected: bool| {
        check("batch/v1", "Job", spec, json!({}), has_pods, expected);
    };
    job(json!({}), false, true);
    job(json!({}), true, false);
    job(json!({"suspend": true}), false, false);
    check("example.com/v1", "Job", json!({}), json!({}), false, false);
    let set = |status: Value, has_pods: bool, expected: bool| {
        check("apps/v1", "StatefulSet", json!({"replicas": 3}), status, has_pods, expected);
    };
    set(json!({}), false, true);
    // The next pod would exist once the last one was ready.
    set(json!({"replicas": 1, "readyReplicas": 1}), true, true);
    set(json!({"replicas": 1}), true, false);
    set(json!({"replicas": 3, "readyReplicas": 3}), true, false);
    check("apps/v1", "StatefulSet", json!({"replicas": 0}), json!({}), false, false);
    let nodes = |current: u32, ready: u32, expected: bool| {
        let status =
            json!({"desiredNumberScheduled": 3, "currentNumberScheduled": current, "numberReady": ready});
        check("apps/v1", "DaemonSet", json!({}), status, current > 0, expected);
    };
    nodes(0, 0, true);
    nodes(2, 2, true);
    nodes(2, 1, false);
    nodes(3, 3, false);
    // Its status shows it.
    check("apps/v1", "ReplicaSet", json!({"replicas": 1}), json!({}), false, false);
}

#[test]
fn newest_pod_event_is_returned() {
    let event = |reason: &str, message: &str, time: &str| json!({"reason": reason, "message": message, "lastTimestamp": time, "type": "Warning"});
    let refused = r#"pods "web-" is forbidden: error looking up service account shop/web: serviceaccount "web" not found"#;
    let check = |events: &[Value], expected: Option<&str>| {
        let job = workload("batch/v1", "Job", json!({}), json!({}));
        let cause = pod_creation_failure(&job, events);
        assert!(cause.as_ref().is_none_or(|cause| !cause.is_decisive && cause.crash.is_none()));
        assert_eq!(cause.map(|cause| cause.to_string()).as_deref(), expected);
    };
    let failed = event("FailedCreate", &format!("Error creating: {refused}"), "2026-11-20T00:00:20Z");
    let told = format!("FailedCreate web ({refused})");
    check(&[], None);
    check(std::slice::from_ref(&failed), Some(&told));
    let combined = format!("(combined from similar events): Error creating: {refused}");
    check(&[event("FailedCreate", &combined, "2026-11-20T00:00:30Z")], Some(&told));
    let other = event("BackoffLimitExceeded", "Job has reached the limit", "2026-11-20T00:00:50Z");
    check(&[failed.clone(), other], Some(&told));
    let made = |time: &str| event("SuccessfulCreate", "Created pod: web-abcde", time);
    check(&[made("2026-11-20T00:00:10Z"), failed.clone()], Some(&told));
    check(&[failed, made("2026-11-20T00:00:30Z")], None);
    // Each attempt has another name.
    for pod in ["web-x7k2d", "web-3-x7k2d"] {
        let quota = format!("Error creating: pods \"{pod}\" is forbidden: exceeded quota: none");
        let stays = &pod[..pod.len() - 5];
        let told = format!("FailedCreate web (pods \"{stays}\" is forbidden: exceeded quota: none)");
        check(&[event("FailedCreate", &quota, "2026-11-20T00:00:20Z")], Some(&told));
    }
    // Of a reporter without lastTimestamp, and of a StatefulSet.
    let words =
        "create Pod web-0 in StatefulSet web failed error: pods \"web-0\" is forbidden: exceeded quota";
    let series = json!({"reason": "FailedCreate", "message": words, "lastTimestamp": null,
        "eventTime": "2026-11-20T00:00:01Z", "series": {"count": 3, "lastObservedTime": "2026-11-20T00:00:40Z"}});
    let expected = "FailedCreate web (pods \"web-0\" is forbidden: exceeded quota)";
    check(&[made("2026-11-20T00:00:30Z"), series], Some(expected));
}
