//! `POST /hooks/v1/{receiver}`: checks size, signature, rate and duplicates of a delivery, then hands its hint on and
//! answers.

use std::net::Ipv4Addr;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::body;
use super::deliveries::Record;
use super::problem::Problem;
use super::receivers::{Door, HooksState, Offered};
use super::serve::Source;
use crate::forge::{Received, receive};
use crate::metrics::Verdict;

/// Serve it on a listener of its own: the forge needs to reach it, people do not.
pub fn hooks_router(state: HooksState) -> Router {
    Router::new()
        .route("/hooks/v1/{receiver}", post(deliver).fallback(explain))
        .fallback(|| async {
            Problem::new(StatusCode::NOT_FOUND, "webhooks go to POST /hooks/v1/{receiver}")
        })
        .with_state(state)
}

/// For a person who opens the URL in a browser.
async fn explain() -> Problem {
    let detail =
        "this is the address for a webhook: the forge sends POST requests here, signed with the secret";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).with(ALLOW, "POST")
}

async fn deliver(
    State(state): State<HooksState>,
    receiver: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    // A path that is not UTF-8 names no receiver.
    let receiver = receiver.map(|Path(name)| name).unwrap_or_default();
    let mut record = Record::new(&receiver, request.headers());
    let (verdict, response) = match take(&state, &receiver, request, &mut record).await {
        Ok((verdict, response)) => (verdict, Ok(response)),
        Err(problem) => {
            record.reason = Some(problem.detail().to_owned());
            (verdict_of(problem.status()), Err(problem))
        }
    };
    state.count(&receiver, verdict);
    state.keep(record, verdict);
    response
}

async fn take(
    state: &HooksState,
    receiver: &str,
    request: Request,
    record: &mut Record,
) -> Result<(Verdict, Response), Problem> {
    let (parts, body) = request.into_parts();
    let door = open_door(state, receiver)?;
    record.kind = Some(door.kind);
    // Requests of tests have no connection.
    let source = parts.extensions.get().map_or(Ipv4Addr::UNSPECIFIED.into(), |Source(address)| *address);
    // Behind a proxy all senders share one address: small deliveries are always read, for their signature.
    let has_room = state.has_room(source);
    let mut body = body::Reader::new(body, has_room);
    let genuine = match authenticate(state, &door, &parts.headers, &mut body).await {
        Ok(genuine) => genuine,
        Err(problem) => {
            record.bytes = body.count();
            if has_room {
                body.discard().await;
                state.charge(source, body.count());
            }
            return Err(problem);
        }
    };
    record.is_genuine = true;
    record.bytes = body.count();
    record.delivery.clone_from(&genuine.delivery);
    if !door.has_room() {
        return Err(body::busy("too many deliveries at once"));
    }
    let received = receive::read(door.kind, receiver, &parts.headers, &genuine)?;
    let delivery = genuine.delivery;
    if let Some(delivery) = &delivery
        && !state.remember(receiver, delivery)
    {
        return Ok((Verdict::Duplicate, answer(StatusCode::OK, &json!({"result": "duplicate"}))));
    }
    match received {
        Received::Ignored { reason } => {
            tracing::debug!(receiver, delivery, reason, "webhook ignored");
            let ignored = json!({"result": "ignored", "reason": reason});
            record.reason = Some(reason);
            Ok((Verdict::Ignored, answer(StatusCode::OK, &ignored)))
        }
        Received::Accepted(hint) => {
            tracing::debug!(
                receiver,
                delivery,
                kind = ?hint.kind,
                reference = hint.reference,
                after = hint.after,
                pull = hint.pull,
                "webhook accepted"
            );
            record.accept(&hint);
            let refused = match state.offer(hint).await {
                Offered::Taken => {
                    let accepted = json!({"accepted": true, "delivery": delivery});
                    return Ok((Verdict::Accepted, answer(StatusCode::ACCEPTED, &accepted)));
                }
                refused => refused,
            };
            // The sender may try again: that must not count as a duplicate.
            if let Some(delivery) = &delivery {
                state.forget(receiver, delivery);
            }
            Err(refused.problem())
        }
    }
}

fn verdict_of(status: StatusCode) -> Verdict {
    match status {
        StatusCode::NOT_FOUND => Verdict::UnknownReceiver,
        StatusCode::FORBIDDEN => Verdict::Disabled,
        StatusCode::UNAUTHORIZED => Verdict::Unauthorized,
        StatusCode::PAYLOAD_TOO_LARGE => Verdict::TooLarge,
        StatusCode::REQUEST_TIMEOUT => Verdict::TimedOut,
        StatusCode::TOO_MANY_REQUESTS => Verdict::RateLimited,
        StatusCode::SERVICE_UNAVAILABLE => Verdict::Unavailable,
        _ => Verdict::Malformed,
    }
}

/// Reads and authenticates the body. Headers alone refuse most unsigned requests before the body is read.
async fn authenticate(
    state: &HooksState,
    door: &Door,
    headers: &HeaderMap,
    body: &mut body::Reader,
) -> Result<receive::Genuine, Problem> {
    receive::check_signed(door.kind, headers)?;
    body.check_declared(headers)?;
    let bytes = body.read(state.slots()).await?;
    Ok(receive::authenticate(door.kind, headers, bytes, &door.secrets, Timestamp::now())?)
}

fn no_receiver() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no receiver of this name in tutti.yaml")
}

fn open_door(state: &HooksState, receiver: &str) -> Result<std::sync::Arc<Door>, Problem> {
    let door = state.door(receiver).ok_or_else(no_receiver)?;
    if door.secrets.is_empty() {
        return Err(Problem::new(StatusCode::FORBIDDEN, "this receiver has no secret and is disabled"));
    }
    Ok(door)
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
