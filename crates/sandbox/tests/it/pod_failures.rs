//! Failing pods, with the texts of a kubelet and a scheduler.
//!
//! Only the sandbox: neither these tests nor the contract use a real kubelet (those of the live tier are simulated too), so
//! reasons, back-offs and messages are as correct as their source.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use sandbox::SandboxOptions;
use serde_json::{Value, json};

use crate::support::cluster_with;
use crate::watch_log::WatchLog;

fn failure_options() -> SandboxOptions {
    SandboxOptions {
        pod_start: (Duration::from_secs(1), Duration::from_secs(1)),
        ..SandboxOptions::default()
    }
}

/// `phase`, and for each container its state, restarts and last termination.
fn pod_line(object: &Value) -> String {
    let status = &object["status"];
    let mut parts = vec![status["phase"].as_str().unwrap_or("").to_owned()];
    let containers = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .flat_map(|list| status[list].as_array().cloned().unwrap_or_default());
    for container in containers {
        let (kind, state) = container["state"].as_object().unwrap().iter().next().unwrap();
        let reason = state["reason"].as_str().unwrap_or(kind);
        let before = container["lastState"]["terminated"]["exitCode"].as_i64();
        let before = before.map(|code| format!(" after {code}")).unwrap_or_default();
        let restarts = container["restartCount"].as_i64().unwrap();
        parts.push(format!("{} {reason} {restarts}{before}", container["name"].as_str().unwrap()));
    }
    let deleting = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
    parts.extend(deleting.map(|seconds| format!("ending in {seconds}")));
    parts.join(", ")
}

fn pod(annotations: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]}})
}

async fn create_pod(client: &Client, pod: Value) -> Api<Pod> {
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    api.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    api
}

async fn check_pod_states(pod: Value, expected: &[&str]) {
    let (_sandbox, client) = cluster_with(failure_options());
    let seen = WatchLog::of(&client, "", "Pod", pod_line).await;
    create_pod(&client, pod).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(seen.take_lines(), expected);
}

fn failure_annotation(word: &str) -> Value {
    pod(json!({"sim.tutti.dev/fail": word}))
}

