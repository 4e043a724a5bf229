//! Whose turn it is to lead, by what one process has seen of the lease.
//!
//! Times that others wrote are not read: clocks differ. A lease is over when it has stood unchanged for as long as it lasts, by the clock
//! of whoever looks at it.

use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::Lease;

/// What somebody wrote as the duration of a lease is believed within these.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Looks that are further apart than this tell nothing of what happened between them: the home cluster did not answer.
const GAP: Duration = Duration::from_secs(6);
/// After a gap the leader gets this long to renew its lease, before another process may take it: it waited for the same cluster.
const SETTLES: Duration = Duration::from_secs(5);

/// What a process does next about the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nobody leads: it is written with our name.
    Acquire,
    /// It is ours.
    Renew,
    /// Another one leads.
    Wait,
    /// It was ours, and is not any more.
    Lost,
}

/// Of one process.
#[derive(Debug)]
pub struct Election {
    holder: String,
    lease: Option<Lease>,
    /// When the lease was seen to have changed last.
    changed: Option<Instant>,
    /// How long it is somebody's, who did not give it back: also one that is gone, or was emptied by hand.
    held: Option<Duration>,
    /// The last look, and the first one after which no gap was.
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

    /// The lease as it was read just now.
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

    /// Our write went through.
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
    async fn lease_is_taken_when_it_stood_unchanged_for_as_long_as_it_lasts() {
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
        // Nothing was seen of it meanwhile: the leader waited for the same cluster, and gets its turn.
        check(&[(0, other(1)), (30, other(1))], 34, Step::Wait);
        check(&[(0, other(1)), (30, other(1)), (32, other(1)), (35, other(1))], 35, Step::Acquire);
        check(&[(0, other(1)), (30, other(1)), (32, other(2))], 41, Step::Wait);
        check(&[(0, other(1)), (8, other(2))], 17, Step::Wait);
        check(&[(0, other(1)), (8, other(2))], 18, Step::Acquire);
        // A hint is no renewal.
        check(&[(0, other(1)), (5, other(1).map(|lease| lease.with_hint("look")))], 10, Step::Acquire);
        check(
            &[(0, other(1)), (2, Some(lease("other", 1).released(Timestamp::UNIX_EPOCH)))],
            2,
            Step::Acquire,
        );
        // One that somebody deleted or emptied may still be renewed by whoever held it.
        check(&[(0, other(1)), (2, None)], 11, Step::Wait);
        check(&[(0, other(1)), (2, None)], 12, Step::Acquire);
        let emptied = Lease::default().held("", LEASE_DURATION, "config.git", Timestamp::UNIX_EPOCH);
        check(&[(0, other(1)), (2, Some(emptied.clone()))], 11, Step::Wait);
        check(&[(0, other(1)), (2, Some(emptied))], 12, Step::Acquire);
        // Our write went through, and its answer was lost.
        check(&[(0, Some(lease("me", 1)))], 0, Step::Renew);
        // Nonsense lasts neither for ever nor for no time.
        let lasting =
            |lasts| Some(Lease::default().held("other", lasts, "config.git", Timestamp::UNIX_EPOCH));
        check(&[(0, lasting(Duration::ZERO))], 0, Step::Wait);
        check(&[(0, lasting(Duration::from_secs(1 << 30)))], 60, Step::Acquire);
    }

    #[tokio::test(start_paused = true)]
    async fn leader_loses_whatever_is_not_its_own() {
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
