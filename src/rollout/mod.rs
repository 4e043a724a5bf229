//! Decides the render of each unit of an app: the head's, or its baseline.
//!
//! A change reaches the units of an app wave after wave. A unit whose wave is shut keeps its *baseline*, the content that it runs
//! now. The choice is between render and plan: plan, repair, health and deletes use the chosen render and do not depend on waves.
//! The state of a rollout is in Git and in the objects with their annotations; timers restart with the process.
//!
//! While a window that selects a unit is shut, or approvals are missing, the unit starts no other content. A change in progress
//! continues, and a revert is always possible.
//!
//! Measurements may run after a wave that is done. The decision lists them and uses their results.
//!
//! [`decide()`] handles one app on all its clusters. Its input is the state of each unit ([`UnitFacts`]) and of the commits that
//! units run ([`CommitFacts`]). It visits the units of this app only. It does no IO and reads no clock.

mod analysis;
mod approvals;
mod baseline;
mod cluster_selection;
mod commit_lookup;
mod decide;
mod decision;
mod gates;
mod hold;
mod input;
mod measurement;
mod pin;
mod refusal;
mod report;
mod survey;
#[cfg(test)]
mod tests;
mod unit_facts;
mod unit_id;
mod wave;
mod windows;

pub use cluster_selection::{AppApprovalRules, AppWindows};
pub use decide::decide;
pub use decision::{RenderChoice, RolloutDecision, UnitDecision};
pub use hold::{Confirmation, RolloutHold};
pub use input::{
    ApprovalEffect, CommitFacts, CommitState, GivenApproval, RolloutInput, RolloutPolicy, VersionRefusal,
};
pub use measurement::{
    AllMeasurementOutcomes, GateProgress, Measurement, MeasurementGate, MeasurementOutcome,
    MeasurementOutcomes, MeasurementResult,
};
pub use unit_facts::{CurrentUnitContent, UnitCondition, UnitFacts, UnitParticipation, UnitTimers};
pub use unit_id::UnitId;
pub use wave::{WaveReport, WaveState};
