//! Helpers of the tests.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use sandbox::{Sandbox, SandboxOptions};
use serde_json::{Value, json};

/// A cluster whose pods are ready immediately, and its client.
pub fn instant_cluster() -> (Sandbox, Client) {
    cluster_with(SandboxOptions::instant("test"))
}

pub fn cluster_with(options: SandboxOptions) -> (Sandbox, Client) {
    let sandbox = Sandbox::new(options);
    let client = client(&sandbox);
    (sandbox, client)
}

pub fn client(sandbox: &Sandbox) -> Client {
    Client::new(sandbox.service(), "default")
}

pub fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

pub fn deployments(client: &Client) -> Api<Deployment> {
    Api::default_namespaced(client.clone())
}

pub fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub fn deployment(name: &str, replicas: i64, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image, "ports": [{"containerPort": 80}]}]},
            },
        },
    })
}

/// Applies as `manager`, without force.
pub async fn apply<K>(api: &Api<K>, manager: &str, object: &Value) -> kube::Result<K>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let name = object["metadata"]["name"].as_str().unwrap();
    api.patch(name, &PatchParams::apply(manager), &Patch::Apply(object)).await
}

/// The `Status` of a refused request.
pub fn refusal_status<T: std::fmt::Debug>(result: kube::Result<T>) -> kube::core::Status {
    match result.unwrap_err() {
        kube::Error::Api(status) => *status,
        other => panic!("not refused by the server: {other}"),
    }
}

/// Reads until `done`, for at most ten minutes of the test's clock.
pub async fn wait_until<K, F>(api: &Api<K>, name: &str, mut done: F) -> K
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    F: FnMut(&K) -> bool,
{
    let mut last = None;
    for _ in 0..6_000 {
        let object = api.get(name).await.unwrap();
        if done(&object) {
            return object;
        }
        last = Some(object);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{name} never came there: {last:?}");
}

/// Status and reason of a deployment's condition.
pub fn deployment_condition(deployment: &Deployment, kind: &str) -> (String, String) {
    deployment
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .find(|one| one.type_.as_deref() == Some(kind))
        .map(|one| (one.status.clone().unwrap_or_default(), one.reason.clone().unwrap_or_default()))
        .unwrap_or_default()
}
