//! Unknown and duplicate fields, over HTTP.

use http::{Method, Request};
use sandbox::{Sandbox, SandboxOptions};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::deployment;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

struct FieldResponse {
    code: u16,
    warnings: Vec<String>,
    body: Value,
}

async fn send(sandbox: &Sandbox, method: Method, path: &str, kind: &str, body: String) -> FieldResponse {
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(http_body_util::Full::new(body.into())).unwrap();
    let response = sandbox.service().oneshot(request).await.unwrap();
    let (code, headers) = (response.status().as_u16(), response.headers().clone());
    let warnings = headers.get_all("warning").iter().map(|one| one.to_str().unwrap().to_owned()).collect();
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    FieldResponse { code, warnings, body: serde_json::from_slice(&body).unwrap() }
}

async fn cluster() -> Sandbox {
    let sandbox = Sandbox::new(SandboxOptions::instant("fields"));
    let web = deployment("web", 0, "nginx").to_string();
    assert_eq!(send(&sandbox, Method::POST, DEPLOYMENTS, "application/json", web).await.code, 201);
    sandbox
}

#[tokio::test]
async fn every_write_drops_or_rejects_unknown_fields() {
    let sandbox = cluster().await;
    let mut unknown = deployment("web", 0, "nginx");
    unknown["spec"]["foo"] = json!(1);
    let patch = json!({"spec": {"foo": 1}});
    let operations = json!([{"op": "add", "path": "/spec/foo", "value": 1}]);
    let item = format!("{DEPLOYMENTS}/web");
    let writes = [
        (Method::POST, DEPLOYMENTS, "application/json", &unknown, 201, 400),
        (Method::PUT, &item, "application/json", &unknown, 200, 400),
        (Method::PATCH, &item, MERGE_PATCH, &patch, 200, 422),
        (Method::PATCH, &item, STRATEGIC_PATCH, &patch, 200, 422),
        (Method::PATCH, &item, JSON_PATCH, &operations, 200, 422),
    ];
    for (method, path, kind, body, taken, refused) in writes {
        let body = match method {
            Method::POST => body.to_string().replace("web", "new"),
            _ => body.to_string(),
        };
        let ask = |validation: &str| {
            let path = format!("{path}?dryRun=All&fieldValidation={validation}");
            send_owned(&sandbox, method.clone(), path, kind, body.clone())
        };
        let warned = ask("Warn").await;
        assert_eq!((warned.code, &warned.body["spec"]["foo"]), (taken, &Value::Null), "{kind}");
        assert_eq!(warned.warnings, ["299 - \"unknown field \\\"spec.foo\\\"\""], "{kind}");
        let ignored = ask("Ignore").await;
        assert_eq!((ignored.code, ignored.warnings.len()), (taken, 0), "{kind}");
        let strict = ask("Strict").await;
        let message = strict.body["message"].as_str().unwrap();
        assert_eq!(strict.code, refused, "{kind}");
        assert!(message.ends_with("strict decoding error: unknown field \"spec.foo\""), "{kind} {message}");
    }
}

async fn send_owned(
    sandbox: &Sandbox,
    method: Method,
    path: String,
    kind: &str,
    body: String,
) -> FieldResponse {
    send(sandbox, method, &path, kind, body).await
}

#[tokio::test]
async fn duplicate_fields_are_reported_by_their_patch() {
    let sandbox = cluster().await;
    let item = format!("{DEPLOYMENTS}/web?dryRun=All");
    let check = async |kind: &str, body: &str, warning: &str| {
        let answer = send(&sandbox, Method::PATCH, &item, kind, body.to_owned()).await;
        assert_eq!((answer.code, answer.warnings), (200, vec![format!("299 - \"{warning}\"")]), "{kind}");
    };
    let replicas = r#"{"spec":{"replicas":1,"replicas":2}}"#;
    check(MERGE_PATCH, replicas, r#"duplicate field \"spec.replicas\""#).await;
    check(STRATEGIC_PATCH, replicas, r#"duplicate field \"spec.replicas\""#).await;
    let twice = r#"[{"op":"replace","path":"/spec/replicas","value":1,"value":2}]"#;
    check(JSON_PATCH, twice, r#"json patch duplicate field \"[0].value\""#).await;
}

#[tokio::test]
async fn an_unknown_field_validation_is_a_mistake() {
    let sandbox = cluster().await;
    let path = format!("{DEPLOYMENTS}/web?fieldValidation=strict");
    let answer = send(&sandbox, Method::PATCH, &path, MERGE_PATCH, "{}".to_owned()).await;
    let message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"strict\": \
        supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
    assert_eq!((answer.code, answer.body["message"].as_str()), (422, Some(message)));
}

#[tokio::test]
async fn unreadable_strategic_patch_reports_the_remaining_patch() {
    let sandbox = cluster().await;
    let path = format!("{DEPLOYMENTS}/web?fieldValidation=Strict");
    let patch = json!({"spec": {"replcas": 1, "paused": null, "template": {"spec": {
        "$setElementOrder/containers": [{"name": "main"}], "containers": [{"name": "main", "image": "b"}]}}}});
    let answer = send(&sandbox, Method::PATCH, &path, STRATEGIC_PATCH, patch.to_string()).await;
    let message = " \"\" is invalid: patch: Invalid value: \"map[spec:map[paused:<nil> replcas:1 \
        template:map[spec:map[]]]]\": strict decoding error: unknown field \"spec.replcas\"";
    assert_eq!((answer.code, answer.body["message"].as_str()), (422, Some(message)));
}
