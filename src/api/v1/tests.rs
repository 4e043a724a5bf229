//! Requests through the API's router.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tower::ServiceExt;

use super::{ApiV1, TriggerCall, TriggerWriteError, WrittenChange};
use crate::api::serve::ClientAddress;
use crate::api::{ApiState, HooksState, status_router};
use crate::cluster::WritePermit;
use crate::controller::ConfigHead;
use crate::fleet::assemble;
use crate::leader::{LeaderRole, LeadershipState};
use crate::manifest;
use crate::metrics::Metrics;
use crate::model::{AppId, Revision, Snapshot};
use crate::report::{Overview, TargetPhase, TargetReport};

const TOKEN: &str = "0123456789abcdef-operator";
const RELEASE: &str = "0123456789abcdef-release";
const OTHER: &str = "0123456789abcdef-other";
const HEAD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

const PAY: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {name: pay, namespace: shop}\nspec: {workloadType: deployment, developLanguage: python, runType: worker, image: pay}\n";
const RINGS: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: [{name: test, clusters: {}}]}\n";

fn trigger(name: &str, more: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Trigger\nmetadata: {{name: {name}}}\nspec:\n  token: {{secretRef: {{env: TUTTI_SECRET_A}}}}\n  match: {{app: '**'}}\n  set: {{app: '{{{{ app }}}}', version: '{{{{ version }}}}', ring: test}}\n{more}"
    )
}

struct Case {
    api: ApiV1,
    router: Router,
    overview: watch::Sender<Arc<Overview>>,
    calls: mpsc::Receiver<TriggerCall>,
    role: watch::Sender<LeaderRole>,
}

fn target(cluster: &str, phase: TargetPhase, version: &str) -> TargetReport {
    TargetReport {
        revision: Revision::from(HEAD),
        version: version.to_owned(),
        ring: Some("test".to_owned()),
        ..TargetReport::of_test(AppId::new("shop", "pay"), cluster, phase)
    }
}

fn overview(targets: Vec<TargetReport>) -> Overview {
    Overview {
        revision: Some(Revision::from(HEAD)),
        is_rendered: true,
        status_prefix: "tutti".to_owned(),
        rings: vec!["test".to_owned()],
        targets,
        ..Overview::default()
    }
}

impl Case {
    fn new(token: Option<&str>) -> Self {
        let (release, other, told) =
            (trigger("release", ""), trigger("other", ""), trigger("told", "  action: {write: none}\n"));
        let snapshot = Snapshot::of_texts([
            ("rings.yaml", RINGS),
            ("apps/pay/app.yaml", PAY),
            ("apps/pay/pins/test.yaml", "version: 1.7.3\n"),
            ("triggers/release.yaml", &*release),
            ("triggers/other.yaml", &*other),
            ("triggers/told.yaml", &*told),
        ]);
        let fleet = assemble(manifest::read(&snapshot), &snapshot);
        assert_eq!(fleet.triggers.len(), 3, "{:?}", fleet.diagnostics);
        let head = ConfigHead { fleet: Arc::new(fleet), snapshot: Arc::new(snapshot), defined: None };
        let (sender, calls) = mpsc::channel(4);
        let token = token.map(SecretString::from);
        let api = ApiV1::new(token.as_ref(), watch::channel(Some(Arc::new(head))).1, sender);
        let of = |name: &str, token: &str| (name.to_owned(), SecretString::from(token));
        api.set_trigger_tokens([
            of("release", RELEASE),
            of("told", RELEASE),
            of("other", OTHER),
            of("short", "0123456789abcde"),
        ]);
        let (overview, seen) =
            watch::channel(Arc::new(overview(vec![target("bj1", TargetPhase::Running, "1.7.3")])));
        let (role, roles) = watch::channel(LeaderRole::Leads);
        let status = ApiState {
            overview: seen,
            hooks: HooksState::new(mpsc::channel(1).0, Metrics::default()),
            metrics: Metrics::default(),
            standing: Some(LeadershipState { role: roles, permit: WritePermit::default() }),
            api: api.clone(),
        };
        Self { api, router: status_router(status), overview, calls, role }
    }

