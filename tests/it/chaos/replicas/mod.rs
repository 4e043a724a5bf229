//! Two processes on one repository, of which one leads: they die, stand still and are stopped, their clocks differ, the home cluster
//! fails, and requests take their time. No write may arrive of one that does not hold the lease then.

mod network;
mod run;
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::side_by_side::{Outcome, alone};

/// One way of a request takes at most this: less than lies between the end of a term and the end of the lease.
const LONGEST: Duration = Duration::from_millis(2_500);

/// One schedule of a seed.
pub fn one(seed: u64) -> Outcome {
    alone(|| run::run(seed, LONGEST))
}
