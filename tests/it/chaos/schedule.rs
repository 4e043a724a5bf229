//! One schedule: all steps, drawn from a seed before the run.

use std::fmt;
use std::time::Duration;

use super::change::{self, Change};
use super::draw::Draw;
use super::edit::{self, Edit};
use super::trouble::Trouble;
use super::wanted::Wanted;

#[derive(Clone, Debug)]
pub enum Step {
    Commit {
        changes: Vec<Change>,
        /// Whether a webhook reports the commit; without one the next poll finds it.
        told: bool,
    },
    Edit(Edit),
    Trouble {
        cluster: u64,
        trouble: Trouble,
        per_mille: u16,
        lasting: Duration,
    },
    /// The process dies after this many more writes, or now; another one starts.
    Crash {
        writes: usize,
    },
    /// The process is stopped in order, and another one starts.
    Restart,
    /// Tutti fetches.
    Wake,
    /// A person approves the deletes that wait.
    Approve,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit { changes, told } => {
                let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
                write!(f, "commit{} [{}]", if *told { "" } else { " unseen" }, changes.join(", "))
            }
            Self::Edit(edit) => write!(f, "edit {edit}"),
            Self::Trouble { cluster, trouble, per_mille, lasting } => {
                write!(f, "{trouble:?} of {per_mille}/1000 for {lasting:?} on cluster #{cluster}")
            }
            Self::Crash { writes: 0 } => f.write_str("crash"),
            Self::Crash { writes } => write!(f, "crash after {writes} writes"),
            Self::Restart => f.write_str("restart"),
            Self::Wake => f.write_str("wake"),
            Self::Approve => f.write_str("approve"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Schedule {
    pub seed: u64,
    pub begin: Wanted,
    /// Pods take some time to start.
    pub slow_pods: bool,
    /// Each step with the pause before it.
    pub steps: Vec<(Duration, Step)>,
    /// Checks the fleet before the last commit, with its mistakes and pauses, once nothing happens.
    pub looks_before_settling: bool,
    /// How long the fleet must be idle at the end.
    pub idle: Duration,
}

impl Schedule {
    pub fn of(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let begin = change::begin(&mut draw);
        let slow_pods = draw.chance(40);
        let number = draw.within(10..61);
        // The share of faults differs between schedules.
        let weights = [
            (30, "commit"),
            (10 + draw.within(0..25), "edit"),
            (draw.within(0..25), "trouble"),
            (draw.within(0..6), "crash"),
            (draw.within(0..3), "restart"),
            (6, "wake"),
            (6, "approve"),
        ];
        let mut steps = Vec::new();
        for _ in 0..number {
            // At least a millisecond: Git and rendering take real time, but no time of this clock.
            let gap = match draw.within(0..10) {
                0..3 => Duration::from_millis(1),
                3..6 => draw.milliseconds(1..50),
                6..9 => draw.milliseconds(1..5_000),
                _ => draw.milliseconds(1..60_000),
            };
            let step = match draw.weighed(&weights) {
                "commit" => {
                    let changes = (0..draw.weighed(&[(7, 1), (2, 2), (1, 4)]))
                        .map(|_| Change { what: draw.weighed(&change::WEIGHTS), number: draw.next() })
                        .collect();
                    Step::Commit { changes, told: draw.chance(85) }
                }
                "edit" => Step::Edit(Edit {
                    what: draw.weighed(&edit::WEIGHTS),
                    cluster: draw.next(),
                    number: draw.next(),
                }),
                "trouble" => Step::Trouble {
                    cluster: draw.next(),
                    trouble: draw.of(&Trouble::ALL),
                    per_mille: draw.of(&[50, 200, 500, 1000]),
                    lasting: draw.milliseconds(500..90_000),
                },
                "crash" => Step::Crash { writes: draw.of(&[0, 0, 1, 2, 3, 5]) },
                "restart" => Step::Restart,
                "wake" => Step::Wake,
                _ => Step::Approve,
            };
            steps.push((gap, step));
        }
        let idle = Duration::from_secs(if draw.chance(20) { 600 } else { 60 });
        Self { seed, begin, slow_pods, steps, looks_before_settling: draw.chance(30), idle }
    }
}
