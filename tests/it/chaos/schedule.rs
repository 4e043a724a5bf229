//! One schedule: all steps, drawn from a seed before the run.

use std::fmt;
use std::time::Duration;

use super::change::{self, CommitChange};
use super::desired::DesiredRepository;
use super::edit::{self, LiveEdit};
use super::random::SeededRandom;
use super::trouble::ClusterFault;

#[derive(Clone, Debug)]
pub enum ChaosStep {
    Commit {
        changes: Vec<CommitChange>,
        /// Whether a webhook reports the commit; without one the next poll finds it.
        told: bool,
    },
    Edit(LiveEdit),
    Fault {
        cluster: u64,
        trouble: ClusterFault,
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
    Fetch,
    /// A person approves the deletes that wait.
    Approve,
}

impl fmt::Display for ChaosStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit { changes, told } => {
                let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
                write!(f, "commit{} [{}]", if *told { "" } else { " unseen" }, changes.join(", "))
            }
            Self::Edit(edit) => write!(f, "edit {edit}"),
            Self::Fault { cluster, trouble, per_mille, lasting } => {
                write!(f, "{trouble:?} of {per_mille}/1000 for {lasting:?} on cluster #{cluster}")
            }
            Self::Crash { writes: 0 } => f.write_str("crash"),
            Self::Crash { writes } => write!(f, "crash after {writes} writes"),
            Self::Restart => f.write_str("restart"),
            Self::Fetch => f.write_str("wake"),
            Self::Approve => f.write_str("approve"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ChaosSchedule {
    pub seed: u64,
    pub initial: DesiredRepository,
    /// Pods take some time to start.
    pub slow_pods: bool,
    /// Each step with the pause before it.
    pub steps: Vec<(Duration, ChaosStep)>,
    /// Checks the fleet before the last commit, with its mistakes and pauses, once nothing happens.
    pub checks_steady_state: bool,
    /// How long the fleet must be idle at the end.
    pub idle: Duration,
}

impl ChaosSchedule {
    pub fn of(seed: u64) -> Self {
        let mut draw = SeededRandom::new(seed);
        let begin = change::initial_repository(&mut draw);
        let slow_pods = draw.percent_chance(40);
        let number = draw.in_range(10..61);
        // The share of faults differs between schedules.
        let weights = [
            (30, "commit"),
            (10 + draw.in_range(0..25), "edit"),
            (draw.in_range(0..25), "trouble"),
            (draw.in_range(0..6), "crash"),
            (draw.in_range(0..3), "restart"),
            (6, "wake"),
            (6, "approve"),
        ];
        let mut steps = Vec::new();
        for _ in 0..number {
            // At least a millisecond: Git and rendering take real time, but no time of this clock.
            let gap = match draw.in_range(0..10) {
                0..3 => Duration::from_millis(1),
                3..6 => draw.milliseconds(1..50),
                6..9 => draw.milliseconds(1..5_000),
                _ => draw.milliseconds(1..60_000),
            };
            let step = match draw.choose_weighted(&weights) {
                "commit" => {
                    let changes = (0..draw.choose_weighted(&[(7, 1), (2, 2), (1, 4)]))
                        .map(|_| CommitChange {
                            kind: draw.choose_weighted(&change::WEIGHTS),
                            number: draw.next(),
                        })
                        .collect();
                    ChaosStep::Commit { changes, told: draw.percent_chance(85) }
                }
                "edit" => ChaosStep::Edit(LiveEdit {
                    kind: draw.choose_weighted(&edit::WEIGHTS),
                    cluster: draw.next(),
                    number: draw.next(),
                }),
                "trouble" => ChaosStep::Fault {
                    cluster: draw.next(),
                    trouble: draw.choose(&ClusterFault::ALL),
                    per_mille: draw.choose(&[50, 200, 500, 1000]),
                    lasting: draw.milliseconds(500..90_000),
                },
                "crash" => ChaosStep::Crash { writes: draw.choose(&[0, 0, 1, 2, 3, 5]) },
                "restart" => ChaosStep::Restart,
                "wake" => ChaosStep::Fetch,
                _ => ChaosStep::Approve,
            };
            steps.push((gap, step));
        }
        let idle = Duration::from_secs(if draw.percent_chance(20) { 600 } else { 60 });
        Self { seed, initial: begin, slow_pods, steps, checks_steady_state: draw.percent_chance(30), idle }
    }
}
