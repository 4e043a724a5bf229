//! Extreme numbers in objects: the controllers survive them.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use sandbox::{Sandbox, SandboxOptions};
use serde_json::{Value, json};

use crate::support::{apply, cluster_with, deployment, deployments, wait_until};

fn cluster() -> (Sandbox, Client) {
    cluster_with(SandboxOptions {
        pod_start: (Duration::ZERO, Duration::from_secs(1)),
        ..SandboxOptions::default()
    })
}

async fn wait_minute() {
    tokio::time::sleep(Duration::from_secs(60)).await;
}

/// A panicked controller creates no more pods.
async fn check_alive(client: &Client) {
    let api = deployments(client);
    apply(&api, "a", &deployment("alive", 1, "alive:1")).await.unwrap();
    wait_until(&api, "alive", |one| {
        one.status.as_ref().is_some_and(|status| status.available_replicas == Some(1))
    })
    .await;
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]}});
    pod["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    pod
}

#[tokio::test(start_paused = true)]
async fn endless_grace_period_is_survived() {
    let (_sandbox, client) = cluster();
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let mut slow = pod("slow", json!({"terminationGracePeriodSeconds": i64::MAX}));
    slow["metadata"]["annotations"] = json!({"sim.tutti.dev/slow-terminate": "true"});
    for one in [pod("quick", json!({"terminationGracePeriodSeconds": i64::MAX})), slow] {
        apply(&api, "a", &one).await.unwrap();
    }
    wait_minute().await;
    for name in ["quick", "slow"] {
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let note = Patch::Merge(json!({"metadata": {"labels": {"seen": "again"}}}));
    api.patch("slow", &PatchParams::default(), &note).await.unwrap();
    wait_minute().await;
    assert!(api.get_opt("quick").await.unwrap().is_none());
    assert!(api.get_opt("slow").await.unwrap().is_some());
    check_alive(&client).await;
}

#[tokio::test(start_paused = true)]
async fn endless_jobs_and_times_are_survived() {
    let (_sandbox, client) = cluster();
    let api: Api<Job> = Api::default_namespaced(client.clone());
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]}});
    for (name, spec) in [
        ("late", json!({"activeDeadlineSeconds": i64::MAX})),
        ("long", json!({"ttlSecondsAfterFinished": i32::MAX})),
        ("often", json!({"backoffLimit": i32::MAX})),
    ] {
        let mut job =
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec});
        job["spec"]["template"] = template.clone();
        apply(&api, "a", &job).await.unwrap();
    }
    let crons: Api<CronJob> = Api::default_namespaced(client.clone());
    for (name, schedule) in [("never", "0 0 30 2 *"), ("seldom", "@every 9999999999h"), ("odd", "@every 90s")]
    {
        let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": {
            "schedule": schedule, "startingDeadlineSeconds": i64::MAX, "jobTemplate": {"spec": {"template": template}}}});
        apply(&crons, "a", &cron).await.unwrap();
    }
    wait_minute().await;
    wait_minute().await;
    let jobs = api.list(&ListParams::default()).await.unwrap().items;
    let of_crons: Vec<String> = jobs
        .iter()
        .map(ResourceExt::name_any)
        .filter(|name| ["never", "seldom", "odd"].iter().any(|cron| name.starts_with(cron)))
        .collect();
    assert_eq!(of_crons.len(), 1, "{of_crons:?}");
    assert!(of_crons[0].starts_with("odd-"));
    // clients may write fields that only controllers write
    let lie = Patch::Merge(json!({"status": {"completedIndexes": format!("0-{}", i64::MAX)}}));
    let indexed = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "indexed"},
        "spec": {"completionMode": "Indexed", "completions": 2, "suspend": true, "template": template}});
    apply(&api, "a", &indexed).await.unwrap();
    api.patch_status("indexed", &PatchParams::default(), &lie).await.unwrap();
    let resume = Patch::Merge(json!({"spec": {"suspend": false}}));
    api.patch("indexed", &PatchParams::default(), &resume).await.unwrap();
    wait_minute().await;
    check_alive(&client).await;
}

