//! The recorded events, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tutti::model::{Digest, ObjectId};

use super::commit::OracleCommit;
use super::live_state::LiveState;

/// A podSet of an app on a cluster, or the app on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OracleUnit {
    pub cluster: String,
    pub pod_set: String,
}

impl OracleUnit {
    pub fn new(cluster: &str, pod_set: &str) -> Self {
        Self { cluster: cluster.to_owned(), pod_set: pod_set.to_owned() }
    }
}

impl fmt::Display for OracleUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pod_set {
            "" => f.write_str(&self.cluster),
            pod_set => write!(f, "{pod_set}@{}", self.cluster),
        }
    }
}

/// The objects of a unit without their replicas.
pub type UnitContent = BTreeMap<ObjectId, Digest>;

#[derive(Clone, Debug)]
pub enum OracleEvent {
    Commit(Arc<OracleCommit>),
    /// A cluster stops answering, or answers again.
    Down(String),
    Up(String),
    /// A cluster is replaced by an empty one of the same name.
    Rebuilt(String),
    /// A pod failure begins or ends: for a moment it may be unknown.
    Disturbed,
    Write(Box<ControllerWrite>),
}

/// One write of the controller.
#[derive(Clone, Debug)]
pub struct ControllerWrite {
    pub cluster: String,
    pub object: ObjectId,
    /// `None`: a delete.
    pub applied: Option<AppliedContent>,
    /// All objects of the instance, right before it.
    pub objects_before: LiveState,
    /// The number of events when it was answered; `None`: never.
    pub answered_at_event: Option<usize>,
}

/// What a write contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedContent {
    pub app: String,
    pub revision: String,
    /// `None`: the app has no waves.
    pub content: Option<Digest>,
    pub replicas: Option<u64>,
    /// The commit that the unit ran before, by its annotation.
    pub previous: String,
}

/// The conditions of an app, as its test states them.
#[derive(Clone)]
pub struct ExpectedWaves {
    /// `namespace/name`.
    pub app: String,
    pub gates: Vec<ExpectedGate>,
    /// The position of a unit's wave.
    pub wave_of: fn(&OracleUnit) -> usize,
    /// `onFailure: revert`.
    pub reverts: bool,
    /// `gateFirst`.
    pub gates_first: bool,
}

/// One wave, and the conditions of the next one.
#[derive(Clone, Debug, Default)]
pub struct ExpectedGate {
    pub name: String,
    pub confirm: bool,
    /// The most units that may change at the same time.
    pub max_concurrent: Option<usize>,
    /// The most units that may fail.
    pub max_failures: usize,
}

impl ExpectedGate {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    pub fn with_confirmation(name: &str) -> Self {
        Self { confirm: true, ..Self::new(name) }
    }
}

/// All events since the start of the test.
#[derive(Clone, Debug, Default)]
pub struct RolloutHistory {
    pub events: Vec<(Duration, OracleEvent)>,
    /// How long the controller may still act on the state before a change.
    pub grace: Duration,
}

impl RolloutHistory {
    pub fn add(&mut self, at: Duration, event: OracleEvent) {
        self.events.push((at, event));
    }

    /// Whether a pod failure or an edit happened a moment ago.
    pub fn is_disturbed(&self, until: usize) -> bool {
        let now = self.events.get(until).map_or(Duration::ZERO, |(at, _)| *at);
        let mut recent = self.events[..until].iter().rev().take_while(|(at, _)| now < *at + REPORT_DELAY);
        recent.any(|(_, event)| matches!(event, OracleEvent::Disturbed))
    }

    /// Clusters that have not answered for a while; all that do not answer; these and those that did not a moment ago. Which of these
    /// the controller knows depends on its pauses.
    pub fn offline_clusters(&self, until: usize) -> [BTreeSet<&str>; 3] {
        let now = self.events.get(until).map_or(Duration::ZERO, |(at, _)| *at);
        let mut down: BTreeMap<&str, (Duration, Option<Duration>)> = BTreeMap::new();
        for (at, event) in &self.events[..until] {
            match event {
                OracleEvent::Down(cluster) => {
                    let since = down.get(&**cluster).filter(|(_, up)| up.is_none()).map_or(*at, |it| it.0);
                    down.insert(cluster, (since, None));
                }
                OracleEvent::Up(cluster) => {
                    down.entry(cluster).and_modify(|(_, up)| *up = up.or(Some(*at)));
                }
                _ => {}
            }
        }
        let those = |is_down: &dyn Fn(Duration, Option<Duration>) -> bool| {
            let found = down.iter().filter(|(_, (since, up))| is_down(*since, *up));
            found.map(|(cluster, _)| *cluster).collect()
        };
        [
            those(&|since, up| up.is_none() && since + OFFLINE_RETRY_LIMIT < now),
            those(&|_, up| up.is_none()),
            those(&|_, up| up.is_none_or(|up| now < up + OFFLINE_RETRY_LIMIT)),
        ]
    }
}

/// The time until an event is known.
pub const REPORT_DELAY: Duration = Duration::from_secs(1);

/// The longest pause before an offline cluster is tried again.
const OFFLINE_RETRY_LIMIT: Duration = Duration::from_secs(90);
