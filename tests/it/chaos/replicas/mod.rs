//! Schedules of two processes on one repository, of which one leads: they crash, hang and stop, their clocks differ, the home
//! cluster fails, and requests are delayed. Each write must come from the holder of the Lease at its arrival.

mod network;
mod run;
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::seed_runner::{SeedOutcome, run_one};

/// The longest delay of a request: less than the time between the end of a term and the end of the Lease.
const MAX_DELAY: Duration = Duration::from_millis(2_500);

/// Runs the schedule of a seed.
pub fn run_seed(seed: u64) -> SeedOutcome {
    run_one(|| run::run(seed, MAX_DELAY))
}
