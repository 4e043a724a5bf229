//! Clusters with virtual pods.

use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client, api::DynamicObject};
use sandbox::{PodMode, SandboxOptions};
use serde_json::{Value, json};

use crate::support::{apply, cluster_with, deployment, deployments, refusal_status};

fn options(pods: PodMode) -> SandboxOptions {
    // other random numbers of the seed must not matter
    let pod_start = (Duration::from_secs(2), Duration::from_secs(2));
    SandboxOptions { pods, pod_start, epoch: SystemTime::UNIX_EPOCH, ..SandboxOptions::default() }
}

/// Every status of every workload, and the endpoints, each half second of a minute.
async fn record_minute(pods: PodMode, objects: &[Value]) -> Vec<String> {
    let (_sandbox, client) = cluster_with(options(pods));
    for object in objects {
        let kind = object["kind"].as_str().unwrap();
        let (group, _) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        kind_api(&client, group, kind)
            .patch(name, &kube::api::PatchParams::apply("test"), &kube::api::Patch::Apply(object))
            .await
            .unwrap();
    }
    // reads between the instants of events
    tokio::time::sleep(Duration::from_millis(250)).await;
    let mut seen = Vec::new();
    for _ in 0..120 {
        for kind in ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"] {
            seen.push(status_lines(&kind_api(&client, "apps", kind)).await);
        }
        seen.push(status_lines(&kind_api(&client, "batch", "Job")).await);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    seen
}

fn kind_api(client: &Client, group: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    Api::default_namespaced_with(client.clone(), &resource)
}

async fn status_lines(api: &Api<DynamicObject>) -> String {
    let list = api.list(&ListParams::default()).await.unwrap();
    let one = |object: &DynamicObject| format!("{:?} {}\n", object.metadata.name, object.data["status"]);
    list.items.iter().map(one).collect()
}

async fn check_same_statuses(objects: &[Value]) {
    let (stored, hidden) =
        (record_minute(PodMode::Stored, objects).await, record_minute(PodMode::Virtual, objects).await);
    for (half_seconds, (left, right)) in stored.iter().zip(&hidden).enumerate() {
        assert_eq!(left, right, "look {half_seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn workload_status_matches_stored_pods() {
    check_same_statuses(&[deployment("web", 4, "web:1"), deployment("bad", 2, "web:broken")]).await;
    let mut crashing = deployment("web", 1, "web:1");
    crashing["spec"]["template"]["metadata"]["annotations"] = json!({"sim.tutti.dev/fail": "crash-loop"});
    check_same_statuses(&[crashing]).await;
}

#[tokio::test(start_paused = true)]
async fn status_of_sets_and_jobs_matches_too() {
    let mut set = deployment("db", 3, "db:1");
    set["kind"] = json!("StatefulSet");
    set["spec"]["serviceName"] = json!("db");
    let mut agent = deployment("agent", 1, "agent:1");
    agent["kind"] = json!("DaemonSet");
    agent["spec"].as_object_mut().unwrap().remove("replicas");
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {
        "completions": 3, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "once:1"}]}}}});
    check_same_statuses(&[set, agent, job]).await;
}

#[tokio::test(start_paused = true)]
async fn virtual_pods_return_not_simulated() {
    let (_sandbox, client) = cluster_with(options(PodMode::Virtual));
    apply(&deployments(&client), "test", &deployment("web", 1, "web:1")).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client);
    let status = refusal_status(pods.list(&ListParams::default()).await);
    assert_eq!((status.code, status.reason.as_str()), (501, "NotSimulated"));
}
