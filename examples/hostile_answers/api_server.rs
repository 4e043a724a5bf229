//! A simulated API server with every request that tutti sends.

use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use tutti::cluster::{AccessQuestion, Client, ClusterLink, ContainerLogRef, EventSubject};
use tutti::model::{ClusterName, GroupVersionKind, ObjectId};

use super::HostilePeer;
use super::server::{PeerAnswer, PeerRequest};

pub const PEER: HostilePeer =
    HostilePeer { name: "apiserver", answer, ask: |address, folder| Box::pin(ask(address, folder)) };

/// Changes of one watch that are looked at, and how long one is waited for.
const CHANGES: usize = 30;
const WAIT: Duration = Duration::from_millis(300);

fn answer(asked: &PeerRequest) -> PeerAnswer {
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    if query.contains("watch=true") {
        return events(query.contains("sendInitialEvents"));
    }
    match (asked.method.as_str(), path) {
        ("GET", "/version") => {
            PeerAnswer::json(&json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0",
            "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}))
        }
        ("GET", "/api") => PeerAnswer::json(&json!({"kind": "APIVersions", "versions": ["v1"]})),
        ("GET", "/apis") => PeerAnswer::json(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [
            {"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
             "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"}},
        ]})),
        ("GET", "/api/v1") => PeerAnswer::json(&resources(
            "v1",
            &[
                ("namespaces", "Namespace", false),
                ("configmaps", "ConfigMap", true),
                ("secrets", "Secret", true),
                ("pods", "Pod", true),
                ("endpoints", "Endpoints", true),
            ],
        )),
        ("GET", "/apis/apps/v1") => {
            PeerAnswer::json(&resources("apps/v1", &[("deployments", "Deployment", true)]))
        }
        ("GET", path) if path.ends_with("/log") => {
            PeerAnswer { status: 200, headers: Vec::new(), body: b"panic: it ends\n".to_vec() }
        }
        ("GET", path) if path.ends_with("/web") => PeerAnswer::json(&object(5)),
        ("GET", _) => {
            let items: Vec<Value> = (0..5).map(object).collect();
            let token = if query.contains("continue") { "" } else { "next" };
            PeerAnswer::json(&json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "9",
                "continue": token, "remainingItemCount": 5}, "items": items}))
        }
        ("POST", _) => PeerAnswer::json(
            &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "metadata": {}, "spec": {}, "status": {"allowed": true}}),
        ),
        ("PATCH", path) if path.contains("secrets") => {
            let cause = json!({"reason": "FieldManagerConflict", "field": ".data.a",
                "message": "conflict with \"kubectl\" with subresource \"scale\" using v1"});
            let status = json!({"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict", "message":
                "Apply failed", "details": {"causes": [cause, cause]}});
            PeerAnswer { status: 409, ..PeerAnswer::json(&status) }
        }
        ("DELETE", _) => PeerAnswer::json(&json!({"kind": "Status", "status": "Success", "code": 200})),
        _ => PeerAnswer::json(&object(7)),
    }
}

fn resources(version: &str, kinds: &[(&str, &str, bool)]) -> Value {
    let verbs = ["get", "list", "watch", "create", "patch", "update", "delete"];
    let resources: Vec<Value> = kinds
        .iter()
        .map(|(name, kind, namespaced)| {
            json!({"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": verbs})
        })
        .collect();
    json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources})
}

fn object(number: usize) -> Value {
    let entry = json!({"manager": "tutti-main", "operation": "Apply", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {"f:tutti.dev/managed-by": {}}}, "f:data": {".": {}, "f:a": {}}}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": format!("web-{number}"), "namespace": "shop", "uid": format!("u-{number}"),
        "resourceVersion": (number + 1).to_string(), "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"tutti.dev/managed-by": "main"}, "managedFields": [entry],
        "annotations": {"tutti.dev/app": "shop/web", "tutti.dev/origin": format!("/ConfigMap/shop/web-{number}"),
            "tutti.dev/fields": entry.to_string()},
    }, "data": {"a": "b"}})
}

/// A list that comes as events, or what happens later.
fn events(is_list: bool) -> PeerAnswer {
    let mut lines: Vec<Value> = (0..5)
        .map(|number| json!({"type": if is_list || number % 2 == 0 { "ADDED" } else { "DELETED" }, "object": object(number)}))
        .collect();
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    lines.push(json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"resourceVersion": "9", "annotations": annotations}}}));
    if !is_list {
        lines.push(json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "old"}}));
    }
    let body = lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes();
    PeerAnswer { body, ..PeerAnswer::json(&Value::Null) }
}

/// Sends every request in turn and ignores the results.
async fn ask(address: String, folder: PathBuf) {
    let path = folder.join("config");
    let text = json!({
        "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": address}}], "users": [{"name": "x", "user": {"token": "hunter2"}}],
    });
    std::fs::write(&path, text.to_string()).expect("a file");
    let link = ClusterLink::Kubeconfig { path, context: None };
    let client = Client::connect(ClusterName::from("x"), &link).await.expect("a connection");
    let _ = client.probe().await;
    let _ = client.clock_ahead().await;
    // A changed answer may hide them all.
    let Some(catalog) = discovered(&client).await else { return };
    let _ = client.kinds_in_use(&catalog, "main").await;
    let id = |kind: &str| ObjectId::new("", kind, Some("shop"), "web");
    for kind in ["ConfigMap", "Secret"] {
        let (Some(resource), id) = (catalog.get(&GroupVersionKind::new("", "v1", kind)), id(kind)) else {
            continue;
        };
        let body =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "web", "namespace": "shop"}});
        let _ = client.lookup(resource, &id).await;
        let _ = client.get(resource, &id).await;
        let _ = client.list(resource, "shop").await;
        let _ = client.lookup_new(resource, &id).await;
        let told = [
            client.apply(resource, &id, &body, "tutti").await.err(),
            client.dry_run_apply(resource, &id, &body, "tutti", true).await.err(),
            client.dry_run_replace(resource, &id, &body, "tutti").await.err(),
            client.delete(resource, &id, "u", "1").await.err(),
        ];
        for error in told.into_iter().flatten().map(|error| error.to_string()) {
            assert!(error.len() < 64 * 1024 && !error.contains(char::is_control), "{error:?}");
        }
        for is_bare in [false, true] {
            let mut changes = client.watch(resource, "main", is_bare).take(CHANGES).boxed();
            while let Ok(Some(_)) = tokio::time::timeout(WAIT, changes.next()).await {}
        }
    }
    let _ = client.pods("shop", "app=web", 500).await;
    let _ = client.events_about("shop", EventSubject::Kind("Pod")).await;
    let log = ContainerLogRef { namespace: "shop", pod: "web", container: "web", previous: true };
    let _ = client.last_log_line(log, 4096).await;
    let question =
        AccessQuestion { verb: "get", group: "", resource: "pods/log", namespace: Some("shop"), name: None };
    let _ = client.is_allowed(question).await;
}

async fn discovered(client: &Client) -> Option<tutti::cluster::Catalog> {
    for _ in 0..5 {
        if let Ok(catalog) = client.discover().await {
            return Some(catalog);
        }
    }
    None
}
