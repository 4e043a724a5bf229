//! `POST /hooks/v1/{receiver}`: size, rate, signature, memory, hint, answer.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};

use super::body;
use super::problem::Problem;
use super::receivers::{Door, HooksState};
use crate::forge::{Received, Rejected, gitea};

/// The doors, to be served on a listener of their own: forges reach it, people do not need to.
pub fn hooks_router(state: HooksState) -> Router {
    Router::new()
        .route("/hooks/v1/{receiver}", post(deliver).fallback(explain))
        .fallback(|| async {
            Problem::new(StatusCode::NOT_FOUND, "webhooks go to POST /hooks/v1/{receiver}")
        })
        .with_state(state)
}

/// For people who open the address in a browser.
async fn explain() -> Problem {
    let detail =
        "this is the address for a webhook: the forge sends POST requests here, signed with the secret";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).with(ALLOW, "POST")
}

async fn deliver(
    State(state): State<HooksState>,
    Path(receiver): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let door = open_door(&state, &receiver)?;
    if let Err(problem) = body::check_declared(&parts.headers) {
        body::discard(body).await;
        return Err(problem);
    }
    let body = receive_body(&state, &door, body).await?;
    let received = gitea::receive(&receiver, &parts.headers, &body, &door.secrets)
        .map_err(|rejected| refuse(&rejected))?;
    let delivery = gitea::delivery(&parts.headers);
    if let Some(delivery) = &delivery
        && !state.remember(&receiver, delivery)
    {
        return Ok(answer(StatusCode::OK, &json!({"result": "duplicate"})));
    }
    match received {
        Received::Ignored { reason } => {
            tracing::debug!(receiver, delivery, reason, "webhook ignored");
            Ok(answer(StatusCode::OK, &json!({"result": "ignored", "reason": reason})))
        }
        Received::Accepted(hint) => {
            tracing::debug!(
                receiver,
                delivery,
                reference = hint.reference,
                after = hint.after,
                "webhook accepted"
            );
            if state.offer(hint) {
                return Ok(answer(StatusCode::ACCEPTED, &json!({"accepted": true, "delivery": delivery})));
            }
            // Not taken, so a second attempt must not be called a duplicate.
            if let Some(delivery) = &delivery {
                state.forget(&receiver, delivery);
            }
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "shutting down"))
        }
    }
}

fn open_door(state: &HooksState, receiver: &str) -> Result<std::sync::Arc<Door>, Problem> {
    let door = state.door(receiver).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "there is no receiver of this name in tutti.yaml")
    })?;
    if door.secrets.is_empty() {
        return Err(Problem::new(StatusCode::FORBIDDEN, "this receiver has no secret and is disabled"));
    }
    Ok(door)
}

async fn receive_body(state: &HooksState, door: &Door, body: Body) -> Result<Vec<u8>, Problem> {
    let busy =
        || Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many deliveries at once").with(RETRY_AFTER, "1");
    if !door.has_room() {
        return Err(busy());
    }
    let _slot = state.slot().ok_or_else(busy)?;
    body::read(body).await
}

fn refuse(rejected: &Rejected) -> Problem {
    let status = match rejected {
        Rejected::Unauthorized(_) => StatusCode::UNAUTHORIZED,
        Rejected::Malformed(_) => StatusCode::BAD_REQUEST,
        Rejected::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
    };
    Problem::new(status, rejected.to_string())
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
