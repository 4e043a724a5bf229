//! Senders of webhooks: deliveries that are valid but for some random changes, through the router to receivers of each kind. Most are
//! signed after the changes, as whoever has the secret may send anything; others before, or with another secret.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::OnceLock;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower::ServiceExt as _;
use tutti::api::{self, HookReceiver, HooksState};
use tutti::metrics::Metrics;
use tutti::model::WebhookReceiverKind;

use super::HostilePeer;
use super::senders::headers;
use super::server::{PeerAnswer, PeerRequest};

pub const PEER: HostilePeer =
    HostilePeer { name: "receivers", answer, ask: |address, _: PathBuf| Box::pin(ask(address)) };

const SECRET: &str = "hunter2-of-receivers";
/// Of each kind, as each takes so many a second.
const RECEIVERS: u64 = 100;
/// Of one input: every event to every kind.
const DELIVERIES: u64 = (EVENTS.len() * WebhookReceiverKind::NAMES.len()) as u64;
/// In bytes: larger than any receiver takes.
const LARGEST: usize = api::LARGEST_BODY + 64 * 1024;
const COMMIT: &str = "3f9c2d1a0000000000000000000000000000beef";
const EVENTS: [&str; 9] = [
    "push",
    "create",
    "delete",
    "pull_request",
    "pull_request_label",
    "pull_request_approved",
    "pull_request_comment",
    "issue_comment",
    "status",
];

/// The delivery that the path `/KIND/EVENT/NUMBER` names, before mutation.
fn answer(asked: &PeerRequest) -> PeerAnswer {
    let mut names = asked.path.split('/').skip(1);
    let (kind, event) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    let number: u64 = names.next().and_then(|text| text.parse().ok()).unwrap_or_default();
    PeerAnswer::json(&body(kind, event, number))
}

fn body(kind: &str, event: &str, number: u64) -> Value {
    let pull = json!({"number": number, "title": "x", "state": "open", "head": {"ref": "x", "sha": COMMIT},
        "base": {"ref": "main"}, "labels": [{"name": "a"}]});
    match kind {
        "drone" => json!({"event": "build", "action": "updated", "repo": {"slug": "shop/pay", "name": "pay"},
            "build": {"number": number, "status": "success", "event": "tag", "ref": "refs/tags/v1", "after": COMMIT,
                "sender": "li", "params": {"a": "b"}, "stages": [{"name": "one", "steps": []}]}}),
        "woodpecker" => {
            json!({"CI_REPO": "shop/pay", "CI_COMMIT_SHA": COMMIT, "CI_COMMIT_REF": "refs/heads/main",
            "CI_COMMIT_PULL_REQUEST": "7", "CI_PIPELINE_NUMBER": number.to_string(), "CI_COMMIT_MESSAGE": "x\ny"})
        }
        "gitea" | "forgejo" => {
            let reference = if number.is_multiple_of(2) { "refs/heads/main" } else { "refs/tags/v1" };
            json!({"ref": reference, "ref_type": "branch", "sha": COMMIT, "after": COMMIT, "before": COMMIT, "number": number,
                "action": if event.ends_with("label") { "label_updated" } else { "opened" }, "is_pull": true,
                "issue": {"number": number}, "comment": {"id": 1, "body": "/tutti plan"}, "pull_request": pull,
                "review": {"type": "pull_request_review_approved", "content": ""}, "commits": [{"id": COMMIT, "added": ["a"]}],
                "total_commits": 7, "repository": {"id": 1, "full_name": "platform/config"}, "sender": {"login": "li"}})
        }
        _ => {
            json!({"image": "registry.example.com/pay:1", "number": number, "repository": {"full_name": "shop/pay"}})
        }
    }
}

struct ReceiverRouters {
    hooks: Router,
    deliveries: Router,
}

/// One for all inputs, so that what it keeps shows in the memory of the process.
fn receiver_routers() -> &'static ReceiverRouters {
    static SERVED: OnceLock<ReceiverRouters> = OnceLock::new();
    SERVED.get_or_init(|| {
        let (sender, mut hints) = mpsc::channel(64);
        tokio::spawn(async move { while hints.recv().await.is_some() {} });
        let state = HooksState::new(sender, Metrics::default());
        let receivers = (0..RECEIVERS).flat_map(|number| {
            WebhookReceiverKind::NAMES.map(|(name, kind)| HookReceiver {
                name: format!("{name}-{number}"),
                kind,
                secrets: vec![SECRET.into()],
            })
        });
        state.set_receivers(receivers);
        ReceiverRouters { hooks: api::hooks_router(state.clone()), deliveries: api::deliveries_router(state) }
    })
}

