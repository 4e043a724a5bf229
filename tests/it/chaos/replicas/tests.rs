//! Some schedules in every test run. `TUTTI_CHAOS_SCHEDULES` says how many, `TUTTI_CHAOS_SEED` from which seed on.

use std::io::Write as _;
use std::time::Duration;

use super::{many, one};

#[test]
fn only_whoever_holds_the_lease_writes() {
    let number =
        |name: &str, other: u64| std::env::var(name).map_or(other, |text| text.parse().expect("a number"));
    let (schedules, seed) = (number("TUTTI_CHAOS_SCHEDULES", 10), number("TUTTI_CHAOS_SEED", 1));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (violated, writes) = many(seed, schedules, threads, &|seed, outcome| {
        if !outcome.violations.is_empty() {
            let lines = [&outcome.log[..], &outcome.violations].concat().join("\n");
            _ = writeln!(std::io::stderr(), "seed {seed}:\n{lines}");
        }
    });
    assert_eq!(
        violated, 0,
        "`cargo run --example chaos -- --replicas --schedules 1 --seed S --log` tells more"
    );
    assert!(writes > schedules * 10, "schedules without writes prove nothing: {writes}");
}

/// A write that takes longer on its way than the lease allows for arrives when another one leads: that it is seen shows that the others
/// would be.
#[test]
fn write_that_is_too_long_on_its_way_is_seen() {
    let violated = (1..40).filter(|seed| !one(*seed, Duration::from_secs(20)).violations.is_empty());
    assert!(violated.take(1).count() == 1);
}
