//! The decision about the units of one app.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::{Confirmation, MeasurementOutcomes, RolloutHold, UnitId, VersionRefusal, WaveReport};
use crate::model::{ApprovalQuery, Revision};

/// The render of a unit from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderChoice {
    Head,
    /// Its current render.
    Stay,
    /// The render of an earlier commit. A reverted unit gets it only if that commit still renders the content that `previous`
    /// names; the caller, who renders, checks that.
    At(Revision),
    /// No render: the live objects stay as they are.
    Frozen,
    /// No render: the unit is empty and stays empty for now.
    Nothing,
    /// A fact is missing: nothing of the target is written.
    Undecided,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitDecision {
    pub choice: RenderChoice,
    /// Why it is not the head's render.
    pub hold: Option<RolloutHold>,
    /// It has the head's content and fails while failures count; the reason.
    pub failure: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutDecision {
    pub units: BTreeMap<UnitId, UnitDecision>,
    /// The rollout is in progress: deletes wait.
    pub is_open: bool,
    pub waves: Vec<WaveReport>,
    pub confirmation: Option<Confirmation>,
    /// The required measurements, with their results so far.
    pub measurements: MeasurementOutcomes,
    /// The versions that are reverted from now on: of rings, then of the app.
    pub refusals: Vec<VersionRefusal>,
    /// Commits that must be read for a better decision.
    pub needed_commits: BTreeSet<Revision>,
    /// Agreements that must be read for a better decision.
    pub questions: BTreeSet<ApprovalQuery>,
    /// The time of the next decision if no event comes first.
    pub deadline: Option<Timestamp>,
}
