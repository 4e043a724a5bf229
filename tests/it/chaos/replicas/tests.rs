//! Some schedules in every test run.

use super::run_seed;
use crate::chaos::seed_runner::check_seeds;

#[test]
fn only_the_lease_holder_writes() {
    check_seeds(run_seed, "--replicas");
}
