//! State of the status and API routers: the overview, the webhooks, the metrics, the leadership.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use tokio::sync::watch;

use super::problem::Problem;
use super::receivers::HooksState;
use super::v1::ApiV1;
use crate::leader::{LeaderRole, LeadershipState};
use crate::metrics::Metrics;
use crate::report::Overview;

#[derive(Clone, Debug)]
pub struct ApiState {
    pub overview: watch::Receiver<Arc<Overview>>,
    pub hooks: HooksState,
    pub metrics: Metrics,
    /// `None` without leader election.
    pub standing: Option<LeadershipState>,
    pub api: ApiV1,
}

/// A standby does not know results: the caller's next request may reach the leader.
pub(super) fn require_leader(status: &ApiState) -> Result<(), Problem> {
    let leads = |standing: &LeadershipState| *standing.role.borrow() == LeaderRole::Leads;
    if status.standing.as_ref().is_none_or(leads) {
        return Ok(());
    }
    let detail = "this process stands by, and only the leader answers (help: try again)";
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with_header(RETRY_AFTER, "1"))
}
