//! Chaos: seeded writers, faults and scenarios, observed by reflectors, in virtual time. After the faults the cluster must
//! come to rest, and no accepted write may be lost.
//!
//! `TUTTI_CHAOS_SEEDS=500` runs more seeds, `TUTTI_SEED=7` repeats one.

mod chaos_run;
mod invariants;
mod watchers;
mod writers;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// One run: its log, or the violated invariant.
fn run(seed: u64) -> Result<String, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(Box::pin(chaos_run::run(seed)))));
    result.unwrap_or_else(|_| Err("panicked".to_owned()))
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn invariants_hold_under_faults() {
    let seeds: Vec<u64> = match number("TUTTI_SEED") {
        Some(seed) => vec![seed],
        None => (1..=number("TUTTI_CHAOS_SEEDS").unwrap_or(3)).collect(),
    };
    let mut broken = Vec::new();
    for seed in seeds {
        if let Err(why) = run(seed) {
            broken.push(format!(
                "seed {seed}: {why}\n  replay: TUTTI_SEED={seed} cargo test -p sandbox --test it chaos::what"
            ));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn one_seed_gives_one_log() {
    let (first, second, other) = (run(5).unwrap(), run(5).unwrap(), run(6).unwrap());
    let differing = first.lines().zip(second.lines()).find(|(one, another)| one != another);
    assert_eq!(differing, None);
    assert_eq!(first.len(), second.len());
    assert_ne!(first, other);
}
