//! Some schedules in every test run. `TUTTI_CHAOS_SCHEDULES` says how many, `TUTTI_CHAOS_SEED` from which seed on.

use std::io::Write as _;

use super::many;

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
