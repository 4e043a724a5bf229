//! Some schedules in every test run.

use super::one;
use crate::chaos::side_by_side::check;

#[test]
fn only_whoever_holds_the_lease_writes() {
    check(one, "--replicas");
}
