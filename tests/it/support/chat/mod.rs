//! Simulated chat services and one program, as strict as the real ones: a group of Feishu, one of DingTalk, a workspace of Slack, and a
//! program that takes signed events. Each checks signature, time window and rate limit, and answers with the codes of its service.

mod rules;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use jiff::Timestamp;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tutti::notification::service::{ResolvedService, ServiceRequest};

/// The key of the program that takes events: `whsec_`, and base64 of 24 bytes.
pub const SIGNING_KEY: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
pub const SECRET: &str = "SEC0123456789";
pub const TOKEN: &str = "xoxb-1-2-3";
pub const CHANNEL: &str = "#releases";

/// One accepted message.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedMessage {
    pub service: &'static str,
    /// Slack: the id of the posted or changed message.
    pub ts: Option<String>,
    pub body: Value,
}

/// The fault of all following requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChatFault {
    #[default]
    None,
    /// Never answers.
    NoAnswer,
    /// Answers 500.
    ServerError,
    /// Closes the connection during the answer.
    DropConnection,
    /// Accepts the message, then closes the connection.
    AcceptAndDrop,
    /// Accepts the message, and never answers.
    AcceptWithoutAnswer,
    EndlessAnswer,
    /// Redirects to another address.
    Redirect,
    /// Refuses each message that contains this text, and repeats the address.
    RejectContaining(&'static str),
    /// Answers 500 to each message that contains this text.
    FailContaining(&'static str),
}

#[derive(Default)]
struct ChatState {
    received: Vec<ReceivedMessage>,
    /// Codes of all answers but faults, in order.
    codes: Vec<String>,
    fault: ChatFault,
    /// The number of all requests.
    request_count: usize,
    request_times: Vec<(&'static str, Instant)>,
    /// Deleted messages of Slack.
    deleted: Vec<String>,
}

/// An answer, with the code that it is counted by.
struct ChatReply {
    status: StatusCode,
    code: String,
    body: Value,
    wait: Option<u64>,
}

impl ChatReply {
    fn new(status: u16, code: &(impl ToString + ?Sized), body: Value) -> Self {
        let status = StatusCode::from_u16(status).expect("a status");
        Self { status, code: code.to_string(), body, wait: None }
    }
}

pub struct ChatServer {
    address: SocketAddr,
    state: Arc<Mutex<ChatState>>,
    task: JoinHandle<()>,
}

impl Drop for ChatServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ChatServer {
    pub async fn start() -> Self {
        let told = Arc::new(Mutex::new(ChatState::default()));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&told));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("address");
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("serve") });
        Self { address, state: told, task }
    }

    fn url(&self, path: &str) -> SecretString {
        format!("http://{}{path}", self.address).into()
    }

    pub fn feishu(&self, secret: Option<&str>) -> ResolvedService {
        ResolvedService::Feishu { url: self.url("/open-apis/bot/v2/hook/1"), secret: secret.map(Into::into) }
    }

    pub fn dingtalk(&self, secret: Option<&str>) -> ResolvedService {
        ResolvedService::DingTalk {
            url: self.url("/robot/send?access_token=1"),
            secret: secret.map(Into::into),
        }
    }

    pub fn generic(&self, secret: Option<&str>) -> ResolvedService {
        ResolvedService::Generic { url: self.url("/events"), secret: secret.map(Into::into) }
    }

    pub fn slack(&self, token: &str) -> ResolvedService {
        ResolvedService::SlackBot { token: token.into(), channel: CHANNEL.to_owned() }
    }

    /// Slack has one address; its requests are redirected to this server.
    pub fn redirect_slack(&self) -> impl Fn(ServiceRequest) -> ServiceRequest + Send + Sync + use<> {
        let local = format!("http://{}", self.address);
        move |mut request| {
            request.url = request.url.expose_secret().replace("https://slack.com", &local).into();
            request
        }
    }

    pub fn set_fault(&self, fault: ChatFault) {
        self.state.lock().fault = fault;
    }

    /// A person deletes a message of Slack.
    pub fn delete_message(&self, ts: &str) {
        self.state.lock().deleted.push(ts.to_owned());
    }

    pub fn received(&self) -> Vec<ReceivedMessage> {
        self.state.lock().received.clone()
    }

    pub fn request_count(&self) -> usize {
        self.state.lock().request_count
    }

    pub fn codes(&self) -> Vec<String> {
        self.state.lock().codes.clone()
    }
}

async fn answer(
    State(told): State<Arc<Mutex<ChatState>>>,
    uri: Uri,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let fault = {
        let mut told = told.lock();
        told.request_count += 1;
        told.fault
    };
    match fault {
        ChatFault::None => {}
        ChatFault::NoAnswer => std::future::pending().await,
        ChatFault::ServerError => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        ChatFault::DropConnection => return partial_answer(),
        ChatFault::AcceptAndDrop => {
            rules::reply(&mut told.lock(), uri.path(), query.as_deref(), &headers, &body);
            return partial_answer();
        }
        ChatFault::AcceptWithoutAnswer => {
            rules::reply(&mut told.lock(), uri.path(), query.as_deref(), &headers, &body);
            std::future::pending().await
        }
        ChatFault::EndlessAnswer => {
            let chunk = || (Ok::<_, Infallible>(Bytes::from_static(&[b' '; 4096])), ());
            return Body::from_stream(stream::unfold((), move |()| async move { Some(chunk()) }))
                .into_response();
        }
        ChatFault::RejectContaining(text) if body_contains(&body, text) => {
            return (StatusCode::UNPROCESSABLE_ENTITY, format!("Cannot POST {}", uri.path())).into_response();
        }
        ChatFault::FailContaining(text) if body_contains(&body, text) => {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        ChatFault::RejectContaining(_) | ChatFault::FailContaining(_) => {}
        ChatFault::Redirect => return (StatusCode::FOUND, [("location", "/elsewhere")]).into_response(),
    }
    let reply = rules::reply(&mut told.lock(), uri.path(), query.as_deref(), &headers, &body);
    let wait = reply.wait.map(|seconds| [("retry-after", seconds.to_string())]);
    let body = axum::Json(reply.body);
    match wait {
        Some(wait) => (reply.status, wait, body).into_response(),
        None => (reply.status, body).into_response(),
    }
}

fn body_contains(body: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(body).contains(text)
}

/// The start of an answer.
fn partial_answer() -> Response {
    let end = io::Error::other("the connection ends");
    Body::from_stream(stream::iter([Ok(Bytes::from_static(b"{")), Err(end)])).into_response()
}

impl ChatState {
    /// Whether one more message in this minute exceeds the limit.
    fn exceeds_rate(&mut self, service: &'static str, per_minute: usize) -> bool {
        let now = Instant::now();
        self.request_times.retain(|(_, time)| now.duration_since(*time) < Duration::from_secs(60));
        self.request_times.push((service, now));
        self.request_times.iter().filter(|(other, _)| *other == service).count() > per_minute
    }

    fn record_message(&mut self, service: &'static str, ts: Option<String>, body: Value) {
        self.received.push(ReceivedMessage { service, ts, body });
    }
}

fn seconds_from_now(at: Timestamp) -> i64 {
    at.duration_until(Timestamp::now()).as_secs().abs()
}
