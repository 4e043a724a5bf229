//! `POST /api/v1/triggers/{name}`: evaluates a trigger and has its change written by `pulls`.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::access::Caller;
use super::answers::{Answers, Begun};
use super::leading;
use crate::api::problem::Problem;
use crate::api::status::Status;
use crate::model::{Digest, TriggerWrite};
use crate::trigger::{self, Outcome};

/// In bytes.
const LARGEST: usize = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);
/// For the write; after that the caller has to repeat the call.
const WRITING: Duration = Duration::from_secs(20);
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Set when the answer repeats that of an earlier call.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const LONGEST_KEY: usize = 255;

/// A change for `pulls` to write.
#[derive(Debug)]
pub struct Call {
    pub outcome: Outcome,
    pub reply: oneshot::Sender<Result<Written, NotWritten>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    /// May succeed later.
    #[error("{0}")]
    Later(String),
    /// Fails again when repeated.
    #[error("{0}")]
    Never(String),
}

/// Where a change was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// URL of the pull request or commit.
    pub link: Option<String>,
    /// Commit on the deployed branch.
    pub commit: Option<String>,
}

pub(super) async fn call(
    State(status): State<Status>,
    Extension(caller): Extension<Arc<Caller>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    if !caller.triggers.contains(&name) {
        let detail = match caller.is_operator {
            true => "a trigger is called with its own token, not with that of the API",
            false => "the token is of another trigger",
        };
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let (parts, body) = request.into_parts();
    let body = read(body).await?;
    let payload: Value = serde_json::from_slice(&body)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("the body is not JSON: {error}")))?;
    if !payload.is_object() {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "the body is JSON, but no object"));
    }
    let Some(key) = key(&parts.headers, &payload)? else {
        return in_time(run(status, name, payload)).await;
    };
    match Answers::begin(&status.api.answers, &name, &key, Digest::of(&body)) {
        Begun::New(claim) => {
            in_time(async move {
                let answer = run(status, name, payload).await?;
                claim.answer(&answer.body);
                Ok(answer)
            })
            .await
        }
        Begun::Answered(body) => {
            let mut response = Answer { status: StatusCode::OK, body }.into_response();
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            Ok(response)
        }
        Begun::UnderWay => {
            let detail = "a call with this key is under way";
            Err(Problem::new(StatusCode::CONFLICT, detail).with(RETRY_AFTER, "1"))
        }
        Begun::OtherPayload => {
            let detail =
                "this key was used for another call (help: a key is of one call and its repetitions)";
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail))
        }
    }
}

/// Runs as a task: when the caller disconnects, the write still ends and its answer is stored under the key.
async fn in_time(
    work: impl Future<Output = Result<Answer, Problem>> + Send + 'static,
) -> Result<Response, Problem> {
    match tokio::time::timeout(WRITING, tokio::spawn(work)).await {
        Ok(Ok(answer)) => answer.map(Answer::into_response),
        Ok(Err(error)) => Err(later(format!("failed to run the trigger: {error}"))),
        Err(_) => {
            let detail = "the change is not written yet; that goes on (help: make the same call with the same idempotency key: it is \
                          answered with the outcome)";
            Err(later(detail.to_owned()))
        }
    }
}

fn later(detail: String) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with(RETRY_AFTER, "1")
}

struct Answer {
    status: StatusCode,
    body: String,
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.status, [(CONTENT_TYPE, "application/json")], self.body).into_response()
    }
}

async fn read(body: Body) -> Result<Vec<u8>, Problem> {
    let reading = axum::body::to_bytes(body, LARGEST);
    match tokio::time::timeout(PATIENCE, reading).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(_)) => {
            let detail = format!("the body is larger than {LARGEST} bytes, or broke off");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail))
        }
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
    }
}

fn key(headers: &HeaderMap, payload: &Value) -> Result<Option<String>, Problem> {
    let wrong = || {
        let detail = format!("the idempotency key is 1 to {LONGEST_KEY} letters, digits and signs of ASCII");
        Problem::new(StatusCode::BAD_REQUEST, detail)
    };
    let of_header = headers.get(KEY).map(|value| value.to_str().map_err(|_| wrong())).transpose()?;
    let key = match (of_header, payload.get("idempotencyKey")) {
        (Some(key), _) => key,
        (None, None | Some(Value::Null)) => return Ok(None),
        (None, Some(value)) => value.as_str().ok_or_else(wrong)?,
    };
    let fits = (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(Some(key.to_owned())) } else { Err(wrong()) }
}

async fn run(status: Status, name: String, payload: Value) -> Result<Answer, Problem> {
    leading(&status)?;
    let head = status.api.heads.borrow().clone();
    let Some(head) = head else { return Err(later("the config repository was not read yet".to_owned())) };
    let Some(trigger) = head.fleet.triggers.get(&name) else {
        let detail =
            format!("there is no trigger {name} in triggers/, or it has mistakes (help: tutti lint)");
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    };
    let outcome = trigger::evaluate(trigger, &payload, &head.fleet, &head.snapshot)
        .map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
    let Some(outcome) = outcome else {
        let ignored =
            json!({"result": "ignored", "reason": "the payload is not what `match` of the trigger says"});
        return Ok(Answer { status: StatusCode::OK, body: ignored.to_string() });
    };
    let told = told(&outcome, &head.fleet.instance.status_prefix);
    if !outcome.is_change() || outcome.write == TriggerWrite::None {
        let result = if outcome.is_change() { "told" } else { "unchanged" };
        return Ok(answer(StatusCode::OK, result, told, &Written::default()));
    }
    let (trigger, app, file) = (outcome.trigger.clone(), outcome.app.clone(), outcome.file.clone());
    let (reply, replied) = oneshot::channel();
    if status.api.calls.try_send(Call { outcome, reply }).is_err() {
        return Err(later("too many changes wait to be written, or nobody writes them here".to_owned()));
    }
    tracing::info!(trigger, %app, file, "a call changes a file");
    match replied.await {
        Ok(Ok(written)) => Ok(answer(StatusCode::ACCEPTED, "accepted", told, &written)),
        Ok(Err(NotWritten::Later(error))) => Err(later(error)),
        Ok(Err(NotWritten::Never(error))) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error)),
        Err(_) => Err(later("the process ended before the change was written".to_owned())),
    }
}

fn told(outcome: &Outcome, prefix: &str) -> Value {
    let Outcome { trigger, app, ring, file, field, from, to, version, write, reason, .. } = outcome;
    json!({
        "trigger": trigger, "app": app, "ring": ring, "file": file, "field": field, "from": from, "to": to,
        "version": version, "write": write, "branch": outcome.branch(prefix), "reason": reason,
    })
}

fn answer(status: StatusCode, result: &str, mut told: Value, written: &Written) -> Answer {
    told["result"] = result.into();
    told["link"] = written.link.clone().into();
    told["commit"] = written.commit.clone().into();
    Answer { status, body: told.to_string() }
}
