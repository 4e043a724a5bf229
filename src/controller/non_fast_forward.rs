//! A non-fast-forward head: the remote returns a commit that does not descend from the last one. The branch was reset or
//! rewritten, or a stale replica answered. Accepting it at once would delete objects and create them again a moment later.
//!
//! It is accepted when a hook names that commit, or when for a minute every answer is non-fast-forward.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::Revision;

/// How long every answer must be non-fast-forward.
const CONFIRMED_AFTER: Duration = Duration::from_secs(60);
/// How often Git is read meanwhile.
const POLL_INTERVAL: Duration = Duration::from_secs(15);

/// Time of the first such answer.
#[derive(Debug, Default)]
pub struct NonFastForward(Option<Instant>);

impl NonFastForward {
    /// The next answer is accepted whatever commit it is, because newer commits may follow by then.
    pub fn is_confirmed(&self, now: Instant) -> bool {
        self.0.is_some_and(|since| now >= since + CONFIRMED_AFTER)
    }

    /// Records the answer of the remote that does not descend from the head. Returns when to read Git again.
    pub fn observe(
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
                "non-fast-forward: the branch no longer contains the last commit; tutti applies the new head \
                 if it stays for a minute"
            );
        }
        self.0.get_or_insert(now);
        Some(now + POLL_INTERVAL)
    }
}
