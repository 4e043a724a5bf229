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

use super::access::ApiCaller;
use super::idempotency::{CallStart, IdempotencyCache};
use super::trigger_call::{TriggerCall, TriggerWriteError, WrittenChange};
use crate::api::problem::Problem;
use crate::api::state::{ApiState, require_leader};
use crate::model::{Digest, TriggerWrite};
use crate::trigger::{self, TriggerOutcome};

/// In bytes.
const LARGEST: usize = 64 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// For the write; after that the caller has to repeat the call.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Set when the answer repeats that of an earlier call.
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const LONGEST_KEY: usize = 255;

pub(super) async fn call_trigger(
    State(status): State<ApiState>,
    Extension(caller): Extension<Arc<ApiCaller>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    if !caller.triggers.contains(&name) {
        let detail = match caller.is_operator {
            true => "a trigger is called with its own token, not with that of the API",
            false => "the token belongs to another trigger",
        };
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let (parts, body) = request.into_parts();
    let body = read_body(body).await?;
    let payload: Value = serde_json::from_slice(&body)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("the body is not JSON: {error}")))?;
    if !payload.is_object() {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "the body is JSON, but not an object"));
    }
    let Some(key) = idempotency_key(&parts.headers, &payload)? else {
        return run_within_timeout(run_trigger(status, name, payload)).await;
    };
    match IdempotencyCache::begin(&status.api.idempotency, &name, &key, Digest::of(&body)) {
        CallStart::New(claim) => {
            run_within_timeout(async move {
                let answer = run_trigger(status, name, payload).await?;
                claim.complete(&answer.body);
                Ok(answer)
            })
            .await
        }
        CallStart::Answered(body) => {
            let mut response = CallResponse { status: StatusCode::OK, body }.into_response();
            response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
            Ok(response)
        }
        CallStart::InProgress => {
            let detail = "a call with this key is under way";
            Err(Problem::new(StatusCode::CONFLICT, detail).with_header(RETRY_AFTER, "1"))
        }
        CallStart::DifferentPayload => {
            let detail = "this key was used for another call (help: use a new key for each call, and the \
                          same key only to repeat a call)";
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail))
        }
    }
}

/// Runs as a task: when the caller disconnects, the write still ends and its answer is stored under the key.
async fn run_within_timeout(
    work: impl Future<Output = Result<CallResponse, Problem>> + Send + 'static,
) -> Result<Response, Problem> {
    match tokio::time::timeout(WRITE_TIMEOUT, tokio::spawn(work)).await {
        Ok(Ok(answer)) => answer.map(CallResponse::into_response),
        Ok(Err(error)) => Err(retry_later(format!("failed to run the trigger: {error}"))),
        Err(_) => {
            let detail = "the change is not written yet, but it is under way (help: repeat the call with the \
                          same idempotency key to get the result)";
            Err(retry_later(detail.to_owned()))
        }
    }
}

fn retry_later(detail: String) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with_header(RETRY_AFTER, "1")
}

struct CallResponse {
    status: StatusCode,
    body: String,
}

impl IntoResponse for CallResponse {
    fn into_response(self) -> Response {
        (self.status, [(CONTENT_TYPE, "application/json")], self.body).into_response()
    }
}

async fn read_body(body: Body) -> Result<Vec<u8>, Problem> {
    let reading = axum::body::to_bytes(body, LARGEST);
    match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(_)) => {
            let detail = format!("the body is larger than {LARGEST} bytes, or broke off");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail))
        }
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
    }
}

fn idempotency_key(headers: &HeaderMap, payload: &Value) -> Result<Option<String>, Problem> {
    let wrong = || {
        let detail = format!("the idempotency key must have 1 to {LONGEST_KEY} printable ASCII characters");
        Problem::new(StatusCode::BAD_REQUEST, detail)
    };
    let of_header =
        headers.get(IDEMPOTENCY_KEY).map(|value| value.to_str().map_err(|_| wrong())).transpose()?;
    let key = match (of_header, payload.get("idempotencyKey")) {
        (Some(key), _) => key,
        (None, None | Some(Value::Null)) => return Ok(None),
        (None, Some(value)) => value.as_str().ok_or_else(wrong)?,
    };
    let fits = (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(Some(key.to_owned())) } else { Err(wrong()) }
}

async fn run_trigger(status: ApiState, name: String, payload: Value) -> Result<CallResponse, Problem> {
    require_leader(&status)?;
    let head = status.api.heads.borrow().clone();
    let Some(head) = head else {
        return Err(retry_later("the config repository was not read yet".to_owned()));
    };
    let Some(trigger) = head.fleet.triggers.get(&name) else {
        let detail = format!("there is no trigger {name} in triggers/, or it has errors (help: tutti lint)");
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    };
    let outcome = trigger::evaluate(trigger, &payload, &head.fleet, &head.snapshot)
        .map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
    let Some(outcome) = outcome else {
        let ignored =
            json!({"result": "ignored", "reason": "the payload does not fit `match` of the trigger"});
        return Ok(CallResponse { status: StatusCode::OK, body: ignored.to_string() });
    };
    let told = change_json(&outcome, &head.fleet.instance.status_prefix);
    if !outcome.is_change() || outcome.write == TriggerWrite::None {
        let result = if outcome.is_change() { "told" } else { "unchanged" };
        return Ok(call_response(StatusCode::OK, result, told, &WrittenChange::default()));
    }
    let (trigger, app, file) = (outcome.trigger.clone(), outcome.app.clone(), outcome.file.clone());
    let (reply, replied) = oneshot::channel();
    if status.api.calls.try_send(TriggerCall { outcome, reply }).is_err() {
        return Err(retry_later(
            "too many changes wait to be written, or this process does not write".to_owned(),
        ));
    }
    tracing::info!(trigger, %app, file, "a call changes a file");
    match replied.await {
        Ok(Ok(written)) => Ok(call_response(StatusCode::ACCEPTED, "accepted", told, &written)),
        Ok(Err(TriggerWriteError::Transient(error))) => Err(retry_later(error)),
        Ok(Err(TriggerWriteError::Permanent(error))) => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error))
        }
        Err(_) => Err(retry_later("the process ended before the change was written".to_owned())),
    }
}

fn change_json(outcome: &TriggerOutcome, prefix: &str) -> Value {
    let TriggerOutcome { trigger, app, ring, file, field, from, to, version, write, reason, .. } = outcome;
    json!({
        "trigger": trigger, "app": app, "ring": ring, "file": file, "field": field, "from": from, "to": to,
        "version": version, "write": write, "branch": outcome.branch(prefix), "reason": reason,
    })
}

fn call_response(status: StatusCode, result: &str, mut told: Value, written: &WrittenChange) -> CallResponse {
    told["result"] = result.into();
    told["link"] = written.link.clone().into();
    told["commit"] = written.commit.clone().into();
    CallResponse { status, body: told.to_string() }
}
