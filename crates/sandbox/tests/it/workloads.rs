//! StatefulSets, DaemonSets, Jobs, services and claims on a paused clock.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use sandbox::SandboxOptions;
use serde_json::{Value, json};

use crate::support::{apply, cluster_with, deployment, deployments, wait_until};

fn pods(client: &Client) -> Api<Pod> {
    Api::default_namespaced(client.clone())
}

async fn pod_names(client: &Client) -> Vec<String> {
    pods(client).list(&ListParams::default()).await.unwrap().items.iter().map(ResourceExt::name_any).collect()
}

/// A workload of another kind with the same template.
fn workload(kind: &str, image: &str) -> Value {
    let mut object = deployment("db", 3, image);
    object["kind"] = json!(kind);
    object
}

#[tokio::test(start_paused = true)]
async fn stateful_set_scales_in_order() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let api: Api<StatefulSet> = Api::default_namespaced(client.clone());
    let mut object = workload("StatefulSet", "db:1");
    object["spec"]["serviceName"] = json!("db");
    object["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    apply(&api, "a", &object).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(pod_names(&client).await, ["db-0"]);
    let done = |set: &StatefulSet, generation| {
        let status = set.status.as_ref().unwrap();
        status.observed_generation == Some(generation)
            && status.ready_replicas == Some(3)
            && status.updated_replicas == Some(3)
            && status.current_revision == status.update_revision
    };
    let first = wait_until(&api, "db", |set| done(set, 1)).await;
    assert_eq!(pod_names(&client).await, ["db-0", "db-1", "db-2"]);
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client.clone());
    let claim = claims.get("data-db-2").await.unwrap();
    assert_eq!(claim.status.unwrap().phase.as_deref(), Some("Bound"));

    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:2");
    apply(&api, "a", &object).await.unwrap();
    let second = wait_until(&api, "db", |set| done(set, 2)).await;
    assert_ne!(first.status.unwrap().current_revision, second.status.unwrap().current_revision);
    object["spec"]["replicas"] = json!(1);
    apply(&api, "a", &object).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(pod_names(&client).await, ["db-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_runs_on_every_node() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let api: Api<DaemonSet> = Api::default_namespaced(client.clone());
    let mut object = workload("DaemonSet", "agent:1");
    object["spec"].as_object_mut().unwrap().remove("replicas");
    apply(&api, "a", &object).await.unwrap();
    wait_until(&api, "db", |set| set.status.as_ref().unwrap().number_ready == 3).await;
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("agent:2");
    apply(&api, "a", &object).await.unwrap();
    wait_until(&api, "db", |set| {
        let status = set.status.as_ref().unwrap();
        assert!(status.number_ready >= 2, "{status:?}");
        status.observed_generation == Some(2)
            && status.updated_number_scheduled == Some(3)
            && status.number_ready == 3
    })
    .await;
    let images: Vec<_> = pods(&client)
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .iter()
        .map(|pod| serde_json::to_value(pod).unwrap()["spec"]["containers"][0]["image"].clone())
        .collect();
    assert_eq!(images, ["agent:2", "agent:2", "agent:2"]);
}

fn job(name: &str, annotations: Value) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"backoffLimit": 1, "template": {"metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]}}}})
}

fn has_condition(job: &Job, kind: &str) -> bool {
    let job = serde_json::to_value(job).unwrap();
    job["status"]["conditions"]
        .as_array()
        .is_some_and(|list| list.iter().any(|one| one["type"] == kind && one["status"] == "True"))
}

#[tokio::test(start_paused = true)]
async fn jobs_complete_or_fail() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let api: Api<Job> = Api::default_namespaced(client.clone());
    apply(&api, "a", &job("good", json!({}))).await.unwrap();
    let good = wait_until(&api, "good", |job| has_condition(job, "Complete")).await;
    assert_eq!(good.status.unwrap().succeeded, Some(1));
    // applied again, nothing changes and no pod starts
    let again = apply(&api, "a", &job("good", json!({}))).await.unwrap();
    assert_eq!(again.metadata.generation, Some(1));

    apply(&api, "a", &job("bad", json!({"sim.tutti.dev/fail": "crash-loop"}))).await.unwrap();
    let bad = wait_until(&api, "bad", |job| has_condition(job, "Failed")).await;
    assert_eq!(bad.status.unwrap().failed, Some(2));
}

#[tokio::test(start_paused = true)]
async fn service_endpoints_have_ready_pods() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "labels": {"team": "a"}},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}});
    apply(&services, "a", &service).await.unwrap();
    apply(&deployments(&client), "a", &deployment("web", 2, "web:1")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let slices: Api<EndpointSlice> = Api::default_namespaced(client);
    let slice = slices.list(&ListParams::default().labels("kubernetes.io/service-name=web")).await.unwrap();
    assert_eq!(slice.items[0].labels()["team"], "a");
    let slice = serde_json::to_value(&slice.items[0]).unwrap();
    let ready: Vec<&Value> =
        slice["endpoints"].as_array().unwrap().iter().map(|one| &one["conditions"]["ready"]).collect();
    assert_eq!(ready, [true, true]);
    let web = serde_json::to_value(services.get("web").await.unwrap()).unwrap();
    assert!(web["status"]["loadBalancer"]["ingress"][0]["ip"].is_string());
    // and the address is no change
    let again = apply(&services, "a", &service).await.unwrap();
    assert_eq!(json!(again.resource_version()), web["metadata"]["resourceVersion"]);
}
