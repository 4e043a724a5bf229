//! An object before and after a step, as `tutti diff` shows it.

use serde::Serialize;
use serde_json::Value;

use super::Action;
use crate::model::{Kind, ObjectId};

/// Without server-set fields and fields that every apply changes. Secret values are hidden.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    pub object: ObjectId,
    pub kind: Kind,
    pub action: Action,
    /// As text.
    pub reason: String,
    /// `null` if the object does not exist.
    pub before: Value,
    pub after: Value,
    /// Why the cluster would refuse the write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Difference {
    /// The apply changes the object or fails; or drift is reported only.
    pub fn is_any(&self) -> bool {
        self.before != self.after || self.refused.is_some()
    }
}
