//! The same apps with one pod each: the requests of a rollout of all, and the delay until the cause of a crash is reported.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::goals::{figure, goal};
use crate::measure::{LIMIT, MeasuredProcess, StepCost, measure_step, objects};
use crate::{FleetBench, SIZE_OF_GOALS, client};

/// The allowed ratio of all requests to PATCHes.
const REQUESTS_FOR_A_PATCH: f64 = 1.1;
const CAUSE_TOLD: f64 = 15.0;

/// Rolls out pods, then another image in all of them, with which one crashes.
pub async fn rollout(bench: &FleetBench) {
    let all = |image: usize, crashes: Option<usize>| {
        (0..bench.size).for_each(|app| {
            let name = format!("app-{app:04}");
            let text: Vec<String> =
                with_a_pod(&name, image, crashes == Some(app)).iter().map(Value::to_string).collect();
            bench.scene.worktree.write(&format!("apps/{name}/objects/all.yaml"), &text.join("\n---\n"));
        });
    };
    bench.step("pods", || all(3, None)).await;
    let (step, told) = crashing(bench, || all(4, Some(bench.size / 2))).await;
    let ratio = step.requests as f64 / step.patches as f64;
    let prefix = format!("fleet_{}_pods_change_all", bench.size);
    figure(&format!("{prefix}_tutti_patches"), step.patches as f64, "requests");
    figure(&format!("{prefix}_requests_for_a_patch"), ratio, "requests");
    figure(&format!("{prefix}_cause_told_s"), told, "s");
    if bench.size == SIZE_OF_GOALS {
        goal(&format!("{prefix}_requests_for_a_patch"), ratio, "requests", REQUESTS_FOR_A_PATCH);
        goal(&format!("{prefix}_cause_told_s"), told, "s", CAUSE_TOLD);
    }
}

/// The step, until all but one have their new pod; and how long after the pod that crashes was made its cause was told.
async fn crashing(bench: &FleetBench, change: impl FnOnce()) -> (StepCost, f64) {
    change();
    let scene = &bench.scene;
    let commit = scene.worktree.commit("pods_change_all");
    let who = MeasuredProcess {
        name: "tutti",
        process: scene.running(|tutti| tutti.id()),
        user: bench.user.clone(),
    };
    let client = client(scene.cluster(0)).await;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), scene.name());
    let pods: Api<Pod> = Api::namespaced(client, scene.name());
    let crashing = ListParams::default().labels(&format!("app=app-{:04}", bench.size / 2));
    let (mut made, mut told) = (None, None);
    let step =
        measure_step(scene.cluster(0), &who, &format!("fleet_{}_pods_change_all", bench.size), async || {
            let start = Instant::now();
            tokio::task::block_in_place(|| scene.worktree.push());
            let mut rolled_out = false;
            while !rolled_out || told.is_none() {
                assert!(start.elapsed() < LIMIT, "it does not end: rolled out {rolled_out}, told {told:?}");
                tokio::time::sleep(Duration::from_millis(200)).await;
                if made.is_none() {
                    let found = pods.list(&crashing).await.expect("a list");
                    made = found.iter().any(has_crashed).then(Instant::now);
                }
                if told.is_none()
                    && let Some((state, text)) = scene.status(&commit, "deploy").await
                    && text.contains("CrashLoopBackOff")
                {
                    assert_eq!(state, "failure", "{text}");
                    told = Some(Instant::now());
                    figure(
                        &format!("fleet_{}_pods_told_after_push_s", bench.size),
                        start.elapsed().as_secs_f64(),
                        "s",
                    );
                }
                if !rolled_out && told.is_some() {
                    let behind = deployments.list(&ListParams::default()).await.expect("a list");
                    rolled_out = behind.iter().filter(|it| !is_whole(it)).count() <= 1;
                }
            }
        })
        .await;
    let seconds =
        told.zip(made).map_or(f64::NAN, |(told, made)| told.saturating_duration_since(made).as_secs_f64());
    (step, seconds)
}

fn with_a_pod(name: &str, image: usize, crashes: bool) -> [Value; 4] {
    let mut all = objects(name, image, 2);
    let deployment = &mut all[2];
    deployment["spec"]["replicas"] = json!(1);
    if crashes {
        deployment["spec"]["template"]["metadata"]["annotations"] =
            json!({"sim.tutti.dev/fail": "crash-loop"});
    }
    all
}

fn has_crashed(pod: &Pod) -> bool {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let ended = |state: &Option<k8s_openapi::api::core::v1::ContainerState>| {
        state.as_ref().is_some_and(|state| state.terminated.is_some())
    };
    statuses.into_iter().any(|status| ended(&status.state) || ended(&status.last_state))
}

/// Its newest spec was seen, and all its pods are of it and available.
fn is_whole(deployment: &Deployment) -> bool {
    let Some(status) = &deployment.status else { return false };
    status.observed_generation == deployment.metadata.generation
        && status.updated_replicas == Some(1)
        && status.available_replicas == Some(1)
        && status.replicas == Some(1)
}
