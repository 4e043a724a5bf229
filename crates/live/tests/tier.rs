//! The live tier, the base of other tests. All tests of this file share two clusters and a Gitea.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests and their helpers")]
#![allow(clippy::explicit_write, reason = "past the test runner's capture")]

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use live::{LiveCluster, LiveEnvironment, LiveSetup, Tier};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

/// A failed start is stored too: one is enough.
static SHARED_ENVIRONMENT: OnceCell<Result<Option<LiveEnvironment>, String>> = OnceCell::const_new();

/// Held by a test that needs the second cluster to answer, or to be stopped.
static SECOND_CLUSTER: Mutex<()> = Mutex::const_new(());

async fn shared_environment() -> Option<&'static LiveEnvironment> {
    let started = SHARED_ENVIRONMENT
        .get_or_init(async || start_environment().await.map_err(|error| error.to_string()))
        .await;
    started.as_ref().unwrap_or_else(|error| panic!("{error}")).as_ref()
}

async fn start_environment() -> Result<Option<LiveEnvironment>, live::Error> {
    let programs = match tokio::task::spawn_blocking(Tier::from_env).await.unwrap()? {
        Tier::Ready(programs) => programs,
        Tier::Absent(line) => {
            print_line(&line);
            return Ok(None);
        }
    };
    let begin = Instant::now();
    let tier = LiveEnvironment::start(&programs, &LiveSetup::new(2)).await?;
    print_line(&format!("live tier: {}, ready in {:.1} s", tier.versions(), begin.elapsed().as_secs_f64()));
    Ok(Some(tier))
}

/// Printed past the test runner's capture.
fn print_line(line: &str) {
    writeln!(std::io::stderr(), "{line}").unwrap();
}

/// Repeats `probe` until it succeeds; fails with its last error.
async fn wait_for_success<Answer>(what: &str, probe: impl AsyncFn() -> Result<Answer, String>) -> Answer {
    let begin = Instant::now();
    loop {
        match probe().await {
            Ok(answer) => return answer,
            Err(last) if begin.elapsed() > Duration::from_secs(60) => panic!("{what}: {last}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

fn deployment(name: &str, image: &str, replicas: u32, annotations: &Value) -> String {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": annotations},
                "spec": {"containers": [{"name": "app", "image": image}]},
            },
        },
    })
    .to_string()
}

async fn apply(cluster: &LiveCluster, namespace: &str, object: &str) {
    cluster.kubectl_with_input(&["apply", "-n", namespace, "-f", "-"], object).await.unwrap();
}

async fn first_pod(cluster: &LiveCluster, namespace: &str, app: &str) -> Result<Value, String> {
    let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=app%3D{app}");
    let list = cluster.get(&path).await.map_err(|error| error.to_string())?;
    list["items"].get(0).cloned().ok_or_else(|| "no pod".to_owned())
}

#[tokio::test]
async fn a_deployment_becomes_available_on_every_cluster() {
    let Some(tier) = shared_environment().await else { return };
    let _second_cluster = SECOND_CLUSTER.lock().await;
    for cluster in tier.clusters() {
        cluster.create_namespace("rollout").await.unwrap();
        let begin = Instant::now();
        apply(cluster, "rollout", &deployment("web", "shop/web:1.0", 3, &json!({}))).await;
        let wait = ["wait", "-n", "rollout", "deployment/web", "--for=condition=Available", "--timeout=60s"];
        cluster.kubectl(&wait).await.unwrap();
        print_line(&format!(
            "live tier: 3 pods on {} after {:.1} s",
            cluster.name(),
            begin.elapsed().as_secs_f64()
        ));
        let count = cluster
            .kubectl(&["get", "deployment", "web", "-n", "rollout", "-o", "jsonpath={.status.readyReplicas}"])
            .await;
        assert_eq!(count.unwrap(), "3");
    }
}

