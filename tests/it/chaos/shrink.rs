//! Shortens a schedule with a violation as long as the same violation remains.

use std::time::Duration;

use super::run::ChaosOutcome;
use super::schedule::{ChaosSchedule, ChaosStep};
use super::schedule_runner::run_with_limit;

/// The most runs of one search; each takes about a second.
const MAX_RUNS: usize = 150;
/// A longer run does not show the same violation.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// The search ends after this many abandoned runs, which continue in the background.
const MAX_TIMEOUTS: usize = 3;

type TimedSteps = Vec<(Duration, ChaosStep)>;

/// Reports a violation: first the violation and the command that repeats it; after a search, which may take minutes, the
/// shortest schedule.
pub fn report_violation(seed: u64, outcome: &ChaosOutcome, say: &dyn Fn(&str)) {
    report_violation_with(seed, outcome, say, &mut |shorter| run_with_limit(shorter, RUN_LIMIT));
}

fn report_violation_with(seed: u64, outcome: &ChaosOutcome, say: &dyn Fn(&str), run: RunSchedule<'_>) {
    let mut lines: Vec<String> =
        outcome.violations.iter().map(|words| format!("seed {seed}: {words}")).collect();
    lines.push(format!("again: cargo run --release --example chaos -- --schedules 1 --seed {seed} --log"));
    say(&lines.join("\n"));

    let schedule = ChaosSchedule::of(seed);
    let mut lines = Vec::new();
    let log = match shrink(&schedule, outcome, run) {
        Some((short, again)) => {
            lines.push(format!(
                "schedule {seed}, {} of its {} steps, which it takes:",
                short.steps.len(),
                schedule.steps.len()
            ));
            lines.extend(short.steps.iter().map(|(gap, step)| format!("{gap:>12?} {step}")));
            again.log
        }
        None => {
            lines.push(format!("schedule {seed}, whole, as it did not come to this once more"));
            outcome.log.clone()
        }
    };
    lines.extend(log);
    say(&lines.join("\n"));
}

/// Runs a schedule; `None` if it does not end.
type RunSchedule<'a> = &'a mut dyn FnMut(&ChaosSchedule) -> Option<ChaosOutcome>;

/// The shortest schedule and its outcome; `None` if the violation does not repeat.
fn shrink(
    schedule: &ChaosSchedule,
    outcome: &ChaosOutcome,
    run: RunSchedule<'_>,
) -> Option<(ChaosSchedule, ChaosOutcome)> {
    let violation = normalize_violation(outcome.violations.first()?);
    let (mut last, mut endless) = (None, 0);
    let mut fails = |steps: &TimedSteps| {
        if endless == MAX_TIMEOUTS {
            return false;
        }
        let shorter = ChaosSchedule { steps: steps.clone(), ..schedule.clone() };
        let Some(outcome) = run(&shorter) else {
            endless += 1;
            return false;
        };
        let is_same = outcome.violations.first().is_some_and(|words| normalize_violation(words) == violation);
        if is_same {
            last = Some((shorter, outcome));
        }
        is_same
    };
    if fails(&schedule.steps) {
        minimize_steps(schedule.steps.clone(), MAX_RUNS, &mut fails);
    }
    last
}

/// Removes steps, many at once at first, while the run still fails.
fn minimize_steps(
    mut steps: TimedSteps,
    mut runs: usize,
    fails: &mut impl FnMut(&TimedSteps) -> bool,
) -> TimedSteps {
    let mut size = steps.len().div_ceil(2);
    while size > 0 && runs > 0 {
        let before = steps.len();
        let mut from = 0;
        while from < steps.len() && runs > 0 {
            let fewer = remove_steps(&steps, from, size);
            runs -= 1;
            if fails(&fewer) {
                steps = fewer;
            } else {
                from += size;
            }
        }
        // A step may have been needed only for one that is now removed.
        size = match size {
            1 if steps.len() < before => 1,
            size => size / 2,
        };
    }
    steps
}

