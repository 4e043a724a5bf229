//! The counts of many schedules.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::trouble::ClusterFault;

#[derive(Clone, Debug, Default)]
pub struct ChaosReport {
    pub schedules: u64,
    pub steps: u64,
    pub commits: u64,
    pub processes: u64,
    pub requests: u64,
    /// Requests to a cluster that was down.
    pub refused_connections: u64,
    pub counts: BTreeMap<String, u64>,
    pub injected_faults: BTreeMap<ClusterFault, u64>,
    pub hit_requests: BTreeMap<String, u64>,
    /// The longest convergence, in the time of a cluster.
    pub slowest_convergence: Duration,
    pub max_failed_writes: usize,
    /// Seeds with their violations.
    pub violations: Vec<(u64, Vec<String>)>,
}

impl ChaosReport {
    pub fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    pub fn count_fault(&mut self, trouble: ClusterFault) {
        *self.injected_faults.entry(trouble).or_default() += 1;
    }

    pub fn add_hit_requests(&mut self, struck: &BTreeMap<String, u64>) {
        for (name, number) in struck {
            *self.hit_requests.entry(name.clone()).or_default() += number;
        }
    }

    pub fn record_convergence(&mut self, time: Duration) {
        self.slowest_convergence = self.slowest_convergence.max(time);
    }

    pub fn add(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.steps += other.steps;
        self.commits += other.commits;
        self.processes += other.processes;
        self.requests += other.requests;
        self.refused_connections += other.refused_connections;
        for (what, number) in other.counts {
            *self.counts.entry(what).or_default() += number;
        }
        for (trouble, number) in other.injected_faults {
            *self.injected_faults.entry(trouble).or_default() += number;
        }
        self.add_hit_requests(&other.hit_requests);
        self.slowest_convergence = self.slowest_convergence.max(other.slowest_convergence);
        self.max_failed_writes = self.max_failed_writes.max(other.max_failed_writes);
        self.violations.extend(other.violations);
    }
}

impl fmt::Display for ChaosReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedules, steps, commits, processes, requests, .. } = self;
        writeln!(
            f,
            "{schedules} schedules, {steps} steps, {commits} commits, {processes} processes, {requests} requests; \
             the slowest settled after {} s, at most {} writes of one object failed in a minute",
            self.slowest_convergence.as_secs(),
            self.max_failed_writes
        )?;
        writeln!(f, "{:<20} {:>10} {:>14}", "trouble", "injected", "requests hit")?;
        for (trouble, number) in &self.injected_faults {
            let name = trouble.fault_name();
            let hit = match trouble {
                ClusterFault::Down => self.refused_connections,
                ClusterFault::Restart | ClusterFault::Compact => *number,
                _ => self.hit_requests.get(name).copied().unwrap_or_default(),
            };
            writeln!(f, "{:<20} {number:>10} {hit:>14}", format!("{trouble:?}"))?;
        }
        for (what, number) in &self.counts {
            writeln!(f, "{what:<31} {number:>10}")?;
        }
        write!(f, "{} schedules with violations", self.violations.len())
    }
}
