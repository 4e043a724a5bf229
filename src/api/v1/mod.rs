//! `/api/v1`: reads and trigger calls for pipelines, authenticated by token.
//!
//! The operator enables the API by a token; without one every answer is 403. The operator's token reads everything. A
//! trigger's token calls that trigger and reads commits and apps. Only digests of tokens are in memory.

mod access;
mod answers;
mod calls;
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
pub use calls::{Call, NotWritten, Written};

use super::deliveries::deliveries_router;
use super::problem::Problem;
use super::serve::Source;
use super::status::Status;
use crate::controller::ConfigHead;
use crate::leader::{Role, Standing};
use access::{Access, Caller};
use answers::Answers;

/// Long polls at once; others are answered immediately.
const MOST_WAITS: usize = 64;

/// Clones share it.
#[derive(Clone, Debug)]
pub struct Api {
    access: Arc<Access>,
    heads: watch::Receiver<Option<Arc<ConfigHead>>>,
    calls: mpsc::Sender<Call>,
    answers: Arc<Mutex<Answers>>,
    waits: Arc<Semaphore>,
}

impl Api {
    /// `token`: the operator's; without it the API is closed. `heads`: the config repository as last read. `calls`:
    /// changes for `pulls` to write.
    pub fn new(
        token: Option<&SecretString>,
        heads: watch::Receiver<Option<Arc<ConfigHead>>>,
        calls: mpsc::Sender<Call>,
    ) -> Self {
        Self {
            access: Arc::new(Access::new(token)),
            heads,
            calls,
            answers: Arc::default(),
            waits: Arc::new(Semaphore::new(MOST_WAITS)),
        }
    }

    pub fn set_trigger_tokens(&self, tokens: impl IntoIterator<Item = (String, SecretString)>) {
        self.access.set_triggers(tokens);
    }
}

pub(super) fn router(status: &Status) -> Router {
    let of_operator = deliveries_router(status.hooks.clone())
        .route("/api/v1/{*rest}", any(unknown))
        .layer(middleware::from_fn(operator_only));
    Router::new()
        .route("/api/v1/commits/{sha}", get(reads::commit))
        .route("/api/v1/apps/{namespace}/{name}", get(reads::app))
        .route("/api/v1/triggers/{name}", post(calls::call))
        .with_state(status.clone())
        .merge(of_operator)
        .layer(middleware::from_fn_with_state(status.api.clone(), authorized))
}

/// Authenticates before anything else.
async fn authorized(State(api): State<Api>, mut request: Request, next: Next) -> Result<Response, Problem> {
    let source = request.extensions().get().map(|Source(address)| *address);
    let caller = api.access.identify(request.headers(), source)?;
    request.extensions_mut().insert(Arc::new(caller));
    Ok(next.run(request).await)
}

async fn operator_only(
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if !caller.is_operator {
        let detail = "the token of a trigger calls that trigger and reads commits and apps; this takes the token of the API";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    Ok(next.run(request).await)
}

/// A standby does not know results: the caller's next request may reach the leader.
fn leading(status: &Status) -> Result<(), Problem> {
    let leads = |standing: &Standing| *standing.role.borrow() == Role::Leads;
    if status.standing.as_ref().is_none_or(leads) {
        return Ok(());
    }
    let detail = "this process stands by; the one that leads answers (help: try again)";
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with(RETRY_AFTER, "1"))
}

async fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing here; docs/ci.md lists what /api/v1 has")
}
