//! The recorded events, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tutti::model::{Digest, ObjectId};

use super::commit::Commit;
use super::world::World;

/// A podSet of an app on a cluster, or the app on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    pub cluster: String,
    pub pod_set: String,
}

impl Unit {
    pub fn new(cluster: &str, pod_set: &str) -> Self {
        Self { cluster: cluster.to_owned(), pod_set: pod_set.to_owned() }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pod_set {
            "" => f.write_str(&self.cluster),
            pod_set => write!(f, "{pod_set}@{}", self.cluster),
        }
    }
}

/// The objects of a unit without their replicas.
pub type Content = BTreeMap<ObjectId, Digest>;

#[derive(Clone, Debug)]
pub enum Event {
    Commit(Arc<Commit>),
    /// A cluster stops answering, or answers again.
    Down(String),
    Up(String),
    /// A cluster is replaced by an empty one of the same name.
    Rebuilt(String),
    /// A pod failure begins or ends: for a moment it may be unknown.
    Disturbed,
    Write(Box<Write>),
}

/// One write of the controller.
#[derive(Clone, Debug)]
pub struct Write {
    pub cluster: String,
    pub object: ObjectId,
    /// `None`: a delete.
    pub applied: Option<Applied>,
    /// All objects of the instance, right before it.
    pub world: World,
    /// The number of events when it was answered; `None`: never.
    pub until: Option<usize>,
}

/// What a write contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
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
pub struct Waves {
    /// `namespace/name`.
    pub app: String,
    pub gates: Vec<Gate>,
    /// The position of a unit's wave.
    pub wave_of: fn(&Unit) -> usize,
    /// `onFailure: revert`.
    pub reverts: bool,
    /// `gateFirst`.
    pub gates_first: bool,
}

/// One wave, and the conditions of the next one.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    pub name: String,
    pub confirm: bool,
    /// The most units that may change at the same time.
    pub most: Option<usize>,
    /// The most units that may fail.
    pub failures: usize,
}

impl Gate {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    pub fn confirmed(name: &str) -> Self {
        Self { confirm: true, ..Self::new(name) }
    }
}

/// All events since the start of the test.
#[derive(Clone, Debug, Default)]
pub struct Story {
    pub events: Vec<(Duration, Event)>,
    /// How long the controller may still act on the state before a change.
    pub grace: Duration,
}

impl Story {
    pub fn add(&mut self, at: Duration, event: Event) {
        self.events.push((at, event));
    }

    /// Whether a pod failure or an edit happened a moment ago.
    pub fn is_disturbed(&self, until: usize) -> bool {
        let now = self.events.get(until).map_or(Duration::ZERO, |(at, _)| *at);
        let mut recent = self.events[..until].iter().rev().take_while(|(at, _)| now < *at + MOMENT);
        recent.any(|(_, event)| matches!(event, Event::Disturbed))
    }

    /// Clusters that have not answered for a while; all that do not answer; these and those that did not a moment ago. Which of these
    /// the controller knows depends on its pauses.
    pub fn down(&self, until: usize) -> [BTreeSet<&str>; 3] {
        let now = self.events.get(until).map_or(Duration::ZERO, |(at, _)| *at);
        let mut down: BTreeMap<&str, (Duration, Option<Duration>)> = BTreeMap::new();
        for (at, event) in &self.events[..until] {
            match event {
                Event::Down(cluster) => {
                    let since = down.get(&**cluster).filter(|(_, up)| up.is_none()).map_or(*at, |it| it.0);
                    down.insert(cluster, (since, None));
                }
                Event::Up(cluster) => {
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
            those(&|since, up| up.is_none() && since + NOTICED < now),
            those(&|_, up| up.is_none()),
            those(&|_, up| up.is_none_or(|up| now < up + NOTICED)),
        ]
    }
}

/// The time until an event is known.
pub const MOMENT: Duration = Duration::from_secs(1);

/// The longest pause before an offline cluster is tried again.
const NOTICED: Duration = Duration::from_secs(90);
