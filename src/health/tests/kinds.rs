use serde_json::{Value, json};

use super::{check, condition, object};
use crate::health::{HealthRules, unbound_class};
use crate::model::GroupVersionKind;

#[test]
fn deleted_object_is_terminating() {
    let mut map = object("v1", "ConfigMap", Value::Null, Value::Null);
    map["metadata"]["deletionTimestamp"] = json!("2026-11-01T00:00:00Z");
    check(map.clone(), "Terminating: being deleted");
    map["metadata"]["finalizers"] = json!(["example.com/keep"]);
    check(map.clone(), "Terminating: being deleted, waits for finalizer example.com/keep");
    map["metadata"]["finalizers"] = json!(["a", "b"]);
    check(map, "Terminating: being deleted, waits for 2 finalizers: a, b");
    let leaving = object("v1", "Namespace", json!({}), json!({"phase": "Terminating"}));
    check(leaving, "Terminating: being deleted");
}

#[test]
fn kinds_without_an_end_state_are_current() {
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "ServiceAccount"),
        ("v1", "LimitRange"),
        ("v1", "ResourceQuota"),
        ("v1", "Endpoints"),
        ("v1", "PodTemplate"),
        ("apps/v1", "ControllerRevision"),
        ("coordination.k8s.io/v1", "Lease"),
        ("discovery.k8s.io/v1", "EndpointSlice"),
        ("gateway.networking.k8s.io/v1beta1", "ReferenceGrant"),
        ("node.k8s.io/v1", "RuntimeClass"),
        ("storage.k8s.io/v1", "CSIDriver"),
        ("storage.k8s.io/v1", "VolumeAttributesClass"),
        ("networking.k8s.io/v1", "IngressClass"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ] {
        assert!(
            HealthRules::default().is_metadata_only(&GroupVersionKind::from_api_version(api_version, kind)),
            "{kind}"
        );
        check(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}), "Current");
    }
    for (api_version, kind) in [
        ("apps/v1", "Deployment"),
        ("v1", "Service"),
        ("v1", "Namespace"),
        ("networking.k8s.io/v1", "Ingress"),
        ("example.com/v1", "Secret"),
    ] {
        assert!(
            !HealthRules::default().is_metadata_only(&GroupVersionKind::from_api_version(api_version, kind)),
            "{kind}"
        );
    }
    check(object("networking.k8s.io/v1", "Ingress", json!({}), json!({"loadBalancer": {}})), "Current");
    check(object("v1", "Namespace", json!({}), json!({"phase": "Active"})), "Current");
}

#[test]
fn services_wait_for_their_address() {
    let service = |kind: &str, ingress: Value| {
        object("v1", "Service", json!({"type": kind}), json!({"loadBalancer": {"ingress": ingress}}))
    };
    check(service("ClusterIP", Value::Null), "Current");
    check(service("LoadBalancer", Value::Null), "InProgress: 0 load balancer addresses");
    check(service("LoadBalancer", json!([{"ip": "10.0.0.1"}])), "Current");
}

#[test]
fn storage() {
    let claim = |phase: &str| object("v1", "PersistentVolumeClaim", json!({}), json!({"phase": phase}));
    check(claim("Bound"), "Current");
    check(claim("Pending"), "InProgress: Pending, not bound");
    check(claim("Lost"), "Failed: its volume is lost");
    check(claim(""), "InProgress: no status yet");
    let volume = |phase: &str| {
        object("v1", "PersistentVolume", json!({}), json!({"phase": phase, "message": "no plugin"}))
    };
    check(volume("Available"), "Current");
    check(volume("Failed"), "Failed: no plugin");
    check(volume("Pending"), "InProgress: Pending");
}

#[test]
fn unbound_claim_has_a_storage_class() {
    let claim = |section: &str, field: &str, value: Value| {
        let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
            "spec": {"storageClassName": "late"}, "status": {"phase": "Pending"}});
        claim[section][field] = value;
        unbound_class(&claim).map(ToOwned::to_owned)
    };
    assert_eq!(claim("metadata", "annotations", json!({})).as_deref(), Some("late"));
    for (section, field, value) in [
        ("status", "phase", json!("Bound")),
        ("spec", "volumeName", json!("pv-1")),
        ("spec", "storageClassName", json!("")),
        ("metadata", "annotations", json!({"volume.kubernetes.io/selected-node": "node-1"})),
    ] {
        assert_eq!(claim(section, field, value), None, "{section}.{field}");
    }
}

