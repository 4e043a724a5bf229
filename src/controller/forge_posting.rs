//! The connection to the forge: the posting of statuses, and the client that reads.

use tokio::time::Instant;

use crate::forge;
use crate::model::{Digest, ForgeSettings, Revision};
use crate::report::outbox::Outbox;

/// The connection to the forge.
#[derive(Default)]
pub(super) struct ForgePosting {
    pub posting: Option<StatusPosting>,
    /// Reads from the forge; commands use it too. `None`: the forge cannot be read.
    pub reader: Option<ForgeReader>,
    /// The token could not be read: time of the next try.
    pub token_retry_at: Option<Instant>,
    /// The newest commits of the branch at the last read, the head first.
    pub recent_commits: Vec<Revision>,
    /// Number of postings so far.
    pub posting_count: u64,
}

pub(super) struct StatusPosting {
    pub forge: ForgeSettings,
    /// Digest of the token: another token needs another client.
    pub token: Option<Digest>,
    pub outbox: Outbox,
    pub number: u64,
    /// The posted statuses were read back, and the outbox does not know that yet.
    pub is_recalled: bool,
}

pub(super) struct ForgeReader {
    pub forge: ForgeSettings,
    pub token: Digest,
    pub client: forge::ForgeClient,
}
