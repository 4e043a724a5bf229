//! Requests through the hooks router: status, body and hint.

mod deliveries;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tower::ServiceExt;

use crate::api::body::{LARGEST_BODY, SMALL_BODY_BYTES};
use crate::api::{ApiState, ApiV1, HookReceiver, HooksState, hooks_router, serve, status_router};
use crate::forge::WebhookHint;
use crate::metrics::Metrics;
use crate::model::{Revision, WebhookReceiverKind};
use crate::report::Overview;

const PUSH: &str = r#"{"ref":"refs/heads/main","repository":{"full_name":"platform/config"}}"#;

fn hooks_with_receivers(capacity: usize) -> (HooksState, Router, mpsc::Receiver<WebhookHint>) {
    let (sender, hints) = mpsc::channel(capacity);
    let state = HooksState::new(sender, Metrics::default());
    state.set_receivers([
        receiver("gitea", &["s3cr3t", "next"]),
        receiver("open", &[]),
        receiver("empty", &[""]),
    ]);
    (state.clone(), hooks_router(state), hints)
}

fn receiver(name: &str, secrets: &[&str]) -> HookReceiver {
    HookReceiver {
        name: name.to_owned(),
        kind: WebhookReceiverKind::Gitea,
        secrets: secrets.iter().map(|secret| SecretString::from(*secret)).collect(),
    }
}

fn signed(body: &[u8], secret: &str) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).expect("key");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

fn delivery(door: &str, event: &str, body: &str, secret: &str, id: &str) -> Request<Body> {
    Request::post(format!("/hooks/v1/{door}"))
        .header("content-type", "application/json")
        .header("x-gitea-event", event)
        .header("x-gitea-delivery", id)
        .header("x-gitea-signature", signed(body.as_bytes(), secret))
        .body(Body::from(body.to_owned()))
        .expect("request")
}

/// Has a signature header, which is wrong.
fn wrongly_signed() -> http::request::Builder {
    Request::post("/hooks/v1/gitea").header("x-gitea-signature", "0")
}

async fn answer(router: &Router, request: Request<Body>) -> (StatusCode, Value) {
    let response = router.clone().oneshot(request).await.expect("infallible");
    let status = response.status();
    (status, json_of(response).await)
}

async fn json_of(response: Response) -> Value {
    let problem = response.status().is_client_error() || response.status().is_server_error();
    let media = response.headers()["content-type"].to_str().expect("text").to_owned();
    assert_eq!(media, if problem { "application/problem+json" } else { "application/json" });
    let bytes = axum::body::to_bytes(response.into_body(), 1_000_000).await.expect("body");
    serde_json::from_slice(&bytes).expect("JSON")
}

