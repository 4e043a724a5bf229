//! A busy cluster gives the same run twice: every byte of every watch, and every request.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyDataStream, Full};
use sandbox::{Fault, RequestMatch, RequestRecord, Sandbox, SandboxOptions};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{config_map, deployment};

const APPS: usize = 30;
const APPLY_QUERY: &str = "?fieldManager=busy&force=true";
const WATCHED_PATHS: &[&str] = &[
    "/api/v1/configmaps",
    "/api/v1/events",
    "/api/v1/pods",
    "/api/v1/services",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/discovery.k8s.io/v1/endpointslices",
];

type WatchBytes = Arc<Mutex<Vec<Vec<u8>>>>;

async fn send(sandbox: &Sandbox, method: Method, path: &str, body: &Value) -> Option<StatusCode> {
    let request =
        Request::builder().method(method).uri(path).header("content-type", "application/apply-patch+yaml");
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let answer = sandbox.service().oneshot(request.body(Full::new(body)).unwrap()).await;
    answer.ok().map(|answer| answer.status())
}

/// Watches forever; stores the received bytes by watch.
async fn record_watch(sandbox: Sandbox, number: usize, seen: WatchBytes) {
    let path = format!("{}?watch=true&allowWatchBookmarks=true", WATCHED_PATHS[number]);
    loop {
        let request = Request::get(path.as_str()).body(Full::new(Bytes::new())).unwrap();
        if let Ok(answer) = sandbox.service().oneshot(request).await {
            let mut frames = BodyDataStream::new(answer.into_body());
            while let Some(Ok(bytes)) = frames.next().await {
                seen.lock().unwrap()[number].extend_from_slice(&bytes);
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Applies an app; some have bad images, some crash.
async fn apply_app(sandbox: &Sandbox, number: usize, version: usize) {
    let name = format!("app-{number}");
    let image = if number % 7 == 3 { "app:broken".to_owned() } else { format!("app:{version}") };
    let mut object = deployment(&name, 2, &image);
    if number % 7 == 5 {
        object["spec"]["template"]["metadata"]["annotations"] = json!({"sim.tutti.dev/fail": "crash-loop"});
    }
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}});
    let data = config_map(&name, json!({"version": version.to_string()}));
    for (path, object) in [
        (format!("/apis/apps/v1/namespaces/default/deployments/{name}{APPLY_QUERY}"), object),
        (format!("/api/v1/namespaces/default/services/{name}{APPLY_QUERY}"), service),
        (format!("/api/v1/namespaces/default/configmaps/{name}{APPLY_QUERY}"), data),
    ] {
        send(sandbox, Method::PATCH, &path, &object).await;
    }
}

/// A virtual hour with rollouts, failures, deletions, faults and cut watches.
async fn run_hour(seed: u64) -> (Vec<Vec<u8>>, Vec<RequestRecord>) {
    let options = SandboxOptions { seed, epoch: SystemTime::UNIX_EPOCH, ..SandboxOptions::default() };
    let sandbox = Sandbox::new(options);
    let seen: WatchBytes = Arc::new(Mutex::new(vec![Vec::new(); WATCHED_PATHS.len()]));
    let watches: Vec<_> = (0..WATCHED_PATHS.len())
        .map(|one| tokio::spawn(record_watch(sandbox.clone(), one, seen.clone())))
        .collect();
    for round in 0..6 {
        sandbox.fail_nth(RequestMatch::writes(), 7 * round, Fault::internal_error());
        sandbox.fail_nth(RequestMatch::writes(), 11 * round, Fault::DropAfter);
        for app in (0..APPS).filter(|app| round == 0 || app % 6 == round) {
            apply_app(&sandbox, app, round).await;
        }
        if round == 3 {
            for app in (0..APPS).step_by(5) {
                let path = format!("/apis/apps/v1/namespaces/default/deployments/app-{app}");
                send(&sandbox, Method::DELETE, &path, &Value::Null).await;
            }
            sandbox.compact();
        }
        if round % 2 == 1 {
            sandbox.cut_watches();
        }
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    watches.iter().for_each(tokio::task::JoinHandle::abort);
    let bytes = std::mem::take(&mut *seen.lock().unwrap());
    (bytes, sandbox.requests())
}

#[tokio::test(start_paused = true)]
async fn same_seed_gives_same_requests_and_events() {
    let (first, second) = (run_hour(3).await, run_hour(3).await);
    let requests = first.1.iter().zip(&second.1).enumerate();
    assert_eq!(requests.into_iter().find(|(_, (left, right))| left != right), None);
    for (path, (left, right)) in WATCHED_PATHS.iter().zip(first.0.iter().zip(&second.0)) {
        assert!(!left.is_empty(), "{path} is silent");
        assert!(
            left == right,
            "{path} differs at byte {:?}",
            left.iter().zip(right).position(|(a, b)| a != b)
        );
    }
}
