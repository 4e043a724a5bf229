//! `/live` and `/ready`, for whatever supervises the process.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;

use super::problem::Problem;

/// `ready` answers with the reason when the process is not; it is asked on every request and must be quick.
pub fn status_router(ready: impl Fn() -> Result<(), String> + Clone + Send + Sync + 'static) -> Router {
    let answer = move || {
        let ready = ready.clone();
        async move {
            match ready() {
                Ok(()) => Ok("ready\n"),
                Err(reason) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason)),
            }
        }
    };
    Router::new().route("/live", get(|| async { "live\n" })).route("/ready", get(answer))
}
