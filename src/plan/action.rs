//! What is done with one object: a closed list.

use std::fmt;

use serde::Serialize;

use crate::model::Operation;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Create,
    Configure,
    Unchanged,
    Delete,
    /// No longer wanted, and left where it is on purpose.
    Orphan,
    /// Taken over from another manager, as asked for.
    Adopt,
    /// Not touched on purpose.
    Skip,
    /// Not yet.
    Wait,
    /// Not at all, until somebody changes something.
    Refuse,
}

impl Action {
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

    /// It sends a write to the cluster.
    pub fn is_write(self) -> bool {
        self.operation().is_some()
    }

    /// As policies see the write.
    pub fn operation(self) -> Option<Operation> {
        match self {
            Self::Create => Some(Operation::Create),
            Self::Configure | Self::Adopt => Some(Operation::Update),
            Self::Delete => Some(Operation::Delete),
            Self::Unchanged | Self::Orphan | Self::Skip | Self::Wait | Self::Refuse => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