#[tokio::test]
async fn a_push_is_accepted_once() {
    let (_, router, mut hints) = hooks_with_receivers(8);
    let accepted = (StatusCode::ACCEPTED, json!({"accepted": true, "delivery": "d-1"}));
    assert_eq!(answer(&router, delivery("gitea", "push", PUSH, "s3cr3t", "d-1")).await, accepted);
    let hint = hints.try_recv().expect("hint");
    assert_eq!((hint.receiver.as_str(), hint.reference.as_deref()), ("gitea", Some("refs/heads/main")));
    let duplicate = (StatusCode::OK, json!({"result": "duplicate"}));
    assert_eq!(answer(&router, delivery("gitea", "push", PUSH, "s3cr3t", "d-1")).await, duplicate);
    assert!(hints.try_recv().is_err());
    // The second secret, for rotation.
    assert_eq!(answer(&router, delivery("gitea", "push", PUSH, "next", "d-2")).await.0, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn bad_requests_are_refused() {
    let (_, router, mut hints) = hooks_with_receivers(8);
    let check = async |request: Request<Body>, status: StatusCode, words: &str| {
        let (found, body) = answer(&router, request).await;
        assert_eq!((found, &body["status"]), (status, &json!(status.as_u16())), "{words}: {body}");
        assert!(body["detail"].as_str().is_some_and(|detail| detail.contains(words)), "{words}: {body}");
    };
    check(delivery("gitea", "push", PUSH, "wrong", "d"), StatusCode::UNAUTHORIZED, "signature").await;
    let unsigned = Request::post("/hooks/v1/gitea").body(Body::from(PUSH)).expect("request");
    check(unsigned, StatusCode::UNAUTHORIZED, "there is none").await;
    check(delivery("nobody", "push", PUSH, "s3cr3t", "d"), StatusCode::NOT_FOUND, "no receiver").await;
    check(delivery("%ff", "push", PUSH, "s3cr3t", "d"), StatusCode::NOT_FOUND, "no receiver").await;
    check(delivery("open", "push", PUSH, "", "d"), StatusCode::FORBIDDEN, "disabled").await;
    check(delivery("empty", "push", PUSH, "", "d"), StatusCode::FORBIDDEN, "disabled").await;
    check(delivery("gitea", "push", "{", "s3cr3t", "e"), StatusCode::BAD_REQUEST, "not JSON").await;
    let mut text = delivery("gitea", "push", PUSH, "s3cr3t", "f");
    text.headers_mut().insert("content-type", "text/plain".parse().expect("value"));
    check(text, StatusCode::UNSUPPORTED_MEDIA_TYPE, "text/plain").await;
    let get = Request::get("/hooks/v1/gitea").body(Body::empty()).expect("request");
    check(get, StatusCode::METHOD_NOT_ALLOWED, "POST").await;
    let elsewhere = Request::get("/favicon.ico").body(Body::empty()).expect("request");
    check(elsewhere, StatusCode::NOT_FOUND, "/hooks/v1/").await;
    // A refused delivery is no duplicate later.
    assert_eq!(answer(&router, delivery("gitea", "push", PUSH, "s3cr3t", "d")).await.0, StatusCode::ACCEPTED);
    assert!(hints.try_recv().is_ok() && hints.try_recv().is_err());
}

#[tokio::test]
async fn own_statuses_are_ignored_with_success() {
    let (_, router, mut hints) = hooks_with_receivers(8);
    let (status, body) = answer(&router, delivery("gitea", "status", "{}", "s3cr3t", "d")).await;
    assert_eq!((status, &body["result"]), (StatusCode::OK, &json!("ignored")));
    assert!(body["reason"].as_str().is_some_and(|reason| reason.contains("status")));
    assert!(hints.try_recv().is_err());
}

#[tokio::test]
async fn body_size_is_limited() {
    let (_, router, _hints) = hooks_with_receivers(8);
    // The declared length refuses it; nothing is read.
    let unread = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let declared = wrongly_signed().header("content-length", LARGEST_BODY + 1).body(unread).expect("request");
    assert_eq!(answer(&router, declared).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let parts = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 64 * 1024])));
    let endless = wrongly_signed().body(Body::from_stream(parts)).expect("request");
    assert_eq!(answer(&router, endless).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let largest = " ".repeat(LARGEST_BODY - PUSH.len()) + PUSH;
    assert_eq!(
        answer(&router, delivery("gitea", "push", &largest, "s3cr3t", "d")).await.0,
        StatusCode::ACCEPTED
    );
}

#[tokio::test(start_paused = true)]
async fn slow_body_times_out() {
    let (_, router, _hints) = hooks_with_receivers(8);
    let never = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let request = wrongly_signed().body(never).expect("request");
    assert_eq!(answer(&router, request).await.0, StatusCode::REQUEST_TIMEOUT);
}

/// Without a signature the body is not awaited.
#[tokio::test(start_paused = true)]
async fn unsigned_body_is_not_read() {
    let (_, router, _hints) = hooks_with_receivers(8);
    let begun = tokio::time::Instant::now();
    let never = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let request = Request::post("/hooks/v1/gitea").body(never).expect("request");
    assert_eq!(answer(&router, request).await.0, StatusCode::UNAUTHORIZED);
    assert!(begun.elapsed() < std::time::Duration::from_secs(5));
}