    async fn ask(&self, request: Request<Body>) -> (StatusCode, Value, Response<()>) {
        let response = self.router.clone().oneshot(request).await.expect("infallible");
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 100_000).await.expect("a body");
        let value =
            if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).expect("JSON") };
        (parts.status, value, Response::from_parts(parts, ()))
    }

    async fn get(&self, path: &str, token: &str) -> (StatusCode, Value, Response<()>) {
        self.ask(request("GET", path, Some(token)).body(Body::empty()).expect("a request")).await
    }

    async fn call(
        &self,
        name: &str,
        token: &str,
        key: Option<&str>,
        body: &Value,
    ) -> (StatusCode, Value, Response<()>) {
        let mut request = request("POST", &format!("/api/v1/triggers/{name}"), Some(token));
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        self.ask(request.body(Body::from(body.to_string())).expect("a request")).await
    }

    /// Answers calls as `pulls` would.
    fn write(
        &mut self,
        times: usize,
        written: Result<WrittenChange, TriggerWriteError>,
    ) -> tokio::task::JoinHandle<Vec<String>> {
        let (_, empty) = mpsc::channel(1);
        let mut calls = std::mem::replace(&mut self.calls, empty);
        tokio::spawn(async move {
            let mut made = Vec::new();
            for _ in 0..times {
                let Some(TriggerCall { outcome, reply }) = calls.recv().await else { break };
                made.push(outcome.title());
                let _ = reply.send(written.clone());
            }
            made
        })
    }
}

fn request(method: &str, path: &str, token: Option<&str>) -> http::request::Builder {
    let request = Request::builder().method(method).uri(path);
    match token {
        Some(token) => request.header("authorization", format!("Bearer {token}")),
        None => request,
    }
}

fn payload(version: &str) -> Value {
    json!({"app": "shop/pay", "version": version})
}

#[tokio::test]
async fn nothing_is_answered_without_a_token() {
    let closed = Case::new(None);
    let open = Case::new(Some(TOKEN));
    for (method, path) in [
        ("GET", "/api/v1/commits/aaaaaaa"),
        ("GET", "/api/v1/apps/shop/pay"),
        ("POST", "/api/v1/triggers/release"),
        ("GET", "/api/v1/deliveries"),
        ("POST", "/api/v1/deliveries/1/replay"),
        ("GET", "/api/v1/anything/else"),
        ("DELETE", "/api/v1/commits/aaaaaaa"),
    ] {
        let ask = async |case: &Case, header: Option<&str>, expected: StatusCode, words: &str| {
            let request = request(method, path, None);
            let request = header.map_or(Request::builder().method(method).uri(path), |value| {
                request.header("authorization", value)
            });
            let (status, body, response) = case.ask(request.body(Body::empty()).expect("a request")).await;
            assert_eq!(status, expected, "{path} {header:?}: {body}");
            assert_eq!(response.headers()["content-type"], "application/problem+json");
            assert!(body["detail"].as_str().is_some_and(|detail| detail.contains(words)), "{path}: {body}");
            assert!(!body.to_string().contains("0123456789"), "{body}");
        };
        ask(&closed, Some(&format!("Bearer {TOKEN}")), StatusCode::FORBIDDEN, "--api-token-env").await;
        ask(&open, None, StatusCode::UNAUTHORIZED, "Authorization: Bearer").await;
        for wrong in [
            "Bearer wrong",
            "Basic 0123456789abcdef-operator",
            "Bearer",
            "Bearer ",
            "0123456789abcdef-operator",
            "Bearer 0123456789abcdef-operato",
            "Bearer 0123456789abcde",
        ] {
            ask(&open, Some(wrong), StatusCode::UNAUTHORIZED, "token").await;
        }
    }
}

