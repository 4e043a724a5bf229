//! Runs many schedules in parallel, each on a runtime of its own.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::report::ChaosReport;
use super::run::{self, ChaosOutcome};
use super::schedule::ChaosSchedule;

/// A schedule takes about one second, on a busy machine ten.
const RUN_LIMIT: Duration = Duration::from_secs(300);

/// Runs one schedule. If it never ends, the process ends, as there is no result.
fn run_or_exit(schedule: &ChaosSchedule) -> ChaosOutcome {
    run_with_limit(schedule, RUN_LIMIT).unwrap_or_else(|| {
        let (seed, seconds) = (schedule.seed, RUN_LIMIT.as_secs());
        // A test captures `eprintln!` until its end.
        let _ = writeln!(std::io::stderr(), "seed {seed}: it does not end, {seconds} s is enough");
        std::process::exit(1)
    })
}

/// Runs one schedule; a panic is a violation. `None` if the run does not end in time, because its clock stops or its end is
/// never reached.
pub fn run_with_limit(schedule: &ChaosSchedule, most: Duration) -> Option<ChaosOutcome> {
    let schedule = schedule.clone();
    with_time_limit(most, move || run_schedule(&schedule))
}

/// The work needs its own thread: a paused clock cannot end a run that hangs. The thread is abandoned on a timeout.
fn with_time_limit<T: Send + 'static>(
    most: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, ended) = mpsc::channel();
    // The receiver of an abandoned run is gone.
    thread::spawn(move || _ = done.send(work()));
    match ended.recv_timeout(most) {
        Ok(outcome) => Some(outcome),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => panic!("the work ended without a word"),
    }
}

fn run_schedule(schedule: &ChaosSchedule) -> ChaosOutcome {
    let seed = schedule.seed;
    let whole = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(run::run(schedule))
    }));
    let mut outcome = whole.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words");
        ChaosOutcome {
            violations: vec![format!("panic: {words}")],
            log: Vec::new(),
            report: ChaosReport::default(),
        }
    });
    outcome.report.schedules = 1;
    if !outcome.violations.is_empty() {
        outcome.report.violations = vec![(seed, outcome.violations.clone())];
    }
    outcome
}

/// Runs `number` schedules from the seed `first` on. `told` is called for each finished one.
pub fn run_schedules(
    first: u64,
    number: u64,
    threads: usize,
    told: &(impl Fn(u64, &ChaosOutcome) + Sync),
) -> ChaosReport {
    let next = AtomicU64::new(0);
    let work = || {
        let mut report = ChaosReport::default();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= number {
                return report;
            }
            let outcome = run_or_exit(&ChaosSchedule::of(first + place));
            told(first + place, &outcome);
            report.add(outcome.report);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut report = ChaosReport::default();
        for worker in workers {
            report.add(worker.join().expect("a worker"));
        }
        report.violations.sort_by_key(|(seed, _)| *seed);
        report
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_end_is_abandoned() {
        assert_eq!(with_time_limit(RUN_LIMIT, || 7), Some(7));
        let never = || loop {
            thread::park();
        };
        assert_eq!(with_time_limit::<()>(Duration::from_millis(10), never), None);
    }
}
