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
use super::delivery_log::DeliveryRecord;
use super::problem::Problem;
use super::receivers::{ActiveReceiver, HooksState, OfferResult};
use super::serve::ClientAddress;
use crate::forge::{WebhookOutcome, receive};
use crate::metrics::DeliveryResult;

/// Serve it on a listener of its own: the forge needs to reach it, people do not.
pub fn hooks_router(state: HooksState) -> Router {
    Router::new()
        .route("/hooks/v1/{receiver}", post(deliver).fallback(explain_usage))
        .fallback(|| async {
            Problem::new(StatusCode::NOT_FOUND, "webhooks go to POST /hooks/v1/{receiver}")
        })
        .with_state(state)
}

/// For a person who opens the URL in a browser.
async fn explain_usage() -> Problem {
    let detail =
        "this is the address for a webhook: the forge sends POST requests here, signed with the secret";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).with_header(ALLOW, "POST")
}

async fn deliver(
    State(state): State<HooksState>,
    receiver: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    // A path that is not UTF-8 names no receiver.
    let receiver = receiver.map(|Path(name)| name).unwrap_or_default();
    let mut record = DeliveryRecord::new(&receiver, request.headers());
    let (verdict, response) = match receive_delivery(&state, &receiver, request, &mut record).await {
        Ok((verdict, response)) => (verdict, Ok(response)),
        Err(problem) => {
            record.reason = Some(problem.detail().to_owned());
            (verdict_of(problem.status()), Err(problem))
        }
    };
    state.count_delivery(&receiver, verdict);
    state.log_delivery(record, verdict);
    response
}

async fn receive_delivery(
    state: &HooksState,
    receiver: &str,
    request: Request,
    record: &mut DeliveryRecord,
) -> Result<(DeliveryResult, Response), Problem> {
    let (parts, body) = request.into_parts();
    let door = enabled_receiver(state, receiver)?;
    record.kind = Some(door.kind);
    // Requests of tests have no connection.
    let source =
        parts.extensions.get().map_or(Ipv4Addr::UNSPECIFIED.into(), |ClientAddress(address)| *address);
    // Behind a proxy all senders share one address: small deliveries are always read, for their signature.
    let has_room = state.allows_large_body(source);
    let mut body = body::BodyReader::new(body, has_room);
    let genuine = match read_authenticated(state, &door, &parts.headers, &mut body).await {
        Ok(genuine) => genuine,
        Err(problem) => {
            record.bytes = body.received_bytes();
            if has_room {
                body.discard().await;
                state.charge_unsigned_bytes(source, body.received_bytes());
            }
            return Err(problem);
        }
    };
    record.is_authenticated = true;
    record.bytes = body.received_bytes();
    record.delivery.clone_from(&genuine.delivery);
    if !door.admits_delivery() {
        return Err(body::too_many_requests("too many deliveries at once"));
    }
    let received = receive::read(door.kind, receiver, &parts.headers, &genuine)?;
    let delivery = genuine.delivery;
    if let Some(delivery) = &delivery
        && !state.mark_known(receiver, delivery)
    {
        return Ok((
            DeliveryResult::Duplicate,
            json_response(StatusCode::OK, &json!({"result": "duplicate"})),
        ));
    }
    match received {
        WebhookOutcome::Ignored { reason } => {
            tracing::debug!(receiver, delivery, reason, "webhook ignored");
            let ignored = json!({"result": "ignored", "reason": reason});
            record.reason = Some(reason);
            Ok((DeliveryResult::Ignored, json_response(StatusCode::OK, &ignored)))
        }
        WebhookOutcome::Accepted(hint) => {
            tracing::debug!(
                receiver,
                delivery,
                kind = ?hint.kind,
                reference = hint.reference,
                after = hint.after,
                pull = hint.pull,
                "webhook accepted"
            );
            record.set_hint(&hint);
            let refused = match state.forward_hint(hint).await {
                OfferResult::Accepted => {
                    let accepted = json!({"accepted": true, "delivery": delivery});
                    return Ok((DeliveryResult::Accepted, json_response(StatusCode::ACCEPTED, &accepted)));
                }
                refused => refused,
            };
            // The sender may try again: that must not count as a duplicate.
            if let Some(delivery) = &delivery {
                state.unmark_known(receiver, delivery);
            }
            Err(refused.problem())
        }
    }
}

fn verdict_of(status: StatusCode) -> DeliveryResult {
    match status {
        StatusCode::NOT_FOUND => DeliveryResult::UnknownReceiver,
        StatusCode::FORBIDDEN => DeliveryResult::Disabled,
        StatusCode::UNAUTHORIZED => DeliveryResult::Unauthorized,
        StatusCode::PAYLOAD_TOO_LARGE => DeliveryResult::TooLarge,
        StatusCode::REQUEST_TIMEOUT => DeliveryResult::TimedOut,
        StatusCode::TOO_MANY_REQUESTS => DeliveryResult::RateLimited,
        StatusCode::SERVICE_UNAVAILABLE => DeliveryResult::Unavailable,
        _ => DeliveryResult::Malformed,
    }
}

/// Reads and authenticates the body. Headers alone refuse most unsigned requests before the body is read.
async fn read_authenticated(
    state: &HooksState,
    door: &ActiveReceiver,
    headers: &HeaderMap,
    body: &mut body::BodyReader,
) -> Result<receive::VerifiedDelivery, Problem> {
    receive::check_signed(door.kind, headers)?;
    body.check_content_length(headers)?;
    let bytes = body.read(state.large_body_slots()).await?;
    Ok(receive::authenticate(door.kind, headers, bytes, &door.secrets, Timestamp::now())?)
}

fn unknown_receiver() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no receiver of this name in tutti.yaml")
}

fn enabled_receiver(state: &HooksState, receiver: &str) -> Result<std::sync::Arc<ActiveReceiver>, Problem> {
    let door = state.receiver(receiver).ok_or_else(unknown_receiver)?;
    if door.secrets.is_empty() {
        return Err(Problem::new(StatusCode::FORBIDDEN, "this receiver has no secret and is disabled"));
    }
    Ok(door)
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