#[tokio::test(start_paused = true)]
async fn a_healthy_pod_becomes_ready() {
    check_pod_states(
        pod(json!({})),
        &["Pending", "Pending, main ContainerCreating 0", "Running, main running 0"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn missing_image_fails_to_pull() {
    check_pod_states(
        failure_annotation("image-pull"),
        &[
            "Pending",
            "Pending, main ContainerCreating 0",
            "Pending, main ErrImagePull 0",
            "Pending, main ImagePullBackOff 0",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_backs_off_longer_each_time() {
    check_pod_states(
        failure_annotation("crash-loop"),
        &[
            "Pending",
            "Pending, main ContainerCreating 0",
            "Running, main Error 0",
            "Running, main CrashLoopBackOff 1 after 1",
            "Running, main running 2 after 1",
            "Running, main CrashLoopBackOff 2 after 1",
            "Running, main running 3 after 1",
            "Running, main CrashLoopBackOff 3 after 1",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn out_of_memory_kill_is_reported() {
    check_pod_states(
        failure_annotation("oom"),
        &[
            "Pending",
            "Pending, main ContainerCreating 0",
            "Running, main OOMKilled 0",
            "Running, main CrashLoopBackOff 1 after 137",
            "Running, main running 2 after 137",
            "Running, main CrashLoopBackOff 2 after 137",
            "Running, main running 3 after 137",
            "Running, main CrashLoopBackOff 3 after 137",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn never_ready_pod_stays_unready() {
    check_pod_states(
        failure_annotation("readiness"),
        &["Pending", "Pending, main ContainerCreating 0", "Running, main running 0"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn node_eviction_is_reported() {
    check_pod_states(
        failure_annotation("evict"),
        &["Pending", "Pending, main ContainerCreating 0", "Failed, main Error 0"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn unknown_failure_is_a_config_error() {
    check_pod_states(
        failure_annotation("odd"),
        &["Pending", "Pending, main ContainerCreating 0", "Pending, main CreateContainerConfigError 0"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_init_container() {
    let mut pod = failure_annotation("init");
    pod["spec"]["initContainers"] = json!([{"name": "prep", "image": "prep:1"}]);
    check_pod_states(
        pod,
        &[
            "Pending",
            "Pending, prep PodInitializing 0, main PodInitializing 0",
            "Pending, prep Error 0, main PodInitializing 0",
            "Pending, prep CrashLoopBackOff 1 after 1, main PodInitializing 0",
            "Pending, prep running 2 after 1, main PodInitializing 0",
            "Pending, prep CrashLoopBackOff 2 after 1, main PodInitializing 0",
            "Pending, prep running 3 after 1, main PodInitializing 0",
            "Pending, prep CrashLoopBackOff 3 after 1, main PodInitializing 0",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_must_not_restart_fails() {
    let mut pod = pod(json!({"sim.tutti.dev/fail": "crash-loop", "sim.tutti.dev/exit-code": "3"}));
    pod["spec"]["restartPolicy"] = json!("Never");
    check_pod_states(pod, &["Pending", "Pending, main ContainerCreating 0", "Failed, main Error 0"]).await;
}

/// Reason and message of the condition `PodScheduled`.
async fn check_unschedulable(pod: Value, expected: &str) {
    let (_sandbox, client) = cluster_with(failure_options());
    let api = create_pod(&client, pod).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let pod = serde_json::to_value(api.get("one").await.unwrap()).unwrap();
    let condition = &pod["status"]["conditions"][0];
    assert_eq!(
        (condition["reason"].as_str(), condition["message"].as_str()),
        (Some("Unschedulable"), Some(expected))
    );
}

#[tokio::test(start_paused = true)]
async fn unschedulable_pod_reports_its_reason() {
    let mut big = pod(json!({}));
    big["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100"}});
    let expected = "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    check_unschedulable(big, expected).await;
    let mut picky = pod(json!({}));
    picky["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    let expected = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    check_unschedulable(picky, expected).await;
}

#[tokio::test(start_paused = true)]
async fn scheduling_gate_holds_a_pod_until_removed() {
    let (_sandbox, client) = cluster_with(failure_options());
    let mut gated = pod(json!({}));
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    let api = create_pod(&client, gated).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let pod = serde_json::to_value(api.get("one").await.unwrap()).unwrap();
    assert_eq!(pod["spec"]["nodeName"], Value::Null);
    assert_eq!(pod["status"]["conditions"][0]["reason"], "SchedulingGated");
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    api.patch("one", &PatchParams::default(), &open).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(api.get("one").await.unwrap().status.unwrap().phase.as_deref(), Some("Running"));
}

/// The deletion timestamp is the end of the grace period, not the time of the delete.
#[tokio::test(start_paused = true)]
async fn deletion_timestamp_is_end_of_grace_period() {
    let (_sandbox, client) = cluster_with(failure_options());
    let api = create_pod(&client, pod(json!({"sim.tutti.dev/slow-terminate": "true"}))).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let made = api.get("one").await.unwrap().metadata.creation_timestamp.unwrap().0.as_second();
    let ends =
        || async { api.get("one").await.unwrap().metadata.deletion_timestamp.unwrap().0.as_second() - made };
    api.delete("one", &DeleteParams::default()).await.unwrap();
    assert_eq!(ends().await, 5 + 30);
    tokio::time::sleep(Duration::from_secs(2)).await;
    api.delete("one", &DeleteParams::default().grace_period(10)).await.unwrap();
    assert_eq!(ends().await, 5 + 10);
}

#[tokio::test(start_paused = true)]
async fn slow_pod_uses_its_whole_grace_period() {
    let (_sandbox, client) = cluster_with(failure_options());
    let api = create_pod(&client, pod(json!({"sim.tutti.dev/slow-terminate": "true"}))).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let seen = WatchLog::of(&client, "", "Pod", pod_line).await;
    api.delete("one", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert!(api.get_opt("one").await.unwrap().is_some());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(
        seen.take_lines(),
        [
            "Running, main running 0",
            "Running, main running 0, ending in 30",
            "Running, main running 0, ending in 0",
            "one gone"
        ]
    );
}

/// `reason xcount: message` of a pod's events, in the order of their first occurrence.
async fn event_lines(client: &Client) -> Vec<String> {
    let api: Api<Event> = Api::default_namespaced(client.clone());
    let mut events = api.list(&ListParams::default()).await.unwrap().items;
    events.sort_by_key(ResourceExt::name_any);
    let line = |event: &Event| {
        let count = event.count.map(|count| format!(" x{count}")).unwrap_or_default();
        format!("{}{count}: {}", event.reason.as_deref().unwrap(), event.message.as_deref().unwrap())
    };
    events.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn pod_lifecycle_events_expire() {
    let (_sandbox, client) = cluster_with(failure_options());
    create_pod(&client, failure_annotation("image-pull")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        event_lines(&client).await,
        [
            "Scheduled: Successfully assigned default/one to sandbox-node-3",
            "Pulling x3: Pulling image \"web:1\"",
            "Failed x3: Failed to pull image \"web:1\": failed to pull and unpack image \"docker.io/library/web:1\": failed to resolve reference \"docker.io/library/web:1\": docker.io/library/web:1: not found",
            "Failed x3: Error: ErrImagePull",
            "BackOff x3: Back-off pulling image \"web:1\"",
            "Failed x3: Error: ImagePullBackOff"
        ]
    );
    // without events nothing is stored
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    api.delete("one", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    assert_eq!(event_lines(&client).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn events_of_one_pod_are_bounded() {
    let (_sandbox, client) = cluster_with(failure_options());
    create_pod(&client, failure_annotation("crash-loop")).await;
    tokio::time::sleep(Duration::from_secs(12 * 3600)).await;
    let events = event_lines(&client).await;
    assert!(events.len() <= 6, "{events:?}");
    assert!(events.iter().any(|line| line.starts_with("BackOff x")), "{events:?}");
}
