//! Chaos tests of one app in waves: seeded schedules of commits, confirmations, pod failures, clusters that go offline, edits by
//! others, and process ends. The [oracle](crate::support::oracle) checks each write. At the end everything agrees with the
//! last commit.

mod fleet;
mod run;
mod schedule;
#[cfg(test)]
mod tests;

pub use super::side_by_side::Outcome;
use super::side_by_side::alone;
use schedule::Schedule;

/// Runs the schedule of a seed.
pub fn one(seed: u64) -> Outcome {
    let schedule = Schedule::of(seed);
    alone(|| run::run(&schedule))
}
