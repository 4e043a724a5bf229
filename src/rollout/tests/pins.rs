//! Rings that get a version by their pin.

use super::fleet::rings;

#[test]
fn version_that_no_earlier_ring_ran_waits_for_word() {
    let mut fleet = rings();
    fleet.waves[0].limits.confirm = false;
    fleet.pin(&["c1", "c2", "c3"], "v1").settle();
    fleet.pin(&["c2", "c3"], "v2").has("c1=v1 c2=v1 c3=v1");
    fleet.waits("c2", "ring test has not finished v2, waits for it or for confirmation of ");
    let asked = fleet.decision().confirmation.clone().expect("a confirmation");
    assert_eq!(asked.digest, fleet.facts_at(fleet.head()).waves[1], "of that ring alone");
    fleet.approve_digest(asked.digest, Some(1)).has("c1=v1 c2=v2 c3=v2");
}

#[test]
fn version_of_no_ring_waits_behind_moved_rings_too() {
    let mut fleet = rings();
    fleet.waves[0].limits.confirm = false;
    fleet.pin(&["c1", "c2", "c3"], "v1").settle();
    fleet.pin(&["c1"], "v9").settle();
    fleet.pin(&["c2", "c3"], "v2").has("c1=v9 c2=v1 c3=v1");
    // Nor does a rebuilt cluster get it, or a unit that nobody remembers.
    fleet.rebuild("c2").kill();
    fleet.has("c1=v9 c2=v1 c3=v1");
    fleet.pin(&["c2", "c3"], "v9").has("c1=v9 c2=v9 c3=v9");
}

#[test]
fn pin_of_ring_asks_for_its_version_alone() {
    let mut fleet = rings();
    fleet.waves[0].limits.confirm = false;
    fleet.pin(&["c1", "c2", "c3"], "v1").settle();
    fleet.pin(&["c1"], "v2").has("c1=v2 c2=v1 c3=v1");
    // Test goes on to v3 and fails; it had finished v2.
    fleet.crashing("v3").pin(&["c1"], "v3").settle();
    fleet.pin(&["c2", "c3"], "v2").has("c1=v3 c2=v2 c3=v2");
}

#[test]
fn pin_waits_while_ring_before_takes_it() {
    let mut fleet = rings();
    fleet.pin(&["c1", "c2", "c3"], "v1").settle();
    fleet.slow("v2").pin(&["c1"], "v2").settle();
    fleet.pin(&["c2", "c3"], "v2").has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "waits for wave test, 0/1 done, c1: ");
    fleet.bad.clear();
    // The ring asks for confirmation, whatever way the change came.
    fleet.has("c1=v2 c2=v1 c3=v1").waits("c2", "wave test is done, wave prod waits for confirmation of ");
    let asked = fleet.decision().confirmation.clone().expect("a confirmation");
    fleet.approve_digest(asked.digest, Some(1)).has("c1=v2 c2=v2 c3=v2");
}
