//! Whether a watch tells anything at all.
//!
//! Between a server and us may be a proxy that keeps what a stream says until it ends, or an account may list and not watch:
//! the list is well, and what changes after it is never told. Nothing else would say so.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// After so many attempts in a row that broke off without a word, a watch is taken to tell nothing,
const ATTEMPTS: u32 = 3;
/// and not sooner than this after the first of them: a server that starts anew fails several times in a row.
const LEAST: Duration = Duration::from_secs(30);
/// What cannot be watched is listed this often.
const LIST_EVERY: Duration = Duration::from_secs(300);
/// At most so many parts of a thousand are added, so that all kinds of a cluster are not listed at once.
const JITTER: u64 = 200;

#[derive(Debug)]
pub(super) struct Sight {
    /// Whose pauses differ from those of others.
    subject: u64,
    /// Since it told something.
    failures: u32,
    since: Timestamp,
    first: Instant,
    /// Set while it tells nothing.
    list_at: Option<Instant>,
}

impl Sight {
    pub fn new(subject: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        subject.hash(&mut hasher);
        let (since, first) = (Timestamp::UNIX_EPOCH, Instant::now());
        Self { subject: hasher.finish(), failures: 0, since, first, list_at: None }
    }

    /// A watch broke off without a word. Since when, if that is one time too many.
    pub fn failed(&mut self) -> Option<Timestamp> {
        if self.failures == 0 {
            (self.since, self.first) = (Timestamp::now(), Instant::now());
        }
        self.failures += 1;
        let is_long = self.failures >= ATTEMPTS && self.first.elapsed() >= LEAST;
        (is_long && self.list_at.is_none()).then(|| {
            self.list_at = Some(Instant::now() + self.pause());
            self.since
        })
    }

    /// It tells something, or ended as a watch ends; whether that is news.
    pub fn tells(&mut self) -> bool {
        self.failures = 0;
        self.list_at.take().is_some()
    }

    /// A list was read whole.
    pub fn listed(&mut self) {
        if self.list_at.is_some() {
            self.list_at = Some(Instant::now() + self.pause());
        }
    }

    pub fn is_lost(&self) -> bool {
        self.list_at.is_some()
    }

    /// How long until it has to be listed, as it tells nothing.
    pub fn until_list(&self) -> Option<Duration> {
        self.list_at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    fn pause(&self) -> Duration {
        let part = u32::try_from(self.subject % JITTER).unwrap_or_default();
        LIST_EVERY + LIST_EVERY * part / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_tells_nothing_is_listed_until_it_does() {
        let mut sight = Sight::new("ConfigMap");
        assert!(sight.failed().is_none() && sight.failed().is_none());
        assert!(!sight.tells(), "two are no news");
        sight.listed();
        for _ in 0..9 {
            assert!(sight.failed().is_none() && sight.until_list().is_none(), "a moment is not long");
        }
        tokio::time::sleep(LEAST).await;
        assert!(sight.failed().is_some() && sight.is_lost());
        assert!(sight.failed().is_none(), "it is told once");
        let pause = sight.until_list().expect("a list");
        assert!(pause >= LIST_EVERY && pause <= LIST_EVERY.mul_f64(1.2), "{pause:?}");
        tokio::time::sleep(pause).await;
        assert_eq!(sight.until_list(), Some(Duration::ZERO));
        sight.listed();
        assert_eq!(sight.until_list(), Some(pause));
        assert!(sight.tells() && !sight.tells() && !sight.is_lost());
    }

    #[tokio::test(start_paused = true)]
    async fn seldom_is_not_in_a_row() {
        let mut sight = Sight::new("ConfigMap");
        for _ in 0..2 {
            assert!(sight.failed().is_none());
            tokio::time::sleep(LEAST).await;
        }
        assert!(!sight.tells());
        assert!(sight.failed().is_none(), "it has told something since");
    }

    #[test]
    fn kinds_are_not_listed_all_at_once() {
        let pauses: std::collections::BTreeSet<Duration> =
            (0..100).map(|kind| Sight::new(("bj5", kind)).pause()).collect();
        assert!(pauses.len() > 50, "{}", pauses.len());
    }
}
