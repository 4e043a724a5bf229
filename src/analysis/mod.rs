//! Measures after waves: queries Prometheus, sends HTTP requests, reads the health of the wave, and reads commit statuses of
//! other programs.
//!
//! Runs beside the controller. The overview lists the required measurements (`RolloutReport::measures`). Outcomes go back by
//! a watch channel, and rollouts decide by them. Each measurement has one task, which ends when no rollout needs it; then its
//! outcome is dropped. Nothing is stored, so a new process measures again.
//!
//! [`evaluation`] is pure: it evaluates answers and counts them. [`probe`] sends requests within limits: no redirects, a bounded
//! size and time of answers, and few parallel requests to a host.

mod evaluation;
mod probe;
mod run;
mod statuses;
#[cfg(test)]
mod tests;

pub use run::{AnalysisInputs, AnalysisSettings, run};