#[tokio::test]
async fn each_token_opens_its_own() {
    let case = Case::new(Some(TOKEN));
    let check = async |path: &str, token: &str, expected: StatusCode| {
        let (status, body, _) = case.get(path, token).await;
        assert_eq!(status, expected, "{path} {token}: {body}");
    };
    for path in [&*format!("/api/v1/commits/{HEAD}"), "/api/v1/apps/shop/pay"] {
        check(path, TOKEN, StatusCode::OK).await;
        check(path, RELEASE, StatusCode::OK).await;
    }
    check("/api/v1/deliveries", TOKEN, StatusCode::OK).await;
    check("/api/v1/deliveries", RELEASE, StatusCode::FORBIDDEN).await;
    check("/api/v1/nothing", TOKEN, StatusCode::NOT_FOUND).await;
    check("/api/v1/nothing", RELEASE, StatusCode::FORBIDDEN).await;
    let call = async |name: &str, token: &str, expected: StatusCode, words: &str| {
        let (status, body, _) = case.call(name, token, None, &payload("1.7.3")).await;
        assert_eq!(status, expected, "{name} {token}: {body}");
        assert!(body.to_string().contains(words), "{body}");
    };
    call("release", RELEASE, StatusCode::OK, "unchanged").await;
    call("release", OTHER, StatusCode::FORBIDDEN, "to another trigger").await;
    call("release", TOKEN, StatusCode::FORBIDDEN, "its own token").await;
    call("nobody", OTHER, StatusCode::FORBIDDEN, "to another trigger").await;
    call("%ff", OTHER, StatusCode::FORBIDDEN, "to another trigger").await;
    // The token of a removed trigger may still be known for a moment.
    case.api.set_trigger_tokens([("gone".to_owned(), SecretString::from(OTHER))]);
    call("gone", OTHER, StatusCode::NOT_FOUND, "no trigger gone").await;
    call("release", RELEASE, StatusCode::UNAUTHORIZED, "wrong").await;
    assert!(!format!("{:?}", case.api).contains("0123456789abcdef"), "tokens do not print");
}

