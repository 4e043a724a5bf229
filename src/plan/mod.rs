//! Compares renders with observations and returns plans: ordered steps, each with an action and a reason.
//!
//! There are two halves with different scopes. [`compute()`] plans one app on one cluster: create, configure, wait or
//! refuse. [`decide_prunes`] decides which deletes of the whole instance may run, because the cap covers the instance;
//! [`Plan::with_prunes`] appends its result to the plans.
//!
//! The module does no IO and does not decide when a step runs. It needs whole renders. If an observation is
//! incomplete, the reason says so, and nothing is deleted.

mod action;
pub mod apply_order;
mod candidate_decision;
mod compute;
mod difference;
mod drift;
mod input;
mod policy_denial;
mod prerequisites;
pub mod prune;
mod prune_decision;
mod reason;
mod release_barriers;
mod release_phase;
mod replacement;
mod settings;
mod step;
mod step_order;
#[cfg(test)]
mod tests;
mod unit;

pub use action::PlanAction;
pub use apply_order::ApplyPhase;
pub use candidate_decision::{CandidateDecision, PruneDecision, UnusedApproval, UnusedReason};
pub use compute::{compute, objects_to_look_up};
pub use difference::ObjectDiff;
pub use drift::{Drift, SentReplicas};
pub use input::PlanInput;
pub use prerequisites::{PendingPrerequisites, is_prerequisite};
pub use prune::{PruneCandidate, candidates, rendered_digest};
pub use prune_decision::{AppReadiness, PruneAppFacts, PruneClusterFacts, PruneInput, decide_prunes};
pub use reason::{StepReason, WriteHold};
pub use replacement::replacement_objection;
pub use settings::ApplySettings;
pub use step::{IgnoredPaths, Plan, PlanStep};
pub use step_order::StepOrder;
