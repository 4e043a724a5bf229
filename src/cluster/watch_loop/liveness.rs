//! Detects a watch that delivers nothing.
//!
//! A proxy may buffer a stream until it ends, or an account may list and not watch. Then the list is fine, and later
//! changes are never reported. No error shows it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// A watch counts as silent after so many interrupted attempts in a row without an event,
const ATTEMPTS: u32 = 3;
/// and at the earliest this long after the first: a restarting server fails several times in a row.
const LEAST: Duration = Duration::from_secs(30);
/// The interval of lists for a silent watch.
const LIST_EVERY: Duration = Duration::from_secs(300);
/// Up to so many thousandths are added, so that the kinds of a cluster are not all listed at once.
const JITTER: u64 = 200;

#[derive(Debug)]
pub(super) struct WatchLiveness {
    /// Selects the jitter.
    subject: u64,
    /// Since the last event.
    failures: u32,
    since: Timestamp,
    first: Instant,
    /// Set while the watch is silent.
    list_at: Option<Instant>,
}

impl WatchLiveness {
    pub fn new(subject: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        subject.hash(&mut hasher);
        let (since, first) = (Timestamp::UNIX_EPOCH, Instant::now());
        Self { subject: hasher.finish(), failures: 0, since, first, list_at: None }
    }

    /// An attempt without an event failed. Returns the time of the first failure if the watch now counts as silent.
    pub fn note_failure(&mut self) -> Option<Timestamp> {
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

    /// The watch delivered an event, or ended normally. Returns whether it was silent before.
    pub fn note_event(&mut self) -> bool {
        self.failures = 0;
        self.list_at.take().is_some()
    }

    /// A list was whole.
    pub fn note_list(&mut self) {
        if self.list_at.is_some() {
            self.list_at = Some(Instant::now() + self.pause());
        }
    }

    pub fn is_polling(&self) -> bool {
        self.list_at.is_some()
    }

    /// The time until the next list of a silent watch.
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
    async fn silent_watch_is_listed_until_it_works() {
        let mut sight = WatchLiveness::new("ConfigMap");
        assert!(sight.note_failure().is_none() && sight.note_failure().is_none());
        assert!(!sight.note_event(), "two are no news");
        sight.note_list();
        for _ in 0..9 {
            assert!(sight.note_failure().is_none() && sight.until_list().is_none(), "a moment is not long");
        }
        tokio::time::sleep(LEAST).await;
        assert!(sight.note_failure().is_some() && sight.is_polling());
        assert!(sight.note_failure().is_none(), "it is told once");
        let pause = sight.until_list().expect("a list");
        assert!(pause >= LIST_EVERY && pause <= LIST_EVERY.mul_f64(1.2), "{pause:?}");
        tokio::time::sleep(pause).await;
        assert_eq!(sight.until_list(), Some(Duration::ZERO));
        sight.note_list();
        assert_eq!(sight.until_list(), Some(pause));
        assert!(sight.note_event() && !sight.note_event() && !sight.is_polling());
    }

    #[tokio::test(start_paused = true)]
    async fn seldom_is_not_in_a_row() {
        let mut sight = WatchLiveness::new("ConfigMap");
        for _ in 0..2 {
            assert!(sight.note_failure().is_none());
            tokio::time::sleep(LEAST).await;
        }
        assert!(!sight.note_event());
        assert!(sight.note_failure().is_none(), "it has told something since");
    }

    #[test]
    fn kinds_are_not_listed_all_at_once() {
        let pauses: std::collections::BTreeSet<Duration> =
            (0..100).map(|kind| WatchLiveness::new(("bj5", kind)).pause()).collect();
        assert!(pauses.len() > 50, "{}", pauses.len());
    }
}
