//! The health of one object, as data; the rules are in the module `health`.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum HealthStatus {
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

impl HealthStatus {
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
    pub status: HealthStatus,
    pub reason: String,
}

impl Health {
    pub fn new(status: HealthStatus, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    pub fn current() -> Self {
        Self::new(HealthStatus::Current, "")
    }

    /// Nothing is left to wait for: Current, or suspended on purpose.
    pub fn is_settled_well(&self) -> bool {
        matches!(self.status, HealthStatus::Current | HealthStatus::Suspended)
    }
}
