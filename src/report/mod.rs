//! What happened, as text: an overview of all targets, commit statuses, and the outbox that posts them.
//!
//! [`overview`] holds the facts (one [`Overview`] is everything known at one moment). [`words`] and `wave_words` turn them
//! into sentences. [`statuses`] computes which commit gets which status, and [`outbox`] posts the difference to the forge. The
//! module never decides what is deployed. `controller`, `notification`, `api` and `cli` call it.

mod awaited;
pub mod became;
#[cfg(test)]
mod fixtures;
mod merged;
pub mod notices;
pub mod outbox;
pub mod overview;
mod plan_comment;
mod plan_statuses;
mod promotion;
pub mod statuses;
pub mod version;
mod wave_words;
pub mod why;
pub mod words;

pub use awaited::{NextStep, ShutWindow, open_waves};
pub use merged::merged;
pub use overview::{
    ClusterReport, DROPPED, DeletionReport, OtherApproval, Overview, Phase, PodSetReport, RolloutReport,
    TargetReport, UnitReport, Writes,
};
pub use plan_comment::{MOST_BYTES, Names, plan_comment, plan_failure};
pub use plan_statuses::{PlanStatus, plan_statuses};
pub use promotion::{ring_states, rollout_states, unread};
