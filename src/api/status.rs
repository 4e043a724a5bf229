//! Router for `/live`, `/ready`, `/metrics` and `/api/v1`.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::checks::{self, ReadinessReport};
use super::problem::Problem;
use super::state::ApiState;
use super::v1;
use crate::metrics;

pub fn status_router(status: ApiState) -> Router {
    let api = v1::router(&status);
    Router::new()
        .route("/live", get(|| async { "live\n" }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .with_state(status)
        .merge(api)
}

async fn ready(State(status): State<ApiState>, RawQuery(query): RawQuery) -> Response {
    let overview = status.overview.borrow().clone();
    let ready = checks::check_ready(&overview);
    if wants_full_report(query.as_deref().unwrap_or_default()) {
        let code = if ready.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let post = status.metrics.last_status_result();
        let role = status.standing.as_ref().map(|it| (it.role.borrow().clone(), it.permit.is_valid()));
        let checks =
            ReadinessReport::of(&overview, post.as_ref(), &status.hooks.receiver_states(), role.as_ref());
        return (code, [(CONTENT_TYPE, "application/json")], checks.to_string()).into_response();
    }
    match ready {
        Ok(()) => "ready\n".into_response(),
        Err(reason) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason).into_response(),
    }
}

/// `?full`, with or without a value.
fn wants_full_report(query: &str) -> bool {
    query.split('&').any(|pair| pair.split('=').next() == Some("full"))
}

async fn metrics(State(status): State<ApiState>) -> Response {
    match status.metrics.encode() {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            let reason = format!("failed to write the metrics: {error}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, reason).into_response()
        }
    }
}
