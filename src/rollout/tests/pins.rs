//! Rings that get a version by their pin.

use super::fleet::rings;
use super::simulator::Simulator;
use crate::model::{Digest, OnFailure};
use crate::rollout::{ApprovalEffect, RolloutHold};

#[test]
fn version_without_earlier_ring_waits_for_approval() {
    let mut fleet = rings();
    fleet.waves[0].limits.confirm = false;
    fleet.pin(&["c1", "c2", "c3"], "v1").settle();
    fleet.pin(&["c2", "c3"], "v2").has("c1=v1 c2=v1 c3=v1");
    fleet.waits("c2", "ring test has not finished v2, waits for it or for confirmation of ");
    let asked = fleet.decision().confirmation.clone().expect("a confirmation");
    assert_eq!(asked.digest, fleet.facts_at(fleet.head()).waves[1], "of that ring alone");
    fleet.approve_digest(asked.digest, ApprovalEffect::Through(1)).has("c1=v1 c2=v2 c3=v2");
}

#[test]
fn unknown_version_waits_behind_moved_rings_too() {
    let mut fleet = rings();
    fleet.waves[0].limits.confirm = false;
    fleet.pin(&["c1", "c2", "c3"], "v1").settle();
    fleet.pin(&["c1"], "v9").settle();
    fleet.pin(&["c2", "c3"], "v2").has("c1=v9 c2=v1 c3=v1");
    // A rebuilt cluster or an unknown unit does not get it either.
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
    // Test gets v3, which fails; it had finished v2.
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
    // The ring needs a confirmation, however the change came.
    fleet.has("c1=v2 c2=v1 c3=v1").waits("c2", "wave test is done, wave prod waits for confirmation of ");
    let asked = fleet.decision().confirmation.clone().expect("a confirmation");
    fleet.approve_digest(asked.digest, ApprovalEffect::Through(1)).has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn pinned_version_that_fails_reverts_its_ring_only() {
    let mut fleet = rings();
    fleet.waves[0].limits.confirm = false;
    fleet.policy.on_failure = OnFailure::Revert;
    fleet.pin(&["c1", "c2", "c3"], "v1").settle();
    fleet.pin(&["c1"], "v2").has("c1=v2 c2=v1 c3=v1");
    fleet.crashing("v2").pin(&["c2", "c3"], "v2").has("c1=v2 c2=v1 c3=v1");
    let digest = refused(&fleet, "c3");
    assert_eq!((fleet.hold("c1"), digest), (None, fleet.facts_at(fleet.head()).waves[1]));
    // It does not restart with a newer version in the ring before, or in another process.
    fleet.pin(&["c1"], "v3").has("c1=v3 c2=v1 c3=v1").kill();
    fleet.has("c1=v3 c2=v1 c3=v1");
    assert_eq!(refused(&fleet, "c3"), digest);
    fleet.bad.clear();
    fleet.approve_digest(digest, ApprovalEffect::Retry).has("c1=v3 c2=v2 c3=v2");
    fleet.pin(&["c2", "c3"], "v1").has("c1=v3 c2=v1 c3=v1");
    assert_eq!(fleet.hold("c2"), None);
}

/// The version that was refused for a unit.
fn refused(fleet: &Simulator, unit: &str) -> Digest {
    match fleet.hold(unit).map(RolloutHold::gate) {
        Some(RolloutHold::Reverted { digest }) => *digest,
        hold => panic!("{unit}: {hold:?}"),
    }
}

#[test]
fn each_ring_reverts_its_own_version() {
    let (test, prod): (&[&str], &[&str]) = (&["c1"], &["c2", "c3"]);
    for order in [[(prod, "v2"), (test, "v3")], [(test, "v3"), (prod, "v2")]] {
        let mut fleet = rings();
        fleet.waves[0].limits.confirm = false;
        fleet.policy.on_failure = OnFailure::Revert;
        fleet.pin(&["c1", "c2", "c3"], "v1").settle();
        fleet.pin(test, "v2").has("c1=v2 c2=v1 c3=v1");
        for (clusters, version) in order {
            fleet.bad.clear();
            fleet.crashing(version).pin(clusters, version).has("c1=v2 c2=v1 c3=v1");
        }
        let digests = fleet.facts_at(fleet.head()).waves.clone();
        let of_both = |fleet: &Simulator| [refused(fleet, "c1"), refused(fleet, "c2")];
        assert_eq!(of_both(&fleet), digests[..2]);
        fleet.bad.clear();
        fleet.kill();
        fleet.has("c1=v2 c2=v1 c3=v1");
        assert_eq!(of_both(&fleet), digests[..2]);
        // A person allows one of them to be tried again.
        fleet.approve_digest(digests[0], ApprovalEffect::Retry).has("c1=v3 c2=v1 c3=v1");
        assert_eq!((fleet.hold("c1"), refused(&fleet, "c2")), (None, digests[1]));
        fleet.approve_digest(digests[1], ApprovalEffect::Retry).has("c1=v3 c2=v2 c3=v2");
    }
}

#[test]
fn version_without_pin_stays_refused_without_previous_commit() {
    // If all units have one content, the digest of the app is that of each ring too.
    for [of_test, of_prod] in [["v2", "v2-prod"], ["v2", "v2"]] {
        let mut fleet = rings();
        fleet.waves[0].limits.confirm = false;
        fleet.policy.on_failure = OnFailure::Revert;
        fleet.pin(&["c1", "c2", "c3"], "v1").settle();
        let before = fleet.head();
        fleet.crashing("v2").push(&[("c1", of_test), ("c2", of_prod), ("c3", of_prod)]);
        fleet.has("c1=v1 c2=v1 c3=v1");
        assert_eq!(refused(&fleet, "c1"), fleet.digest());
        fleet.bad.clear();
        fleet.commits[before].is_lost = true;
        fleet.kill();
        fleet.has("c1=v1 c2=v1 c3=v1");
        assert_eq!(refused(&fleet, "c1"), fleet.digest());
        fleet.retry().has(&format!("c1={of_test} c2={of_prod} c3={of_prod}"));
    }
}