#[test]
fn scaling() {
    let autoscaler = |conditions: Value| {
        object("autoscaling/v2", "HorizontalPodAutoscaler", json!({}), json!({"conditions": conditions}))
    };
    let able = condition("AbleToScale", "True", "ReadyForNewScale", "ok");
    check(autoscaler(json!([])), "InProgress: no status yet");
    check(autoscaler(json!([able, condition("ScalingActive", "True", "ValidMetricFound", "ok")])), "Current");
    check(
        autoscaler(json!([condition("AbleToScale", "False", "FailedGetScale", "no such deployment")])),
        "Failed: FailedGetScale: no such deployment",
    );
    check(
        autoscaler(json!([
            able,
            condition("ScalingActive", "False", "FailedGetResourceMetric", "no metrics yet")
        ])),
        "Current: FailedGetResourceMetric: no metrics yet",
    );
    check(
        autoscaler(json!([
            able,
            condition("ScalingActive", "False", "InvalidSelector", "selector is required")
        ])),
        "Failed: InvalidSelector: selector is required",
    );
    let kept = json!([condition("AbleToScale", "False", "FailedUpdateScale", "refused")]).to_string();
    let old = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata":
        {"name": "pay", "annotations": {"autoscaling.alpha.kubernetes.io/conditions": kept}}});
    check(old, "Failed: FailedUpdateScale: refused");

    let budget = |reason: &str| {
        object(
            "policy/v1",
            "PodDisruptionBudget",
            json!({}),
            json!({"observedGeneration": 2, "conditions": [condition("DisruptionAllowed", "False", reason, "")]}),
        )
    };
    check(budget("InsufficientPods"), "Current");
    check(budget("SyncFailed"), "Failed: SyncFailed");
}

#[test]
fn definitions_and_api_services() {
    let definition = |conditions: Value| {
        object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({}),
            json!({"conditions": conditions}),
        )
    };
    check(definition(json!([])), "InProgress: not established yet");
    check(definition(json!([condition("Established", "True", "InitialNamesAccepted", "")])), "Current");
    check(
        definition(json!([condition("Established", "False", "Installing", "")])),
        "InProgress: not established yet",
    );
    check(
        definition(json!([condition("NamesAccepted", "False", "PluralConflict", "\"foos\" is taken")])),
        "Failed: PluralConflict: \"foos\" is taken",
    );
    check(
        definition(json!([
            condition("Established", "True", "", ""),
            condition("NonStructuralSchema", "True", "Violations", "spec.x: type is required")
        ])),
        "Failed: Violations: spec.x: type is required",
    );
    let service = |status: &str| {
        object(
            "apiregistration.k8s.io/v1",
            "APIService",
            json!({}),
            json!({"conditions": [condition("Available", status, "MissingEndpoints", "no endpoints")]}),
        )
    };
    check(service("True"), "Current");
    check(service("False"), "InProgress: MissingEndpoints: no endpoints");
}

