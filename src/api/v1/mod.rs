//! `/api/v1`: what pipelines ask and say, for whoever shows a token.
//!
//! The operator opens it by giving it a token; without one every answer is 403. That token reads everything. A trigger has a
//! token of its own, which calls that trigger, and reads what became of commits and apps. No token is kept: only its digest.

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

/// Answers that may be held back until something happens, side by side; others are answered at once.
const MOST_WAITS: usize = 64;

/// What the API is made of; clones are the same.
#[derive(Clone, Debug)]
pub struct Api {
    access: Arc<Access>,
    heads: watch::Receiver<Option<Arc<ConfigHead>>>,
    calls: mpsc::Sender<Call>,
    answers: Arc<Mutex<Answers>>,
    waits: Arc<Semaphore>,
}

impl Api {
    /// `token`: of the operator; without it the API is closed. `heads`: the repository as it was read last. `calls`: whoever
    /// writes what triggers change.
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

    /// Replaces the tokens of triggers, by the names of the triggers, from the next call on.
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

/// Who calls is known before anything else is looked at.
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

/// One that stands by looks on, and says of nothing that it is done: whoever asks it asks another process next time.
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