/// Unsigned requests do not use the rate of signed ones.
#[tokio::test]
async fn unsigned_requests_do_not_use_the_rate() {
    let (_, router, _hints) = hooks_with_receivers(8);
    for number in 0..500 {
        let request = delivery("gitea", "push", PUSH, "wrong", &number.to_string());
        assert_eq!(answer(&router, request).await.0, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(answer(&router, delivery("gitea", "push", PUSH, "s3cr3t", "d")).await.0, StatusCode::ACCEPTED);
}

#[tokio::test(start_paused = true)]
async fn address_that_sent_too_much_may_send_small_signed_bodies() {
    let (state, router, _hints) = hooks_with_receivers(8);
    let check = async |last: u8, mut request: Request<Body>, expected: StatusCode| {
        request.extensions_mut().insert(serve::ClientAddress([10, 0, 0, last].into()));
        assert_eq!(answer(&router, request).await.0, expected);
    };
    state.charge_unsigned_bytes([10, 0, 0, 1].into(), 1 << 30);
    let padded = |length: usize| " ".repeat(length - PUSH.len()) + PUSH;
    let signed = |length: usize, id: &str| delivery("gitea", "push", &padded(length), "s3cr3t", id);
    check(1, signed(SMALL_BODY_BYTES, "a"), StatusCode::ACCEPTED).await;
    check(1, signed(SMALL_BODY_BYTES + 1, "b"), StatusCode::TOO_MANY_REQUESTS).await;
    check(2, signed(SMALL_BODY_BYTES + 1, "b"), StatusCode::ACCEPTED).await;
    // Large declared bodies and unsigned ones are not read.
    let never = || Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let declared =
        wrongly_signed().header("content-length", SMALL_BODY_BYTES + 1).body(never()).expect("request");
    check(1, declared, StatusCode::TOO_MANY_REQUESTS).await;
    let unsigned = Request::post("/hooks/v1/gitea").body(never()).expect("request");
    check(1, unsigned, StatusCode::UNAUTHORIZED).await;
    // Small unsigned requests are refused and block no signed one.
    check(1, delivery("gitea", "push", PUSH, "wrong", "c"), StatusCode::UNAUTHORIZED).await;
    check(1, delivery("gitea", "push", PUSH, "s3cr3t", "c"), StatusCode::ACCEPTED).await;
}

#[tokio::test]
async fn too_many_are_refused_until_later() {
    let (_, router, _hints) = hooks_with_receivers(1000);
    let mut refused = None;
    for number in 0..500 {
        let request = delivery("gitea", "push", PUSH, "s3cr3t", &number.to_string());
        let response = router.clone().oneshot(request).await.expect("infallible");
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            refused = Some((number, response));
            break;
        }
    }
    let (number, response) = refused.expect("a limit");
    assert!(number >= 200, "{number}");
    assert_eq!(response.headers()["retry-after"], "1");
}

#[tokio::test]
async fn full_channel_accepts_and_closed_channel_refuses() {
    let (_, router, hints) = hooks_with_receivers(1);
    for id in ["d-1", "d-2", "d-3"] {
        assert_eq!(
            answer(&router, delivery("gitea", "push", PUSH, "s3cr3t", id)).await.0,
            StatusCode::ACCEPTED
        );
    }
    drop(hints);
    for _ in 0..2 {
        let (status, _) = answer(&router, delivery("gitea", "push", PUSH, "s3cr3t", "d-4")).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    }
}

#[tokio::test]
async fn receivers_change_while_serving() {
    let (state, router, _hints) = hooks_with_receivers(8);
    state.set_receivers([receiver("forge", &["other"])]);
    assert_eq!(
        answer(&router, delivery("gitea", "push", PUSH, "s3cr3t", "d")).await.0,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        answer(&router, delivery("forge", "push", PUSH, "s3cr3t", "d")).await.0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(answer(&router, delivery("forge", "push", PUSH, "other", "d")).await.0, StatusCode::ACCEPTED);
    assert!(!format!("{state:?}").contains("other"), "secrets do not print");
}

/// `is_read`: whether the repository was read.
fn status(is_read: bool) -> ApiState {
    let revision = is_read.then(|| Revision::from("0123456789"));
    let overview = Overview { revision, ..Overview::default() };
    let (state, _, _) = hooks_with_receivers(1);
    ApiState {
        overview: watch::channel(Arc::new(overview)).1,
        hooks: state,
        metrics: Metrics::default(),
        standing: None,
        api: ApiV1::new(None, watch::channel(None).1, mpsc::channel(1).0),
    }
}

async fn get(status: ApiState, path: &str) -> (StatusCode, String, String) {
    let request = Request::get(path).body(Body::empty()).expect("request");
    let response = status_router(status).oneshot(request).await.expect("infallible");
    let media = response.headers()["content-type"].to_str().expect("text").to_owned();
    let code = response.status();
    let bytes = axum::body::to_bytes(response.into_body(), 1_000_000).await.expect("body");
    (code, media, String::from_utf8(bytes.to_vec()).expect("text"))
}

#[tokio::test]
async fn live_and_ready() {
    let (text, json, problem) = ("text/plain; charset=utf-8", "application/json", "application/problem+json");
    let check = async |is_read: bool, path: &str, code: StatusCode, media: &str| {
        let (found, found_media, _) = get(status(is_read), path).await;
        assert_eq!((found, found_media.as_str()), (code, media), "{path}");
    };
    check(true, "/ready", StatusCode::OK, text).await;
    check(false, "/ready", StatusCode::SERVICE_UNAVAILABLE, problem).await;
    check(false, "/live", StatusCode::OK, text).await;
    check(true, "/ready?verbose", StatusCode::OK, text).await;
    check(true, "/ready?full", StatusCode::OK, json).await;
    check(true, "/ready?a=b&full=true", StatusCode::OK, json).await;
    check(false, "/ready?full", StatusCode::SERVICE_UNAVAILABLE, json).await;
}

#[tokio::test]
async fn full_readiness_names_each_check() {
    let (_, _, text) = get(status(true), "/ready?full").await;
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    let check =
        |name: &str, state: &str, detail: &str| json!({"name": name, "state": state, "detail": detail});
    let expected = json!({"ready": true, "checks": [
        check("repository", "ok", "0123456 was read"),
        check("clusters", "unused", "no cluster is registered"),
        check("forge", "unknown", "no commit status was written yet"),
        check("webhooks", "failed", "1 of 3 open; empty has no secret"),
        check("leader", "unused", "this process runs alone"),
    ]});
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn deliveries_are_counted_by_receiver_and_verdict() {
    let (sender, _hints) = mpsc::channel(8);
    let metrics = Metrics::default();
    let state = HooksState::new(sender, metrics.clone());
    state.set_receivers([receiver("gitea", &["s3cr3t"]), receiver("open", &[])]);
    let router = hooks_router(state.clone());
    let deliveries = [
        delivery("gitea", "push", PUSH, "s3cr3t", "d-1"),
        delivery("gitea", "push", PUSH, "s3cr3t", "d-1"),
        delivery("gitea", "push", PUSH, "wrong", "d-2"),
        delivery("gitea", "push", PUSH, "wrong", "d-3"),
        delivery("gitea", "status", "{}", "s3cr3t", "d-4"),
        delivery("gitea", "push", "{", "s3cr3t", "d-5"),
        delivery("open", "push", PUSH, "", "d"),
        delivery("made-up", "push", PUSH, "s3cr3t", "d"),
        delivery("%ff", "push", PUSH, "s3cr3t", "d"),
    ];
    for request in deliveries {
        router.clone().oneshot(request).await.expect("infallible");
    }
    let status = ApiState { metrics, hooks: state, ..status(true) };
    let (code, media, text) = get(status, "/metrics").await;
    assert_eq!((code, media.as_str()), (StatusCode::OK, crate::metrics::CONTENT_TYPE));
    let mut counted: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("tutti_webhook_deliveries_total")).collect();
    counted.sort_unstable();
    let expected = [
        r#"{receiver="",verdict="unknown_receiver"} 2"#,
        r#"{receiver="gitea",verdict="accepted"} 1"#,
        r#"{receiver="gitea",verdict="duplicate"} 1"#,
        r#"{receiver="gitea",verdict="ignored"} 1"#,
        r#"{receiver="gitea",verdict="malformed"} 1"#,
        r#"{receiver="gitea",verdict="unauthorized"} 2"#,
        r#"{receiver="open",verdict="disabled"} 1"#,
    ];
    assert_eq!(counted, expected);
}

#[tokio::test]
async fn server_stops_on_shutdown() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listener, status_router(status(true)), async move {
        let _ = stopped.await;
    }));
    // A keep-alive connection must not delay shutdown.
    let mut connection = tokio::net::TcpStream::connect(address).await.expect("connect");
    tokio::io::AsyncWriteExt::write_all(&mut connection, b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .expect("write");
    let mut first = [0; 12];
    tokio::io::AsyncReadExt::read_exact(&mut connection, &mut first).await.expect("read");
    assert_eq!(&first, b"HTTP/1.1 200");
    stop.send(()).expect("running");
    let ended = tokio::time::timeout(std::time::Duration::from_secs(2), serving).await;
    ended.expect("in time").expect("joined");
}