async fn ask(address: String) {
    // A client wants one although it sends nothing over TLS; the second time changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_gzip().build().expect("a client");
    for number in 0..DELIVERIES {
        let (name, kind) = WebhookReceiverKind::NAMES[number as usize % WebhookReceiverKind::NAMES.len()];
        let event = EVENTS[(number as usize / WebhookReceiverKind::NAMES.len()) % EVENTS.len()];
        // What breaks off is sent as far as it came.
        let made = client.get(format!("{address}/{name}/{event}/{number}")).send();
        let Ok(mut made) = made.await else { continue };
        let mut body = Vec::new();
        while body.len() < LARGEST
            && let Ok(Some(part)) = made.chunk().await
        {
            body.extend_from_slice(&part);
        }
        drop(made);
        send(name, kind, event, body.into(), number).await;
    }
    check_kept_deliveries().await;
}

async fn send(name: &str, kind: WebhookReceiverKind, event: &str, body: Bytes, number: u64) {
    // The same input is sent the same way.
    let mut hasher = DefaultHasher::new();
    (name, number, &body).hash(&mut hasher);
    let seed = hasher.finish();
    let mut random = StdRng::seed_from_u64(seed);
    let (signed, secret): (&[u8], _) = match random.random_range(0..8) {
        0 => (b"{}", SECRET),
        1 => (&body, "another"),
        _ => (&body, SECRET),
    };
    let receiver = random.random_range(0..RECEIVERS + 1);
    let mut request = Request::post(format!("/hooks/v1/{name}-{receiver}")).body(Body::from(body.clone()));
    let map = request.as_mut().expect("a request").headers_mut();
    for (name, value) in headers(kind, event, signed, secret, seed) {
        map.append(name, HeaderValue::from_str(&value).expect("a value"));
    }
    if random.random_range(0..4) == 0 {
        change(map, &mut random);
    }
    let response =
        receiver_routers().hooks.clone().oneshot(request.expect("a request")).await.expect("infallible");
    let status = response.status();
    assert!(status.is_success() || status.is_client_error(), "{name} {event}: {status}");
    assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{name}");
    let answer = to_bytes(response.into_body(), 16 * 1024).await.expect("a short answer");
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    assert!(!answer.to_string().contains(SECRET), "{answer}");
}

/// Some headers are gone, twice there, or another's.
fn change(headers: &mut HeaderMap, random: &mut StdRng) {
    for _ in 0..random.random_range(1..4) {
        let names: Vec<HeaderName> = headers.keys().cloned().collect();
        let Some(name) = names.get(random.random_range(0..names.len().max(1))) else { return };
        let mut value = headers[name].as_bytes().to_vec();
        match random.random_range(0..6) {
            0 => drop(headers.remove(name)),
            1 => value.truncate(random.random_range(0..=value.len())),
            2 => value.insert(random.random_range(0..=value.len()), random.random()),
            3 => value = b"application/x-www-form-urlencoded".to_vec(),
            4 => value = value.repeat(random.random_range(0..200)),
            _ => value.make_ascii_uppercase(),
        }
        let Ok(value) = HeaderValue::from_bytes(&value) else { continue };
        match random.random_range(0..3) {
            0 => drop(headers.append(name.clone(), value)),
            _ => drop(headers.insert(name.clone(), value)),
        }
    }
}

/// Stored deliveries can be shown, contain no secret, and are bounded.
async fn check_kept_deliveries() {
    let request = Request::get("/api/v1/deliveries?limit=20").body(Body::empty()).expect("a request");
    let response = receiver_routers().deliveries.clone().oneshot(request).await.expect("infallible");
    assert_eq!(response.status(), StatusCode::OK);
    let bytes = to_bytes(response.into_body(), 1024 * 1024).await.expect("a short answer");
    let text = std::str::from_utf8(&bytes).expect("text");
    serde_json::from_str::<Value>(text).expect("JSON");
    assert!(!text.contains(SECRET) && !text.contains("v1,"), "{text}");
}