#[tokio::test]
async fn pods_fail_as_annotated() {
    let Some(tier) = shared_environment().await else { return };
    let cluster = tier.cluster(0);
    cluster.create_namespace("failures").await.unwrap();
    let check = async |name: &str, image: &str, annotations: Value, expected: &[(&str, &str)]| {
        apply(cluster, "failures", &deployment(name, image, 1, &annotations)).await;
        wait_for_success(name, async || {
            let pod = first_pod(cluster, "failures", name).await?;
            let wrong = expected.iter().find(|(pointer, wanted)| {
                let found = pod.pointer(pointer).unwrap_or(&Value::Null);
                let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                !found.contains(wanted)
            });
            wrong.map_or(Ok(()), |wrong| Err(format!("{wrong:?} in {}", pod["status"])))
        })
        .await;
    };
    let reason = "/status/containerStatuses/0/state/waiting/reason";
    let message = "/status/containerStatuses/0/state/waiting/message";
    let last = "/status/containerStatuses/0/lastState/terminated";
    let (phase, ready) = ("/status/phase", "/status/containerStatuses/0/ready");
    let pull = [
        (phase, "Pending"),
        (reason, "ImagePullBackOff"),
        (
            message,
            "Back-off pulling image \"shop/pay:broken-1\": ErrImagePull: failed to pull and unpack image \"docker.io/shop/pay:broken-1\"",
        ),
        (ready, "false"),
    ];
    check("broken", "shop/pay:broken-1", json!({}), &pull).await;
    let elsewhere = [(message, "image \"registry.local:5000/shop/pay:broken\": failed to resolve")];
    check("elsewhere", "registry.local:5000/shop/pay:broken", json!({}), &elsewhere).await;
    let pull = [(phase, "Pending"), (reason, "ImagePullBackOff"), (ready, "false")];
    check("pull", "shop/pay:1", json!({"sim.tutti.dev/fail": "image-pull"}), &pull).await;
    let crash = [
        (phase, "Running"),
        (reason, "CrashLoopBackOff"),
        (message, "back-off 10s restarting failed container=app"),
        (&format!("{last}/exitCode"), "3"),
        ("/status/containerStatuses/0/restartCount", "1"),
    ];
    check(
        "crash",
        "shop/pay:1",
        json!({"sim.tutti.dev/fail": "crash-loop", "sim.tutti.dev/exit-code": "3"}),
        &crash,
    )
    .await;
    let oom = [
        (reason, "CrashLoopBackOff"),
        (&format!("{last}/reason"), "OOMKilled"),
        (&format!("{last}/exitCode"), "137"),
    ];
    check("oom", "shop/pay:1", json!({"sim.tutti.dev/fail": "oom"}), &oom).await;
    let running = "/status/containerStatuses/0/state/running/startedAt";
    let unready = [(phase, "Running"), (running, "20"), (ready, "false")];
    check("unready", "shop/pay:1", json!({"sim.tutti.dev/fail": "readiness"}), &unready).await;
    let typo = [(reason, "CreateContainerConfigError"), (message, "unknown value \"imagepull\"")];
    check("typo", "shop/pay:1", json!({"sim.tutti.dev/fail": "imagepull"}), &typo).await;
    let creating = [(phase, "Pending"), (reason, "ContainerCreating")];
    check("slow", "shop/pay:1", json!({"sim.tutti.dev/start": "slow"}), &creating).await;
    check(
        "slow",
        "shop/pay:1",
        json!({"sim.tutti.dev/start": "slow"}),
        &[(phase, "Running"), (ready, "true")],
    )
    .await;
}

#[tokio::test]
async fn running_pod_follows_its_failure_annotation() {
    let Some(tier) = shared_environment().await else { return };
    let cluster = tier.cluster(0);
    cluster.create_namespace("recovery").await.unwrap();
    apply(cluster, "recovery", &deployment("web", "shop/web:1.0", 1, &json!({}))).await;
    let ready = async |wanted: bool| {
        wait_for_success(&format!("ready: {wanted}"), async || {
            let pod = first_pod(cluster, "recovery", "web").await?;
            let found = pod["status"]["containerStatuses"][0]["ready"].as_bool();
            (found == Some(wanted)).then_some(()).ok_or_else(|| pod["status"].to_string())
        })
        .await;
    };
    ready(true).await;
    for failure in ["readiness", "crash-loop", "oom"] {
        let annotation = format!("sim.tutti.dev/fail={failure}");
        cluster.kubectl(&["annotate", "pod", "-n", "recovery", "-l", "app=web", &annotation]).await.unwrap();
        ready(false).await;
        cluster
            .kubectl(&["annotate", "pod", "-n", "recovery", "-l", "app=web", "sim.tutti.dev/fail-"])
            .await
            .unwrap();
        ready(true).await;
    }
}

#[tokio::test]
async fn jobs_complete_and_fail() {
    let Some(tier) = shared_environment().await else { return };
    let cluster = tier.cluster(0);
    cluster.create_namespace("jobs").await.unwrap();
    let check = async |name: &str, annotations: Value, condition: &str| {
        let template = json!({
            "metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "shop/job:1"}]},
        });
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"backoffLimit": 0, "template": template},
        });
        apply(cluster, "jobs", &job.to_string()).await;
        let (job, condition) = (format!("job/{name}"), format!("--for=condition={condition}"));
        cluster.kubectl(&["wait", "-n", "jobs", &job, &condition, "--timeout=60s"]).await.unwrap();
    };
    check("good", json!({}), "Complete").await;
    check("bad", json!({"sim.tutti.dev/fail": "crash-loop"}), "Failed").await;
}

