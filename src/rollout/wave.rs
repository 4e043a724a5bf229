//! The state of an app's waves.

use serde::Serialize;

use super::{RolloutHold, UnitId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WaveState {
    /// Every unit has the head's content and is healthy.
    Done,
    Open,
    /// A unit has failed.
    Failed,
    /// No unit may change yet.
    Shut,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaveReport {
    pub name: String,
    pub state: WaveState,
    pub units: usize,
    pub done: usize,
    /// Units with the head's content, done or not.
    pub begun: usize,
    pub failed: usize,
    pub left_out: Vec<UnitId>,
    /// The hold of the first unit that does not advance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<RolloutHold>,
}