#[test]
fn gateways_and_routes() {
    let seen = |name: &str, status: &str, generation: u32| json!({"type": name, "status": status, "reason": "Because", "observedGeneration": generation});
    let gateway = |conditions: Value, listeners: Value| {
        object(
            "gateway.networking.k8s.io/v1",
            "Gateway",
            json!({}),
            json!({"conditions": conditions, "listeners": listeners}),
        )
    };
    let fine = json!([seen("Accepted", "True", 2), seen("Programmed", "True", 2)]);
    check(gateway(fine.clone(), json!([])), "Current");
    let untouched = json!([condition("Accepted", "Unknown", "Pending", "Waiting for controller")]);
    check(gateway(untouched, json!([])), "InProgress: gateway: no status yet");
    check(
        gateway(json!([seen("Accepted", "True", 1)]), json!([])),
        "InProgress: gateway: Accepted is of an older generation",
    );
    check(gateway(json!([seen("Accepted", "False", 2)]), json!([])), "Failed: gateway: Because");
    // Accepted, and not yet programmed.
    check(
        gateway(json!([seen("Accepted", "True", 2)]), json!([])),
        "InProgress: gateway: Programmed is not set",
    );
    check(
        gateway(json!([seen("Accepted", "True", 2), seen("Programmed", "Unknown", 2)]), json!([])),
        "InProgress: gateway: Because",
    );
    check(gateway(json!([seen("Scheduled", "True", 2), seen("Ready", "True", 2)]), json!([])), "Current");
    check(
        gateway(fine.clone(), json!([{"name": "https", "conditions": [seen("Accepted", "True", 2)]}])),
        "Current",
    );
    check(gateway(json!([]), json!([])), "InProgress: gateway: no status yet");
    check(
        gateway(fine, json!([{"name": "https", "conditions": [seen("ResolvedRefs", "False", 2)]}])),
        "Failed: listener https: Because",
    );
    let route = |parents: Value| {
        object("gateway.networking.k8s.io/v1", "HTTPRoute", json!({}), json!({"parents": parents}))
    };
    let parent = |name: &str, status: &str, generation: u32| json!({"parentRef": {"name": name}, "conditions": [seen("Accepted", status, generation)]});
    check(route(json!([])), "InProgress: no gateway has accepted the route yet");
    check(route(json!([parent("front", "True", 2)])), "Current");
    check(
        route(json!([{"parentRef": {"name": "front"}, "conditions": [seen("ResolvedRefs", "True", 2)]}])),
        "InProgress: parent front: Accepted is not set",
    );
    check(
        route(json!([{"parentRef": {"name": "front"}, "conditions": []}])),
        "InProgress: parent front: no status yet",
    );
    let class = |conditions: Value| {
        object("gateway.networking.k8s.io/v1", "GatewayClass", json!({}), json!({"conditions": conditions}))
    };
    // No controller serves it.
    let nobody = condition("Accepted", "Unknown", "Pending", "Waiting for controller");
    check(class(json!([nobody])), "InProgress: class: no status yet");
    check(class(json!([])), "InProgress: class: no status yet");
    check(class(json!([seen("Accepted", "True", 2)])), "Current");
    check(class(json!([seen("SupportedVersion", "True", 2)])), "InProgress: class: Accepted is not set");
    check(class(json!([seen("Accepted", "False", 2)])), "Failed: class: Because");
    check(
        route(json!([parent("front", "True", 1)])),
        "InProgress: parent front: Accepted is of an older generation",
    );
    check(
        route(json!([parent("front", "True", 1), parent("back", "False", 2)])),
        "Failed: parent back: Because",
    );
}

#[test]
fn listeners_and_policies_of_gateways() {
    let seen = |name: &str, status: &str| json!({"type": name, "status": status, "reason": "Because"});
    let set = |status: &str| {
        let listeners = json!([{"name": "https", "conditions": [seen("Programmed", status)]}]);
        let own = [seen("Accepted", "True"), seen("Programmed", "True")];
        let status = json!({"conditions": own, "listeners": listeners});
        object("gateway.networking.k8s.io/v1", "ListenerSet", json!({}), status)
    };
    check(set("True"), "Current");
    check(set("False"), "InProgress: listener https: Because");
    let policy = |ancestors: Value| {
        object("gateway.networking.k8s.io/v1", "BackendTLSPolicy", json!({}), json!({"ancestors": ancestors}))
    };
    let ancestor =
        |status: &str| json!([{"ancestorRef": {"name": "front"}, "conditions": [seen("Accepted", status)]}]);
    check(policy(ancestor("True")), "Current");
    check(policy(ancestor("False")), "Failed: parent front: Because");
    check(policy(json!([])), "Current");
    check(
        object("gateway.networking.x-k8s.io/v1alpha1", "XListenerSet", json!({}), json!({})),
        "InProgress: gateway: no status yet",
    );
}

#[test]
fn other_kinds_follow_the_conventions() {
    let other = |status: Value| object("example.com/v1", "Database", json!({}), status);
    check(other(Value::Null), "Current");
    check(other(json!({"conditions": []})), "Current");
    check(
        other(json!({"observedGeneration": 1, "conditions": [condition("Ready", "True", "", "")]})),
        "InProgress: generation 2 is not observed yet, the status is of 1",
    );
    check(other(json!({"conditions": [condition("Ready", "True", "Up", "")]})), "Current");
    check(
        other(json!({"conditions": [condition("Ready", "False", "Creating", "volume")]})),
        "InProgress: Creating: volume",
    );
    check(
        other(json!({"conditions": [{"type": "Available", "status": "Unknown"}]})),
        "InProgress: Available is Unknown",
    );
    check(
        other(
            json!({"conditions": [condition("Ready", "True", "", ""), condition("Reconciling", "True", "Update", "")]}),
        ),
        "InProgress: Update",
    );
    check(
        other(json!({"conditions": [condition("Stalled", "True", "BadSpec", "no such size"),
            condition("Reconciling", "True", "Update", "")]})),
        "Failed: BadSpec: no such size",
    );
    check(other(json!({"conditions": [condition("Stalled", "False", "", "")]})), "Current");
}