/// Later steps keep their time.
fn remove_steps(steps: &TimedSteps, from: usize, size: usize) -> TimedSteps {
    let mut waited = Duration::ZERO;
    let mut fewer = TimedSteps::new();
    for (place, (gap, step)) in steps.iter().enumerate() {
        waited += *gap;
        if !(from..from + size).contains(&place) {
            fewer.push((waited, step.clone()));
            waited = Duration::ZERO;
        }
    }
    fewer
}

/// Removes numbers, times and names of commits and clusters, which differ between runs.
fn normalize_violation(violation: &str) -> String {
    let words = violation.lines().next().unwrap_or_default();
    let is_plain = |word: &&str| !word.chars().any(|it| it.is_ascii_digit());
    words.split_whitespace().filter(is_plain).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::super::report::ChaosReport;
    use super::*;

    fn steps(number: usize) -> TimedSteps {
        (0..number).map(|writes| (Duration::from_secs(1), ChaosStep::Crash { writes })).collect()
    }

    /// The remaining steps of a run that fails if all of `needed` are present.
    fn minimized(number: usize, needed: &[usize]) -> (Vec<usize>, usize, Duration) {
        let numbers = |steps: &TimedSteps| -> Vec<usize> {
            steps
                .iter()
                .map(|(_, step)| if let ChaosStep::Crash { writes } = step { *writes } else { 0 })
                .collect()
        };
        let mut runs = 0;
        let found = minimize_steps(steps(number), 150, &mut |steps| {
            runs += 1;
            needed.iter().all(|it| numbers(steps).contains(it))
        });
        (numbers(&found), runs, found.iter().map(|(gap, _)| *gap).sum())
    }

    #[test]
    fn only_the_needed_steps_remain() {
        let (found, runs, time) = minimized(60, &[7, 41]);
        assert_eq!(found, [7, 41]);
        assert!(runs < 60, "{runs}");
        assert_eq!(time, Duration::from_secs(42), "the last of them comes when it came before");
        assert_eq!(minimized(10, &[]).0, Vec::<usize>::new());
        assert_eq!(minimized(3, &[0, 1, 2]).0, [0, 1, 2]);
        assert!(minimized(1_000, &(0..1_000).step_by(2).collect::<Vec<_>>()).1 <= 150);
    }

    fn outcome(violation: &str) -> ChaosOutcome {
        let violations = vec![violation.to_owned()];
        ChaosOutcome { violations, log: Vec::new(), report: ChaosReport::default() }
    }

    #[test]
    fn the_violation_is_reported_before_the_search() {
        let (said, before) = (RefCell::new(Vec::new()), Cell::new(None));
        let say = |text: &str| said.borrow_mut().push(text.to_owned());
        report_violation_with(7, &outcome("it is gone"), &say, &mut |_| {
            before.set(before.take().or_else(|| Some(said.borrow().clone())));
            None
        });
        let first =
            "seed 7: it is gone\nagain: cargo run --release --example chaos -- --schedules 1 --seed 7 --log";
        assert_eq!(before.take().unwrap_or_default(), [first]);
        assert_eq!(said.borrow()[1..], ["schedule 7, whole, as it did not come to this once more"]);
    }

    #[test]
    fn three_endless_runs_end_the_search() {
        let schedule = ChaosSchedule { steps: steps(60), ..ChaosSchedule::of(7) };
        let searched = |endless_below: usize| {
            let mut runs = 0;
            let found = shrink(&schedule, &outcome("it is gone"), &mut |shorter| {
                runs += 1;
                (shorter.steps.len() >= endless_below).then(|| outcome("it is gone"))
            });
            (found.map(|(shorter, _)| shorter.steps.len()), runs)
        };
        assert_eq!(searched(0).0, Some(0));
        // 60 and 30 steps show the violation; no step, and twice 15, do not end.
        assert_eq!(searched(20), (Some(30), 5));
        assert_eq!(searched(61), (None, 1));
    }

    #[test]
    fn a_violation_is_the_same_with_other_numbers() {
        let one = normalize_violation("c1: ConfigMap/o1 is there and nobody wants it (at 12.345)");
        assert_eq!(one, normalize_violation("c2: ConfigMap/o3 is there and nobody wants it (at 99.000)"));
        assert_ne!(one, normalize_violation("c1: ConfigMap/o1 is not there (at 12.345)"));
    }
}
