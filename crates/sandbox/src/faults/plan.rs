//! The public description of faults: rules, chances, times and cluster events.

use std::ops::Range;
use std::time::Duration;

use super::{Fault, MutatingWebhook, RequestMatch};

/// Faults of one cluster; times count from [`Sandbox::set_faults`](crate::Sandbox::set_faults).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FaultPlan {
    pub seed: u64,
    pub rules: Vec<FaultRule>,
    /// They change all writes, also of the controllers, until the plan is replaced.
    pub webhooks: Vec<MutatingWebhook>,
    /// Events of the whole cluster, with their times.
    pub events: Vec<(Duration, PlannedClusterEvent)>,
}

/// A fault for a class of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultRule {
    pub(super) matching: RequestMatch,
    pub(super) effect: FaultEffect,
    pub(super) per_mille: u64,
    /// Empty: always.
    pub(super) windows: Vec<Range<Duration>>,
}

/// The effect on a request. Of several that fail one request, the first of the plan applies.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultEffect {
    /// The request fails.
    Request(Fault),
    /// The answer comes later, by a time between the two.
    Latency { shortest: Duration, longest: Duration },
    /// A list without `resourceVersion` shows the cluster as it was this many revisions ago.
    StaleList { lag: u64 },
    /// The watch breaks after a time between the two.
    WatchCut { shortest: Duration, longest: Duration },
    /// The watch breaks after some events, at most this many: perhaps in the middle of those that it begins with.
    WatchTorn { most: u64 },
    /// The watch stays open without events until the server ends it.
    WatchSilent { shortest: Duration, longest: Duration },
    /// The watch ends with 410.
    WatchExpired { shortest: Duration, longest: Duration },
    /// Events of the watch come twice, this many of a thousand.
    DuplicateEvents { per_mille: u16 },
    /// Bookmarks of the watch come this much later, perhaps after newer events.
    LateBookmarks { by: Duration },
}

/// An event of a whole cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedClusterEvent {
    /// Requests fail to connect, watches break.
    Down,
    Up,
    CutWatches,
    /// History is forgotten: watches from before are answered 410.
    Compact,
    BackUp,
    /// The cluster is again what the last `BackUp` (else this plan's start) saw; its revisions go
    /// back, as after a restored etcd.
    Restore,
    /// Its clock is this many seconds off.
    Skew(i64),
}

impl FaultPlan {
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    pub fn rule(mut self, rule: FaultRule) -> Self {
        self.rules.push(rule);
        self
    }

    pub fn webhook(mut self, webhook: MutatingWebhook) -> Self {
        self.webhooks.push(webhook);
        self
    }

    pub fn event(mut self, at: Duration, event: PlannedClusterEvent) -> Self {
        self.events.push((at, event));
        self
    }

    /// The cluster cannot be reached from one time to another.
    pub fn down(self, window: Range<Duration>) -> Self {
        self.event(window.start, PlannedClusterEvent::Down).event(window.end, PlannedClusterEvent::Up)
    }
}

impl FaultRule {
    /// For every such request, always.
    pub fn new(matching: RequestMatch, trouble: FaultEffect) -> Self {
        Self { matching, effect: trouble, per_mille: 1000, windows: Vec::new() }
    }

    pub fn failing(matching: RequestMatch, fault: Fault) -> Self {
        Self::new(matching, FaultEffect::Request(fault))
    }

    /// Only for this many of a thousand.
    pub fn per_mille(mut self, per_mille: u16) -> Self {
        self.per_mille = u64::from(per_mille);
        self
    }

    /// Only in this window, and in others that are given.
    pub fn within(mut self, window: Range<Duration>) -> Self {
        self.windows.push(window);
        self
    }
}

impl FaultEffect {
    /// The name under which [`Sandbox::fault_counts`](crate::Sandbox::fault_counts) counts it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Request(fault) => fault.name(),
            Self::Latency { .. } => "latency".to_owned(),
            Self::StaleList { .. } => "stale-list".to_owned(),
            Self::WatchCut { .. } => "watch-cut".to_owned(),
            Self::WatchTorn { .. } => "watch-torn".to_owned(),
            Self::WatchSilent { .. } => "watch-silent".to_owned(),
            Self::WatchExpired { .. } => "watch-expired".to_owned(),
            Self::DuplicateEvents { .. } => "duplicate-events".to_owned(),
            Self::LateBookmarks { .. } => "late-bookmarks".to_owned(),
        }
    }
}