#[tokio::test(start_paused = true)]
async fn only_wrong_tokens_are_throttled() {
    let case = Case::new(Some(TOKEN));
    let ask = async |token: &str, last: u8| {
        let mut request =
            request("GET", "/api/v1/apps/shop/pay", Some(token)).body(Body::empty()).expect("a request");
        request.extensions_mut().insert(ClientAddress([10, 0, 0, last].into()));
        case.ask(request).await.0
    };
    let mut wrong = 0;
    while ask("wrong", 1).await == StatusCode::UNAUTHORIZED {
        wrong += 1;
        assert!(wrong < 100, "no limit");
    }
    assert!(wrong >= 20, "{wrong}");
    assert_eq!(ask("wrong", 1).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(ask("wrong", 2).await, StatusCode::UNAUTHORIZED, "of another address");
    // Behind a proxy all callers share one address.
    assert_eq!(ask(TOKEN, 1).await, StatusCode::OK);
    assert_eq!(ask(RELEASE, 1).await, StatusCode::OK);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(ask("wrong", 1).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn call_is_written_once_for_its_key() {
    let mut case = Case::new(Some(TOKEN));
    let written = WrittenChange { link: Some("https://git.example.com/pulls/7".to_owned()), commit: None };
    let made = case.write(2, Ok(written));
    let first = case.call("release", RELEASE, Some("build-7"), &payload("1.8.0")).await;
    assert_eq!(first.0, StatusCode::ACCEPTED, "{}", first.1);
    let expected = json!({
        "trigger": "release", "app": "shop/pay", "ring": "test", "file": "apps/pay/pins/test.yaml", "field": "version",
        "from": "1.7.3", "to": "1.8.0", "version": "1.8.0", "write": "pull-request", "branch": "tutti/trigger/release/shop.pay.test",
        "reason": "trigger release", "result": "accepted", "link": "https://git.example.com/pulls/7", "commit": null,
    });
    assert_eq!(first.1, expected);
    let again = case.call("release", RELEASE, Some("build-7"), &payload("1.8.0")).await;
    assert_eq!((again.0, &again.1), (StatusCode::OK, &expected));
    assert_eq!(again.2.headers()["idempotency-replayed"], "true");
    // The key may be in the body.
    let mut with_key = payload("1.8.0");
    with_key["idempotencyKey"] = "build-8".into();
    assert_eq!(case.call("release", RELEASE, None, &with_key).await.0, StatusCode::ACCEPTED);
    assert_eq!(case.call("release", RELEASE, None, &with_key).await.0, StatusCode::OK);
    let other = case.call("release", RELEASE, Some("build-7"), &payload("1.9.0")).await;
    assert_eq!(other.0, StatusCode::UNPROCESSABLE_ENTITY, "{}", other.1);
    assert_eq!(made.await.expect("made"), ["shop/pay in test: 1.7.3 → 1.8.0"; 2]);
}

#[tokio::test]
async fn failed_write_may_be_repeated() {
    let mut case = Case::new(Some(TOKEN));
    drop(case.write(0, Ok(WrittenChange::default())).await);
    let answer = case.call("release", RELEASE, Some("a"), &payload("1.8.0")).await;
    assert_eq!(answer.0, StatusCode::SERVICE_UNAVAILABLE, "nobody writes: {}", answer.1);
    let mut case = Case::new(Some(TOKEN));
    let failing = case.write(1, Err(TriggerWriteError::Transient("the forge does not answer".to_owned())));
    let answer = case.call("release", RELEASE, Some("a"), &payload("1.8.0")).await;
    assert_eq!(
        (answer.0, &answer.1["detail"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("the forge does not answer"))
    );
    assert_eq!(answer.2.headers()["retry-after"], "1");
    failing.await.expect("done");
    let mut case = Case::new(Some(TOKEN));
    let refused =
        case.write(1, Err(TriggerWriteError::Permanent("the branch is of somebody else".to_owned())));
    let answer = case.call("release", RELEASE, Some("a"), &payload("1.8.0")).await;
    assert_eq!(
        (answer.0, &answer.1["detail"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("the branch is of somebody else"))
    );
    assert!(answer.2.headers().get("retry-after").is_none(), "it is not to be repeated");
    refused.await.expect("done");
    let case = Case::new(Some(TOKEN));
    case.role.send_replace(LeaderRole::StandsBy { leader: None });
    let answer = case.call("release", RELEASE, Some("a"), &payload("1.7.3")).await;
    assert_eq!(answer.0, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.1["detail"].as_str().is_some_and(|it| it.contains("stands by")), "{}", answer.1);
    assert_eq!(case.get("/api/v1/apps/shop/pay", TOKEN).await.0, StatusCode::SERVICE_UNAVAILABLE);
    case.role.send_replace(LeaderRole::Leads);
    assert_eq!(case.call("release", RELEASE, Some("a"), &payload("1.7.3")).await.0, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn slow_write_is_answered_on_repetition() {
    for (outcome, expected) in [
        (
            Ok(WrittenChange { link: Some("https://git.example.com/pulls/7".to_owned()), commit: None }),
            StatusCode::OK,
        ),
        // A failed write may be tried again.
        (
            Err(TriggerWriteError::Transient("the forge does not answer".to_owned())),
            StatusCode::SERVICE_UNAVAILABLE,
        ),
    ] {
        let mut case = Case::new(Some(TOKEN));
        let answer = case.call("release", RELEASE, Some("build-7"), &payload("1.8.0")).await;
        assert_eq!(answer.0, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.1);
        assert!(answer.1["detail"].as_str().is_some_and(|it| it.contains("not written yet")), "{}", answer.1);
        let again = case.call("release", RELEASE, Some("build-7"), &payload("1.8.0")).await;
        assert_eq!(again.0, StatusCode::CONFLICT, "it is under way: {}", again.1);
        let TriggerCall { reply, .. } = case.calls.try_recv().expect("one call");
        assert!(case.calls.try_recv().is_err(), "it is written once");
        let link = outcome.clone().ok().and_then(|written| written.link);
        reply.send(outcome.clone()).expect("it is waited for");
        let failing = case.write(1, outcome);
        tokio::time::sleep(Duration::from_millis(1)).await;
        let last = case.call("release", RELEASE, Some("build-7"), &payload("1.8.0")).await;
        assert_eq!((last.0, last.1["link"].as_str()), (expected, link.as_deref()), "{}", last.1);
        failing.abort();
    }
}

#[tokio::test]
async fn calls_that_change_nothing_say_so() {
    let case = Case::new(Some(TOKEN));
    let check = async |name: &str, body: Value, status: StatusCode, words: &str| {
        let (found, answer, _) = case.call(name, RELEASE, None, &body).await;
        assert_eq!(found, status, "{body}: {answer}");
        assert!(answer.to_string().contains(words), "{body}: {answer}");
    };
    check("release", payload("1.7.3"), StatusCode::OK, "\"unchanged\"").await;
    check("told", payload("1.8.0"), StatusCode::OK, "\"told\"").await;
    check("release", json!({}), StatusCode::OK, "\"ignored\"").await;
    check("release", json!({"app": "shop/pay"}), StatusCode::UNPROCESSABLE_ENTITY, "no value at `version`")
        .await;
    check("release", json!({"app": "x", "version": "1"}), StatusCode::UNPROCESSABLE_ENTITY, "does not exist")
        .await;
    check("release", payload("../../x"), StatusCode::UNPROCESSABLE_ENTITY, "which is not a version").await;
    check("release", json!([1]), StatusCode::BAD_REQUEST, "not an object").await;
    check("release", json!({"idempotencyKey": ""}), StatusCode::BAD_REQUEST, "idempotency key").await;
    check("release", json!({"idempotencyKey": 7}), StatusCode::BAD_REQUEST, "idempotency key").await;
    check("release", json!({"app": "x".repeat(70_000)}), StatusCode::PAYLOAD_TOO_LARGE, "65536").await;
    for (body, words) in [("{", "is not JSON"), (&*"[".repeat(10_000), "is not JSON")] {
        let request =
            request("POST", "/api/v1/triggers/release", Some(RELEASE)).body(Body::from(body.to_owned()));
        let (status, answer, _) = case.ask(request.expect("a request")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(answer.to_string().contains(words), "{answer}");
    }
    let long = "k".repeat(256);
    assert_eq!(case.call("release", RELEASE, Some(&long), &payload("1")).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn commits_and_apps_are_answered() {
    let case = Case::new(Some(TOKEN));
    case.overview.send_replace(Arc::new(overview(vec![
        target("bj1", TargetPhase::Running, "1.8.0"),
        target("bj2", TargetPhase::Degraded, "1.8.0"),
    ])));
    let (status, body, response) = case.get("/api/v1/commits/AAAAAAA", TOKEN).await;
    assert_eq!((status, &body["state"], &body["commit"]), (StatusCode::OK, &json!("failure"), &json!(HEAD)));
    assert_eq!(body["rings"][0]["unwell"][0]["cluster"], "bj2");
    assert_eq!(body["rings"][0]["context"], "tutti/deploy/test");
    assert!(response.headers().contains_key("etag"));
    let check = async |path: &str, status: StatusCode, words: &str| {
        let (found, body, _) = case.get(path, TOKEN).await;
        assert_eq!(found, status, "{path}: {body}");
        assert!(body.to_string().contains(words), "{path}: {body}");
    };
    check("/api/v1/apps/shop/pay", StatusCode::OK, "\"healthy\":false").await;
    check("/api/v1/apps/shop/pay?version=1.9.0&ring=test", StatusCode::OK, "1.9.0 is awaited").await;
    check("/api/v1/apps/shop/pay?ring=prod", StatusCode::NOT_FOUND, "shop/pay is on no cluster").await;
    check("/api/v1/apps/shop/none", StatusCode::NOT_FOUND, "shop/none").await;
    check("/api/v1/apps/shop/%ff", StatusCode::NOT_FOUND, "no cluster").await;
    check("/api/v1/commits/bbbbbbb", StatusCode::NOT_FOUND, "is not known").await;
    check("/api/v1/commits/aaaaaa", StatusCode::BAD_REQUEST, "7 to 64").await;
    check("/api/v1/commits/aaaaaaz", StatusCode::BAD_REQUEST, "7 to 64").await;
    check("/api/v1/commits/aaaaaaa?wait=x", StatusCode::BAD_REQUEST, "duration").await;
    check("/api/v1/commits/aaaaaaa?since=x", StatusCode::BAD_REQUEST, "is not known").await;
    let unread =
        Overview { source_error: Some("https://li:s3cr3t@git: no route".to_owned()), ..Overview::default() };
    case.overview.send_replace(Arc::new(unread));
    check("/api/v1/commits/aaaaaaa", StatusCode::NOT_FOUND, "no route").await;
    assert!(!case.get("/api/v1/commits/aaaaaaa", TOKEN).await.1.to_string().contains("s3cr3t"));
}

#[tokio::test(start_paused = true)]
async fn long_poll_ends_when_the_state_changes() {
    let case = Case::new(Some(TOKEN));
    let with = |version: &str, phase: TargetPhase| Arc::new(overview(vec![target("bj1", phase, version)]));
    let ask = async |query: &str, tag: Option<&str>| {
        let mut request = request("GET", &format!("/api/v1/apps/shop/pay{query}"), Some(TOKEN));
        if let Some(tag) = tag {
            request = request.header("if-none-match", tag);
        }
        let (status, body, response) = case.ask(request.body(Body::empty()).expect("a request")).await;
        let tag = response.headers().get("etag").map(|tag| tag.to_str().expect("text").to_owned());
        (status, body, tag)
    };
    // A final state is answered at once, another one after the wait.
    let (status, body, _) = ask("?wait=55s", None).await;
    assert_eq!((status, &body["state"]), (StatusCode::OK, &json!("success")));
    case.overview.send_replace(with("1.8.0", TargetPhase::Progressing));
    let (status, body, tag) = ask("?wait=55s", None).await;
    assert_eq!((status, &body["state"]), (StatusCode::OK, &json!("pending")));
    let (status, body, same) = ask("?wait=2s", tag.as_deref()).await;
    assert_eq!((status, body, &same), (StatusCode::NOT_MODIFIED, Value::Null, &tag));
    // A change ends the wait.
    let change = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        case.overview.send_replace(with("1.8.0", TargetPhase::Running));
    };
    let (answer, ()) = tokio::join!(ask("?wait=55s", tag.as_deref()), change);
    assert_eq!((answer.0, &answer.1["healthy"]), (StatusCode::OK, &json!(true)));
    // An unknown app may appear during the wait.
    case.overview.send_replace(Arc::new(Overview::default()));
    let (answer, ()) = tokio::join!(ask("?wait=1h", None), async {
        tokio::time::sleep(Duration::from_secs(50)).await;
        case.overview.send_replace(with("1.8.0", TargetPhase::Running));
    });
    assert_eq!(answer.0, StatusCode::OK);
    case.overview.send_replace(Arc::new(Overview::default()));
    assert_eq!(ask("?wait=1h", None).await.0, StatusCode::NOT_FOUND);
}
