//! The events that messages report.

use serde::{Deserialize, Serialize};

/// The event that a message reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotificationPhase {
    // To a commit in a ring.
    Started,
    /// For a person.
    Waiting,
    Done,
    Failed,
    Degraded,
    Recovered,
    Reverted,
    // To a pull request of a promotion.
    Opened,
    Held,
    Merged,
    // To a cluster.
    Offline,
    Online,
    /// A delete waits for an approval.
    DeleteWaits,
    /// The credential of a cluster expires soon.
    CredentialEnds,
    /// The rent of a server ends soon.
    ServerEnds,
    /// A test message. No route selects it.
    Test,
}

impl NotificationPhase {
    /// What a route can select.
    pub const ALL: [Self; 15] = [
        Self::Started,
        Self::Waiting,
        Self::Done,
        Self::Failed,
        Self::Degraded,
        Self::Recovered,
        Self::Reverted,
        Self::Opened,
        Self::Held,
        Self::Merged,
        Self::Offline,
        Self::Online,
        Self::DeleteWaits,
        Self::CredentialEnds,
        Self::ServerEnds,
    ];

    /// As `phases:` of the manifest says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Degraded => "degraded",
            Self::Recovered => "recovered",
            Self::Reverted => "reverted",
            Self::Opened => "opened",
            Self::Held => "held",
            Self::Merged => "merged",
            Self::Offline => "offline",
            Self::Online => "online",
            Self::DeleteWaits => "delete-waits",
            Self::CredentialEnds => "credential-ends",
            Self::ServerEnds => "server-ends",
            Self::Test => "test",
        }
    }
}
