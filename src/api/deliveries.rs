//! Paths of the delivery log: the list, one delivery, and its replay.
//!
//! [`deliveries_router`] serves the list and the replay. It does not authenticate: the caller mounts it behind a
//! token check, because the list names repositories and people, and a replay starts a trigger again.

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::delivery_log::DeliveryRecord;
use super::problem::Problem;
use super::receivers::{HooksState, OfferResult};
use crate::metrics::DeliveryResult;

const DEFAULT_LIMIT: usize = 50;

/// `/api/v1/deliveries`; mount it behind authentication.
pub fn deliveries_router(state: HooksState) -> Router {
    Router::new()
        .route("/api/v1/deliveries", get(list))
        .route("/api/v1/deliveries/{number}", get(show))
        .route("/api/v1/deliveries/{number}/replay", post(replay))
        .with_state(state)
}

type DeliveryNumber = Result<Path<u64>, PathRejection>;

async fn list(State(state): State<HooksState>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let limit = query.split('&').find_map(|pair| pair.strip_prefix("limit=")?.parse().ok());
    let deliveries = state.delivery_log().newest(limit.unwrap_or(DEFAULT_LIMIT));
    json_response(StatusCode::OK, &json!({"deliveries": deliveries}))
}

async fn show(State(state): State<HooksState>, number: DeliveryNumber) -> Result<Response, Problem> {
    let record = find_record(&state, number)?;
    Ok(json_response(StatusCode::OK, &record.detail_json()))
}

/// Handles the hint again; signature and timestamp were checked at the first arrival.
async fn replay(State(state): State<HooksState>, number: DeliveryNumber) -> Result<Response, Problem> {
    let mut record = find_record(&state, number)?;
    let Some(hint) = record.hint() else {
        let detail = format!("delivery {} was not accepted: there is nothing to replay", record.number);
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    };
    match state.forward_hint(hint).await {
        OfferResult::Accepted => {}
        refused => return Err(refused.problem()),
    }
    (record.time, record.reason) = (Timestamp::now(), Some(format!("replay of {}", record.number)));
    let number = state.log_delivery(record, DeliveryResult::Accepted);
    Ok(json_response(StatusCode::ACCEPTED, &json!({"accepted": true, "number": number})))
}

fn find_record(state: &HooksState, number: DeliveryNumber) -> Result<DeliveryRecord, Problem> {
    let found = number.ok().and_then(|Path(number)| state.delivery_log().find(number).cloned());
    let unknown =
        || Problem::new(StatusCode::NOT_FOUND, "there is no such delivery, or it is no longer kept");
    found.ok_or_else(unknown)
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
