//! Tests of counted costs (parses, reads, bytes), which do not depend on the machine's speed.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tower::Service as _;

use crate::store::counters::{parses_of, parses_so_far, reads_of, reads_so_far};
use crate::{PodMode, Sandbox, SandboxOptions};

const APPS: usize = 20;

/// Applies the Deployment of an app. Nothing waits inside, so one poll is the whole request.
fn apply(sandbox: &Sandbox, app: usize, image: &str) {
    let name = format!("app-{app}");
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"all": "shop", "app": name}}, "spec": {"containers": [
            {"name": "main", "image": image, "ports": [{"containerPort": 80}]}]}}}});
    send(sandbox, &format!("/apis/apps/v1/namespaces/default/deployments/{name}"), &object);
}

/// Applies the Service of an app. It selects by a label that all have, and by its own.
fn serve(sandbox: &Sandbox, app: usize) {
    let name = format!("app-{app}");
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
        "selector": {"all": "shop", "app": name}, "ports": [{"port": 80}]}});
    send(sandbox, &format!("/api/v1/namespaces/default/services/{name}"), &object);
}

fn send(sandbox: &Sandbox, path: &str, object: &Value) {
    let path = format!("{path}?fieldManager=budget&force=true");
    let request = Request::patch(path).header("content-type", "application/apply-patch+yaml");
    let request = request.body(Full::new(Bytes::from(object.to_string()))).unwrap();
    let answer = futures::executor::block_on(sandbox.service().call(request)).unwrap();
    assert!(answer.status().is_success());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_rest_is_bytes_only() {
    for pods in [PodMode::Stored, PodMode::Virtual] {
        let sandbox = Sandbox::new(SandboxOptions { pods, ..SandboxOptions::instant("rest") });
        (0..APPS).for_each(|app| apply(&sandbox, app, "app:1"));
        tokio::time::sleep(Duration::from_secs(60)).await;
        let (objects, bytes, parsed) = sandbox.cluster.state.lock().store.footprint();
        assert_eq!(parsed, 0, "{pods:?}");
        assert!(
            objects > 2 * APPS && bytes / objects < 1_000,
            "{pods:?}: {bytes} bytes of {objects} objects"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_apply_parses_its_object_once() {
    let sandbox = Sandbox::new(SandboxOptions::instant("parses"));
    apply(&sandbox, 0, "app:1");
    tokio::time::sleep(Duration::from_secs(60)).await;
    // the object; the namespace is not looked at
    let parses = parses_of(|| apply(&sandbox, 0, "app:2"));
    assert!(parses <= 1, "{parses} parses");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_apps_and_their_history_are_small() {
    let sandbox = Sandbox::new(SandboxOptions { pods: PodMode::Virtual, ..SandboxOptions::instant("small") });
    (0..100).for_each(|app| apply(&sandbox, app, "app:1"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let parts = sandbox.cluster.state.lock().store.usage_by_resource();
    let bytes: usize = parts.iter().map(|part| part.bytes).sum();
    assert!(bytes < 500_000, "{bytes} bytes: {parts:#?}");
}

/// What a change costs does not grow with the apps of its namespace: neither for the controllers, nor for a list by label.
#[tokio::test(start_paused = true)]
async fn a_change_reads_its_own_objects_only() {
    let mut looked = Vec::new();
    for apps in [50, 400] {
        let sandbox = Sandbox::new(SandboxOptions::instant("crowd"));
        (0..apps).for_each(|app| apply(&sandbox, app, "app:1"));
        (0..apps).for_each(|app| serve(&sandbox, app));
        tokio::time::sleep(Duration::from_secs(60)).await;
        let pods = || {
            let path = "/api/v1/namespaces/default/pods?labelSelector=app%3Dapp-7";
            let request = Request::get(path).body(Full::new(Bytes::new())).unwrap();
            let answer = futures::executor::block_on(sandbox.service().call(request)).unwrap();
            assert!(answer.status().is_success());
        };
        pods();
        let listed = reads_of(pods);
        let (parsed, read) = (parses_so_far(), reads_so_far());
        apply(&sandbox, 7, "app:2");
        tokio::time::sleep(Duration::from_secs(60)).await;
        looked.push((listed, parses_so_far() - parsed, reads_so_far() - read));
    }
    let (few, many) = (looked[0], looked[1]);
    assert!(few.0 <= 4 && few.2 <= 60, "{looked:?}");
    assert_eq!(few, many, "of 50 and 400 apps: listed, parsed, read");
}
