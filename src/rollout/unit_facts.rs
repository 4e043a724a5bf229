//! The observed facts of one unit.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::RolloutHold;
use crate::model::{Digest, Revision, UnitRolloutAnnotations};

/// Whether the cluster of a unit takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitParticipation {
    /// It answers, and its objects of the app are known.
    Ready,
    Unread,
    /// It is offline or in maintenance; the reason.
    LeftOut(Arc<str>),
}

/// The current content of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurrentUnitContent {
    /// The head's content, complete or in progress.
    Head,
    /// The complete content of another commit.
    Other(Digest),
    /// Parts of two commits, from an earlier rollout that was not completed.
    PartlyApplied,
    /// The commit is being read.
    Loading,
    /// Unknown for good; the reason.
    Unknown(Arc<str>),
    /// None of its objects exists, in anybody's ownership; or none that makes pods.
    Empty,
}

/// The health of a unit with its current content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitCondition {
    /// Every object is current, or paused with all its pods.
    Done,
    Progressing(Arc<str>),
    /// It does not become healthy without help, or the cluster refused an object.
    Failed(Arc<str>),
}

/// Times since which a unit is done, or is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitTimers {
    pub done_since: Option<Timestamp>,
    pub undone_since: Option<Timestamp>,
}

impl UnitTimers {
    /// Records the current state. `is_done`: [`UnitFacts::is_well`]. `counts`: the time counts towards a deadline, because the
    /// app is not paused and the cluster answers.
    pub fn observe(&mut self, is_done: bool, counts: bool, now: Timestamp) {
        self.done_since = if is_done { self.done_since.or(Some(now)) } else { None };
        self.undone_since = if is_done || !counts { None } else { self.undone_since.or(Some(now)) };
    }

    /// The timers restart when a unit takes other content.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFacts {
    /// Position of its wave.
    pub wave: usize,
    /// Digest of the head's content on its cluster, comparable with `mark.previous`.
    pub head: Digest,
    pub participation: UnitParticipation,
    /// An object of the head's render is missing or has other content.
    pub is_behind: bool,
    pub current_content: CurrentUnitContent,
    pub condition: UnitCondition,
    /// The newest commit that its objects took their content from. A repair or another scale does not change it: it limits the
    /// age of an Approval.
    pub revision: Option<Revision>,
    /// From the annotations of its objects.
    pub mark: UnitRolloutAnnotations,
    pub timers: UnitTimers,
    /// The hold by another app.
    pub predecessor_hold: Option<RolloutHold>,
    /// Why the head cannot be rendered for it.
    pub render_error: Option<Arc<str>>,
    /// The version of its pin at the head.
    pub pin: Option<Arc<str>>,
}

impl UnitFacts {
    /// It has the head's content and is healthy. A wave waits for that.
    pub fn is_done(&self) -> bool {
        !self.is_behind && self.condition == UnitCondition::Done
    }

    /// Healthy with its current content: the head's, if it has started that, else its own. Its timers use this.
    pub fn is_well(&self) -> bool {
        self.condition == UnitCondition::Done && !(self.has_begun() && self.is_behind)
    }

    pub fn is_ready(&self) -> bool {
        self.participation == UnitParticipation::Ready
    }

    pub fn is_left_out(&self) -> bool {
        matches!(self.participation, UnitParticipation::LeftOut(_))
    }

    /// It has the head's content, complete or in progress.
    pub fn has_begun(&self) -> bool {
        self.current_content == CurrentUnitContent::Head
    }

    /// The commit that ran here before.
    pub fn previous_commit(&self) -> Option<&Revision> {
        self.mark.previous.as_ref().map(|previous| &previous.revision)
    }

    /// The head has the content that ran here before.
    pub fn is_revert(&self) -> bool {
        self.mark.previous.as_ref().is_some_and(|previous| previous.content == self.head)
    }

    /// The end of the time in which a failure counts: twice the deadline after it took the content.
    pub fn failure_counts_until(&self, deadline: SignedDuration) -> Option<Timestamp> {
        let twice = deadline.checked_add(deadline)?;
        self.mark.since.and_then(|since| since.checked_add(twice).ok())
    }
}
