//! How the waves of an app stand.

use serde::Serialize;

use super::{Hold, UnitId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WaveState {
    /// Everything in it has the head's content and is well.
    Done,
    /// Some of it changes.
    Open,
    /// A unit of it has failed.
    Failed,
    /// Nothing of it may change yet.
    Shut,
}

/// One wave that has units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaveReport {
    pub name: String,
    pub state: WaveState,
    pub units: usize,
    pub done: usize,
    /// With the head's content, done or not.
    pub begun: usize,
    pub failed: usize,
    pub left_out: Vec<UnitId>,
    /// What the first unit that does not advance waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Hold>,
}
