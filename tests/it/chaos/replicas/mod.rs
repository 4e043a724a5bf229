//! Schedules of two processes on one repository, of which one leads: they crash, hang and stop, their clocks differ, the home
//! cluster fails, and requests are delayed. Each write must come from the holder of the Lease at its arrival.

mod network;
mod run;
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::side_by_side::{Outcome, alone};

/// The longest delay of a request: less than the time between the end of a term and the end of the Lease.
const LONGEST: Duration = Duration::from_millis(2_500);

/// Runs the schedule of a seed.
pub fn one(seed: u64) -> Outcome {
    alone(|| run::run(seed, LONGEST))
}
