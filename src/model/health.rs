//! The health of one object, as data; the rules are in the module `health`.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Status {
    /// The live state matches the spec.
    Current,
    /// The object is changing towards its spec.
    InProgress,
    /// The object will not reach its spec by itself.
    Failed,
    Suspended,
    Terminating,
    NotFound,
    Unknown,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Current => "Current",
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Suspended => "Suspended",
            Self::Terminating => "Terminating",
            Self::NotFound => "NotFound",
            Self::Unknown => "Unknown",
        }
    }
}

/// A status with its reason in words (numbers first); the reason of a Current object may be empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    pub status: Status,
    pub reason: String,
}

impl Health {
    pub fn new(status: Status, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    pub fn current() -> Self {
        Self::new(Status::Current, "")
    }

    /// Nothing is left to wait for: Current, or suspended on purpose.
    pub fn is_settled_well(&self) -> bool {
        matches!(self.status, Status::Current | Status::Suspended)
    }
}
