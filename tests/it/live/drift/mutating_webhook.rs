//! A mutating webhook, which changes objects within the write of another client.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use live::LiveCluster;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// The user whose writes are changed.
pub const REWRITTEN_USER: &str = "somebody";

/// Listens until it is dropped.
pub struct MutatingWebhook {
    url: String,
    authority: String,
    task: JoinHandle<()>,
}

impl Drop for MutatingWebhook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl MutatingWebhook {
    pub async fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a certificate that fits its key");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}/mutate", socket.local_addr().expect("an address"));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let builder = Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
                });
            }
        });
        Self { url, authority: made.cert.pem(), task }
    }

    /// Registers it for Deployments and ConfigMaps of one namespace.
    pub async fn register(&self, cluster: &LiveCluster, namespace: &str) {
        let rules = json!([{"apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["UPDATE"],
            "resources": ["configmaps", "deployments"]}]);
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": namespace},
            "webhooks": [{
                "name": "rewrite.example.com", "rules": rules, "sideEffects": "None", "failurePolicy": "Fail",
                "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "clientConfig": {"url": self.url, "caBundle": STANDARD.encode(&self.authority)},
            }],
        });
        let input = configuration.to_string();
        cluster.kubectl_with_input(&["create", "-f", "-"], &input).await.expect("a webhook");
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<String>, hyper::Error> {
    use http_body_util::BodyExt as _;
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).expect("a review");
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    if let Some(patch) = response_patch(&review["request"]) {
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(STANDARD.encode(patch.to_string()));
    }
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    let answer = Response::builder().header("content-type", "application/json").body(review.to_string());
    Ok(answer.expect("a response"))
}

/// Sets a rendered field in a write about something else.
fn response_patch(request: &Value) -> Option<Value> {
    if request["options"]["fieldManager"] != REWRITTEN_USER {
        return None;
    }
    let (path, value) = match request["kind"]["kind"].as_str()? {
        "ConfigMap" => ("/data/level", "of the webhook"),
        _ => ("/spec/template/spec/containers/0/image", "shop/web:of-the-webhook"),
    };
    Some(json!([{"op": "replace", "path": path, "value": value}]))
}
