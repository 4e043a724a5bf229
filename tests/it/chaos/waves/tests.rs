//! Runs some schedules in every test run.

use super::one;
use super::schedule::Schedule;
use crate::chaos::side_by_side::check;

#[test]
fn every_rollout_waits_for_what_it_must() {
    check(one, "--waves");
}

#[test]
fn one_seed_is_one_rollout_schedule() {
    let drawn = |seed| format!("{:?}", Schedule::of(seed));
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
}