#[tokio::test]
async fn slow_pod_uses_its_whole_grace_period() {
    let Some(tier) = shared_environment().await else { return };
    let cluster = tier.cluster(0);
    cluster.create_namespace("slow").await.unwrap();
    let pod = |name: &str, annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations},
            "spec": {"terminationGracePeriodSeconds": 4, "containers": [{"name": "app", "image": "shop/web:1"}]},
        })
        .to_string()
    };
    let deleted = async |name: &str, annotations: Value| {
        apply(cluster, "slow", &pod(name, annotations)).await;
        let object = format!("pod/{name}");
        cluster
            .kubectl(&["wait", "-n", "slow", &object, "--for=condition=Ready", "--timeout=60s"])
            .await
            .unwrap();
        let begin = Instant::now();
        cluster.kubectl(&["delete", "-n", "slow", &object]).await.unwrap();
        begin.elapsed()
    };
    assert!(deleted("quick", json!({})).await < Duration::from_secs(3));
    assert!(deleted("slow", json!({"sim.tutti.dev/slow-terminate": "true"})).await > Duration::from_secs(3));
}

#[tokio::test]
async fn api_server_stops_and_starts_again() {
    let Some(tier) = shared_environment().await else { return };
    // Tests of the other cluster run meanwhile: a third cluster would need half a gigabyte.
    let _second_cluster = SECOND_CLUSTER.lock().await;
    let cluster = tier.cluster(1);
    cluster.create_namespace("outage").await.unwrap();
    cluster.kubectl(&["create", "configmap", "before", "-n", "outage"]).await.unwrap();
    let server = cluster.server().to_owned();
    cluster.stop_server();
    let refused =
        cluster.kubectl(&["get", "configmap", "before", "-n", "outage"]).await.unwrap_err().to_string();
    assert!(refused.contains("refused"), "{refused}");
    let begin = Instant::now();
    cluster.start_server().await.unwrap();
    print_line(&format!("live tier: API server back after {:.1} s", begin.elapsed().as_secs_f64()));
    assert_eq!(cluster.server(), server);
    cluster.kubectl(&["get", "configmap", "before", "-n", "outage"]).await.unwrap();
    apply(cluster, "outage", &deployment("after", "shop/web:1.0", 1, &json!({}))).await;
    let wait = ["wait", "-n", "outage", "deployment/after", "--for=condition=Available", "--timeout=60s"];
    cluster.kubectl(&wait).await.unwrap();
    print_line(&format!(
        "live tier: a deployment after the outage took until {:.1} s",
        begin.elapsed().as_secs_f64()
    ));
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test]
async fn gitea_receives_pushes_calls_hooks_and_keeps_statuses() {
    let Some(tier) = shared_environment().await else { return };
    let gitea = tier.gitea().unwrap();
    let door = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = format!("http://{}/hooks", door.local_addr().unwrap());
    gitea.create_repository("config").await.unwrap();
    gitea.create_hook("config", &target, "secret", &["push"]).await.unwrap();

    let folder = tier.folder().join("work");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("README.md"), "config\n").unwrap();
    git(&folder, &["init", "--quiet"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "--quiet", "-m", "first"]);
    let begin = Instant::now();
    git(&folder, &["push", "--quiet", &gitea.remote("config"), "main"]);
    let pushed = begin.elapsed();
    let commit = git(&folder, &["rev-parse", "HEAD"]);

    let delivery = tokio::time::timeout(Duration::from_secs(30), receive_request(&door)).await.unwrap();
    print_line(&format!(
        "live tier: push {:.2} s, hook {:.2} s",
        pushed.as_secs_f64(),
        begin.elapsed().as_secs_f64()
    ));
    let lower = delivery.to_lowercase();
    assert!(lower.starts_with("post /hooks") && lower.contains("x-gitea-signature: "), "{delivery}");
    assert!(delivery.contains(&commit), "{delivery}");

    let path = format!("/api/v1/repos/{}/config/statuses/{commit}", gitea.user());
    for (state, description) in [("pending", "rolling out"), ("success", "4 of 4 healthy")] {
        let body = json!({"state": state, "context": "tutti/deploy/production", "description": description});
        gitea.request("POST", &path, Some(&body)).await.unwrap();
    }
    let combined = gitea.combined_status("config", &commit).await.unwrap();
    assert_eq!(combined["state"], "success", "{combined}");
    let statuses = gitea.statuses("config", &commit).await.unwrap();
    assert_eq!(statuses.len(), 2, "{statuses:?}");
    assert_eq!(git(&folder, &["ls-remote", &gitea.remote("config"), "main"])[..40], commit);
}

/// One request as text, answered with 202.
async fn receive_request(door: &tokio::net::TcpListener) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (mut stream, _) = door.accept().await.unwrap();
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.unwrap();
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let length =
            text.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let body = text.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len());
        if count == 0 || length.is_some_and(|length: usize| body >= length) {
            stream
                .write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .await
                .unwrap();
            return text;
        }
    }
}
