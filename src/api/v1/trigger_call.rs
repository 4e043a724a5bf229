//! A call of a trigger on its way to `pulls`, and what comes back.

use tokio::sync::oneshot;

use crate::trigger::TriggerOutcome;

/// A change for `pulls` to write.
#[derive(Debug)]
pub struct TriggerCall {
    pub outcome: TriggerOutcome,
    pub reply: oneshot::Sender<Result<WrittenChange, TriggerWriteError>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TriggerWriteError {
    /// May succeed later.
    #[error("{0}")]
    Transient(String),
    /// Fails again when repeated.
    #[error("{0}")]
    Permanent(String),
}

/// Where a change was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenChange {
    /// URL of the pull request or commit.
    pub link: Option<String>,
    /// Commit on the deployed branch.
    pub commit: Option<String>,
}
