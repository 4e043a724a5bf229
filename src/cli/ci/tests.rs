use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::settings::{CiAction, CiSettings};
use super::{answer_line, run_step};
use crate::api;
use crate::cli::api_client::ApiClient;
use crate::cli::exit::Exit;
use crate::cli::wait::{WaitGoal, WaitSubject};
use crate::model::AppId;
use crate::report::pipeline_report::AppReportFilter;

const SERVER: [(&str, &str); 3] = [
    ("PLUGIN_SERVER", "https://tutti.example.com"),
    ("PLUGIN_TOKEN", "t0ken"),
    ("PLUGIN_TRIGGER", "release"),
];
const DRONE: [(&str, &str); 11] = [
    ("DRONE", "true"),
    ("CI", "true"),
    ("DRONE_REPO", "shop/pay"),
    ("DRONE_COMMIT_SHA", "3f9c2d1a0000000000000000000000000000beef"),
    ("DRONE_TAG", "v1.8.0"),
    ("DRONE_BUILD_NUMBER", "12"),
    ("DRONE_BUILD_EVENT", "tag"),
    ("DRONE_BUILD_LINK", "https://drone.example.com/shop/pay/12"),
    ("DRONE_COMMIT_AUTHOR", "li"),
    ("DRONE_COMMIT_MESSAGE", "Pay: faster\n\nMore."),
    ("DRONE_COMMIT_LINK", "https://git.example.com/shop/pay/commit/3f9c2d1"),
];
const WOODPECKER: [(&str, &str); 10] = [
    ("CI", "woodpecker"),
    ("CI_REPO", "shop/pay"),
    ("CI_COMMIT_SHA", "3f9c2d1a0000000000000000000000000000beef"),
    ("CI_COMMIT_TAG", "v1.8.0"),
    ("CI_PIPELINE_NUMBER", "12"),
    ("CI_PIPELINE_EVENT", "tag"),
    ("CI_PIPELINE_URL", "https://ci.example.com/repos/1/pipeline/12"),
    ("CI_PIPELINE_FORGE_URL", "https://git.example.com/shop/pay/commit/3f9c2d1"),
    ("CI_COMMIT_AUTHOR", "li"),
    ("CI_COMMIT_MESSAGE", "Pay: faster"),
];
const GITEA: [(&str, &str); 9] = [
    ("GITEA_ACTIONS", "true"),
    ("GITHUB_REPOSITORY", "shop/pay"),
    ("GITHUB_SHA", "3f9c2d1a0000000000000000000000000000beef"),
    ("GITHUB_REF_NAME", "v1.8.0"),
    ("GITHUB_REF_TYPE", "tag"),
    ("GITHUB_SERVER_URL", "https://git.example.com/"),
    ("GITHUB_RUN_ID", "12"),
    ("GITHUB_EVENT_NAME", "push"),
    ("GITHUB_ACTOR", "li"),
];

