//! Direct access of tests to the objects of a cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use sandbox::{FaultEffect, FaultPlan, FaultRule, RequestMatch, Sandbox};
use serde_json::Value;

/// The kinds that tests write.
const KINDS: [(&str, &str, &str); 10] = [
    ("", "v1", "Namespace"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("", "v1", "LimitRange"),
    ("", "v1", "ResourceQuota"),
    ("apps", "v1", "Deployment"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
];

/// The kinds that tests only read.
const OTHER_KINDS: [(&str, &str, &str); 18] = [
    ("", "v1", "Endpoints"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "Pod"),
    ("", "v1", "Secret"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "StatefulSet"),
    ("apps", "v1", "DaemonSet"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("batch", "v1", "Job"),
    ("batch", "v1", "CronJob"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("storage.k8s.io", "v1", "StorageClass"),
    ("discovery.k8s.io", "v1", "EndpointSlice"),
    ("apps.kruise.io", "v1alpha1", "CloneSet"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("example.com", "v1", "Account"),
    ("shop.example.com", "v1", "Till"),
    ("monitoring.coreos.com", "v1", "ServiceMonitor"),
];

pub fn api(sandbox: &Sandbox, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let (group, version, kind) = *KINDS
        .iter()
        .chain(&OTHER_KINDS)
        .find(|(_, _, known)| *known == kind)
        .expect("a kind that tests know");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let client = kube::Client::new(sandbox.service(), "default");
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

/// A text field that must exist.
pub fn required_text(object: &Value, pointer: &str) -> String {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{pointer} of {object:#}"))
        .to_owned()
}

/// One object, as the cluster has it.
pub async fn get(sandbox: &Sandbox, kind: &str, namespace: &str, name: &str) -> Option<Value> {
    let found = api(sandbox, kind, Some(namespace)).get_opt(name).await.expect("get");
    found.map(|object| serde_json::to_value(object).expect("JSON"))
}

/// Watches of a resource that begin from now on stay open and send nothing after that time.
pub fn silence_watches(sandbox: &Sandbox, resource: &str, after: Duration) {
    let silence = FaultEffect::WatchSilent { shortest: after, longest: after };
    let watches = RequestMatch::any().verb("watch").resource(resource);
    sandbox.set_faults(&FaultPlan::new(1).rule(FaultRule::new(watches, silence)));
}

/// Somebody deletes an object.
pub async fn delete(sandbox: &Sandbox, kind: &str, name: &str) {
    let deleted = api(sandbox, kind, Some("default")).delete(name, &DeleteParams::default()).await;
    deleted.expect("it is there");
}

pub async fn names(sandbox: &Sandbox, kind: &str) -> Vec<String> {
    let list = api(sandbox, kind, None).list(&ListParams::default()).await.expect("list");
    list.items.into_iter().filter_map(|object| object.metadata.name).collect()
}

/// Applies an object as another manager.
pub async fn apply_as(sandbox: &Sandbox, manager: &str, manifest: &str) -> Value {
    let object: Value = serde_yaml::from_str(manifest).expect("YAML");
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let api = api(sandbox, text("/kind").expect("kind"), text("/metadata/namespace"));
    let parameters = PatchParams::apply(manager).force();
    let written = api.patch(text("/metadata/name").expect("name"), &parameters, &Patch::Apply(&object)).await;
    serde_json::to_value(written.expect("apply")).expect("JSON")
}

/// Changes an object as `kubectl edit`, `kubectl scale` (subresource `scale`) and controllers do.
pub async fn edit_as(sandbox: &Sandbox, manager: &str, (kind, name): (&str, &str), patch: &Value) -> Value {
    let api = api(sandbox, kind, Some("default"));
    let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    let edited = api.patch(name, &parameters, &Patch::Merge(patch)).await.expect("an edit");
    serde_json::to_value(edited).expect("JSON")
}

pub async fn scale_as(sandbox: &Sandbox, manager: &str, deployment: &str, replicas: i64) {
    let api = api(sandbox, "Deployment", Some("default"));
    let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    let patch = serde_json::json!({"spec": {"replicas": replicas}});
    api.patch_scale(deployment, &parameters, &Patch::Merge(&patch)).await.expect("scaled");
}

/// Creates an object as `kubectl apply` does, with its last-applied annotation.
pub async fn create_as(sandbox: &Sandbox, manager: &str, manifest: &str) -> Value {
    let mut object: Value = serde_yaml::from_str(manifest).expect("YAML");
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let api = api(sandbox, text("/kind").expect("kind"), text("/metadata/namespace"));
    let book = "kubectl.kubernetes.io/last-applied-configuration";
    object["metadata"]["annotations"][book] = Value::String(object.to_string());
    let parameters = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
    let object = serde_json::from_value(object).expect("an object");
    serde_json::to_value(api.create(&parameters, &object).await.expect("create")).expect("JSON")
}

/// Clears `managedFields`, as on an object from before servers recorded them.
pub async fn clear_managed_fields(sandbox: &Sandbox, (kind, name): (&str, &str)) -> Value {
    let nobody = serde_json::json!({"metadata": {"managedFields": [{}]}});
    let object = edit_as(sandbox, "kubectl-edit", (kind, name), &nobody).await;
    assert_eq!(object["metadata"]["managedFields"], Value::Null);
    object
}

/// All objects of the instance `main`, by kind, namespace and name.
pub async fn managed_objects(sandbox: &Sandbox) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for (_, _, kind) in KINDS {
        let ours = ListParams::default().labels("tutti.dev/managed-by=main");
        for object in api(sandbox, kind, None).list(&ours).await.expect("list").items {
            let metadata = &object.metadata;
            let namespace = metadata.namespace.clone().unwrap_or_default();
            let id = format!("{kind} {namespace}/{}", metadata.name.clone().unwrap_or_default());
            found.insert(id, serde_json::to_value(object).expect("JSON"));
        }
    }
    found
}

/// The names of those objects.
pub async fn managed_names(sandbox: &Sandbox) -> Vec<String> {
    managed_objects(sandbox).await.into_keys().collect()
}

/// The delete requests until now, also failed ones.
pub fn delete_count(sandbox: &Sandbox) -> usize {
    sandbox.count_requests(&RequestMatch::any().verb("delete"))
}

/// All objects of `main` without what differs between runs: identities, versions, times.
pub async fn comparable_objects(sandbox: &Sandbox) -> BTreeMap<String, Value> {
    let mut objects = managed_objects(sandbox).await;
    for object in objects.values_mut() {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for noise in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
                metadata.remove(noise);
            }
        }
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        for condition in
            object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten()
        {
            for time in ["lastTransitionTime", "lastUpdateTime"] {
                condition.as_object_mut().and_then(|condition| condition.remove(time));
            }
        }
    }
    objects
}
