//! A decision visits each unit of its app a bounded number of times.

use super::fleet::wave;
use super::simulator::Simulator;

/// Waves of equal size; the first half of them has v3, the rest v1, v2 or v1 in turns.
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

#[test]
fn work_follows_the_number_of_units() {
    let questions = |units: usize| {
        let mut fleet = large(units, 20);
        let facts = fleet.observe();
        fleet.questions.set(0);
        let decision = fleet.decide(&facts);
        assert_eq!(decision.units.len(), units);
        fleet.questions.get()
    };
    let (small, double) = (questions(200), questions(400));
    assert!(small > 0 && double * 2 <= small * 5, "{small} questions for 200 units, {double} for 400");
}

#[test]
fn large_app_is_decided_quickly() {
    let mut fleet = large(1000, 20);
    let facts = fleet.observe();
    let began = std::time::Instant::now();
    (0..10).for_each(|_| assert_eq!(fleet.decide(&facts).units.len(), 1000));
    let each = began.elapsed() / 10;
    println!("{} us for 1000 units in 20 waves", each.as_micros());
    // A hundred times what it takes optimised, for a busy machine.
    assert!(each.as_millis() < 500, "{each:?}");
}
