//! Limits the rate for each address over all routes. A service that gets too many messages drops them for minutes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::service::RateLimits;
use crate::model::Digest;

const MINUTE: Duration = Duration::from_secs(60);

/// The times of messages to each address within the last minute.
#[derive(Debug, Default)]
pub struct RateLimiter(Mutex<BTreeMap<Digest, VecDeque<Instant>>>);

impl RateLimiter {
    /// Counts one message. Returns how many may be sent now, this one included, or when the next one may.
    pub fn take(&self, address: Digest, limits: RateLimits, now: Instant) -> Result<usize, Instant> {
        let mut all = self.0.lock();
        all.retain(|_, sent| {
            while sent.front().is_some_and(|at| *at + MINUTE <= now) {
                sent.pop_front();
            }
            !sent.is_empty()
        });
        let sent = all.entry(address).or_default();
        if let Some(free) = sent.back().map(|last| *last + limits.min_interval).filter(|free| *free > now) {
            return Err(free);
        }
        let room = usize::try_from(limits.per_minute).unwrap_or(usize::MAX).saturating_sub(sent.len());
        match sent.front() {
            Some(oldest) if room == 0 => Err(*oldest + MINUTE),
            _ => {
                sent.push_back(now);
                Ok(room)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_limit() {
        let (pace, begin) = (RateLimiter::default(), Instant::now());
        let limits = RateLimits { per_minute: 3, min_interval: Duration::from_secs(1) };
        let (here, there) = (Digest::of(b"here"), Digest::of(b"there"));
        let take = |address: &Digest, second: u64| {
            let taken = pace.take(*address, limits, begin + Duration::from_secs(second));
            taken.map_err(|free| (free - begin).as_secs())
        };
        assert_eq!(take(&here, 0), Ok(3));
        assert_eq!(take(&here, 0), Err(1));
        assert_eq!(take(&there, 0), Ok(3));
        assert_eq!((take(&here, 10), take(&here, 20)), (Ok(2), Ok(1)));
        assert_eq!(take(&here, 30), Err(60));
        assert_eq!((take(&here, 60), take(&here, 61)), (Ok(1), Err(70)));
    }
}
