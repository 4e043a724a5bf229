//! Objects of a chart that have their own place before or after its others.

use serde::Serialize;

/// What a chart says of an object that it calls a hook. Install and upgrade are not told apart: a hook takes part in each
/// change of its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    pub stage: Stage,
    /// Within its stage: the lower one first.
    pub weight: i64,
    /// Of the installation alone: once it is there it stays as it is.
    pub once: bool,
    /// It is a Job or a Pod, and others wait for its end.
    pub runs: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// Before the objects that are no hooks.
    Before,
    /// When they are healthy.
    After,
}

impl Hook {
    /// Of what runs nothing it makes no difference whether it comes with the others or after them.
    pub fn is_apart(&self) -> bool {
        self.runs || self.stage == Stage::Before
    }
}
