//! Chaos with an app in waves: seeded schedules of commits, confirmations, pod failures, clusters that go and come back, other
//! hands, and ends of tutti's process. The [oracle](crate::support::oracle) on the wires holds every write to what it must wait
//! for; in the end everything is as the last commit says.

mod fleet;
mod run;
mod schedule;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use parking_lot::Mutex;

pub use run::Outcome;
use schedule::Schedule;

/// One schedule of a seed, on a runtime of its own. What panics is a violation too.
pub fn one(seed: u64) -> Outcome {
    let schedule = Schedule::of(seed);
    let whole = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(run::run(&schedule))
    }));
    whole.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words");
        Outcome { violations: vec![format!("panic: {words}")], ..Outcome::default() }
    })
}

/// So many from a first seed on; `told` hears of each that is over. The answer: how many had violations, and writes in all.
pub fn many(first: u64, number: u64, threads: usize, told: &(impl Fn(u64, &Outcome) + Sync)) -> (u64, u64) {
    let (next, violated, writes) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(0));
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= number {
                return;
            }
            let outcome = one(first + place);
            told(first + place, &outcome);
            violated.fetch_add(u64::from(!outcome.violations.is_empty()), Ordering::Relaxed);
            *writes.lock() += outcome.writes;
        }
    };
    thread::scope(|scope| (0..threads.max(1)).for_each(|_| _ = scope.spawn(work)));
    (violated.into_inner(), writes.into_inner())
}
