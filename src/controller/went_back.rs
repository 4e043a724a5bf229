//! A remote that answers with a commit which does not go on from the one before: the branch was set back or rewritten, or another
//! copy of the repository answered, which is behind. What was there would be deleted and put back a moment later.
//!
//! It is believed when a hook speaks of that commit, or when the remote says nothing else for a minute.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::Revision;

/// How long nothing else may be said.
const BELIEVED_AFTER: Duration = Duration::from_secs(60);
/// How often it is asked meanwhile.
const ASK_EVERY: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub struct WentBack(Option<Said>);

#[derive(Debug)]
struct Said {
    revision: Revision,
    since: Instant,
}

impl WentBack {
    /// The commit that has been said for long enough.
    pub fn believed(&self, now: Instant) -> Option<Revision> {
        let said = self.0.as_ref().filter(|said| now >= said.since + BELIEVED_AFTER)?;
        Some(said.revision.clone())
    }

    /// What the remote has just said, and when it is to be asked again.
    pub fn take(&mut self, said: Option<Revision>, head: Option<&Revision>, now: Instant) -> Option<Instant> {
        let Some(revision) = said else {
            self.0 = None;
            return None;
        };
        let known = self.0.take().filter(|known| known.revision == revision);
        if known.is_none() {
            tracing::warn!(
                revision = revision.short(),
                head = head.map(Revision::short),
                "the branch does not go on from its last commit; it is believed when it stays so for a minute"
            );
        }
        self.0 = Some(known.unwrap_or(Said { revision, since: now }));
        Some(now + ASK_EVERY)
    }
}
