//! Statuses of a rollout as a watching client sees them, in order.
//!
//! Only the sandbox, on a paused clock: the texts record its behaviour, so that a changed order is noticed. A real server
//! takes its steps at other times, and often two at once. `contract::workloads` compares what must be equal: reasons,
//! bounds and the final state.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use sandbox::SandboxOptions;
use serde_json::{Value, json};

use crate::support::{apply, cluster_with, deployment, deployments};
use crate::watch_log::WatchLog;

fn number(object: &Value, field: &str) -> i64 {
    object["status"][field].as_i64().unwrap_or(0)
}

/// `generation/observed: replicas updated ready available unavailable terminating, Progressing, Available`.
fn deployment_line(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let said: Vec<String> = conditions
        .iter()
        .map(|one| match one["type"].as_str() {
            Some("Available") => format!("Available={}", one["status"].as_str().unwrap()),
            _ => one["reason"].as_str().unwrap().to_owned(),
        })
        .collect();
    let counts = [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
    ]
    .map(|field| number(object, field).to_string())
    .join(" ");
    format!(
        "{}/{}: {counts} r{} {}",
        object["metadata"]["generation"],
        number(object, "observedGeneration"),
        object["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str().unwrap_or("-"),
        said.join(" ")
    )
    .trim_end()
    .to_owned()
}

/// Pods end faster than they start, so no two events happen at the same instant.
fn distinct_time_options() -> SandboxOptions {
    SandboxOptions {
        pod_start: (Duration::from_secs(1), Duration::from_secs(1)),
        pod_stop: Duration::from_millis(400),
        ..SandboxOptions::default()
    }
}

async fn wait_until_settled() {
    tokio::time::sleep(Duration::from_secs(30)).await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_created_updated_and_rolled_back() {
    let (_sandbox, client) = cluster_with(distinct_time_options());
    let seen = WatchLog::of(&client, "apps", "Deployment", deployment_line).await;
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 2, "web:1")).await.unwrap();
    wait_until_settled().await;
    assert_eq!(
        seen.take_lines(),
        [
            "1/0: 0 0 0 0 0 0 r-",
            "1/0: 0 0 0 0 0 0 r1 NewReplicaSetCreated",
            "1/1: 0 0 0 0 2 0 r1 NewReplicaSetCreated Available=False",
            "1/1: 2 2 0 0 2 0 r1 Available=False ReplicaSetUpdated",
            "1/1: 2 2 2 2 0 0 r1 Available=True NewReplicaSetAvailable"
        ]
    );
    apply(&api, "a", &deployment("web", 2, "web:2")).await.unwrap();
    wait_until_settled().await;
    assert_eq!(
        seen.take_lines(),
        [
            "2/1: 2 2 2 2 0 0 r1 Available=True NewReplicaSetAvailable",
            "2/1: 2 2 2 2 0 0 r2 Available=True NewReplicaSetCreated",
            "2/2: 2 0 2 2 1 0 r2 Available=True NewReplicaSetCreated",
            "2/2: 3 1 2 2 1 0 r2 Available=True ReplicaSetUpdated",
            "2/2: 3 1 3 3 0 0 r2 Available=True ReplicaSetUpdated",
            "2/2: 3 2 2 2 1 1 r2 Available=True ReplicaSetUpdated",
            "2/2: 3 2 2 2 1 0 r2 Available=True ReplicaSetUpdated",
            "2/2: 3 2 3 3 0 0 r2 Available=True ReplicaSetUpdated",
            "2/2: 2 2 2 2 0 1 r2 Available=True NewReplicaSetAvailable",
            "2/2: 2 2 2 2 0 0 r2 Available=True NewReplicaSetAvailable"
        ]
    );
    apply(&api, "a", &deployment("web", 2, "web:1")).await.unwrap();
    wait_until_settled().await;
    assert_eq!(
        seen.take_lines(),
        [
            "3/2: 2 2 2 2 0 0 r2 Available=True NewReplicaSetAvailable",
            "3/2: 2 2 2 2 0 0 r3 Available=True NewReplicaSetAvailable",
            "3/3: 2 0 2 2 1 0 r3 Available=True NewReplicaSetAvailable",
            "3/3: 3 1 2 2 1 0 r3 Available=True ReplicaSetUpdated",
            "3/3: 3 1 3 3 0 0 r3 Available=True ReplicaSetUpdated",
            "3/3: 3 2 2 2 1 1 r3 Available=True ReplicaSetUpdated",
            "3/3: 3 2 2 2 1 0 r3 Available=True ReplicaSetUpdated",
            "3/3: 3 2 3 3 0 0 r3 Available=True ReplicaSetUpdated",
            "3/3: 2 2 2 2 0 1 r3 Available=True NewReplicaSetAvailable",
            "3/3: 2 2 2 2 0 0 r3 Available=True NewReplicaSetAvailable"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn recreated_deployment_is_unavailable_meanwhile() {
    let (_sandbox, client) = cluster_with(distinct_time_options());
    let seen = WatchLog::of(&client, "apps", "Deployment", deployment_line).await;
    let api = deployments(&client);
    for image in ["web:1", "web:2"] {
        let mut object = deployment("web", 3, image);
        object["spec"]["strategy"] = json!({"type": "Recreate"});
        seen.take_lines();
        apply(&api, "a", &object).await.unwrap();
        wait_until_settled().await;
    }
    assert_eq!(
        seen.take_lines(),
        [
            "2/1: 3 3 3 3 0 0 r1 Available=True NewReplicaSetAvailable",
            "2/2: 3 0 3 3 0 0 r1 Available=True NewReplicaSetAvailable",
            "2/2: 0 0 0 0 0 3 r1 NewReplicaSetAvailable Available=False",
            "2/2: 0 0 0 0 0 3 r2 Available=False NewReplicaSetCreated",
            "2/2: 0 0 0 0 3 0 r2 Available=False NewReplicaSetCreated",
            "2/2: 3 3 0 0 3 0 r2 Available=False ReplicaSetUpdated",
            "2/2: 3 3 3 3 0 0 r2 Available=True NewReplicaSetAvailable"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn broken_image_blocks_a_rollout_until_reverted() {
    let (_sandbox, client) = cluster_with(distinct_time_options());
    let seen = WatchLog::of(&client, "apps", "Deployment", deployment_line).await;
    let api = deployments(&client);
    for (round, image) in ["web:1", "web:broken", "web:1"].into_iter().enumerate() {
        let mut object = deployment("web", 4, image);
        object["spec"]["progressDeadlineSeconds"] = json!(20);
        if round == 1 {
            seen.take_lines();
        }
        apply(&api, "a", &object).await.unwrap();
        wait_until_settled().await;
    }
    assert_eq!(
        seen.take_lines(),
        [
            "2/1: 4 4 4 4 0 0 r1 Available=True NewReplicaSetAvailable",
            "2/1: 4 4 4 4 0 0 r2 Available=True NewReplicaSetCreated",
            "2/2: 4 1 3 3 1 1 r2 Available=True NewReplicaSetCreated",
            "2/2: 4 1 3 3 2 1 r2 Available=True NewReplicaSetCreated",
            "2/2: 5 2 3 3 2 1 r2 Available=True ReplicaSetUpdated",
            "2/2: 5 2 3 3 2 0 r2 Available=True ReplicaSetUpdated",
            "2/2: 5 2 3 3 2 0 r2 Available=True ProgressDeadlineExceeded",
            "3/2: 5 2 3 3 2 0 r2 Available=True ProgressDeadlineExceeded",
            "3/2: 5 2 3 3 2 0 r3 Available=True ProgressDeadlineExceeded",
            "3/3: 3 3 3 3 0 2 r3 Available=True ReplicaSetUpdated",
            "3/3: 3 3 3 3 1 2 r3 Available=True ReplicaSetUpdated",
            "3/3: 4 4 3 3 1 2 r3 Available=True ReplicaSetUpdated",
            "3/3: 4 4 3 3 1 0 r3 Available=True ReplicaSetUpdated",
            "3/3: 4 4 4 4 0 0 r3 Available=True NewReplicaSetAvailable"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_is_scaled_and_not_rolled() {
    let (_sandbox, client) = cluster_with(distinct_time_options());
    let seen = WatchLog::of(&client, "apps", "Deployment", deployment_line).await;
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 2, "web:1")).await.unwrap();
    wait_until_settled().await;
    seen.take_lines();
    for change in [
        json!({"spec": {"paused": true}}),
        json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}}),
        json!({"spec": {"replicas": 3}}),
        json!({"spec": {"paused": null}}),
    ] {
        api.patch("web", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
        wait_until_settled().await;
    }
    assert_eq!(
        seen.take_lines(),
        [
            "2/1: 2 2 2 2 0 0 r1 Available=True NewReplicaSetAvailable",
            "2/1: 2 2 2 2 0 0 r1 Available=True DeploymentPaused",
            "2/2: 2 2 2 2 0 0 r1 Available=True DeploymentPaused",
            "3/2: 2 2 2 2 0 0 r1 Available=True DeploymentPaused",
            "3/3: 2 0 2 2 0 0 r1 Available=True DeploymentPaused",
            "4/3: 2 0 2 2 0 0 r1 Available=True DeploymentPaused",
            "4/4: 2 0 2 2 0 0 r1 DeploymentPaused Available=False",
            "4/4: 2 0 2 2 1 0 r1 DeploymentPaused Available=False",
            "4/4: 3 0 2 2 1 0 r1 DeploymentPaused Available=False",
            "4/4: 3 0 3 3 0 0 r1 DeploymentPaused Available=True",
            "5/4: 3 0 3 3 0 0 r1 DeploymentPaused Available=True",
            "5/4: 3 0 3 3 0 0 r1 Available=True DeploymentResumed",
            "5/4: 3 0 3 3 0 0 r2 Available=True DeploymentResumed",
            "5/5: 3 0 3 3 1 0 r2 Available=True DeploymentResumed",
            "5/5: 4 1 3 3 1 0 r2 Available=True ReplicaSetUpdated",
            "5/5: 4 1 4 4 0 0 r2 Available=True ReplicaSetUpdated",
            "5/5: 4 2 3 3 1 1 r2 Available=True ReplicaSetUpdated",
            "5/5: 4 2 3 3 1 0 r2 Available=True ReplicaSetUpdated",
            "5/5: 4 2 4 4 0 0 r2 Available=True ReplicaSetUpdated",
            "5/5: 4 3 3 3 1 1 r2 Available=True ReplicaSetUpdated",
            "5/5: 4 3 3 3 1 0 r2 Available=True ReplicaSetUpdated",
            "5/5: 4 3 4 4 0 0 r2 Available=True ReplicaSetUpdated",
            "5/5: 3 3 3 3 0 1 r2 Available=True NewReplicaSetAvailable",
            "5/5: 3 3 3 3 0 0 r2 Available=True NewReplicaSetAvailable"
        ]
    );
}
