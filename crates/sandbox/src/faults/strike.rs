//! The faults that are active, and those that one request meets.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{Backup, ClusterEvent, Fault, FaultPlan, FaultRule, RequestMatch, Trouble};
use crate::requests::RequestRecord;
use crate::seed::Seed;

#[derive(Debug)]
struct Planned {
    matching: RequestMatch,
    skip: usize,
    times: usize,
    fault: Fault,
}

/// A rule with the numbers that it draws from.
#[derive(Debug)]
struct Running {
    rule: FaultRule,
    seed: Seed,
}

#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) down: bool,
    pub(crate) latency: Duration,
    planned: Vec<Planned>,
    running: Vec<Running>,
    started: Option<Instant>,
    struck: BTreeMap<String, u64>,
    /// Events of the plan without a timer task yet.
    pub(super) events: Vec<(Instant, ClusterEvent)>,
    /// Counts the plans: a task of an older one ends.
    pub(super) plans: u64,
    pub(super) backup: Option<Backup>,
}

/// The faults of one request.
#[derive(Debug, Default)]
pub(crate) struct Strike {
    pub(crate) latency: Duration,
    pub(crate) fault: Option<Fault>,
    pub(crate) lag: Option<u64>,
    pub(crate) watch: WatchTrouble,
}

/// The faults of one open watch.
#[derive(Debug, Default)]
pub(crate) struct WatchTrouble {
    pub(crate) cut: Option<Duration>,
    /// It breaks after so many events.
    pub(crate) torn: Option<u64>,
    pub(crate) silent: Option<Duration>,
    pub(crate) expired: Option<Duration>,
    pub(crate) duplicates: Option<(Seed, u64)>,
    pub(crate) late: Option<Duration>,
}

impl WatchTrouble {
    pub(crate) fn is_none(&self) -> bool {
        self.cut.is_none()
            && self.torn.is_none()
            && self.silent.is_none()
            && self.expired.is_none()
            && self.duplicates.is_none()
            && self.late.is_none()
    }
}

impl Faults {
    pub(crate) fn plan(&mut self, matching: RequestMatch, skip: usize, times: usize, fault: Fault) {
        self.planned.push(Planned { matching, skip, times, fault });
    }

    /// Replaces the rules; what was planned singly stays.
    pub(super) fn run(&mut self, plan: &FaultPlan) {
        let now = Instant::now();
        let mut seeds = Seed::new(plan.seed);
        let running = |rule: &FaultRule| Running { rule: rule.clone(), seed: Seed::new(seeds.next()) };
        self.running = plan.rules.iter().map(running).collect();
        self.started = Some(now);
        self.events = plan.events.iter().map(|(at, event)| (now + *at, event.clone())).collect();
        self.events.sort_by_key(|(at, _)| *at);
        self.plans += 1;
    }

    pub(super) fn count(&mut self, name: &str) {
        *self.struck.entry(name.to_owned()).or_default() += 1;
    }

    pub(super) fn struck(&self) -> BTreeMap<String, u64> {
        self.struck.clone()
    }

    /// Takes the faults of this request.
    pub(crate) fn strike(&mut self, record: &RequestRecord) -> Strike {
        let mut strike = Strike { fault: self.planned_for(record), ..Strike::default() };
        if let Some(fault) = &strike.fault {
            let name = fault.name();
            self.count(&name);
        }
        let since = self.started.map(|started| started.elapsed()).unwrap_or_default();
        let mut names = Vec::new();
        for running in &mut self.running {
            if running.applies(record, since) && running.draw(record, &mut strike) {
                names.push(running.rule.trouble.name());
            }
        }
        names.iter().for_each(|name| self.count(name));
        if !record.is_watch() {
            strike.watch = WatchTrouble::default();
        }
        strike
    }

    fn planned_for(&mut self, record: &RequestRecord) -> Option<Fault> {
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

impl Running {
    fn applies(&mut self, record: &RequestRecord, since: Duration) -> bool {
        let windows = &self.rule.windows;
        self.rule.matching.matches(record)
            && (windows.is_empty() || windows.iter().any(|window| window.contains(&since)))
            && self.seed.below(1000) < self.rule.per_mille
    }

    /// Adds the trouble to the strike; false when it does not concern such a request.
    fn draw(&mut self, record: &RequestRecord, strike: &mut Strike) -> bool {
        if let Trouble::WatchTorn { most } = self.rule.trouble {
            strike.watch.torn = Some(self.seed.below(most + 1));
            return record.is_watch();
        }
        let mut between = |shortest: Duration, longest: Duration| self.seed.duration(shortest, longest);
        let mut set = |place: &mut Option<Duration>, shortest, longest| {
            let drawn = between(shortest, longest);
            *place = Some(place.map_or(drawn, |before| before.min(drawn)));
            record.is_watch()
        };
        match &self.rule.trouble {
            Trouble::Request(_) if strike.fault.is_some() => false,
            Trouble::Request(fault) => {
                strike.fault = Some(fault.clone());
                true
            }
            Trouble::Latency { shortest, longest } => {
                strike.latency += between(*shortest, *longest);
                true
            }
            Trouble::StaleList { lag } if record.verb == "list" && record.may_be_stale() => {
                strike.lag = Some(*lag);
                true
            }
            Trouble::StaleList { .. } => false,
            Trouble::WatchCut { shortest, longest } => set(&mut strike.watch.cut, *shortest, *longest),
            Trouble::WatchSilent { shortest, longest } => set(&mut strike.watch.silent, *shortest, *longest),
            Trouble::WatchExpired { shortest, longest } => {
                set(&mut strike.watch.expired, *shortest, *longest)
            }
            Trouble::WatchTorn { .. } => false,
            // counted when they strike
            Trouble::DuplicateEvents { per_mille } => {
                strike.watch.duplicates = Some((Seed::new(self.seed.next()), u64::from(*per_mille)));
                false
            }
            Trouble::LateBookmarks { by } => {
                strike.watch.late = Some(*by);
                false
            }
        }
    }
}
