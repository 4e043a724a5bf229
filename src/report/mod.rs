//! What happened, as text: an overview of all targets, commit statuses, and the outbox that posts them.
//!
//! [`overview`] holds the facts (one [`Overview`] is everything known at one moment). [`status_text`] and `rollout_text` turn them
//! into sentences. [`statuses`] computes which commit gets which status, and [`outbox`] posts the difference to the forge. The
//! module never decides what is deployed. `controller`, `notification`, `api` and `cli` call it.

#[cfg(test)]
mod fixtures;
mod merged_diagnostics;
mod next_step;
pub mod notices;
pub mod outbox;
pub mod overview;
pub mod pipeline_report;
mod plan_comment;
mod plan_statuses;
mod promotion_input;
mod rollout_text;
pub mod status_text;
pub mod statuses;
pub mod version;
pub mod why;

pub use merged_diagnostics::merge_diagnostics;
pub use next_step::{ClosedWindow, NextStep, open_waves_command};
pub use overview::{
    ClusterReport, DeletionReport, Overview, PodSetReport, RolloutReport, TargetPhase, TargetReport,
    UNREGISTERED, UnitReport, UnusedRolloutApproval, WriteCounts,
};
pub use plan_comment::{MOST_BYTES, PlanCommentContext, plan_comment, plan_failure};
pub use plan_statuses::{PlanStatus, plan_statuses};
pub use promotion_input::{ring_states, rollout_states, unobserved_reason};
