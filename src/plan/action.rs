//! The closed list of actions on one object.

use std::fmt;

use serde::Serialize;

use crate::model::Operation;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanAction {
    Create,
    Configure,
    Unchanged,
    Delete,
    /// No longer rendered; stays in the cluster on purpose.
    Orphan,
    /// The app takes it over from another field manager.
    Adopt,
    /// Left alone on purpose.
    Skip,
    /// Waits for something that comes by itself.
    Wait,
    /// Needs a change by a person.
    Refuse,
}

impl PlanAction {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Configure => "configure",
            Self::Unchanged => "unchanged",
            Self::Delete => "delete",
            Self::Orphan => "orphan",
            Self::Adopt => "adopt",
            Self::Skip => "skip",
            Self::Wait => "wait",
            Self::Refuse => "refuse",
        }
    }

    pub fn is_write(self) -> bool {
        self.operation().is_some()
    }

    /// The operation that policies judge.
    pub fn operation(self) -> Option<Operation> {
        match self {
            Self::Create => Some(Operation::Create),
            Self::Configure | Self::Adopt => Some(Operation::Update),
            Self::Delete => Some(Operation::Delete),
            Self::Unchanged | Self::Orphan | Self::Skip | Self::Wait | Self::Refuse => None,
        }
    }
}

impl fmt::Display for PlanAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
