//! Deployments on a paused clock.

use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy};
use kube::{Api, Client, ResourceExt};
use sandbox::SandboxOptions;
use serde_json::json;

use crate::support::{apply, cluster_with, deployment, deployment_condition, deployments, wait_until};

fn pods(client: &Client) -> Api<Pod> {
    Api::default_namespaced(client.clone())
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 4, "web:1")).await.unwrap();
    let web =
        wait_until(&api, "web", |web| deployment_condition(web, "Progressing").1 == "NewReplicaSetAvailable")
            .await;
    let status = web.status.clone().unwrap();
    assert_eq!(status.observed_generation, Some(1));
    assert_eq!(
        (status.replicas, status.available_replicas, status.unavailable_replicas),
        (Some(4), Some(4), None)
    );
    assert_eq!(
        deployment_condition(&web, "Available"),
        ("True".to_owned(), "MinimumReplicasAvailable".to_owned())
    );
    assert_eq!(web.annotations()["deployment.kubernetes.io/revision"], "1");
    assert_eq!(pods(&client).list(&ListParams::default().labels("app=web")).await.unwrap().items.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_update_keeps_within_its_limits() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 4, "web:1")).await.unwrap();
    wait_until(&api, "web", |web| deployment_condition(web, "Progressing").1 == "NewReplicaSetAvailable")
        .await;
    apply(&api, "a", &deployment("web", 4, "web:2")).await.unwrap();
    let web = wait_until(&api, "web", |web| {
        let status = web.status.as_ref().unwrap();
        if status.observed_generation == Some(2) {
            assert!(status.replicas.unwrap_or(0) <= 5, "surge: {status:?}");
            assert!(status.available_replicas.unwrap_or(0) >= 3, "unavailable: {status:?}");
        }
        status.observed_generation == Some(2)
            && status.updated_replicas == Some(4)
            && status.replicas == Some(4)
            && status.available_replicas == Some(4)
    })
    .await;
    assert_eq!(web.annotations()["deployment.kubernetes.io/revision"], "2");
    let sets: Api<ReplicaSet> = Api::default_namespaced(client);
    let mut sizes: Vec<i32> = sets
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .iter()
        .map(|set| set.spec.replicas.unwrap())
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_image_times_out_and_stays_available() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let api = deployments(&client);
    let mut object = deployment("web", 4, "web:1");
    object["spec"]["progressDeadlineSeconds"] = json!(60);
    apply(&api, "a", &object).await.unwrap();
    wait_until(&api, "web", |web| deployment_condition(web, "Progressing").1 == "NewReplicaSetAvailable")
        .await;
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:broken");
    apply(&api, "a", &object).await.unwrap();
    let web = wait_until(&api, "web", |web| {
        deployment_condition(web, "Progressing").1 == "ProgressDeadlineExceeded"
    })
    .await;
    assert_eq!(deployment_condition(&web, "Progressing").0, "False");
    assert_eq!(deployment_condition(&web, "Available").0, "True");
    assert_eq!(web.status.unwrap().available_replicas, Some(3));
    let reasons: Vec<String> = pods(&client)
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .iter()
        .flat_map(|pod| pod.status.clone().unwrap().container_statuses.unwrap())
        .filter_map(|one| one.state?.waiting?.reason)
        .collect();
    assert_eq!(reasons, ["ImagePullBackOff", "ImagePullBackOff"]);
}

#[tokio::test(start_paused = true)]
async fn going_back_reuses_the_old_replica_set() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let api = deployments(&client);
    for image in ["web:1", "web:2", "web:1"] {
        let generation = apply(&api, "a", &deployment("web", 2, image)).await.unwrap().metadata.generation;
        wait_until(&api, "web", |web| {
            let status = web.status.as_ref().unwrap();
            status.observed_generation == generation
                && status.updated_replicas == Some(2)
                && status.replicas == Some(2)
                && status.available_replicas == Some(2)
        })
        .await;
    }
    let sets: Api<ReplicaSet> = Api::default_namespaced(client.clone());
    assert_eq!(sets.list(&ListParams::default()).await.unwrap().items.len(), 2);
    assert_eq!(api.get("web").await.unwrap().annotations()["deployment.kubernetes.io/revision"], "3");
}

#[tokio::test(start_paused = true)]
async fn failing_pods_report_the_reason() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let api = deployments(&client);
    let expected =
        [("crash-loop", "CrashLoopBackOff"), ("oom", "CrashLoopBackOff"), ("image-pull", "ImagePullBackOff")];
    for (failure, reason) in expected {
        let mut object = deployment(failure, 1, "web:1");
        object["spec"]["template"]["metadata"]["annotations"] = json!({"sim.tutti.dev/fail": failure});
        apply(&api, "a", &object).await.unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let list =
            pods(&client).list(&ListParams::default().labels(&format!("app={failure}"))).await.unwrap();
        let status = list.items[0].status.clone().unwrap().container_statuses.unwrap().remove(0);
        assert_eq!(status.state.unwrap().waiting.unwrap().reason.as_deref(), Some(reason), "{failure}");
        if failure == "oom" {
            assert_eq!(status.last_state.unwrap().terminated.unwrap().exit_code, 137);
        }
    }
    let log = pods(&client).list(&ListParams::default().labels("app=crash-loop")).await.unwrap().items[0]
        .name_any();
    assert!(pods(&client).logs(&log, &Default::default()).await.unwrap().contains("simulated crash"));
}

#[tokio::test(start_paused = true)]
async fn an_unschedulable_pod_waits() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let mut object = deployment("big", 1, "web:1");
    object["spec"]["template"]["metadata"]["annotations"] = json!({"sim.tutti.dev/fail": "unschedulable"});
    apply(&deployments(&client), "a", &object).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let list = pods(&client).list(&ListParams::default().fields("status.phase=Pending")).await.unwrap();
    let conditions = list.items[0].status.clone().unwrap().conditions.unwrap();
    assert_eq!(conditions[0].reason.as_deref(), Some("Unschedulable"));
}

#[tokio::test(start_paused = true)]
async fn deleting_a_deployment_deletes_its_pods() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let api = deployments(&client);
    for params in [DeleteParams::default(), DeleteParams::foreground()] {
        apply(&api, "a", &deployment("web", 2, "web:1")).await.unwrap();
        wait_until(&api, "web", |web| deployment_condition(web, "Available").0 == "True").await;
        api.delete("web", &params).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(pods(&client).list(&ListParams::default()).await.unwrap().items.len(), 0);
        assert!(api.get_opt("web").await.unwrap().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn orphans_stay() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 2, "web:1")).await.unwrap();
    wait_until(&api, "web", |web| deployment_condition(web, "Available").0 == "True").await;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    api.delete("web", &orphan).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(api.get_opt("web").await.unwrap().is_none());
    assert_eq!(pods(&client).list(&ListParams::default()).await.unwrap().items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn scaling_down_removes_pods() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 5, "web:1")).await.unwrap();
    wait_until(&api, "web", |web| deployment_condition(web, "Progressing").1 == "NewReplicaSetAvailable")
        .await;
    let change = Patch::Merge(json!({"spec": {"replicas": 2}}));
    api.patch("web", &PatchParams::default(), &change).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(pods(&client).list(&ListParams::default()).await.unwrap().items.len(), 2);
    assert_eq!(api.get("web").await.unwrap().status.unwrap().replicas, Some(2));
}
