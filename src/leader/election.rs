//! Decides when this process may take the lease, from its own observations alone.
//!
//! Timestamps in the lease are not used, as clocks differ. A lease is expired when it stayed unchanged for its duration, by the
//! observer's monotonic clock.

use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::Lease;

/// Bounds of a lease's duration, whatever it says.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// After a longer gap between observations the time between them is unknown: the home cluster did not answer.
const GAP: Duration = Duration::from_secs(6);
/// After a gap the leader gets so long to renew: it waited for the same cluster.
const SETTLES: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
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
    changed: Option<Instant>,
    /// Duration during which it counts as held unless it is given back: also after it was deleted or emptied by hand.
    held: Option<Duration>,
    /// The last observation, and the first one since the last gap.
    looks: Option<(Instant, Instant)>,
    leads: bool,
}

impl Election {
    pub fn new(holder: String) -> Self {
        Self { holder, lease: None, changed: None, held: None, looks: None, leads: false }
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
            (Some(before), Some(now)) => before.is_as_held_as(now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if !is_same {
            self.changed = Some(now);
        }
        let first = self.looks.filter(|(last, _)| now <= *last + GAP).map_or(now, |(_, first)| first);
        self.looks = Some((now, first));
        match &lease {
            Some(lease) if !lease.holder().is_empty() => self.held = Some(lease.lasts()),
            Some(lease) if lease.is_released() => self.held = None,
            _ => {}
        }
        self.lease = lease;
    }

    /// Our write succeeded.
    pub fn record_write(&mut self, lease: Lease, now: Instant) {
        self.leads = lease.holder() == self.holder;
        self.observe(Some(lease), now);
    }

    pub fn step(&self, now: Instant) -> Step {
        let leader = self.lease.as_ref().map_or("", Lease::holder);
        if leader == self.holder {
            Step::Renew
        } else if self.leads {
            Step::Lost
        } else if self.is_over(now) {
            Step::Acquire
        } else {
            Step::Wait
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        let (Some(lasts), Some(changed), Some((_, first))) = (self.held, self.changed, self.looks) else {
            return true;
        };
        now >= changed + lasts.clamp(SHORTEST, LONGEST) && now >= first + SETTLES
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    const LEASE_DURATION: Duration = Duration::from_secs(10);

    fn lease(holder: &str, renewals: i64) -> Lease {
        let now = Timestamp::from_second(renewals).expect("a time");
        Lease::default().held(holder, LEASE_DURATION, "config.git", now)
    }

    #[tokio::test(start_paused = true)]
    async fn lease_expires_when_unchanged_for_its_duration() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let check = |seen: &[(u64, Option<Lease>)], now: u64, expected: Step| {
            let mut election = Election::new("me".to_owned());
            for (seconds, lease) in seen {
                election.observe(lease.clone(), at(*seconds));
            }
            assert_eq!(election.step(at(now)), expected, "{seen:?} at {now}");
        };
        let other = |renewals| Some(lease("other", renewals));
        check(&[(0, None)], 0, Step::Acquire);
        check(&[(0, other(1))], 9, Step::Wait);
        check(&[(0, other(1))], 10, Step::Acquire);
        check(&[(0, other(1)), (5, other(1))], 10, Step::Acquire);
        // A gap: the leader waited for the same cluster and gets time to renew.
        check(&[(0, other(1)), (30, other(1))], 34, Step::Wait);
        check(&[(0, other(1)), (30, other(1)), (32, other(1)), (35, other(1))], 35, Step::Acquire);
        check(&[(0, other(1)), (30, other(1)), (32, other(2))], 41, Step::Wait);
        check(&[(0, other(1)), (8, other(2))], 17, Step::Wait);
        check(&[(0, other(1)), (8, other(2))], 18, Step::Acquire);
        check(&[(0, other(1)), (5, other(1).map(|lease| lease.with_hint("look")))], 10, Step::Acquire);
        check(
            &[(0, other(1)), (2, Some(lease("other", 1).released(Timestamp::UNIX_EPOCH)))],
            2,
            Step::Acquire,
        );
        // A deleted or emptied lease may still be renewed by its holder.
        check(&[(0, other(1)), (2, None)], 11, Step::Wait);
        check(&[(0, other(1)), (2, None)], 12, Step::Acquire);
        let emptied = Lease::default().held("", LEASE_DURATION, "config.git", Timestamp::UNIX_EPOCH);
        check(&[(0, other(1)), (2, Some(emptied.clone()))], 11, Step::Wait);
        check(&[(0, other(1)), (2, Some(emptied))], 12, Step::Acquire);
        // The answer to our write was lost.
        check(&[(0, Some(lease("me", 1)))], 0, Step::Renew);
        // Absurd durations are limited.
        let lasting =
            |lasts| Some(Lease::default().held("other", lasts, "config.git", Timestamp::UNIX_EPOCH));
        check(&[(0, lasting(Duration::ZERO))], 0, Step::Wait);
        check(&[(0, lasting(Duration::from_secs(1 << 30)))], 60, Step::Acquire);
    }

    #[tokio::test(start_paused = true)]
    async fn leader_without_its_lease_is_lost() {
        let now = Instant::now();
        let check = |lease: Option<Lease>, expected: Step| {
            let mut election = Election::new("me".to_owned());
            election.record_write(self::lease("me", 1), now);
            assert!(election.leads());
            election.observe(lease, now);
            assert_eq!(election.step(now), expected);
        };
        check(Some(lease("me", 2)), Step::Renew);
        check(Some(lease("other", 2)), Step::Lost);
        check(Some(lease("other", 2).released(Timestamp::UNIX_EPOCH)), Step::Lost);
        check(None, Step::Lost);
    }
}
