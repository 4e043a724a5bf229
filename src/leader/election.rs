//! Decides when this process may take the lease, from its own observations alone.
//!
//! Timestamps in the lease are not used, as clocks differ. A lease is expired when it stayed unchanged for its duration, by the
//! observer's monotonic clock.

use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::Lease;

/// Bounds of a lease's duration, whatever it says.
const MIN_LEASE_DURATION: Duration = Duration::from_secs(1);
const MAX_LEASE_DURATION: Duration = Duration::from_secs(60);

/// After a longer gap between observations the time between them is unknown: the home cluster did not answer.
const MAX_OBSERVATION_GAP: Duration = Duration::from_secs(6);
/// After a gap the leader gets so long to renew: it waited for the same cluster.
const SETTLE_TIME: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionStep {
    /// Take the free lease.
    Acquire,
    Renew,
    /// Another process leads.
    Wait,
    /// Another process, or nobody, holds what was ours.
    Lost,
}

/// The election as one process sees it.
#[derive(Debug)]
pub struct Election {
    holder: String,
    lease: Option<Lease>,
    /// When the last change was observed.
    changed_at: Option<Instant>,
    /// Duration during which it counts as held unless it is given back: also after it was deleted or emptied by hand.
    hold_duration: Option<Duration>,
    /// The last observation, and the first one since the last gap.
    observations: Option<(Instant, Instant)>,
    leads: bool,
}

impl Election {
    pub fn new(holder: String) -> Self {
        Self { holder, lease: None, changed_at: None, hold_duration: None, observations: None, leads: false }
    }

    pub fn leads(&self) -> bool {
        self.leads
    }

    pub fn holder(&self) -> &str {
        &self.holder
    }

    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    pub fn observe(&mut self, lease: Option<Lease>, now: Instant) {
        let is_same = match (&self.lease, &lease) {
            (Some(before), Some(now)) => before.has_same_spec(now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if !is_same {
            self.changed_at = Some(now);
        }
        let first = self
            .observations
            .filter(|(last, _)| now <= *last + MAX_OBSERVATION_GAP)
            .map_or(now, |(_, first)| first);
        self.observations = Some((now, first));
        match &lease {
            Some(lease) if !lease.holder().is_empty() => self.hold_duration = Some(lease.duration()),
            Some(lease) if lease.is_released() => self.hold_duration = None,
            _ => {}
        }
        self.lease = lease;
    }

    /// Our write succeeded.
    pub fn record_write(&mut self, lease: Lease, now: Instant) {
        self.leads = lease.holder() == self.holder;
        self.observe(Some(lease), now);
    }

    pub fn step(&self, now: Instant) -> ElectionStep {
        let leader = self.lease.as_ref().map_or("", Lease::holder);
        if leader == self.holder {
            ElectionStep::Renew
        } else if self.leads {
            ElectionStep::Lost
        } else if self.is_expired(now) {
            ElectionStep::Acquire
        } else {
            ElectionStep::Wait
        }
    }

    fn is_expired(&self, now: Instant) -> bool {
        let (Some(lasts), Some(changed), Some((_, first))) =
            (self.hold_duration, self.changed_at, self.observations)
        else {
            return true;
        };
        now >= changed + lasts.clamp(MIN_LEASE_DURATION, MAX_LEASE_DURATION) && now >= first + SETTLE_TIME
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    const LEASE_DURATION: Duration = Duration::from_secs(10);

    fn lease(holder: &str, renewals: i64) -> Lease {
        let now = Timestamp::from_second(renewals).expect("a time");
        Lease::default().with_holder(holder, LEASE_DURATION, "config.git", now)
    }

    #[tokio::test(start_paused = true)]
    async fn lease_expires_when_unchanged_for_its_duration() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let check = |seen: &[(u64, Option<Lease>)], now: u64, expected: ElectionStep| {
            let mut election = Election::new("me".to_owned());
            for (seconds, lease) in seen {
                election.observe(lease.clone(), at(*seconds));
            }
            assert_eq!(election.step(at(now)), expected, "{seen:?} at {now}");
        };
        let other = |renewals| Some(lease("other", renewals));
        check(&[(0, None)], 0, ElectionStep::Acquire);
        check(&[(0, other(1))], 9, ElectionStep::Wait);
        check(&[(0, other(1))], 10, ElectionStep::Acquire);
        check(&[(0, other(1)), (5, other(1))], 10, ElectionStep::Acquire);
        // A gap: the leader waited for the same cluster and gets time to renew.
        check(&[(0, other(1)), (30, other(1))], 34, ElectionStep::Wait);
        check(&[(0, other(1)), (30, other(1)), (32, other(1)), (35, other(1))], 35, ElectionStep::Acquire);
        check(&[(0, other(1)), (30, other(1)), (32, other(2))], 41, ElectionStep::Wait);
        check(&[(0, other(1)), (8, other(2))], 17, ElectionStep::Wait);
        check(&[(0, other(1)), (8, other(2))], 18, ElectionStep::Acquire);
        check(
            &[(0, other(1)), (5, other(1).map(|lease| lease.with_hint("look")))],
            10,
            ElectionStep::Acquire,
        );
        check(
            &[(0, other(1)), (2, Some(lease("other", 1).without_holder(Timestamp::UNIX_EPOCH)))],
            2,
            ElectionStep::Acquire,
        );
        // A deleted or emptied lease may still be renewed by its holder.
        check(&[(0, other(1)), (2, None)], 11, ElectionStep::Wait);
        check(&[(0, other(1)), (2, None)], 12, ElectionStep::Acquire);
        let emptied = Lease::default().with_holder("", LEASE_DURATION, "config.git", Timestamp::UNIX_EPOCH);
        check(&[(0, other(1)), (2, Some(emptied.clone()))], 11, ElectionStep::Wait);
        check(&[(0, other(1)), (2, Some(emptied))], 12, ElectionStep::Acquire);
        // The answer to our write was lost.
        check(&[(0, Some(lease("me", 1)))], 0, ElectionStep::Renew);
        // Absurd durations are limited.
        let lasting =
            |lasts| Some(Lease::default().with_holder("other", lasts, "config.git", Timestamp::UNIX_EPOCH));
        check(&[(0, lasting(Duration::ZERO))], 0, ElectionStep::Wait);
        check(&[(0, lasting(Duration::from_secs(1 << 30)))], 60, ElectionStep::Acquire);
    }

    #[tokio::test(start_paused = true)]
    async fn leader_without_its_lease_is_lost() {
        let now = Instant::now();
        let check = |lease: Option<Lease>, expected: ElectionStep| {
            let mut election = Election::new("me".to_owned());
            election.record_write(self::lease("me", 1), now);
            assert!(election.leads());
            election.observe(lease, now);
            assert_eq!(election.step(now), expected);
        };
        check(Some(lease("me", 2)), ElectionStep::Renew);
        check(Some(lease("other", 2)), ElectionStep::Lost);
        check(Some(lease("other", 2).without_holder(Timestamp::UNIX_EPOCH)), ElectionStep::Lost);
        check(None, ElectionStep::Lost);
    }
}
