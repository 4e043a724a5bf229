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
mod decide;
mod facts;
mod gates;
mod history;
mod hold;
mod input;
mod pin;
mod refusal;
mod report;
mod selected;
mod survey;
#[cfg(test)]
mod tests;
mod wave;
mod windows;

pub use analysis::{AllOutcomes, Gate, Measure, Measured, Outcome, Outcomes, Standing};
pub use approvals::AppRules;
pub use decide::{Choice, Confirmation, Decision, Verdict, decide};
pub use facts::{Basis, Condition, Reach, Timers, UnitFacts, UnitId};
pub use hold::Hold;
pub use input::{Allows, Approved, Commit, CommitFacts, Input, Policy, Refusal};
pub use wave::{WaveReport, WaveState};
pub use windows::AppWindows;
