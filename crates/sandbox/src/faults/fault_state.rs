//! The faults that are active, and those that one request meets.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{ClusterBackup, Fault, FaultEffect, FaultPlan, FaultRule, PlannedClusterEvent, RequestMatch};
use crate::request_record::RequestRecord;
use crate::seed::Seed;

#[derive(Debug)]
struct PlannedFault {
    matching: RequestMatch,
    skip: usize,
    times: usize,
    fault: Fault,
}

/// A rule with the numbers that it draws from.
#[derive(Debug)]
struct ActiveFaultRule {
    rule: FaultRule,
    seed: Seed,
}

#[derive(Debug, Default)]
pub(crate) struct FaultState {
    pub(crate) down: bool,
    pub(crate) latency: Duration,
    planned: Vec<PlannedFault>,
    active_rules: Vec<ActiveFaultRule>,
    started: Option<Instant>,
    fault_counts: BTreeMap<String, u64>,
    /// Events of the plan without a timer task yet.
    pub(super) events: Vec<(Instant, PlannedClusterEvent)>,
    /// Counts the plans: a task of an older one ends.
    pub(super) plan_number: u64,
    pub(super) backup: Option<ClusterBackup>,
}

/// The faults of one request.
#[derive(Debug, Default)]
pub(crate) struct RequestFaults {
    pub(crate) latency: Duration,
    pub(crate) fault: Option<Fault>,
    pub(crate) lag: Option<u64>,
    pub(crate) watch: WatchFaults,
}

/// The faults of one open watch.
#[derive(Debug, Default)]
pub(crate) struct WatchFaults {
    pub(crate) cut_after: Option<Duration>,
    /// It breaks after so many events.
    pub(crate) broken_after_events: Option<u64>,
    pub(crate) silent_after: Option<Duration>,
    pub(crate) expired_after: Option<Duration>,
    pub(crate) duplicates: Option<(Seed, u64)>,
    pub(crate) bookmark_delay: Option<Duration>,
}

impl WatchFaults {
    pub(crate) fn is_none(&self) -> bool {
        self.cut_after.is_none()
            && self.broken_after_events.is_none()
            && self.silent_after.is_none()
            && self.expired_after.is_none()
            && self.duplicates.is_none()
            && self.bookmark_delay.is_none()
    }
}

impl FaultState {
    pub(crate) fn add_planned(&mut self, matching: RequestMatch, skip: usize, times: usize, fault: Fault) {
        self.planned.push(PlannedFault { matching, skip, times, fault });
    }

    /// Replaces the rules; what was planned singly stays.
    pub(super) fn start_plan(&mut self, plan: &FaultPlan) {
        let now = Instant::now();
        let mut seeds = Seed::new(plan.seed);
        let running =
            |rule: &FaultRule| ActiveFaultRule { rule: rule.clone(), seed: Seed::new(seeds.next()) };
        self.active_rules = plan.rules.iter().map(running).collect();
        self.started = Some(now);
        self.events = plan.events.iter().map(|(at, event)| (now + *at, event.clone())).collect();
        self.events.sort_by_key(|(at, _)| *at);
        self.plan_number += 1;
    }

    pub(super) fn count_fault(&mut self, name: &str) {
        *self.fault_counts.entry(name.to_owned()).or_default() += 1;
    }

    pub(super) fn fault_counts(&self) -> BTreeMap<String, u64> {
        self.fault_counts.clone()
    }

    /// Takes the faults of this request.
    pub(crate) fn faults_for(&mut self, record: &RequestRecord) -> RequestFaults {
        let mut strike = RequestFaults { fault: self.take_planned(record), ..RequestFaults::default() };
        if let Some(fault) = &strike.fault {
            let name = fault.name();
            self.count_fault(&name);
        }
        let since = self.started.map(|started| started.elapsed()).unwrap_or_default();
        let mut names = Vec::new();
        for running in &mut self.active_rules {
            if running.applies(record, since) && running.add_effect(record, &mut strike) {
                names.push(running.rule.effect.name());
            }
        }
        names.iter().for_each(|name| self.count_fault(name));
        if !record.is_watch() {
            strike.watch = WatchFaults::default();
        }
        strike
    }

    fn take_planned(&mut self, record: &RequestRecord) -> Option<Fault> {
        let mut struck = None;
        for planned in self.planned.iter_mut().filter(|planned| planned.matching.matches(record)) {
            if planned.skip > 0 {
                planned.skip -= 1;
            } else if planned.times > 0 && struck.is_none() {
                planned.times -= 1;
                struck = Some(planned.fault.clone());
            }
        }
        self.planned.retain(|planned| planned.times > 0);
        struck
    }
}

impl ActiveFaultRule {
    fn applies(&mut self, record: &RequestRecord, since: Duration) -> bool {
        let windows = &self.rule.windows;
        self.rule.matching.matches(record)
            && (windows.is_empty() || windows.iter().any(|window| window.contains(&since)))
            && self.seed.below(1000) < self.rule.per_mille
    }

    /// Adds the trouble to the strike; false when it does not concern such a request.
    fn add_effect(&mut self, record: &RequestRecord, strike: &mut RequestFaults) -> bool {
        if let FaultEffect::WatchTorn { most } = self.rule.effect {
            strike.watch.broken_after_events = Some(self.seed.below(most + 1));
            return record.is_watch();
        }
        let mut between = |shortest: Duration, longest: Duration| self.seed.duration(shortest, longest);
        let mut set = |place: &mut Option<Duration>, shortest, longest| {
            let drawn = between(shortest, longest);
            *place = Some(place.map_or(drawn, |before| before.min(drawn)));
            record.is_watch()
        };
        match &self.rule.effect {
            FaultEffect::Request(_) if strike.fault.is_some() => false,
            FaultEffect::Request(fault) => {
                strike.fault = Some(fault.clone());
                true
            }
            FaultEffect::Latency { shortest, longest } => {
                strike.latency += between(*shortest, *longest);
                true
            }
            FaultEffect::StaleList { lag } if record.verb == "list" && record.may_be_stale() => {
                strike.lag = Some(*lag);
                true
            }
            FaultEffect::StaleList { .. } => false,
            FaultEffect::WatchCut { shortest, longest } => {
                set(&mut strike.watch.cut_after, *shortest, *longest)
            }
            FaultEffect::WatchSilent { shortest, longest } => {
                set(&mut strike.watch.silent_after, *shortest, *longest)
            }
            FaultEffect::WatchExpired { shortest, longest } => {
                set(&mut strike.watch.expired_after, *shortest, *longest)
            }
            FaultEffect::WatchTorn { .. } => false,
            // counted when they strike
            FaultEffect::DuplicateEvents { per_mille } => {
                strike.watch.duplicates = Some((Seed::new(self.seed.next()), u64::from(*per_mille)));
                false
            }
            FaultEffect::LateBookmarks { by } => {
                strike.watch.bookmark_delay = Some(*by);
                false
            }
        }
    }
}
