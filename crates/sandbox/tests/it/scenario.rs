//! Pod failures by a scenario.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use sandbox::{SandboxOptions, Scenario};

use crate::support::{apply, cluster_with, deployment, deployment_condition, deployments};

const EXAMPLE: &str = include_str!("../../examples/scenario.yaml");

fn options(scenario: &str) -> SandboxOptions {
    let scenario = Scenario::parse(scenario).unwrap();
    SandboxOptions { name: "eu-1".to_owned(), scenario, ..SandboxOptions::default() }
}

async fn pods(client: &Client) -> Vec<Pod> {
    Api::<Pod>::default_namespaced(client.clone()).list(&ListParams::default()).await.unwrap().items
}

/// For every pod: ready or the reason, and the restarts.
async fn pod_states(client: &Client) -> Vec<String> {
    let fate = |pod: &Pod| {
        let status = pod.status.as_ref()?;
        let Some(one) = status.container_statuses.as_ref().and_then(|all| all.first()) else {
            return status.conditions.as_ref()?.first()?.reason.clone();
        };
        let why = one.state.as_ref()?.waiting.as_ref().and_then(|waiting| waiting.reason.clone());
        let state = if one.ready { "ready".to_owned() } else { why.unwrap_or_else(|| "unready".to_owned()) };
        Some(format!("{state} {}", one.restart_count))
    };
    let mut fates: Vec<String> = pods(client).await.iter().map(|pod| fate(pod).unwrap_or_default()).collect();
    fates.sort();
    fates.dedup();
    fates
}

/// Pod states of a deployment after a minute and after ten.
async fn check_scenario(rule: &str, after_a_minute: &[&str], after_ten: &[&str]) {
    let (_sandbox, client) = cluster_with(options(&format!("rules: [{rule}]")));
    apply(&deployments(&client), "a", &deployment("web", 3, "web:1")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(pod_states(&client).await, after_a_minute, "{rule}");
    tokio::time::sleep(Duration::from_secs(540)).await;
    assert_eq!(pod_states(&client).await, after_ten, "{rule}");
}

#[tokio::test(start_paused = true)]
async fn first_matching_scenario_rule_applies() {
    check_scenario("{start: 1s..3s}", &["ready 0"], &["ready 0"]).await;
    check_scenario("{start: 2m}", &["ContainerCreating 0"], &["ready 0"]).await;
    check_scenario("{ready-after: 90s}", &["ContainerCreating 0"], &["ready 0"]).await;
    check_scenario("{name: other, fail: oom}, {fail: none}, {fail: oom}", &["ready 0"], &["ready 0"]).await;
    check_scenario("{kind: Deployment, name: we*, fail: readiness}", &["unready 0"], &["unready 0"]).await;
    check_scenario("{image: 'web:?', fail: image-pull}", &["ImagePullBackOff 0"], &["ImagePullBackOff 0"])
        .await;
    check_scenario("{namespace: shop, fail: oom}, {cluster: us-*, fail: oom}", &["ready 0"], &["ready 0"])
        .await;
    check_scenario(
        "{fail: config-error}",
        &["CreateContainerConfigError 0"],
        &["CreateContainerConfigError 0"],
    )
    .await;
    check_scenario("{fail: unschedulable}", &["Unschedulable"], &["Unschedulable"]).await;
}

#[tokio::test(start_paused = true)]
async fn failures_begin_later_and_end() {
    check_scenario("{fail: crash-loop, fail-count: 1}", &["ready 1"], &["ready 1"]).await;
    check_scenario("{fail: crash-loop, fail-count: 3}", &["ready 3"], &["ready 3"]).await;
    check_scenario("{fail: oom, fail-count: 5}", &["CrashLoopBackOff 3"], &["ready 5"]).await;
    check_scenario("{fail: image-pull, fail-count: 3}", &["ImagePullBackOff 0"], &["ready 0"]).await;
    check_scenario("{fail: readiness, fail-after: 2m}", &["ready 0"], &["unready 0"]).await;
    check_scenario("{fail: readiness, fail-count: 12}", &["unready 0"], &["ready 0"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_share_of_the_pods_fails() {
    let (_sandbox, client) = cluster_with(options("rules: [{fail: readiness, fail-share: 1/3}]"));
    apply(&deployments(&client), "a", &deployment("web", 60, "web:1")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let is_ready = |pod: &&Pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
    };
    let ready = pods(&client).await.iter().filter(is_ready).count();
    assert!((30..50).contains(&ready), "{ready}");
}

#[tokio::test(start_paused = true)]
async fn a_scenario_changes_while_pods_run() {
    let (sandbox, client) = cluster_with(options(""));
    let api = deployments(&client);
    apply(&api, "a", &deployment("web", 3, "web:1")).await.unwrap();
    let mut seen = Vec::new();
    for scenario in ["", "rules: [{fail: readiness}]", "rules: [{fail: crash-loop}]", ""] {
        sandbox.set_scenario(Scenario::parse(scenario).unwrap());
        tokio::time::sleep(Duration::from_secs(60)).await;
        seen.push(deployment_condition(&api.get("web").await.unwrap(), "Available").0);
    }
    assert_eq!(seen, ["True", "False", "False", "True"]);
}

#[tokio::test(start_paused = true)]
async fn an_annotation_wins_over_the_scenario() {
    let (_sandbox, client) = cluster_with(options("rules: [{fail: readiness, start: 1s}]"));
    let mut object = deployment("web", 2, "web:1");
    object["spec"]["template"]["metadata"]["annotations"] =
        serde_json::json!({"sim.tutti.dev/fail": "crash-loop", "sim.tutti.dev/fail-count": "1"});
    apply(&deployments(&client), "a", &object).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(pod_states(&client).await, ["ready 1"]);
}

#[test]
fn the_example_is_read() {
    assert!(!Scenario::parse(EXAMPLE).unwrap().is_empty());
    assert!(Scenario::parse("# nothing\n").unwrap().is_empty());
}

fn check_refused(text: &str, line: usize, cause: &str) {
    let error = Scenario::parse(text).unwrap_err();
    assert!(error.cause.contains(cause), "{error}");
    assert_eq!(error.line, line, "{error}");
    assert!(!error.help.is_empty(), "{error}");
}

#[test]
fn scenario_errors_name_the_rule_line() {
    check_refused("rules:\n  - fial: oom\n", 2, "unknown field `fial`");
    check_refused("rules:\n  - name: x\n    fail: omm\n", 2, "unknown failure \"omm\"");
    check_refused("rules:\n  - start: soon\n", 2, "\"soon\" is not a time");
    check_refused("rules:\n  - fail: oom\n    fail-share: 4/3\n", 2, "\"4/3\" is not a share");
    check_refused("rules:\n  - start: 3s..1s\n", 2, "is not a time");
    check_refused("rules:\n  - fail: unschedulable\n    fail-count: 2\n", 2, "no effect");
    check_refused("rules:\n  - name: x\n  - fail-after: 2s\n", 3, "without fail");
    check_refused("rulez: []\n", 1, "unknown field `rulez`");
    check_refused("rules: [}\n", 1, "");
}