fn settings(parts: &[&[(&str, &str)]]) -> Result<CiSettings, String> {
    // The later variable wins.
    let variable = |name: &str| {
        let mut all = parts.iter().flat_map(|part| part.iter()).rev();
        all.find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    CiSettings::of(&variable)
}

fn payload(parts: &[&[(&str, &str)]]) -> Value {
    match settings(parts).expect("settings").action {
        CiAction::Trigger { payload, .. } => payload,
        CiAction::Wait(subject) => panic!("{subject}"),
    }
}

#[test]
fn payload_is_read_from_each_ci() {
    let more = [
        ("PLUGIN_APP", "shop/pay"),
        ("PLUGIN_IMAGE", "registry.example.com/shop/pay"),
        ("PLUGIN_RING", "test"),
    ];
    let commit = |message: Option<&str>| {
        let mut commit = json!({
            "sha": "3f9c2d1a0000000000000000000000000000beef", "repo": "shop/pay", "author": "li",
            "url": "https://git.example.com/shop/pay/commit/3f9c2d1",
        });
        if let Some(message) = message {
            commit["message"] = message.into();
        }
        commit
    };
    let expected = |event: &str, link: &str, commit: Value| {
        json!({
            "app": "shop/pay", "version": "v1.8.0", "image": "registry.example.com/shop/pay:v1.8.0", "ring": "test",
            "event": event, "tag": "v1.8.0", "build": {"number": "12", "link": link}, "commit": commit,
        })
    };
    let drone =
        expected("tag", "https://drone.example.com/shop/pay/12", commit(Some("Pay: faster\n\nMore.")));
    assert_eq!(payload(&[&SERVER, &DRONE, &more]), drone);
    let woodpecker =
        expected("tag", "https://ci.example.com/repos/1/pipeline/12", commit(Some("Pay: faster")));
    assert_eq!(payload(&[&SERVER, &WOODPECKER, &more]), woodpecker);
    let mut of_gitea = commit(None);
    of_gitea["url"] =
        "https://git.example.com/shop/pay/commit/3f9c2d1a0000000000000000000000000000beef".into();
    let gitea = expected("push", "https://git.example.com/shop/pay/actions/runs/12", of_gitea);
    assert_eq!(payload(&[&SERVER, &GITEA, &more]), gitea);
    // Inputs of an action.
    let inputs =
        [("INPUT_SERVER", "https://tutti.example.com"), ("INPUT_TOKEN", "t"), ("INPUT_TRIGGER", "release")];
    assert_eq!(payload(&[&inputs, &GITEA])["version"], "v1.8.0");
}

#[test]
fn version_comes_from_setting_image_or_tag() {
    let check = |more: &[(&str, &str)], version: Value, image: Value| {
        let found = payload(&[&SERVER, &DRONE, more]);
        assert_eq!((&found["version"], &found["image"]), (&version, &image), "{more:?}");
    };
    check(&[], json!("v1.8.0"), Value::Null);
    check(&[("PLUGIN_VERSION", "v2")], json!("v2"), Value::Null);
    check(&[("PLUGIN_IMAGE", "pay:v3")], Value::Null, json!("pay:v3"));
    check(&[("PLUGIN_IMAGE", "pay"), ("PLUGIN_VERSION", "v2")], json!("v2"), json!("pay:v2"));
    check(&[("DRONE_TAG", ""), ("PLUGIN_IMAGE", "pay")], Value::Null, json!("pay"));
    assert_eq!(payload(&[&SERVER, &DRONE, &[("DRONE_DEPLOY_TO", "prod")]])["ring"], "prod");
    let branch = [("GITHUB_REF_TYPE", "branch"), ("GITHUB_REF_NAME", "main"), ("PLUGIN_VERSION", "v2")];
    let found = payload(&[&SERVER, &GITEA, &branch]);
    assert_eq!((&found["branch"], found.get("tag")), (&json!("main"), None));
}

#[test]
fn settings_are_checked() {
    let check = |parts: &[(&str, &str)], expected: &str| {
        let error = settings(&[&DRONE, parts]).expect_err(expected);
        assert!(error.contains(expected), "{error}");
    };
    check(&[], "the setting server is missing");
    check(&[("PLUGIN_SERVER", "https://a")], "the setting token is missing");
    check(&[("PLUGIN_SERVER", "a b"), ("PLUGIN_TOKEN", "t")], "not an address");
    check(&[("PLUGIN_SERVER", "https://a"), ("PLUGIN_TOKEN", "t")], "the setting trigger is missing");
    let with = |more: &[(&'static str, &'static str)]| [&SERVER[..], more].concat();
    check(&with(&[("PLUGIN_WAIT", "yes")]), "the setting wait is \"yes\"");
    check(&with(&[("PLUGIN_TIMEOUT", "soon")]), "the setting timeout: write it with units");
    check(&with(&[("PLUGIN_ACTION", "deploy")]), "the setting action is \"deploy\"");
    check(&with(&[("PLUGIN_ACTION", "wait"), ("PLUGIN_APP", "pay")]), "write namespace/name");
    check(&with(&[("DRONE_TAG", "")]), "neither the setting version nor image");
    let found = settings(&[
        &SERVER,
        &DRONE,
        &[("PLUGIN_WAIT", "true"), ("PLUGIN_TIMEOUT", "90s"), ("PLUGIN_ALLOW_HTTP", "a,b:1")],
    ])
    .expect("settings");
    assert_eq!(
        (found.wait, found.timeout.as_secs(), found.allow_http),
        (Some(WaitGoal::Healthy), 90, vec!["a".to_owned(), "b:1".to_owned()])
    );
    assert_eq!(found.token.expose_secret(), "t0ken");
}

#[test]
fn step_that_only_waits_needs_no_trigger() {
    let wait = [("PLUGIN_ACTION", "wait"), ("PLUGIN_TRIGGER", "")];
    let subject =
        |more: &[(&str, &str)]| match settings(&[&SERVER, &WOODPECKER, &wait, more]).expect("settings") {
            CiSettings { action: CiAction::Wait(subject), wait: Some(WaitGoal::Healthy), .. } => subject,
            other => panic!("{other:?}"),
        };
    assert_eq!(subject(&[]), WaitSubject::Commit("3f9c2d1a0000000000000000000000000000beef".to_owned()));
    assert_eq!(subject(&[("PLUGIN_COMMIT", "abcdef0")]), WaitSubject::Commit("abcdef0".to_owned()));
    let question = AppReportFilter { version: None, ring: Some("test".to_owned()) };
    assert_eq!(
        subject(&[("PLUGIN_APP", "shop/pay"), ("PLUGIN_RING", "test")]),
        WaitSubject::App(AppId::new("shop", "pay"), question)
    );
}

#[test]
fn key_is_stable_for_a_step() {
    let key = |parts: &[&[(&str, &str)]]| match settings(parts).expect("settings").action {
        CiAction::Trigger { key, .. } => key,
        CiAction::Wait(subject) => panic!("{subject}"),
    };
    let first = key(&[&SERVER, &DRONE]);
    assert!(first.len() == 64 && first == key(&[&SERVER, &DRONE]));
    assert_ne!(first, key(&[&SERVER, &DRONE, &[("DRONE_BUILD_NUMBER", "13")]]));
    assert_ne!(first, key(&[&SERVER, &DRONE, &[("PLUGIN_RING", "prod")]]));
}

#[test]
fn answer_is_one_line() {
    let answer = json!({"result": "accepted", "app": "shop/pay", "ring": "test", "from": "1.7", "to": "1.8\u{1b}[2J", "file": "apps/pay/pins/test.yaml", "link": "https://a/7"});
    assert_eq!(
        answer_line(&answer),
        "accepted: shop/pay in test 1.7 → 1.8 (apps/pay/pins/test.yaml), https://a/7"
    );
    assert_eq!(answer_line(&json!({"result": "ignored", "reason": "why"})), "ignored: why");
}

#[derive(Default)]
struct Script {
    calls: Vec<(u16, Value)>,
    state: &'static str,
    asked: Vec<(String, Option<String>)>,
}

async fn answer(
    axum::extract::State(script): axum::extract::State<Arc<Mutex<Script>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let key = headers.get("idempotency-key").map(|key| key.to_str().expect("text").to_owned());
    let mut script = script.lock();
    script.asked.push((format!("{method} {uri}"), key));
    if method == Method::GET {
        return json!({"state": script.state, "text": "it is"}).to_string().into_response();
    }
    assert_eq!(serde_json::from_slice::<Value>(&body).expect("JSON")["app"], "shop/pay");
    let (status, value) =
        if script.calls.len() > 1 { script.calls.remove(0) } else { script.calls[0].clone() };
    (StatusCode::from_u16(status).expect("a status"), value.to_string()).into_response()
}

/// Runs a step; returns its exit code and the requests.
async fn run(
    calls: &[(u16, Value)],
    state: &'static str,
    more: &[(&str, &str)],
) -> (Exit, Vec<(String, Option<String>)>) {
    let script = Arc::new(Mutex::new(Script { calls: calls.to_vec(), state, asked: Vec::new() }));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
    tokio::spawn(api::serve(listener, router, std::future::pending()));
    let own = [("PLUGIN_SERVER", &*address), ("PLUGIN_APP", "shop/pay"), ("PLUGIN_TIMEOUT", "30s")];
    let settings = settings(&[&SERVER, &DRONE, &own, more]).expect("settings");
    let client = ApiClient::new(&settings.server, &[], None, Some(settings.token.clone())).expect("a client");
    let exit = run_step(&client, &settings, &mut |_| {}).await.expect("an end");
    let asked = script.lock().asked.clone();
    (exit, asked)
}

fn accepted() -> Value {
    json!({"result": "accepted", "app": "shop/pay", "ring": "test", "version": "v1.8.0", "from": "1", "to": "v1.8.0", "file": "f"})
}

#[tokio::test]
async fn step_calls_and_waits() {
    let wait = [("PLUGIN_WAIT", "healthy")];
    let (exit, asked) = run(&[(202, accepted())], "success", &wait).await;
    assert_eq!(exit, Exit::Ok);
    let lines: Vec<&str> = asked.iter().map(|(line, _)| line.as_str()).collect();
    assert_eq!(
        lines,
        ["POST /api/v1/triggers/release", "GET /api/v1/apps/shop/pay?version=v1.8.0&ring=test"]
    );
    assert!(asked[0].1.as_ref().is_some_and(|key| key.len() == 64));
    assert_eq!(run(&[(202, accepted())], "failure", &wait).await.0, Exit::Failed);
    let (exit, asked) = run(&[(202, accepted())], "failure", &[]).await;
    assert_eq!((exit, asked.len()), (Exit::Ok, 1), "nobody asked to wait");
    let ignored = json!({"result": "ignored", "reason": "no match"});
    assert_eq!(run(&[(200, ignored)], "failure", &wait).await.0, Exit::Ok);
    let mut nameless = accepted();
    nameless["version"] = Value::Null;
    assert_eq!(run(&[(202, nameless)], "success", &wait).await.0, Exit::Configuration);
}

#[tokio::test]
async fn call_is_retried_with_its_key() {
    let no = |detail: &str| json!({"detail": detail});
    let (exit, asked) =
        run(&[(502, no("")), (503, no("stands by")), (202, accepted())], "success", &[]).await;
    assert_eq!((exit, asked.len()), (Exit::Ok, 3));
    assert!(asked.iter().all(|(_, key)| key == &asked[0].1 && key.is_some()), "{asked:?}");
    for (status, exit) in
        [(401, Exit::Denied), (403, Exit::Denied), (404, Exit::Configuration), (422, Exit::Configuration)]
    {
        assert_eq!(run(&[(status, no("why"))], "success", &[]).await.0, exit, "{status}");
    }
    assert_eq!(run(&[(503, no(""))], "success", &[("PLUGIN_TIMEOUT", "1")]).await.0, Exit::TimedOut);
    let (exit, _) = run(
        &[(202, accepted())],
        "success",
        &[("PLUGIN_SERVER", "http://127.0.0.1:1"), ("PLUGIN_TIMEOUT", "1")],
    )
    .await;
    assert_eq!(exit, Exit::Unreachable);
}
