//! Two processes on one repository, of which one leads: they die, stand still and are stopped, their clocks differ, the home cluster
//! fails, and requests take their time. No write may arrive of one that does not hold the lease then.

mod network;
mod run;
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::side_by_side::{Outcome, alone, each};

/// One way of a request takes at most this: less than lies between the end of a term and the end of the lease.
const LONGEST: Duration = Duration::from_millis(2_500);

/// So many from a first seed on; `told` hears of each that is over. The answer: how many had violations, and writes in all.
pub fn many(first: u64, number: u64, threads: usize, told: &(impl Fn(u64, &Outcome) + Sync)) -> (u64, u64) {
    each(first, number, threads, &|seed| alone(|| run::run(seed, LONGEST)), told)
}
