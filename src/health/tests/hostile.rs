//! Objects may contain anything, and no object may crash the program.

use serde_json::{Value, json};

use super::check;
use crate::health::{find_pod_cause, health_of, read_dump};

#[test]
fn invalid_object_is_unknown() {
    for value in [json!(null), json!(7), json!("text"), json!([]), json!({}), json!({"kind": "Pod"})] {
        check(value, "Unknown: not a Kubernetes object: apiVersion or kind is missing");
    }
}

#[test]
fn huge_and_negative_numbers() {
    check(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": u64::MAX},
               "spec": {"replicas": u64::MAX}, "status": {"observedGeneration": u64::MAX, "replicas": i64::MIN}}),
        "InProgress: 0/9223372036854775807 replicas updated",
    );
    check(
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"replicas": -3,
               "updateStrategy": {"rollingUpdate": {"partition": i64::MIN}}}}),
        "Current: 0/0 replicas available",
    );
}

#[test]
fn long_texts_are_cut() {
    let health = health_of(&json!({"apiVersion": "example.com/v1", "kind": "X", "status": {"conditions":
        [{"type": "Ready", "status": "False", "message": "ä \n ".repeat(100_000)}]}}));
    assert!(health.reason.chars().count() <= 301 && !health.reason.contains('\n'), "{}", health.reason);
}

/// Every kind with every wrong shape in every field that a rule reads.
#[test]
fn wrong_shapes_never_panic() {
    let wrong = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!([]),
        json!([null, 1, "a", [], {}]),
        json!({}),
        json!({"": {"": []}}),
    ];
    let kinds = [
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "ReplicaSet"),
        ("v1", "Pod"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "PersistentVolume"),
        ("v1", "Service"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("policy/v1", "PodDisruptionBudget"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("apiregistration.k8s.io/v1", "APIService"),
        ("v1", "Namespace"),
        ("gateway.networking.k8s.io/v1", "Gateway"),
        ("gateway.networking.k8s.io/v1", "HTTPRoute"),
        ("example.com/v1", "Other"),
        ("///", "/"),
    ];
    let fields = [
        "conditions",
        "replicas",
        "phase",
        "containerStatuses",
        "initContainerStatuses",
        "parents",
        "listeners",
        "observedGeneration",
        "active",
        "loadBalancer",
        "lastScheduleTime",
        "lastSuccessfulTime",
        "desiredNumberScheduled",
        "updateRevision",
        "finalizers",
        "generation",
        "deletionTimestamp",
        "updateStrategy",
        "restartPolicy",
        "schedulingGates",
        "readinessGates",
        "containers",
        "suspend",
    ];
    for (api_version, kind) in kinds {
        for value in &wrong {
            for field in fields {
                for nested in [
                    value.clone(),
                    json!([value]),
                    json!([{"type": value, "status": value,
                    "state": value, "lastState": {"terminated": value}, "restartCount": value}]),
                ] {
                    let part = json!({field: nested});
                    let object = json!({"apiVersion": api_version, "kind": kind,
                        "metadata": part, "spec": part, "status": part});
                    health_of(&object);
                    find_pod_cause(Some(&object), &[object.clone(), value.clone()], &[]);
                }
            }
            health_of(
                &json!({"apiVersion": api_version, "kind": kind, "metadata": value, "spec": value, "status": value}),
            );
        }
    }
}

#[test]
fn dumps() {
    let names = |dump: Value| -> Vec<String> {
        read_dump(dump)
            .iter()
            .map(|object| {
                format!(
                    "{}/{}",
                    object["kind"].as_str().unwrap_or("?"),
                    object["metadata"]["name"].as_str().unwrap_or("?")
                )
            })
            .collect()
    };
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    assert_eq!(names(map("a")), ["ConfigMap/a"]);
    assert_eq!(names(json!([map("a"), map("b")])), ["ConfigMap/a", "ConfigMap/b"]);
    assert_eq!(
        names(json!({"apiVersion": "v1", "kind": "List", "items": [map("a"), map("b")]})),
        ["ConfigMap/a", "ConfigMap/b"]
    );
    let typed =
        json!({"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [{"metadata": {"name": "pay"}}]});
    assert_eq!(names(typed), ["Deployment/pay"]);
    // A custom kind with its own field `items`.
    let own =
        json!({"apiVersion": "example.com/v1", "kind": "Menu", "metadata": {"name": "m"}, "items": [1]});
    assert_eq!(names(own), ["Menu/m"]);
    assert!(names(json!(null)).is_empty());
}
