//! The counts of many schedules.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::trouble::Trouble;

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub schedules: u64,
    pub steps: u64,
    pub commits: u64,
    pub processes: u64,
    pub requests: u64,
    /// Requests to a cluster that was down.
    pub refused: u64,
    pub counts: BTreeMap<String, u64>,
    pub injected: BTreeMap<Trouble, u64>,
    pub struck: BTreeMap<String, u64>,
    /// The longest convergence, in the time of a cluster.
    pub slowest: Duration,
    pub most_failed: usize,
    /// Seeds with their violations.
    pub violations: Vec<(u64, Vec<String>)>,
}

impl Report {
    pub fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    pub fn inject(&mut self, trouble: Trouble) {
        *self.injected.entry(trouble).or_default() += 1;
    }

    pub fn strike(&mut self, struck: &BTreeMap<String, u64>) {
        for (name, number) in struck {
            *self.struck.entry(name.clone()).or_default() += number;
        }
    }

    pub fn converged_after(&mut self, time: Duration) {
        self.slowest = self.slowest.max(time);
    }

    pub fn add(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.steps += other.steps;
        self.commits += other.commits;
        self.processes += other.processes;
        self.requests += other.requests;
        self.refused += other.refused;
        for (what, number) in other.counts {
            *self.counts.entry(what).or_default() += number;
        }
        for (trouble, number) in other.injected {
            *self.injected.entry(trouble).or_default() += number;
        }
        self.strike(&other.struck);
        self.slowest = self.slowest.max(other.slowest);
        self.most_failed = self.most_failed.max(other.most_failed);
        self.violations.extend(other.violations);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedules, steps, commits, processes, requests, .. } = self;
        writeln!(
            f,
            "{schedules} schedules, {steps} steps, {commits} commits, {processes} processes, {requests} requests; \
             the slowest settled after {} s, at most {} writes of one object failed in a minute",
            self.slowest.as_secs(),
            self.most_failed
        )?;
        writeln!(f, "{:<20} {:>10} {:>14}", "trouble", "injected", "requests hit")?;
        for (trouble, number) in &self.injected {
            let name = trouble.counted_as();
            let hit = match trouble {
                Trouble::Down => self.refused,
                Trouble::Restart | Trouble::Compact => *number,
                _ => self.struck.get(name).copied().unwrap_or_default(),
            };
            writeln!(f, "{:<20} {number:>10} {hit:>14}", format!("{trouble:?}"))?;
        }
        for (what, number) in &self.counts {
            writeln!(f, "{what:<31} {number:>10}")?;
        }
        write!(f, "{} schedules with violations", self.violations.len())
    }
}
