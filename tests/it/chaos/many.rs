//! Many schedules side by side, each on a runtime of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::report::Report;
use super::run::{self, Outcome};
use super::schedule::Schedule;

/// A schedule takes about a second, ten on a machine that is busy.
const ENDLESS: Duration = Duration::from_secs(300);

/// One schedule. What panics is a violation too; one that never ends, whose clock stands still or whose end is never reached,
/// ends the whole process: no clock of its own could tell.
pub fn carry_out(schedule: &Schedule) -> Outcome {
    let seed = schedule.seed;
    let (_alive, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        if ended.recv_timeout(ENDLESS) == Err(RecvTimeoutError::Timeout) {
            eprintln!("seed {seed}: it does not end, {} s is enough", ENDLESS.as_secs());
            std::process::exit(1);
        }
    });
    let whole = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(run::run(schedule))
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
            let outcome = carry_out(&Schedule::of(first + place));
            told(first + place, &outcome);
            report.add(outcome.report);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut report = Report::default();
        for worker in workers {
            report.add(worker.join().expect("a worker"));
        }
        report.violations.sort_by_key(|(seed, _)| *seed);
        report
    })
}
