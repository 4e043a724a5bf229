//! Statuses of StatefulSets, DaemonSets, Jobs and CronJobs as a client sees them, in order.
//!
//! Only the sandbox, on a paused clock: the texts record its behaviour, so that a changed order is noticed.
//! `contract::workloads` compares it with a real server. No check of the contract covers CronJobs.

use std::time::{Duration, SystemTime};

use k8s_openapi::api::apps::v1::{DaemonSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use sandbox::SandboxOptions;
use serde_json::{Value, json};

use crate::support::{apply, cluster_with, deployment};
use crate::watch_log::WatchLog;

fn slow_pod_options() -> SandboxOptions {
    SandboxOptions {
        pod_start: (Duration::from_secs(1), Duration::from_secs(1)),
        nodes: 2,
        ..SandboxOptions::default()
    }
}

async fn wait_until_settled() {
    tokio::time::sleep(Duration::from_secs(40)).await;
}

fn status_counts(object: &Value, fields: &[&str]) -> String {
    let numbers: Vec<String> =
        fields.iter().map(|field| object["status"][*field].as_i64().unwrap_or(0).to_string()).collect();
    format!(
        "{}/{}: {}",
        object["metadata"]["generation"],
        object["status"]["observedGeneration"].as_i64().unwrap_or(0),
        numbers.join(" ")
    )
}

/// `replicas ready available current updated`, and whether the update is complete.
fn stateful_set_line(object: &Value) -> String {
    let fields = ["replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"];
    let status = &object["status"];
    let same = status["currentRevision"] == status["updateRevision"];
    format!("{} {}", status_counts(object, &fields), if same { "one revision" } else { "two revisions" })
}

fn daemon_set_line(object: &Value) -> String {
    status_counts(
        object,
        &[
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "numberAvailable",
            "numberUnavailable",
            "updatedNumberScheduled",
        ],
    )
}

/// `active ready terminating`, uncounted pods, `succeeded failed`, conditions.
fn job_line(object: &Value) -> String {
    let status = &object["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    let uncounted = |field: &str| status["uncountedTerminatedPods"][field].as_array().map_or(0, Vec::len);
    let conditions: Vec<String> = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| format!(" {}={}", one["type"].as_str().unwrap(), one["reason"].as_str().unwrap()))
        .collect();
    format!(
        "{} {} {}, {}+{} uncounted, {} {}{}",
        number("active"),
        number("ready"),
        number("terminating"),
        uncounted("succeeded"),
        uncounted("failed"),
        number("succeeded"),
        number("failed"),
        conditions.concat()
    )
}

fn workload(kind: &str, image: &str) -> Value {
    let mut object = deployment("db", 2, image);
    object["kind"] = json!(kind);
    object
}

#[tokio::test(start_paused = true)]
async fn stateful_set_updates_highest_ordinal_first() {
    let (_sandbox, client) = cluster_with(slow_pod_options());
    let seen = WatchLog::of(&client, "apps", "StatefulSet", stateful_set_line).await;
    let api: Api<StatefulSet> = Api::default_namespaced(client.clone());
    apply(&api, "a", &workload("StatefulSet", "db:1")).await.unwrap();
    wait_until_settled().await;
    assert_eq!(
        seen.take_lines(),
        [
            "1/0: 0 0 0 0 0 one revision",
            "1/1: 0 0 0 0 0 one revision",
            "1/1: 1 0 0 1 1 one revision",
            "1/1: 1 1 1 1 1 one revision",
            "1/1: 2 1 1 2 2 one revision",
            "1/1: 2 2 2 2 2 one revision"
        ]
    );
    apply(&api, "a", &workload("StatefulSet", "db:2")).await.unwrap();
    wait_until_settled().await;
    assert_eq!(
        seen.take_lines(),
        [
            "2/1: 2 2 2 2 2 one revision",
            "2/2: 2 2 2 1 0 two revisions",
            "2/2: 1 1 1 1 0 two revisions",
            "2/2: 2 1 1 1 1 two revisions",
            "2/2: 2 2 2 0 1 two revisions",
            "2/2: 1 1 1 0 1 two revisions",
            "2/2: 2 1 1 0 2 two revisions",
            "2/2: 2 2 2 2 2 one revision"
        ]
    );
    for change in [
        json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}}),
        json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}}),
        json!({"spec": {"replicas": 0}}),
    ] {
        api.patch("db", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
        wait_until_settled().await;
    }
    assert_eq!(
        seen.take_lines(),
        [
            "3/2: 2 2 2 2 2 one revision",
            "3/3: 2 2 2 2 2 one revision",
            "4/3: 2 2 2 2 2 one revision",
            "4/4: 2 2 2 1 0 two revisions",
            "4/4: 1 1 1 1 0 two revisions",
            "4/4: 2 1 1 1 1 two revisions",
            "4/4: 2 2 2 1 1 two revisions",
            "5/4: 2 2 2 1 1 two revisions",
            "5/5: 2 2 2 1 1 two revisions",
            "5/5: 2 2 2 1 0 two revisions",
            "5/5: 1 1 1 1 0 two revisions",
            "5/5: 1 1 1 0 0 two revisions",
            "5/5: 0 0 0 0 0 one revision"
        ]
    );
}

