//! Chaos with an app in waves: seeded schedules of commits, confirmations, pod failures, clusters that go and come back, other
//! hands, and ends of tutti's process. The [oracle](crate::support::oracle) on the wires holds every write to what it must wait
//! for; in the end everything is as the last commit says.

mod fleet;
mod run;
mod schedule;
#[cfg(test)]
mod tests;

pub use super::side_by_side::Outcome;
use super::side_by_side::alone;
use schedule::Schedule;

/// One schedule of a seed.
pub fn one(seed: u64) -> Outcome {
    let schedule = Schedule::of(seed);
    alone(|| run::run(&schedule))
}
