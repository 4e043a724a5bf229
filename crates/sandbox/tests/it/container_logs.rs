//! Container logs, as a kubelet returns them.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{LogParams, PostParams};
use kube::{Api, Client};
use sandbox::{SandboxOptions, Scenario};
use serde_json::{Value, json};

use crate::support::cluster_with;

async fn create_pod(client: &Client, name: &str, annotations: Value, spec: Value) -> Api<Pod> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations}, "spec": spec});
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    pods
}

fn one_container() -> Value {
    json!({"containers": [{"name": "main", "image": "web:1"}]})
}

async fn read_log(client: &Client, pod: &str, query: &str) -> Result<String, String> {
    let path = format!("/api/v1/namespaces/default/pods/{pod}/log?{query}");
    let request = Request::get(path).body(Vec::new()).unwrap();
    client.request_text(request).await.map_err(|error| match error {
        kube::Error::Api(status) => format!("{} {}: {}", status.code, status.reason, status.message),
        other => panic!("{other}"),
    })
}

#[tokio::test(start_paused = true)]
async fn crash_appears_in_the_previous_log() {
    let (_sandbox, client) = cluster_with(SandboxOptions::default());
    let annotations =
        json!({"sim.tutti.dev/fail": "crash-loop", "sim.tutti.dev/log": "two\né no such table\n"});
    let pods = create_pod(&client, "web", annotations, one_container()).await;
    let restarts = async || {
        let status = pods.get("web").await.unwrap().status.unwrap().container_statuses.unwrap().remove(0);
        (status.restart_count, status.state.unwrap().running.is_some())
    };
    let (mut ran, mut waited) = (false, false);
    for _ in 0..6_000 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (count, is_running) = restarts().await;
        if count == 0 {
            continue;
        }
        let check = async |query: &str, expected: &str| {
            assert_eq!(read_log(&client, "web", query).await.as_deref(), Ok(expected), "{query}");
        };
        let all = "starting\ntwo\né no such table\n";
        check("previous=true", all).await;
        check("container=main&previous=true&tailLines=1", "é no such table\n").await;
        check("previous=true&tailLines=2&limitBytes=6", "two\né").await;
        check("previous=true&tailLines=2&limitBytes=3", "two").await;
        check("previous=true&tailLines=0", "").await;
        check("previous=true&tailLines=9&limitBytes=999", all).await;
        check("", if is_running { "starting\n" } else { all }).await;
        (ran, waited) = (ran || is_running, waited || !is_running);
        if ran && waited {
            return;
        }
    }
    panic!("it never ran again, or never waited: {ran} {waited}");
}

#[tokio::test(start_paused = true)]
async fn missing_logs_return_kubelet_errors() {
    let (_sandbox, client) = cluster_with(SandboxOptions::instant("test"));
    let two = json!({"initContainers": [{"name": "first", "image": "a:1"}],
        "containers": [{"name": "main", "image": "web:1"}, {"name": "side", "image": "web:broken"}]});
    create_pod(&client, "web", json!({}), one_container()).await;
    create_pod(&client, "two", json!({}), two).await;
    create_pod(&client, "config", json!({"sim.tutti.dev/fail": "config-error"}), one_container()).await;
    create_pod(&client, "nowhere", json!({"sim.tutti.dev/fail": "unschedulable"}), one_container()).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let check = async |pod: &str, query: &str, expected: Result<&str, &str>| {
        let told = read_log(&client, pod, query).await;
        assert_eq!(told.as_deref().map_err(String::as_str), expected, "{pod} {query}");
    };
    check("web", "", Ok("starting\nready\n")).await;
    let no_other = "400 BadRequest: previous terminated container \"main\" in pod \"web\" not found";
    check("web", "previous=true", Err(no_other)).await;
    check("web", "container=x", Err("400 BadRequest: container x is not valid for pod web")).await;
    let choose =
        "400 BadRequest: a container name must be specified for pod two, choose one of: [first main side]";
    check("two", "", Err(choose)).await;
    check("two", "container=first", Ok("starting\ndone\n")).await;
    let pull = "400 BadRequest: container \"side\" in pod \"two\" is waiting to start: trying and failing to pull image";
    check("two", "container=side", Err(pull)).await;
    let config = "400 BadRequest: container \"main\" in pod \"config\" is waiting to start: CreateContainerConfigError";
    check("config", "", Err(config)).await;
    check("nowhere", "", Ok("")).await;
    let numbers = "422 Invalid: PodLogOptions \"web\" is invalid: [tailLines: Invalid value: -1: must be greater than or \
                   equal to 0, limitBytes: Invalid value: 0: must be greater than 0]";
    check("web", "tailLines=-1&limitBytes=0", Err(numbers)).await;
    let unknown = |what: &str| format!("501 NotSimulated: the sandbox does not simulate {what}");
    check("web", "timestamps=true", Err(&unknown("timestamps of logs"))).await;
    check("web", "follow=true", Err(&unknown("following the log of a running container"))).await;
}

#[tokio::test(start_paused = true)]
async fn scenario_sets_the_last_log_line() {
    let scenario = Scenario::parse("rules: [{fail: crash-loop, log: no such table}]").unwrap();
    let (_sandbox, client) = cluster_with(SandboxOptions { scenario, ..SandboxOptions::default() });
    let pods = create_pod(&client, "web", json!({}), one_container()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let parameters = LogParams { previous: true, tail_lines: Some(1), ..LogParams::default() };
    assert_eq!(pods.logs("web", &parameters).await.unwrap(), "no such table\n");
}
