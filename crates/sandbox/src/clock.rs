//! The cluster's clock: a wall-clock start plus the elapsed time of `tokio::time`, so that a paused
//! runtime gives virtual timestamps as well.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SandboxClock {
    epoch: Timestamp,
    started: Instant,
    /// How far it is off, in seconds.
    skew: i64,
}

impl SandboxClock {
    pub(crate) fn starting_at(epoch: std::time::SystemTime) -> Self {
        let epoch = Timestamp::try_from(epoch).unwrap_or(Timestamp::UNIX_EPOCH);
        Self { epoch, started: Instant::now(), skew: 0 }
    }

    pub(crate) fn skew(&mut self, seconds: i64) {
        self.skew = seconds;
    }

    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::ZERO);
        let elapsed = elapsed.saturating_add(SignedDuration::from_secs(self.skew));
        self.epoch.saturating_add(elapsed).unwrap_or(self.epoch)
    }

    /// Now as RFC 3339 in whole seconds, the form of `metav1.Time`.
    pub(crate) fn timestamp(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Now in seconds since 1970.
    pub(crate) fn seconds(&self) -> i64 {
        self.now().as_second()
    }

    /// A time in seconds since 1970 as RFC 3339.
    pub(crate) fn timestamp_at(&self, seconds: i64) -> String {
        Timestamp::from_second(seconds).unwrap_or(self.epoch).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Seconds since `timestamp`, for ages in tables.
    pub(crate) fn seconds_since(&self, timestamp: &str) -> Option<i64> {
        let then: Timestamp = timestamp.parse().ok()?;
        Some(self.now().as_second() - then.as_second())
    }
}
