//! A decision visits each unit of its app a bounded number of times.

use super::VISITS;
use super::fleet::wave;
use super::simulator::{Health, Simulator};

/// Waves of equal size; the first half has v3, the others v1, v2 or v1 in turn.
fn large(units: usize, waves: usize) -> Simulator {
    let names = (0..waves).map(|number| wave(&format!("w{number:02}"), number % 4 == 3)).collect();
    let mut fleet = Simulator::new(names);
    for number in 0..units {
        fleet.add(&format!("c{number:05}"), number * waves / units);
    }
    let mut fleet = fleet.installed();
    fleet.push(&[("*", "v2")]);
    (0..4).for_each(|_| _ = fleet.step());
    fleet.push(&[("*", "v3")]);
    (0..6).for_each(|_| _ = fleet.step());
    fleet
}

/// Visits of units in one decision, and lookups of commits.
fn cost(units: usize, failing: bool) -> usize {
    let mut fleet = large(units, 20);
    if failing {
        for wave in &mut fleet.waves {
            wave.limits.max_failures = u32::MAX;
        }
        fleet.units.values_mut().filter(|unit| unit.wave > 0).for_each(|unit| unit.health = Health::Failed);
    }
    let facts = fleet.observe();
    fleet.questions.set(0);
    let before = VISITS.get();
    let decision = fleet.decide(&facts);
    assert_eq!(decision.units.len(), units);
    VISITS.get() - before + fleet.questions.get()
}

#[test]
fn cost_is_linear_in_units() {
    for failing in [false, true] {
        let (small, double) = (cost(400, failing), cost(800, failing));
        assert!(small >= 400 && double * 2 <= small * 5, "{small} for 400 units, {double} for 800");
        assert!(double < 800 * 8, "{double} for 800 units in 20 waves");
    }
}
