//! Compares renders with observations and returns plans: ordered steps, each with an action and a reason.
//!
//! There are two halves with different scopes. [`compute()`] plans one app on one cluster: create, configure, wait or
//! refuse. [`decide()`] decides which deletes of the whole instance may run, because the cap covers the instance;
//! [`Plan::with_prunes`] appends its result to the plans.
//!
//! The module does no IO and does not decide when a step runs. It needs whole renders. If an observation is
//! incomplete, the reason says so, and nothing is deleted.

mod action;
mod compute;
mod decide;
mod denied;
mod difference;
mod drift;
mod occasion;
pub mod phase;
pub mod prune;
mod reason;
mod replacement;
mod settings;
mod shared;
mod step;
#[cfg(test)]
mod tests;
mod turns;

pub use action::Action;
pub use compute::{Input, compute, unknown_objects};
pub use decide::{AppFacts, ClusterFacts, PruneInput, Standing, decide};
pub use difference::Difference;
pub use drift::{Drift, SentReplicas};
pub use phase::Phase;
pub use prune::{Candidate, Decided, PruneDecision, Unused, UnusedApproval, candidates, rendered_digest};
pub use reason::{Hold, Reason};
pub use replacement::objection as objection_to_replacing;
pub use settings::ApplySettings;
pub use shared::{Pending, is_waited_for};
pub use step::{Left, Plan, Step};
pub use turns::Turn;