#[test]
fn conditions_of_an_older_generation_decide_nothing() {
    let seen = |name: &str, status: &str, generation: Value| json!({"type": name, "status": status, "reason": "Because", "observedGeneration": generation});
    let check_all = |conditions: Value, expected: &str| {
        check(object("example.com/v1", "Database", json!({}), json!({"conditions": conditions})), expected);
    };
    let old = |name: &str| format!("InProgress: {name} is of an older generation");
    for (name, status) in [
        ("Ready", "True"),
        ("Ready", "False"),
        ("Available", "True"),
        ("Stalled", "True"),
        ("Reconciling", "True"),
    ] {
        check_all(json!([seen(name, status, json!(1))]), &old(name));
    }
    let ready = || seen("Ready", "True", json!(2));
    check_all(json!([ready(), seen("Available", "True", json!(1))]), "Current");
    check_all(json!([ready(), seen("Reconciling", "False", json!(1))]), "Current");
    check_all(json!([seen("Stalled", "True", json!(2))]), "Failed: Because");
    check_all(json!([seen("Ready", "True", json!("1"))]), &old("Ready"));
    // It does not report its generation.
    for unknown in [Value::Null, json!("newest"), json!({})] {
        check_all(json!([seen("Ready", "True", unknown)]), "Current");
    }
}

/// As Argo Rollouts writes it.
#[test]
fn an_observed_generation_may_be_a_text() {
    let rollout = |observed: &str| {
        let status =
            json!({"observedGeneration": observed, "conditions": [condition("Available", "True", "", "")]});
        object("argoproj.io/v1alpha1", "Rollout", json!({}), status)
    };
    check(rollout("1"), "InProgress: generation 2 is not observed yet, the status is of 1");
    // Before version 1.0 it has no phase.
    check(rollout("2"), "Current");
    // Old versions have a hash there.
    check(rollout("5d4c4f"), "Current");
}

#[test]
fn argo_rollout_is_current_after_its_steps() {
    let rollout = |spec: Value, status: Value| object("argoproj.io/v1alpha1", "Rollout", spec, status);
    let pause = json!([{"reason": "CanaryPauseStep", "startTime": "2026-11-26T08:00:00Z"}]);
    check(rollout(json!({}), json!({"observedGeneration": "2", "phase": "Healthy"})), "Current");
    check(
        rollout(json!({}), json!({"observedGeneration": "1", "phase": "Healthy"})),
        "InProgress: generation 2 is not observed yet, the status is of 1",
    );
    let progress = json!({"phase": "Progressing", "message": "more replicas need to be updated"});
    check(rollout(json!({}), progress), "InProgress: Progressing: more replicas need to be updated");
    let failed = json!({"phase": "Degraded", "message": "ProgressDeadlineExceeded: it timed out"});
    check(rollout(json!({}), failed), "Failed: Degraded: ProgressDeadlineExceeded: it timed out");
    let paused = json!({"phase": "Paused", "message": "CanaryPauseStep", "currentStepIndex": 1, "pauseConditions": pause});
    check(rollout(json!({}), paused.clone()), "InProgress: paused at step 1: CanaryPauseStep");
    check(rollout(json!({"paused": true}), paused), "Suspended: the rollout is paused");
}

#[test]
fn flagger_canary_is_current_after_promotion() {
    let canary = |status: Value| object("flagger.app/v1beta1", "Canary", json!({}), status);
    check(canary(json!({})), "InProgress: Flagger has not processed it yet");
    for (phase, expected) in [
        ("Initializing", "InProgress: Initializing"),
        ("Initialized", "Current"),
        ("Waiting", "InProgress: Waiting"),
        ("Progressing", "InProgress: Progressing"),
        ("WaitingPromotion", "InProgress: WaitingPromotion"),
        ("Promoting", "InProgress: Promoting"),
        ("Finalising", "InProgress: Finalising"),
        ("Succeeded", "Current"),
        ("Failed", "Failed: Failed"),
        ("Terminated", "Terminating: Terminated"),
    ] {
        check(canary(json!({"phase": phase})), expected);
    }
    let conditions = json!([{"type": "Promoted", "status": "False", "message": "Canary analysis failed"}]);
    check(
        canary(json!({"phase": "Failed", "conditions": conditions})),
        "Failed: Failed: Canary analysis failed",
    );
}
