//! Waits against a scripted server.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Response, Uri};
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{WaitGoal, WaitResult, WaitSubject, wait};
use crate::api;
use crate::cli::api_client::ApiClient;
use crate::cli::exit::Exit;
use crate::model::AppId;
use crate::report::pipeline_report::AppReportFilter;

/// Status code and state; `""` means no body.
type Answer = (u16, &'static str);

#[derive(Default)]
struct Script {
    answers: Vec<Answer>,
    /// URL and `If-None-Match` of each request.
    asked: Vec<(String, Option<String>)>,
}

struct Server {
    client: ApiClient,
    script: Arc<Mutex<Script>>,
    listener: Option<TcpListener>,
}

fn body(state: &str) -> Value {
    json!({
        "state": state, "text": format!("{state} of it"), "planned": state == "pending",
        "rings": [{"unwell": [{"cluster": "bj5", "app": "shop/pay", "phase": "Degraded", "detail": "exit 1"}]}],
    })
}

impl Server {
    /// The last answer repeats.
    async fn new(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let token = Some(SecretString::from("0123456789abcdef"));
        let client =
            ApiClient::new(&address.parse().expect("an address"), &[], None, token).expect("a client");
        let script = Script { answers: answers.to_vec(), asked: Vec::new() };
        Self { client, script: Arc::new(Mutex::new(script)), listener: Some(listener) }
    }

    fn serve(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        tokio::spawn(api::serve(
            listener,
            Router::new().fallback(answer).with_state(Arc::clone(&self.script)),
            std::future::pending(),
        ));
    }

    async fn wait(&mut self, goal: WaitGoal, timeout: u64) -> (WaitResult, Vec<String>) {
        self.serve();
        let (mut told, subject) = (Vec::new(), WaitSubject::Commit("abcdef0123".to_owned()));
        let timeout = Duration::from_secs(timeout);
        let ended = wait(&self.client, &subject, goal, timeout, &mut |line| told.push(line.to_owned())).await;
        (ended, told)
    }
}

async fn answer(
    axum::extract::State(script): axum::extract::State<Arc<Mutex<Script>>>,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    let header = |name: &str| headers.get(name).map(|value| value.to_str().expect("text").to_owned());
    assert_eq!(header("authorization").as_deref(), Some("Bearer 0123456789abcdef"));
    let mut script = script.lock();
    script.asked.push((uri.to_string(), header("if-none-match")));
    let (status, state) = if script.answers.len() > 1 { script.answers.remove(0) } else { script.answers[0] };
    let text = match status {
        200 => body(state).to_string(),
        _ if state.is_empty() => String::new(),
        _ => json!({"detail": state}).to_string(),
    };
    let response = Response::builder().status(status).header("etag", format!("\"{state}\""));
    response.body(Body::from(text)).expect("an answer")
}

#[tokio::test]
async fn final_state_ends_the_wait() {
    for (state, exit) in [
        ("success", Exit::Ok),
        ("failure", Exit::Failed),
        ("error", Exit::Failed),
        ("superseded", Exit::Failed),
    ] {
        let (ended, told) = Server::new(&[(200, state)]).await.wait(WaitGoal::Healthy, 60).await;
        let text = format!("commit abcdef0: {state}, {state} of it");
        assert_eq!((ended.exit, ended.text.as_str(), told), (exit, text.as_str(), vec![text.clone()]));
        let unwell: Vec<String> = super::unhealthy_lines(&ended.report.expect("a report")).collect();
        assert_eq!(unwell, ["bj5 shop/pay Degraded: exit 1"]);
    }
}

#[tokio::test]
async fn each_change_is_printed_once() {
    let answers = [(404, "not read"), (200, "pending"), (304, ""), (200, "success")];
    let mut server = Server::new(&answers).await;
    let (ended, told) = server.wait(WaitGoal::Healthy, 60).await;
    assert_eq!(ended.exit, Exit::Ok);
    assert_eq!(
        told,
        [
            "commit abcdef0: not known yet (not read)",
            "commit abcdef0: pending, pending of it",
            "commit abcdef0: success, success of it",
        ]
    );
    let asked = server.script.lock().asked.clone();
    let tags: Vec<_> = asked.iter().map(|(_, tag)| tag.as_deref()).collect();
    assert_eq!(tags, [None, None, Some("\"pending\""), Some("\"pending\"")]);
    assert_eq!(asked[1].0, "/api/v1/commits/abcdef0123");
    assert!(asked[2].0.starts_with("/api/v1/commits/abcdef0123?wait=5"), "{asked:?}");
}

#[tokio::test]
async fn planned_goal_ends_earlier() {
    let (ended, _) = Server::new(&[(200, "pending")]).await.wait(WaitGoal::Planned, 60).await;
    assert_eq!(ended.exit, Exit::Ok);
}

#[tokio::test]
async fn server_errors_are_retried() {
    let answers = [(200, "pending"), (502, ""), (503, "starting"), (429, "slow"), (200, "success")];
    let (ended, told) = Server::new(&answers).await.wait(WaitGoal::Healthy, 60).await;
    assert_eq!((ended.exit, told.len()), (Exit::Ok, 5), "{told:?}");
    assert!(
        told[1].contains("answers 502") && told[2].contains("503 Service Unavailable: starting"),
        "{told:?}"
    );
}

#[tokio::test]
async fn restarted_server_is_polled_again() {
    let mut server = Server::new(&[(200, "success")]).await;
    let address = server.listener.take().expect("a listener").local_addr().expect("an address");
    let script = Arc::clone(&server.script);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let listener = TcpListener::bind(address).await.expect("the port again");
        api::serve(listener, Router::new().fallback(answer).with_state(script), std::future::pending()).await;
    });
    let (ended, told) = server.wait(WaitGoal::Healthy, 60).await;
    assert_eq!(ended.exit, Exit::Ok);
    assert!(told[0].contains("does not answer"), "{told:?}");
}

