//! `/api/v1`: reads and trigger calls for pipelines, authenticated by token.
//!
//! The operator enables the API by a token; without one every answer is 403. The operator's token reads everything. A
//! trigger's token calls that trigger and reads commits and apps. Only digests of tokens are in memory.

mod access;
mod calls;
mod idempotency;
mod reads;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::sync::{Semaphore, mpsc, watch};

pub use access::SHORTEST_TOKEN;
pub use calls::{TriggerCall, TriggerWriteError, WrittenChange};

use super::deliveries::deliveries_router;
use super::problem::Problem;
use super::serve::ClientAddress;
use super::status::ApiState;
use crate::controller::ConfigHead;
use crate::leader::{LeaderRole, LeadershipState};
use access::{ApiCaller, ApiTokens};
use idempotency::IdempotencyCache;

/// Long polls at once; others are answered immediately.
const MAX_LONG_POLLS: usize = 64;

/// Clones share it.
#[derive(Clone, Debug)]
pub struct ApiV1 {
    access: Arc<ApiTokens>,
    heads: watch::Receiver<Option<Arc<ConfigHead>>>,
    calls: mpsc::Sender<TriggerCall>,
    idempotency: Arc<Mutex<IdempotencyCache>>,
    long_polls: Arc<Semaphore>,
}

impl ApiV1 {
    /// `token`: the operator's; without it the API is closed. `heads`: the config repository as last read. `calls`:
    /// changes for `pulls` to write.
    pub fn new(
        token: Option<&SecretString>,
        heads: watch::Receiver<Option<Arc<ConfigHead>>>,
        calls: mpsc::Sender<TriggerCall>,
    ) -> Self {
        Self {
            access: Arc::new(ApiTokens::new(token)),
            heads,
            calls,
            idempotency: Arc::default(),
            long_polls: Arc::new(Semaphore::new(MAX_LONG_POLLS)),
        }
    }

    pub fn set_trigger_tokens(&self, tokens: impl IntoIterator<Item = (String, SecretString)>) {
        self.access.set_triggers(tokens);
    }
}

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

/// A standby does not know results: the caller's next request may reach the leader.
fn require_leader(status: &ApiState) -> Result<(), Problem> {
    let leads = |standing: &LeadershipState| *standing.role.borrow() == LeaderRole::Leads;
    if status.standing.as_ref().is_none_or(leads) {
        return Ok(());
    }
    let detail = "this process stands by, and only the leader answers (help: try again)";
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with_header(RETRY_AFTER, "1"))
}

async fn unknown_route() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no such path; docs/ci.md lists the paths of /api/v1")
}
