//! Many schedules side by side, each on a runtime of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use super::report::Report;
use super::run::{self, Outcome};
use super::schedule::Schedule;

/// One schedule. What panics is a violation too.
pub fn one(seed: u64) -> Outcome {
    let schedule = Schedule::of(seed);
    let whole = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(run::run(&schedule))
    }));
    let mut outcome = whole.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words");
        Outcome { violations: vec![format!("panic: {words}")], log: Vec::new(), report: Report::default() }
    });
    outcome.report.schedules = 1;
    if !outcome.violations.is_empty() {
        outcome.report.violations = vec![(seed, outcome.violations.clone())];
    }
    outcome
}

/// So many schedules from a first seed on, on so many threads. `told` hears of each that is over.
pub fn many(first: u64, number: u64, threads: usize, told: &(impl Fn(u64, &Outcome) + Sync)) -> Report {
    let next = AtomicU64::new(0);
    let work = || {
        let mut report = Report::default();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= number {
                return report;
            }
            let outcome = one(first + place);
            told(first + place, &outcome);
            report.add(outcome.report);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut report = Report::default();
        for worker in workers {
            report.add(worker.join().expect("a worker"));
        }
        report.violations.sort_by_key(|(seed, _)| *seed);
        report
    })
}
