//! Which render each unit of an app shall have: that of the head, or the one that it has.
//!
//! A change reaches the units of an app wave after wave. A unit whose wave is not open keeps its *baseline*: what it runs now. The
//! choice stands between render and plan: plan, repair, health and deletes work on the chosen render and know nothing of waves.
//! Nothing is kept of a rollout but what Git, the objects and their annotations say; timers begin anew with the process.
//!
//! While a window is shut that selects a unit, or people have to agree first, the unit begins no other content; what has begun goes on, and
//! the way back is open.
//!
//! After a wave that is done something may be measured. The decision says what, and goes by what came of it.
//!
//! [`decide()`] answers for one app over all its clusters. It needs what is known of each unit ([`UnitFacts`]) and of the commits
//! that units run ([`CommitFacts`]), and visits the units of this app only. Never does IO, never reads a clock.

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