/// Checks how a pod with this change is recreated during an update.
async fn check_recreated_pod(change: Value, number: usize, expected: &str) {
    let (_sandbox, client) = cluster_with(slow_pod_options());
    let api: Api<StatefulSet> = Api::default_namespaced(client.clone());
    let mut object = workload("StatefulSet", "db:1");
    object["spec"]["replicas"] = json!(3);
    object["spec"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    apply(&api, "a", &object).await.unwrap();
    wait_until_settled().await;
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:2");
    apply(&api, "a", &object).await.unwrap();
    wait_until_settled().await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    pods.delete(&format!("db-{number}"), &DeleteParams::default()).await.unwrap();
    wait_until_settled().await;
    let spec = pods.get(&format!("db-{number}")).await.unwrap().spec.unwrap();
    assert_eq!(spec.containers[0].image.as_deref(), Some(expected), "{change}");
}

#[tokio::test(start_paused = true)]
async fn the_partition_counts_from_the_first_pod() {
    let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    let numbers = json!({"ordinals": {"start": 5}, "updateStrategy": partition});
    check_recreated_pod(numbers.clone(), 6, "db:1").await;
    check_recreated_pod(numbers, 7, "db:2").await;
    check_recreated_pod(json!({"updateStrategy": {"type": "OnDelete"}}), 0, "db:2").await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_is_replaced_node_by_node() {
    let (_sandbox, client) = cluster_with(slow_pod_options());
    let seen = WatchLog::of(&client, "apps", "DaemonSet", daemon_set_line).await;
    let api: Api<DaemonSet> = Api::default_namespaced(client.clone());
    let mut object = workload("DaemonSet", "agent:1");
    object["spec"].as_object_mut().unwrap().remove("replicas");
    apply(&api, "a", &object).await.unwrap();
    wait_until_settled().await;
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("agent:2");
    apply(&api, "a", &object).await.unwrap();
    wait_until_settled().await;
    assert_eq!(
        seen.take_lines(),
        [
            "1/0: 0 0 0 0 0 0",
            "1/1: 2 2 0 0 2 2",
            "1/1: 2 2 2 2 0 2",
            "2/1: 2 2 2 2 0 2",
            "2/2: 2 2 2 2 0 0",
            "2/2: 2 2 1 1 1 1",
            "2/2: 2 2 2 2 0 1",
            "2/2: 2 2 1 1 1 2",
            "2/2: 2 2 2 2 0 2"
        ]
    );
    object["spec"]["updateStrategy"] = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("agent:3");
    apply(&api, "a", &object).await.unwrap();
    wait_until_settled().await;
    assert_eq!(
        seen.take_lines(),
        ["3/2: 2 2 2 2 0 2", "3/3: 2 2 2 2 0 0", "3/3: 2 2 2 2 0 1", "3/3: 2 2 2 2 0 2"]
    );
}

fn job(name: &str, annotations: Value, spec: Value) -> Value {
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec});
    job["spec"]["template"] = json!({"metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]}});
    job
}

async fn check_job(annotations: Value, spec: Value, expected: &[&str]) {
    let (_sandbox, client) = cluster_with(slow_pod_options());
    let seen = WatchLog::of(&client, "batch", "Job", job_line).await;
    let api: Api<Job> = Api::default_namespaced(client.clone());
    apply(&api, "a", &job("one", annotations, spec)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(seen.take_lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_job_counts_its_pods_once() {
    check_job(
        json!({}),
        json!({"completions": 3, "parallelism": 2}),
        &[
            "0 0 0, 0+0 uncounted, 0 0",
            "2 0 0, 0+0 uncounted, 0 0",
            "2 2 0, 0+0 uncounted, 0 0",
            "1 0 0, 2+0 uncounted, 0 0",
            "1 0 0, 0+0 uncounted, 2 0",
            "1 1 0, 0+0 uncounted, 2 0",
            "0 0 0, 1+0 uncounted, 2 0 SuccessCriteriaMet=CompletionsReached",
            "0 0 0, 0+0 uncounted, 3 0 SuccessCriteriaMet=CompletionsReached Complete=CompletionsReached",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_after_its_retries() {
    check_job(
        json!({"sim.tutti.dev/fail": "crash-loop"}),
        json!({"backoffLimit": 1}),
        &[
            "0 0 0, 0+0 uncounted, 0 0",
            "1 0 0, 0+0 uncounted, 0 0",
            "0 0 0, 0+1 uncounted, 0 0",
            "0 0 0, 0+0 uncounted, 0 1",
            "1 0 0, 0+0 uncounted, 0 1",
            "0 0 0, 0+1 uncounted, 0 1 FailureTarget=BackoffLimitExceeded",
            "0 0 0, 0+0 uncounted, 0 2 FailureTarget=BackoffLimitExceeded Failed=BackoffLimitExceeded",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn late_job_waits_for_its_pods() {
    check_job(
        json!({"sim.tutti.dev/start": "1m"}),
        json!({"activeDeadlineSeconds": 5}),
        &[
            "0 0 0, 0+0 uncounted, 0 0",
            "1 0 0, 0+0 uncounted, 0 0",
            "0 0 1, 0+1 uncounted, 0 0 FailureTarget=DeadlineExceeded",
            "0 0 1, 0+0 uncounted, 0 1 FailureTarget=DeadlineExceeded",
            "0 0 0, 0+0 uncounted, 0 1 FailureTarget=DeadlineExceeded",
            "0 0 0, 0+0 uncounted, 0 1 FailureTarget=DeadlineExceeded Failed=DeadlineExceeded",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn expired_job_is_deleted_with_its_pods() {
    check_job(
        json!({}),
        json!({"completionMode": "Indexed", "ttlSecondsAfterFinished": 9}),
        &[
            "0 0 0, 0+0 uncounted, 0 0",
            "1 0 0, 0+0 uncounted, 0 0",
            "1 1 0, 0+0 uncounted, 0 0",
            "0 0 0, 0+0 uncounted, 1 0 SuccessCriteriaMet=CompletionsReached",
            "0 0 0, 0+0 uncounted, 1 0 SuccessCriteriaMet=CompletionsReached Complete=CompletionsReached",
            "one gone",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn externally_managed_job_is_not_changed() {
    check_job(json!({}), json!({"managedBy": "example.com/queue"}), &["0 0 0, 0+0 uncounted, 0 0"]).await;
}

fn cron_job_line(object: &Value) -> String {
    let status = &object["status"];
    let active = status["active"].as_array().map_or(0, Vec::len);
    let has = |field: &str| if status[field].is_string() { "told" } else { "never" };
    format!("{active} active, scheduled {}, succeeded {}", has("lastScheduleTime"), has("lastSuccessfulTime"))
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_starts_jobs_by_the_clock() {
    // Half past an hour: its last run has ended when it is counted.
    let epoch = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_001_000);
    let (_sandbox, client) = cluster_with(SandboxOptions { epoch, ..slow_pod_options() });
    let seen = WatchLog::of(&client, "batch", "CronJob", cron_job_line).await;
    let api: Api<CronJob> = Api::default_namespaced(client.clone());
    let template = job("", json!({}), json!({}))["spec"].clone();
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tidy"},
        "spec": {"schedule": "0 * * * *", "successfulJobsHistoryLimit": 2, "jobTemplate": {"spec": template}}});
    apply(&api, "a", &cron).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2 * 24 * 3600)).await;
    let lines = seen.take_lines();
    assert_eq!(
        lines[..4],
        [
            "0 active, scheduled never, succeeded never",
            "1 active, scheduled told, succeeded never",
            "0 active, scheduled told, succeeded told",
            "1 active, scheduled told, succeeded told"
        ]
    );
    assert_eq!(lines.iter().filter(|line| line.starts_with('1')).count(), 48);
    let jobs: Api<Job> = Api::default_namespaced(client);
    assert_eq!(jobs.list(&kube::api::ListParams::default()).await.unwrap().items.len(), 2);
}
