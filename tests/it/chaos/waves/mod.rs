//! Chaos with an app in waves: seeded schedules of commits, confirmations, pod failures, clusters that go and come back, other
//! hands, and ends of tutti's process. The [oracle](crate::support::oracle) on the wires holds every write to what it must wait
//! for; in the end everything is as the last commit says.

mod fleet;
mod run;
mod schedule;
#[cfg(test)]
mod tests;

pub use super::side_by_side::Outcome;
use super::side_by_side::{alone, each};
use schedule::Schedule;

/// One schedule of a seed.
pub fn one(seed: u64) -> Outcome {
    let schedule = Schedule::of(seed);
    alone(|| run::run(&schedule))
}

/// So many from a first seed on; `told` hears of each that is over. The answer: how many had violations, and writes in all.
pub fn many(first: u64, number: u64, threads: usize, told: &(impl Fn(u64, &Outcome) + Sync)) -> (u64, u64) {
    each(first, number, threads, &one, told)
}
