//! `/api/v1`: reads and trigger calls for pipelines, authenticated by token.
//!
//! The operator enables the API by a token; without one every answer is 403. The operator's token reads everything. A
//! trigger's token calls that trigger and reads commits and apps. Only digests of tokens are in memory.

mod access;
mod calls;
mod idempotency;
mod reads;
mod state;
#[cfg(test)]
mod tests;
mod trigger_call;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::{Extension, Router};

pub use access::SHORTEST_TOKEN;
pub use state::ApiV1;
pub use trigger_call::{TriggerCall, TriggerWriteError, WrittenChange};

use super::deliveries::deliveries_router;
use super::problem::Problem;
use super::serve::ClientAddress;
use super::state::ApiState;
use access::ApiCaller;

pub(super) fn router(status: &ApiState) -> Router {
    let of_operator = deliveries_router(status.hooks.clone())
        .route("/api/v1/{*rest}", any(unknown_route))
        .layer(middleware::from_fn(require_operator));
    Router::new()
        .route("/api/v1/commits/{sha}", get(reads::commit))
        .route("/api/v1/apps/{namespace}/{name}", get(reads::app))
        .route("/api/v1/triggers/{name}", post(calls::call_trigger))
        .with_state(status.clone())
        .merge(of_operator)
        .layer(middleware::from_fn_with_state(status.api.clone(), authorize))
}

/// Authenticates before anything else.
async fn authorize(State(api): State<ApiV1>, mut request: Request, next: Next) -> Result<Response, Problem> {
    let source = request.extensions().get().map(|ClientAddress(address)| *address);
    let caller = api.access.identify(request.headers(), source)?;
    request.extensions_mut().insert(Arc::new(caller));
    Ok(next.run(request).await)
}

async fn require_operator(
    Extension(caller): Extension<Arc<ApiCaller>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if !caller.is_operator {
        let detail = "this path needs the token of the API: the token of a trigger only calls that trigger \
                      and reads commits and apps";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    Ok(next.run(request).await)
}

async fn unknown_route() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no such path; docs/ci.md lists the paths of /api/v1")
}
