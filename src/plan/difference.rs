//! An object as it is and as a plan would make it.

use serde::Serialize;
use serde_json::Value;

use super::Action;
use crate::model::{Kind, ObjectId};

/// Without what the server keeps for itself and what changes with each apply; values that may not be shown are hidden.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    pub object: ObjectId,
    pub kind: Kind,
    pub action: Action,
    /// In words.
    pub reason: String,
    /// `null` when it is not there.
    pub before: Value,
    pub after: Value,
    /// Why the cluster would not take it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Difference {
    /// An apply changes something or cannot be done; or something drifted that is only reported.
    pub fn is_any(&self) -> bool {
        self.before != self.after || self.refused.is_some()
    }
}
