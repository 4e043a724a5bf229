//! Runs some schedules in every test run.

use super::run_seed;
use super::schedule::WavesSchedule;
use crate::chaos::seed_runner::check_seeds;

#[test]
fn every_rollout_waits_for_what_it_must() {
    check_seeds(run_seed, "--waves");
}

#[test]
fn one_seed_is_one_rollout_schedule() {
    let drawn = |seed| format!("{:?}", WavesSchedule::of(seed));
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
}
