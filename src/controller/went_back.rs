//! A remote that answers with a commit which does not go on from the one before: the branch was set back or rewritten, or another
//! copy of the repository answered, which is behind. What was there would be deleted and put back a moment later.
//!
//! It is believed when a hook speaks of that commit, or when for a minute no answer goes on from the last commit.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::Revision;

/// How long no answer may go on from the last commit.
const BELIEVED_AFTER: Duration = Duration::from_secs(60);
/// How often it is asked meanwhile.
const ASK_EVERY: Duration = Duration::from_secs(15);

/// Since when no answer does.
#[derive(Debug, Default)]
pub struct WentBack(Option<Instant>);

impl WentBack {
    /// What it says next is believed, whatever it is: others may go on from there by now.
    pub fn is_believed(&self, now: Instant) -> bool {
        self.0.is_some_and(|since| now >= since + BELIEVED_AFTER)
    }

    /// What the remote has just said that does not go on from the head, and when it is to be asked again.
    pub fn take(
        &mut self,
        said: Option<&Revision>,
        head: Option<&Revision>,
        now: Instant,
    ) -> Option<Instant> {
        let Some(said) = said else {
            self.0 = None;
            return None;
        };
        if self.0.is_none() {
            tracing::warn!(
                revision = said.short(),
                head = head.map(Revision::short),
                "the branch does not go on from its last commit; it is believed when it stays so for a minute"
            );
        }
        self.0.get_or_insert(now);
        Some(now + ASK_EVERY)
    }
}
