//! Chaos tests of one app in waves: seeded schedules of commits, confirmations, pod failures, clusters that go offline, edits by
//! others, and process ends. The [oracle](crate::support::oracle) checks each write. At the end everything agrees with the
//! last commit.

mod repository;
mod run;
mod schedule;
#[cfg(test)]
mod tests;

pub use super::seed_runner::SeedOutcome;
use super::seed_runner::run_one;
use schedule::WavesSchedule;

/// Runs the schedule of a seed.
pub fn run_seed(seed: u64) -> SeedOutcome {
    let schedule = WavesSchedule::of(seed);
    run_one(|| run::run(&schedule))
}
