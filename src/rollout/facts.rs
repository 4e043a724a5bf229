//! What is known of one unit.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::Hold;
use crate::model::{ClusterName, Digest, Revision, UnitMark};

/// A unit of an app: a podSet on a cluster, or the app on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitId {
    pub cluster: ClusterName,
    /// The podSet; empty where the app is one unit.
    #[serde(serialize_with = "as_text")]
    pub pod_set: Arc<str>,
}

fn as_text<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

impl UnitId {
    pub fn new(cluster: &str, pod_set: &str) -> Self {
        Self { cluster: ClusterName::from(cluster), pod_set: pod_set.into() }
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pod_set {
            "" => write!(f, "{}", self.cluster),
            pod_set => write!(f, "{pod_set} on {}", self.cluster),
        }
    }
}

/// Whether the cluster of a unit takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It answers, and what it holds of the app is known.
    Ready,
    /// It was not read yet.
    Unread,
    /// It does not answer, or is in maintenance: why.
    LeftOut(Arc<str>),
}

/// What a unit has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The head's content, or it is on its way there.
    Head,
    /// The content of another commit, whole.
    Other(Digest),
    /// An earlier rollout left it half written: it has parts of two commits.
    Half,
    /// The commit is being read.
    Loading,
    /// Nobody knows any more: why.
    Unknown(Arc<str>),
    /// None of its objects is there, anybody's; or none that makes pods.
    Empty,
}

/// How a unit does with what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Every object is current, or held with its pods there.
    Done,
    Progressing(Arc<str>),
    /// It will not become healthy by itself, or the cluster refused an object.
    Failed(Arc<str>),
}

/// Since when a unit is done, or is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timers {
    pub done_since: Option<Timestamp>,
    pub undone_since: Option<Timestamp>,
}

impl Timers {
    /// Takes in what is known now. `is_done`: [`UnitFacts::is_well`]. `counts`: the time counts towards a deadline: the app is not paused, and the cluster answers.
    pub fn observe(&mut self, is_done: bool, counts: bool, now: Timestamp) {
        self.done_since = if is_done { self.done_since.or(Some(now)) } else { None };
        self.undone_since = if is_done || !counts { None } else { self.undone_since.or(Some(now)) };
    }

    /// A unit that takes other content begins anew.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFacts {
    /// Position of its wave.
    pub wave: usize,
    /// What the head makes of it on its cluster; of the kind that `mark.previous` names.
    pub head: Digest,
    pub reach: Reach,
    /// An object that the head renders is missing, or has other content.
    pub is_behind: bool,
    pub basis: Basis,
    pub condition: Condition,
    /// The newest commit that its objects took their content from. A repair or another scale does not change it: it says how old
    /// an Approval may be.
    pub revision: Option<Revision>,
    /// From the annotations of its objects.
    pub mark: UnitMark,
    pub timers: Timers,
    /// What another app holds back.
    pub after: Option<Hold>,
    /// The head cannot be rendered for it: why.
    pub mistake: Option<Arc<str>>,
    /// The version that its pin says at the head.
    pub pin: Option<Arc<str>>,
}

impl UnitFacts {
    /// The head's content, and well: what a wave waits for.
    pub fn is_done(&self) -> bool {
        !self.is_behind && self.condition == Condition::Done
    }

    /// Well with what it has: with the head's content where it has begun that, else with its own. What its timers count.
    pub fn is_well(&self) -> bool {
        self.condition == Condition::Done && !(self.has_begun() && self.is_behind)
    }

    pub fn is_ready(&self) -> bool {
        self.reach == Reach::Ready
    }

    pub fn is_left_out(&self) -> bool {
        matches!(self.reach, Reach::LeftOut(_))
    }

    /// It has the head's content, or takes it now.
    pub fn has_begun(&self) -> bool {
        self.basis == Basis::Head
    }

    /// The commit that ran here before.
    pub fn ran_before(&self) -> Option<&Revision> {
        self.mark.previous.as_ref().map(|previous| &previous.revision)
    }

    /// What ran here before has the content of the head.
    pub fn goes_back(&self) -> bool {
        self.mark.previous.as_ref().is_some_and(|previous| previous.content == self.head)
    }

    /// Until when a failure of it counts: twice the deadline after it took the content.
    pub fn counts_until(&self, deadline: SignedDuration) -> Option<Timestamp> {
        let twice = deadline.checked_add(deadline)?;
        self.mark.since.and_then(|since| since.checked_add(twice).ok())
    }
}
