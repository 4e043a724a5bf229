//! tutti as installed: the manifests of `deploy/`, and their objects on a cluster.

use std::fs;
use std::path::{Path, PathBuf};

use live::LiveCluster;
use serde::Deserialize as _;
use serde_json::Value;

pub const NAMESPACE: &str = "tutti-system";
/// The account, as `tutti cluster rbac` takes it, and its user name on servers.
pub const ACCOUNT: &str = "tutti-system/tutti";
pub const USER: &str = "system:serviceaccount:tutti-system:tutti";
/// The replicas of the Deployment.
pub const REPLICAS: u64 = 2;

/// The root of the checkout.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn manifests() -> PathBuf {
    repository().join("deploy")
}

/// The documents of one manifest.
pub fn deploy_documents(file: &str) -> Vec<Value> {
    documents(&fs::read_to_string(manifests().join(file)).expect("a file"))
}

pub fn documents(text: &str) -> Vec<Value> {
    let all = serde_yaml::Deserializer::from_str(text);
    all.map(|document| Value::deserialize(document).expect("YAML")).filter(Value::is_object).collect()
}

/// The objects of the manifests; all must exist.
pub async fn installed_objects(cluster: &LiveCluster) -> Vec<Value> {
    let manifests = manifests().display().to_string();
    let found = cluster.kubectl(&["get", "-f", &manifests, "-o", "json"]).await.expect("the objects");
    list_items(&found)
}

pub fn list_items(list: &str) -> Vec<Value> {
    let list: Value = serde_json::from_str(list).expect("JSON");
    list["items"].as_array().cloned().expect("a list")
}

pub async fn until_available(cluster: &LiveCluster) {
    let status = ["-n", NAMESPACE, "rollout", "status", "deployment/tutti", "--timeout=120s"];
    cluster.kubectl(&status).await.expect("a Deployment that becomes available");
}

pub async fn deployment(cluster: &LiveCluster) -> Value {
    tutti_object(cluster, "apps/v1", "deployments").await
}

/// The object with the name `tutti`.
pub async fn tutti_object(cluster: &LiveCluster, api: &str, kind: &str) -> Value {
    let path = format!("/apis/{api}/namespaces/{NAMESPACE}/{kind}/tutti");
    cluster.get(&path).await.expect("an object")
}

/// All states of such an object since then, oldest first, by a watch that misses none.
pub async fn object_states_since(cluster: &LiveCluster, api: &str, kind: &str, then: &Value) -> Vec<Value> {
    let version = then["metadata"]["resourceVersion"].as_str().expect("a version");
    let path = format!(
        "/apis/{api}/namespaces/{NAMESPACE}/{kind}?watch=true&timeoutSeconds=2&fieldSelector=metadata.name%3Dtutti\
         &resourceVersion={version}"
    );
    let told = cluster.kubectl(&["get", "--raw", &path]).await.expect("events");
    let events = serde_json::Deserializer::from_str(&told).into_iter::<Value>();
    let states = events.map(|event| {
        let mut event = event.expect("JSON");
        assert_eq!(event["type"], "MODIFIED", "{event}");
        event["object"].take()
    });
    states.collect()
}

/// Pods were replaced one after the other since then, and there were always enough.
pub async fn assert_rolling_update(cluster: &LiveCluster, then: &Value) {
    let states = object_states_since(cluster, "apps/v1", "deployments", then).await;
    let count = |state: &Value, of: &str| state["status"][of].as_u64().unwrap_or_default();
    let counts: Vec<_> =
        states.iter().map(|it| ["availableReplicas", "updatedReplicas"].map(|of| count(it, of))).collect();
    assert!(counts.iter().all(|[available, _]| *available >= REPLICAS), "{counts:?}");
    assert!(counts.iter().any(|[_, updated]| *updated == 1), "one after the other: {counts:?}");
    assert_eq!(counts.last().map(|[_, updated]| *updated), Some(REPLICAS), "{counts:?}");
}
