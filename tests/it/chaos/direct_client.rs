//! Direct requests to an embedded cluster, which no fault delays or fails.

use bytes::Bytes;
use futures::FutureExt as _;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use sandbox::Sandbox;
use serde_json::{Value, json};
use tower::Service as _;

use super::object::ChaosObjectId;

/// Returns status code and body.
fn send(sandbox: &Sandbox, method: Method, path: &str, content: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content)
        .body(Full::new(body))
        .expect("a request");
    let answer = async {
        let answer = sandbox.without_faults().call(request).await.expect("an answer");
        let status = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    };
    answer.now_or_never().expect("it is answered at once")
}

pub fn get(sandbox: &Sandbox, path: &str) -> Option<Value> {
    let (status, object) = send(sandbox, Method::GET, path, "application/json", &Value::Null);
    (status == 200).then_some(object)
}

/// All objects of a collection that match a label selector.
pub fn list(sandbox: &Sandbox, folder: &str, selector: &str) -> Vec<Value> {
    let path = format!("{folder}?labelSelector={selector}");
    let (_, list) = send(sandbox, Method::GET, &path, "application/json", &Value::Null);
    list["items"].as_array().cloned().unwrap_or_default()
}

/// Returns whether the request succeeded, like the functions below.
pub fn create(sandbox: &Sandbox, manager: &str, folder: &str, object: &Value) -> bool {
    let path = format!("{folder}?fieldManager={manager}");
    send(sandbox, Method::POST, &path, "application/json", object).0 == 201
}

pub fn merge_patch(sandbox: &Sandbox, manager: &str, path: &str, patch: &Value) -> bool {
    let path = format!("{path}?fieldManager={manager}");
    send(sandbox, Method::PATCH, &path, "application/merge-patch+json", patch).0 == 200
}

pub fn force_apply(sandbox: &Sandbox, manager: &str, name: &ChaosObjectId, object: &Value) -> bool {
    let path = format!("{}?fieldManager={manager}&force=true", name.path());
    send(sandbox, Method::PATCH, &path, "application/apply-patch+yaml", object).0 == 200
}

pub fn scale(sandbox: &Sandbox, manager: &str, name: &ChaosObjectId, replicas: u64) -> bool {
    let path = format!("{}/scale?fieldManager={manager}", name.path());
    let patch = json!({"spec": {"replicas": replicas}});
    send(sandbox, Method::PATCH, &path, "application/merge-patch+json", &patch).0 == 200
}

pub fn delete(sandbox: &Sandbox, path: &str) -> bool {
    send(sandbox, Method::DELETE, path, "application/json", &Value::Null).0 == 200
}
