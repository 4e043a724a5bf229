//! From what an app is rendered to and what a cluster was seen to hold: the steps between, each
//! with its reason.
//!
//! Two halves, because they look at different things. [`compute()`] answers for one app on one cluster
//! what to create, configure, leave, wait for or refuse. [`decide()`] answers for the whole
//! instance what may be deleted, because the cap on deletes holds over all of it; its answer is put
//! at the end of the plans with [`Plan::with_prunes`].
//!
//! Needs whole renders and observations, and says in a reason when an observation is not whole.
//! Never does IO, never decides when a step runs, and never derives a delete from doubt.

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
