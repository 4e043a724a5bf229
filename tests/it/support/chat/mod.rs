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
pub const KEY: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
pub const SECRET: &str = "SEC0123456789";
pub const TOKEN: &str = "xoxb-1-2-3";
pub const CHANNEL: &str = "#releases";

/// One accepted message.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    pub service: &'static str,
    /// Slack: the id of the posted or changed message.
    pub ts: Option<String>,
    pub body: Value,
}

/// The fault of all following requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Never answers.
    Hangs,
    /// Answers 500.
    Unwell,
    /// Closes the connection during the answer.
    Cuts,
    /// Accepts the message, then closes the connection.
    TakesAndCuts,
    /// Accepts the message, and never answers.
    TakesAndHangs,
    Floods,
    /// Redirects to another address.
    Redirects,
    /// Refuses each message that contains this text, and repeats the address.
    Refuses(&'static str),
    /// Answers 500 to each message that contains this text.
    FailsAt(&'static str),
}

#[derive(Default)]
struct Told {
    received: Vec<Received>,
    /// Codes of all answers but faults, in order.
    codes: Vec<String>,
    fault: Fault,
    /// The number of all requests.
    asked: usize,
    times: Vec<(&'static str, Instant)>,
    /// Deleted messages of Slack.
    deleted: Vec<String>,
}

/// An answer, with the code that it is counted by.
struct Reply {
    status: StatusCode,
    code: String,
    body: Value,
    wait: Option<u64>,
}

impl Reply {
    fn new(status: u16, code: &(impl ToString + ?Sized), body: Value) -> Self {
        let status = StatusCode::from_u16(status).expect("a status");
        Self { status, code: code.to_string(), body, wait: None }
    }
}

pub struct Chat {
    address: SocketAddr,
    told: Arc<Mutex<Told>>,
    task: JoinHandle<()>,
}

impl Drop for Chat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Chat {
    pub async fn start() -> Self {
        let told = Arc::new(Mutex::new(Told::default()));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&told));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("address");
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("serve") });
        Self { address, told, task }
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
    pub fn catcher(&self) -> impl Fn(ServiceRequest) -> ServiceRequest + Send + Sync + use<> {
        let local = format!("http://{}", self.address);
        move |mut request| {
            request.url = request.url.expose_secret().replace("https://slack.com", &local).into();
            request
        }
    }

    pub fn set_fault(&self, fault: Fault) {
        self.told.lock().fault = fault;
    }

    /// A person deletes a message of Slack.
    pub fn delete(&self, ts: &str) {
        self.told.lock().deleted.push(ts.to_owned());
    }

    pub fn received(&self) -> Vec<Received> {
        self.told.lock().received.clone()
    }

    pub fn asked(&self) -> usize {
        self.told.lock().asked
    }

    pub fn codes(&self) -> Vec<String> {
        self.told.lock().codes.clone()
    }
}

async fn answer(
    State(told): State<Arc<Mutex<Told>>>,
    uri: Uri,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let fault = {
        let mut told = told.lock();
        told.asked += 1;
        told.fault
    };
    match fault {
        Fault::None => {}
        Fault::Hangs => std::future::pending().await,
        Fault::Unwell => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Fault::Cuts => return broken(),
        Fault::TakesAndCuts => {
            rules::reply(&mut told.lock(), uri.path(), query.as_deref(), &headers, &body);
            return broken();
        }
        Fault::TakesAndHangs => {
            rules::reply(&mut told.lock(), uri.path(), query.as_deref(), &headers, &body);
            std::future::pending().await
        }
        Fault::Floods => {
            let chunk = || (Ok::<_, Infallible>(Bytes::from_static(&[b' '; 4096])), ());
            return Body::from_stream(stream::unfold((), move |()| async move { Some(chunk()) }))
                .into_response();
        }
        Fault::Refuses(text) if holds(&body, text) => {
            return (StatusCode::UNPROCESSABLE_ENTITY, format!("Cannot POST {}", uri.path())).into_response();
        }
        Fault::FailsAt(text) if holds(&body, text) => {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        Fault::Refuses(_) | Fault::FailsAt(_) => {}
        Fault::Redirects => return (StatusCode::FOUND, [("location", "/elsewhere")]).into_response(),
    }
    let reply = rules::reply(&mut told.lock(), uri.path(), query.as_deref(), &headers, &body);
    let wait = reply.wait.map(|seconds| [("retry-after", seconds.to_string())]);
    let body = axum::Json(reply.body);
    match wait {
        Some(wait) => (reply.status, wait, body).into_response(),
        None => (reply.status, body).into_response(),
    }
}

fn holds(body: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(body).contains(text)
}

/// The start of an answer.
fn broken() -> Response {
    let end = io::Error::other("the connection ends");
    Body::from_stream(stream::iter([Ok(Bytes::from_static(b"{")), Err(end)])).into_response()
}

impl Told {
    /// Whether one more message in this minute exceeds the limit.
    fn is_too_fast(&mut self, service: &'static str, per_minute: usize) -> bool {
        let now = Instant::now();
        self.times.retain(|(_, time)| now.duration_since(*time) < Duration::from_secs(60));
        self.times.push((service, now));
        self.times.iter().filter(|(other, _)| *other == service).count() > per_minute
    }

    fn take(&mut self, service: &'static str, ts: Option<String>, body: Value) {
        self.received.push(Received { service, ts, body });
    }
}

fn seconds_from_now(at: Timestamp) -> i64 {
    at.duration_until(Timestamp::now()).as_secs().abs()
}
