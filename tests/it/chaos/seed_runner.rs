//! Runs the schedules of many seeds, each on a runtime of its own with a paused clock.

#[cfg(test)]
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The result of a schedule.
#[derive(Default)]
pub struct SeedOutcome {
    pub violations: Vec<String>,
    pub log: Vec<String>,
    pub writes: u64,
}

/// Runs one schedule; a panic is a violation.
pub fn run_one<F: Future<Output = SeedOutcome>>(schedule: impl FnOnce() -> F) -> SeedOutcome {
    let whole = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(schedule())
    }));
    whole.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words");
        SeedOutcome { violations: vec![format!("panic: {words}")], ..SeedOutcome::default() }
    })
}

/// Runs `number` seeds from `first` on; `told` is called for each finished one. Returns how many had violations, and all writes.
pub fn run_seeds(
    first: u64,
    number: u64,
    threads: usize,
    one: &(impl Fn(u64) -> SeedOutcome + Sync),
    told: &(impl Fn(u64, &SeedOutcome) + Sync),
) -> (u64, u64) {
    let (next, violated, writes) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= number {
                return;
            }
            let outcome = one(first + place);
            told(first + place, &outcome);
            violated.fetch_add(u64::from(!outcome.violations.is_empty()), Ordering::Relaxed);
            writes.fetch_add(outcome.writes, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| (0..threads.max(1)).for_each(|_| _ = scope.spawn(work)));
    (violated.into_inner(), writes.into_inner())
}

/// Runs ten schedules in every test run. `TUTTI_CHAOS_SCHEDULES` sets the number, `TUTTI_CHAOS_SEED` the first seed. `flag` is the
/// option of the command that prints more.
#[cfg(test)]
pub fn check_seeds(one: impl Fn(u64) -> SeedOutcome + Sync, flag: &str) {
    use crate::support::env_number;
    let (schedules, seed) = (env_number("TUTTI_CHAOS_SCHEDULES", 10), env_number("TUTTI_CHAOS_SEED", 1));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (violated, writes) = run_seeds(seed, schedules, threads, &one, &|seed, outcome| {
        if !outcome.violations.is_empty() {
            let lines = [&outcome.log[..], &outcome.violations].concat().join("\n");
            _ = writeln!(std::io::stderr(), "seed {seed}:\n{lines}");
        }
    });
    assert_eq!(violated, 0, "`cargo run --example chaos -- {flag} --schedules 1 --seed S --log` tells more");
    assert!(writes > schedules * 10, "schedules without writes prove nothing: {writes}");
}