#[tokio::test]
async fn timeout_ends_the_wait() {
    let (ended, _) = Server::new(&[(200, "pending")]).await.wait(WaitGoal::Healthy, 1).await;
    assert_eq!(ended.exit, Exit::TimedOut);
    assert!(ended.text.contains("the time is over; commit abcdef0: pending") && ended.report.is_some());
    let (ended, _) = Server::new(&[(404, "not read")]).await.wait(WaitGoal::Healthy, 1).await;
    assert_eq!((ended.exit, ended.report), (Exit::TimedOut, None));
    let (ended, _) = Server::new(&[(502, "")]).await.wait(WaitGoal::Healthy, 1).await;
    assert_eq!(ended.exit, Exit::Unreachable, "it never said anything of it");
    let mut silent = Server::new(&[(200, "pending")]).await;
    drop(silent.listener.take());
    assert_eq!(silent.wait(WaitGoal::Healthy, 1).await.0.exit, Exit::Unreachable);
}

#[tokio::test]
async fn refusal_ends_the_wait() {
    for (status, exit) in
        [(401, Exit::Denied), (403, Exit::Denied), (400, Exit::Configuration), (301, Exit::Configuration)]
    {
        let (ended, _) = Server::new(&[(status, "no")]).await.wait(WaitGoal::Healthy, 60).await;
        assert_eq!((ended.exit, ended.report.is_none()), (exit, true), "{status}");
        assert!(
            ended.text.contains(&status.to_string()) && !ended.text.contains("0123456789abcdef"),
            "{}",
            ended.text
        );
    }
}

#[tokio::test]
async fn app_request_has_version_and_ring() {
    let mut server = Server::new(&[(200, "success")]).await;
    server.serve();
    let question = AppReportFilter { version: Some("1.8.0".to_owned()), ring: Some("test".to_owned()) };
    let subject = WaitSubject::App(AppId::new("shop", "a/../b"), question);
    let ended = wait(&server.client, &subject, WaitGoal::Healthy, Duration::from_secs(60), &mut |_| {}).await;
    assert_eq!(
        (ended.exit, ended.text.as_str()),
        (Exit::Ok, "shop/a/../b 1.8.0 in test: success, success of it")
    );
    assert_eq!(server.script.lock().asked[0].0, "/api/v1/apps/shop/a%2F..%2Fb?version=1.8.0&ring=test");
}