#[tokio::test(start_paused = true)]
async fn unbounded_percentages_and_annotations_are_survived() {
    let (_sandbox, client) = cluster();
    let api = deployments(&client);
    let mut web = deployment("web", 3, "web:1");
    web["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": format!("{}%", i64::MAX)}});
    apply(&api, "a", &web).await.unwrap();
    wait_minute().await;
    let sets: Api<ReplicaSet> = Api::default_namespaced(client.clone());
    let most = i64::MAX.to_string();
    let lie = json!({"metadata": {"annotations": {"deployment.kubernetes.io/max-replicas": most,
        "deployment.kubernetes.io/desired-replicas": most, "deployment.kubernetes.io/revision": most}}});
    for image in ["web:broken", "web:3"] {
        web["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        apply(&api, "a", &web).await.unwrap();
        wait_minute().await;
        for set in sets.list(&ListParams::default()).await.unwrap() {
            sets.patch(&set.name_any(), &PatchParams::default(), &Patch::Merge(&lie)).await.unwrap();
        }
        web["spec"]["replicas"] = json!(5);
    }
    wait_minute().await;
    let agents: Api<DaemonSet> = Api::default_namespaced(client.clone());
    let mut agent = deployment("agent", 1, "agent:1");
    agent["kind"] = json!("DaemonSet");
    agent["spec"].as_object_mut().unwrap().remove("replicas");
    agent["spec"]["minReadySeconds"] = json!(i32::MAX);
    apply(&agents, "a", &agent).await.unwrap();
    let stateful: Api<StatefulSet> = Api::default_namespaced(client.clone());
    let mut db = deployment("db", 2, "db:1");
    db["kind"] = json!("StatefulSet");
    db["spec"]["ordinals"] = json!({"start": i32::MAX});
    db["spec"]["updateStrategy"] = json!({"rollingUpdate": {"partition": i32::MAX}});
    apply(&stateful, "a", &db).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": i32::MAX, "selector": {}}});
    apply(&budgets, "a", &budget).await.unwrap();
    wait_minute().await;
    check_alive(&client).await;
}

#[tokio::test(start_paused = true)]
async fn excessive_resources_are_survived() {
    let (_sandbox, client) = cluster();
    let quotas: Api<ResourceQuota> = Api::default_namespaced(client.clone());
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"},
        "spec": {"hard": {"pods": "1Pi", "requests.cpu": "99999999999999999999999999999999999"}}});
    apply(&quotas, "a", &quota).await.unwrap();
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let much = json!({"requests": {"cpu": "99999999999999999999999999999999999", "memory": "8Ei"}});
    let container = |name: &str| json!({"name": name, "image": "web:1", "resources": much});
    let greedy =
        pod("greedy", json!({"containers": [container("one"), container("two"), container("three")]}));
    apply(&api, "a", &greedy).await.ok();
    wait_minute().await;
    quotas.delete("all", &DeleteParams::default()).await.unwrap();
    apply(&api, "a", &greedy).await.unwrap();
    wait_minute().await;
    let greedy = api.get("greedy").await.unwrap().status.unwrap();
    assert_eq!(greedy.phase.as_deref(), Some("Pending"));
    check_alive(&client).await;
}

#[tokio::test(start_paused = true)]
async fn million_replicas_are_created_in_batches() {
    let (_sandbox, client) = cluster_with(SandboxOptions {
        pod_start: (Duration::from_secs(3600), Duration::from_secs(3600)),
        ..SandboxOptions::default()
    });
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 1_000_000, "web:1")).await.unwrap();
    let job: Api<Job> = Api::default_namespaced(client.clone());
    let many = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "many"},
        "spec": {"parallelism": i32::MAX, "suspend": false, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "job:1"}]}}}});
    apply(&job, "a", &many).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    // other tasks run after each pass of a controller
    let mut made = 0;
    for _ in 0..100 {
        made = pods.list(&ListParams::default()).await.unwrap().items.len();
        if made > 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!((1..=1_000).contains(&made), "{made}");
}

#[tokio::test(start_paused = true)]
async fn immediately_failing_pods_keep_the_clock_running() {
    let (_sandbox, client) = cluster_with(SandboxOptions::instant("test"));
    for word in ["evict", "crash-loop", "oom", "image-pull", "init", "odd"] {
        for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
            let name = format!("{word}-{}", kind.to_lowercase());
            let mut object = deployment(&name, 1, "web:1");
            object["kind"] = json!(kind);
            object["spec"]["template"]["metadata"]["annotations"] = json!({"sim.tutti.dev/fail": word});
            if kind == "DaemonSet" {
                object["spec"].as_object_mut().unwrap().remove("replicas");
            }
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", kind));
            let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
            apply(&api, "a", &object).await.unwrap();
        }
    }
    wait_minute().await;
    check_alive(&client).await;
}
