//! Router for `/live`, `/ready`, `/metrics` and `/api/v1`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::watch;

use super::checks::{self, Checks};
use super::problem::Problem;
use super::receivers::HooksState;
use super::v1::{self, Api};
use crate::leader::Standing;
use crate::metrics::{self, Metrics};
use crate::report::Overview;

#[derive(Clone, Debug)]
pub struct Status {
    pub overview: watch::Receiver<Arc<Overview>>,
    pub hooks: HooksState,
    pub metrics: Metrics,
    /// `None` without leader election.
    pub standing: Option<Standing>,
    pub api: Api,
}

pub fn status_router(status: Status) -> Router {
    let api = v1::router(&status);
    Router::new()
        .route("/live", get(|| async { "live\n" }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .with_state(status)
        .merge(api)
}

async fn ready(State(status): State<Status>, RawQuery(query): RawQuery) -> Response {
    let overview = status.overview.borrow().clone();
    let ready = checks::ready(&overview);
    if is_full(query.as_deref().unwrap_or_default()) {
        let code = if ready.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let post = status.metrics.last_post();
        let role = status.standing.as_ref().map(|it| (it.role.borrow().clone(), it.permit.holds()));
        let checks = Checks::of(&overview, post.as_ref(), &status.hooks.doors(), role.as_ref());
        return (code, [(CONTENT_TYPE, "application/json")], checks.to_string()).into_response();
    }
    match ready {
        Ok(()) => "ready\n".into_response(),
        Err(reason) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason).into_response(),
    }
}

/// `?full`, with or without a value.
fn is_full(query: &str) -> bool {
    query.split('&').any(|pair| pair.split('=').next() == Some("full"))
}

async fn metrics(State(status): State<Status>) -> Response {
    match status.metrics.encode() {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            let reason = format!("failed to write the metrics: {error}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, reason).into_response()
        }
    }
}
