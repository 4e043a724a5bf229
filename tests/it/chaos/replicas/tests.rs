//! Some schedules in every test run.

use super::one;
use crate::chaos::side_by_side::check;

#[test]
fn only_the_lease_holder_writes() {
    check(one, "--replicas");
}
