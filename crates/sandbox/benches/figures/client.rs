//! What the measurements ask of a cluster, as `kube::Client` asks it.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use sandbox::{ResponseBody, SandboxService};
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub const APPLY: &str = "application/apply-patch+yaml";

/// The commit in the annotation of every app.
pub const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";

pub async fn send(
    service: &SandboxService,
    method: Method,
    path: &str,
    body: Bytes,
) -> http::Response<ResponseBody> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", APPLY)
        .header("accept", "application/json")
        .header("user-agent", "bench/1")
        .body(Full::new(body))
        .expect("a request");
    service.clone().oneshot(request).await.expect("an answer")
}

/// Sends and reads the whole answer.
pub async fn ask(service: &SandboxService, method: Method, path: &str, body: Bytes) -> (StatusCode, Bytes) {
    let answer = send(service, method, path, body).await;
    let code = answer.status();
    (code, answer.into_body().collect().await.expect("a body").to_bytes())
}

pub async fn apply(service: &SandboxService, path: &str, query: &str, body: Bytes) -> StatusCode {
    let path = format!("{path}?fieldManager=bench&force=true{query}");
    let (code, answer) = ask(service, Method::PATCH, &path, body).await;
    assert!(code.is_success(), "{path}: {code} {}", String::from_utf8_lossy(&answer));
    code
}

pub fn deployment_path(name: &str) -> String {
    format!("/apis/apps/v1/namespaces/default/deployments/{name}")
}

pub fn core_path(plural: &str, name: &str) -> String {
    format!("/api/v1/namespaces/default/{plural}/{name}")
}

/// The Deployment of an app of everyday size: two containers, probes, resources, a volume.
pub fn deployment(name: &str, image: &str) -> Value {
    let labels =
        json!({"app": name, "app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "tutti"});
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": 8080}, "periodSeconds": 10, "initialDelaySeconds": 5});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": labels,
            "annotations": {"tutti.dev/revision": REVISION}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [
                        {"name": "main", "image": image, "ports": [{"containerPort": 8080, "name": "http"}],
                         "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "REGION", "value": "north"},
                                 {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": name, "key": "password"}}}],
                         "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                         "readinessProbe": probe("/ready"), "livenessProbe": probe("/live"),
                         "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}]},
                        {"name": "proxy", "image": "proxy:1.2.3", "ports": [{"containerPort": 9090, "name": "metrics"}],
                         "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}}},
                    ],
                    "volumes": [{"name": "config", "configMap": {"name": name}}],
                },
            },
        },
    })
}

pub fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}})
}

pub fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "data": {"app.yaml": format!("name: {name}\nlisten: 0.0.0.0:8080\ndatabase: postgres://db.{name}.svc/app\nworkers: 4\n")}})
}

pub fn text(object: &Value) -> Bytes {
    Bytes::from(object.to_string())
}

/// Applies the three objects of an app.
pub async fn apply_app(cluster: &SandboxService, name: &str, image: &str) {
    apply(cluster, &core_path("configmaps", name), "", text(&config_map(name))).await;
    apply(cluster, &core_path("services", name), "", text(&service(name))).await;
    apply(cluster, &deployment_path(name), "", text(&deployment(name, image))).await;
}
