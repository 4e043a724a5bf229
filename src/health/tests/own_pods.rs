use serde_json::{Value, json};

use crate::health::{OwnPods, expected_pod_count, own_pods};

#[track_caller]
fn check(api_version: &str, kind: &str, spec: Value, expected: Option<&str>) {
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "pay", "uid": "u-1"}, "spec": spec});
    let found = own_pods(&object).map(|pods| match pods {
        OwnPods::Selected(selector) => selector.to_string(),
        OwnPods::Itself => "itself".to_owned(),
    });
    assert_eq!(found.as_deref(), expected, "{object:#}");
}

#[test]
fn selector_is_rendered_completely() {
    let check =
        |selector: Value, expected| check("apps/v1", "Deployment", json!({"selector": selector}), expected);
    check(json!({"matchLabels": {"app": "pay", "tier": "web"}}), Some("app=pay,tier=web"));
    let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    check(expression("app", "In", &["pay", "till"]), Some("app in (pay,till)"));
    check(expression("app", "NotIn", &["web"]), Some("app notin (web)"));
    check(expression("example.com/app", "Exists", &[]), Some("example.com/app"));
    check(expression("app", "DoesNotExist", &[]), Some("!app"));
    let mut both = expression("tier", "In", &["web"]);
    both["matchLabels"] = json!({"app": "pay"});
    check(both, Some("app=pay,tier in (web)"));
    // A partial selector would match foreign pods.
    check(expression("app", "Near", &["pay"]), None);
    check(json!({"matchExpressions": [{"key": "app", "operator": "In", "values": [1]}]}), None);
    // It matches everything, which no workload does.
    check(json!({}), None);
    check(Value::Null, None);
}

#[test]
fn kinds_with_pods_have_a_selector() {
    let spec = || json!({"selector": {"matchLabels": {"app": "pay"}}});
    for (api_version, kind) in [
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "Job"),
        ("apps.kruise.io/v1alpha1", "CloneSet"),
        ("apps.kruise.io/v1beta1", "StatefulSet"),
        ("apps.kruise.io/v1beta1", "DaemonSet"),
        ("apps.kruise.io/v1alpha1", "UnitedDeployment"),
    ] {
        check(api_version, kind, spec(), Some("app=pay"));
    }
    check("v1", "ReplicationController", json!({"selector": {"app": "pay"}}), Some("app=pay"));
    check("apps.kruise.io/v1alpha1", "BroadcastJob", json!({}), Some("broadcastjob-controller-uid=u-1"));
    for (api_version, kind) in
        [("v1", "Service"), ("batch/v1", "CronJob"), ("example.com/v1", "Job"), ("example.com/v1", "Pod")]
    {
        check(api_version, kind, spec(), None);
    }
    assert_eq!(own_pods(&json!({"apiVersion": "v1", "kind": "Pod"})), Some(OwnPods::Itself));
}

#[test]
fn running_job_needs_no_pod_list() {
    let asked = |status: Value| {
        let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"selector": {"matchLabels": {"job": "a"}}}});
        job["status"] = status;
        own_pods(&job).is_some()
    };
    assert!(asked(json!({})));
    assert!(asked(json!({"active": 1})), "an old server does not say");
    assert!(asked(json!({"active": 2, "ready": 1})));
    assert!(!asked(json!({"active": 2, "ready": 2})));
    assert!(asked(json!({"active": 1, "ready": 1, "failed": 1})));
    assert!(asked(json!({"failed": 7, "conditions": []})));
}

#[test]
fn expected_pod_count_follows_the_workload() {
    let rows = [
        (json!({"spec": {"replicas": 4}}), 4),
        (json!({"spec": {"replicas": 4}, "status": {"replicas": 5}}), 5),
        (json!({"status": {"desiredNumberScheduled": 7, "currentNumberScheduled": 9}}), 9),
        (json!({"status": {"active": 1, "failed": 6, "succeeded": 2}}), 9),
        (json!({"spec": {"replicas": -1}}), 0),
        (json!({"spec": {"replicas": i64::MAX}}), u32::MAX),
        (json!({}), 0),
    ];
    for (workload, expected) in rows {
        assert_eq!(expected_pod_count(&workload), expected, "{workload}");
    }
}
