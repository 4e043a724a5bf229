//! Chaos tests: seeded schedules of commits, edits by others, cluster faults and process ends, under a paused clock.
//!
//! [`schedule`] draws everything from a seed, and [`run`] executes it on embedded clusters and a Git repository.
//! The generator keeps the desired state itself ([`desired`]). [`write_monitor`] checks each write with [`write_rules`]; [`live_state`] and
//! [`steady_state`] check clusters and reported phases; [`write_limits`] limits the number of writes, [`retry_limits`] the retries.

mod change;
mod desired;
mod direct_client;
mod edit;
mod live_state;
mod object;
pub mod random;
pub mod replicas;
mod report;
mod retry_limits;
mod run;
mod schedule;
mod schedule_runner;
mod seed_runner;
mod shrink;
mod steady_state;
#[cfg(test)]
mod tests;
mod trouble;
pub mod waves;
mod write_limits;
mod write_monitor;
mod write_rules;

#[cfg_attr(test, allow(unused_imports, reason = "for the example of the same name"))]
pub use {
    schedule_runner::run_schedules,
    seed_runner::{SeedOutcome, run_seeds},
    shrink::report_violation,
};
