//! An object before and after a step, as `tutti diff` shows it.

use serde::Serialize;
use serde_json::Value;

use super::PlanAction;
use crate::model::{GroupVersionKind, ObjectId};

/// Without server-set fields and fields that every apply changes. Secret values are hidden.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectDiff {
    pub object: ObjectId,
    pub kind: GroupVersionKind,
    pub action: PlanAction,
    /// As text.
    pub reason: String,
    /// `null` if the object does not exist.
    pub before: Value,
    pub after: Value,
    /// Why the cluster would refuse the write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl ObjectDiff {
    /// The apply changes the object or fails; or drift is reported only.
    pub fn has_changes(&self) -> bool {
        self.before != self.after || self.refused.is_some()
    }
}
