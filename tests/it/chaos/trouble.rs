//! Faults between tutti and a cluster, each with the name under which reports count it.

use std::time::Duration;

use sandbox::{Fault, FaultEffect as Kind, FaultPlan, FaultRule, PlannedClusterEvent, RequestMatch, Sandbox};
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterFault {
    Latency,
    LongLatency,
    TooManyRequests,
    InternalError,
    Unavailable,
    Unauthorized,
    DropBefore,
    DropAfter,
    Quota,
    Invalid,
    Conflict,
    WatchCut,
    WatchTorn,
    WatchSilent,
    WatchExpired,
    DuplicateEvents,
    LateBookmarks,
    StaleList,
    Down,
    Restart,
    Compact,
}

impl ClusterFault {
    pub const ALL: [Self; 21] = [
        Self::Latency,
        Self::LongLatency,
        Self::TooManyRequests,
        Self::InternalError,
        Self::Unavailable,
        Self::Unauthorized,
        Self::DropBefore,
        Self::DropAfter,
        Self::Quota,
        Self::Invalid,
        Self::Conflict,
        Self::WatchCut,
        Self::WatchTorn,
        Self::WatchSilent,
        Self::WatchExpired,
        Self::DuplicateEvents,
        Self::LateBookmarks,
        Self::StaleList,
        Self::Down,
        Self::Restart,
        Self::Compact,
    ];

    /// The name under which the sandbox counts affected requests.
    pub fn fault_name(self) -> &'static str {
        match self {
            Self::Latency | Self::LongLatency => "latency",
            Self::TooManyRequests => "429",
            Self::InternalError => "500",
            Self::Unavailable => "503",
            Self::Unauthorized => "401",
            Self::DropBefore => "drop-before",
            Self::DropAfter => "drop-after",
            Self::Quota => "403",
            Self::Invalid => "422",
            Self::Conflict => "409",
            Self::WatchCut => "watch-cut",
            Self::WatchTorn => "watch-torn",
            Self::WatchSilent => "watch-silent",
            Self::WatchExpired => "watch-expired",
            Self::DuplicateEvents => "duplicate-events",
            Self::LateBookmarks => "late-bookmarks",
            Self::StaleList => "stale-list",
            Self::Down => "down",
            Self::Restart => "cut-watches",
            Self::Compact => "compact",
        }
    }

    fn fault_rule(self, per_mille: u16) -> Option<FaultRule> {
        let seconds = Duration::from_secs;
        let (any, writes) = (RequestMatch::any, RequestMatch::writes);
        let between =
            |shortest: u64, longest: u64| (Duration::from_millis(shortest), Duration::from_millis(longest));
        let (matching, kind) = match self {
            Self::Latency => {
                let (shortest, longest) = between(1, 3_000);
                (any(), Kind::Latency { shortest, longest })
            }
            Self::LongLatency => {
                let (shortest, longest) = between(3_000, 40_000);
                (any(), Kind::Latency { shortest, longest })
            }
            Self::TooManyRequests => (any(), Kind::Request(Fault::too_many_requests(2))),
            Self::InternalError => (any(), Kind::Request(Fault::internal_error())),
            Self::Unavailable => (any(), Kind::Request(Fault::unavailable())),
            Self::Unauthorized => (any(), Kind::Request(Fault::unauthorized())),
            Self::DropBefore => (any(), Kind::Request(Fault::DropBefore)),
            Self::DropAfter => (any(), Kind::Request(Fault::DropAfter)),
            Self::Quota => (writes(), Kind::Request(Fault::quota())),
            Self::Invalid => (writes(), Kind::Request(Fault::invalid("denied by a policy"))),
            Self::Conflict => (writes(), Kind::Request(Fault::conflict())),
            Self::WatchCut => {
                let (shortest, longest) = between(0, 30_000);
                (any(), Kind::WatchCut { shortest, longest })
            }
            Self::WatchTorn => (any(), Kind::WatchTorn { most: 5 }),
            Self::WatchSilent => {
                let (shortest, longest) = between(0, 30_000);
                (any(), Kind::WatchSilent { shortest, longest })
            }
            Self::WatchExpired => {
                let (shortest, longest) = between(0, 30_000);
                (any(), Kind::WatchExpired { shortest, longest })
            }
            Self::DuplicateEvents => (any(), Kind::DuplicateEvents { per_mille: 300 }),
            Self::LateBookmarks => (any(), Kind::LateBookmarks { by: seconds(45) }),
            Self::StaleList => (any(), Kind::StaleList { lag: 15 }),
            Self::Down | Self::Restart | Self::Compact => return None,
        };
        Some(FaultRule::new(matching, kind).per_mille(per_mille))
    }
}

/// The present faults of one cluster.
#[derive(Debug, Default)]
pub struct ActiveFaults {
    active: Vec<(ClusterFault, u16, Instant)>,
    seed: u64,
}

impl ActiveFaults {
    /// Adds a fault; earlier ones continue until their own end.
    pub fn add(&mut self, sandbox: &Sandbox, trouble: ClusterFault, per_mille: u16, lasting: Duration) {
        let now = Instant::now();
        self.active.retain(|(_, _, end)| *end > now);
        let lasting = if trouble == ClusterFault::Restart { Duration::from_secs(2) } else { lasting };
        self.active.push((trouble, per_mille, now + lasting));
        if matches!(trouble, ClusterFault::Compact | ClusterFault::Restart) {
            sandbox.compact();
        }
        if trouble == ClusterFault::Restart {
            sandbox.cut_watches();
        }
        self.seed += 1;
        let mut plan = FaultPlan::new(self.seed);
        for (trouble, per_mille, end) in &self.active {
            if let Some(rule) = trouble.fault_rule(*per_mille) {
                plan = plan.rule(rule.within(Duration::ZERO..*end - now));
            }
        }
        let is_down = |trouble: &ClusterFault| matches!(trouble, ClusterFault::Down | ClusterFault::Restart);
        let down =
            self.active.iter().filter(|(trouble, _, _)| is_down(trouble)).map(|(_, _, end)| *end).max();
        if let Some(end) = down {
            plan = plan.event(end - now, PlannedClusterEvent::Up);
        }
        sandbox.set_faults(&plan);
        if down.is_some() {
            sandbox.set_down(true);
        }
    }

    pub fn clear(&mut self, sandbox: &Sandbox) {
        self.active.clear();
        sandbox.set_faults(&FaultPlan::default());
    }
}
