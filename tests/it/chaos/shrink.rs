//! A schedule with a violation, made shorter as long as the same violation stays: what is left is what it takes.

use std::time::Duration;

use super::many::carry_out;
use super::run::Outcome;
use super::schedule::{Schedule, Step};

/// Runs of one schedule in the search; each takes about a second.
const MOST_RUNS: usize = 150;

type Steps = Vec<(Duration, Step)>;

/// What a person needs to see of a violation.
pub fn told(seed: u64, outcome: &Outcome) -> String {
    let schedule = Schedule::of(seed);
    let mut lines = Vec::new();
    let log = match shrink(&schedule, outcome) {
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
    lines.extend(outcome.violations.iter().map(|words| format!("seed {seed}: {words}")));
    lines.push(format!("again: cargo run --release --example chaos -- --schedules 1 --seed {seed} --log"));
    lines.join("\n")
}

/// The shortest that was found, with what came of it; `None` when what was found comes up no second time.
pub fn shrink(schedule: &Schedule, outcome: &Outcome) -> Option<(Schedule, Outcome)> {
    let violation = told_alike(outcome.violations.first()?);
    let mut last = None;
    let mut fails = |steps: &Steps| {
        let shorter = Schedule { steps: steps.clone(), ..schedule.clone() };
        let outcome = carry_out(&shorter);
        let is_same = outcome.violations.first().is_some_and(|words| told_alike(words) == violation);
        if is_same {
            last = Some((shorter, outcome));
        }
        is_same
    };
    if fails(&schedule.steps) {
        fewest(schedule.steps.clone(), MOST_RUNS, &mut fails);
    }
    last
}

/// Leaves out steps, at first many at once, while it still fails.
fn fewest(mut steps: Steps, mut runs: usize, fails: &mut impl FnMut(&Steps) -> bool) -> Steps {
    let mut size = steps.len().div_ceil(2);
    while size > 0 && runs > 0 {
        let before = steps.len();
        let mut from = 0;
        while from < steps.len() && runs > 0 {
            let fewer = without(&steps, from, size);
            runs -= 1;
            if fails(&fewer) {
                steps = fewer;
            } else {
                from += size;
            }
        }
        // One that was needed for another that is gone by now goes too.
        size = match size {
            1 if steps.len() < before => 1,
            size => size / 2,
        };
    }
    steps
}

/// What comes later stays when it was.
fn without(steps: &Steps, from: usize, size: usize) -> Steps {
    let mut waited = Duration::ZERO;
    let mut fewer = Steps::new();
    for (place, (gap, step)) in steps.iter().enumerate() {
        waited += *gap;
        if !(from..from + size).contains(&place) {
            fewer.push((waited, step.clone()));
            waited = Duration::ZERO;
        }
    }
    fewer
}

/// Without numbers, times and names of commits and clusters, which are others in another run.
fn told_alike(violation: &str) -> String {
    let words = violation.lines().next().unwrap_or_default();
    let is_plain = |word: &&str| !word.chars().any(|it| it.is_ascii_digit());
    words.split_whitespace().filter(is_plain).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(number: usize) -> Steps {
        (0..number).map(|writes| (Duration::from_secs(1), Step::Crash { writes })).collect()
    }

    /// Which of that many steps are left when it fails as soon as all of `needed` are there.
    fn left(number: usize, needed: &[usize]) -> (Vec<usize>, usize, Duration) {
        let numbers = |steps: &Steps| -> Vec<usize> {
            steps
                .iter()
                .map(|(_, step)| if let Step::Crash { writes } = step { *writes } else { 0 })
                .collect()
        };
        let mut runs = 0;
        let found = fewest(steps(number), 150, &mut |steps| {
            runs += 1;
            needed.iter().all(|it| numbers(steps).contains(it))
        });
        (numbers(&found), runs, found.iter().map(|(gap, _)| *gap).sum())
    }

    #[test]
    fn only_the_steps_that_it_takes_are_left() {
        let (found, runs, time) = left(60, &[7, 41]);
        assert_eq!(found, [7, 41]);
        assert!(runs < 60, "{runs}");
        assert_eq!(time, Duration::from_secs(42), "the last of them comes when it came before");
        assert_eq!(left(10, &[]).0, Vec::<usize>::new());
        assert_eq!(left(3, &[0, 1, 2]).0, [0, 1, 2]);
        assert!(left(1_000, &(0..1_000).step_by(2).collect::<Vec<_>>()).1 <= 150);
    }

    #[test]
    fn a_violation_is_the_same_with_other_numbers() {
        let one = told_alike("c1: ConfigMap/o1 is there and nobody wants it (at 12.345)");
        assert_eq!(one, told_alike("c2: ConfigMap/o3 is there and nobody wants it (at 99.000)"));
        assert_ne!(one, told_alike("c1: ConfigMap/o1 is not there (at 12.345)"));
    }
}
