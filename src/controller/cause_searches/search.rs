//! The search for the cause of one workload.

use std::time::Duration;

use tokio::time::Instant;

use crate::health::{OwnPods, ProgressChange, RolloutProgress};
use crate::model::{Digest, ObjectId};

/// A workload without progress for this time is stuck.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(10);
/// The pauses between two searches double while nothing changes.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(5);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A workload that is healthy for this time is forgotten. A workload that flaps is searched like a stuck one, and no sooner.
pub(super) const FORGET_AFTER: Duration = Duration::from_secs(60);

/// An unhealthy workload, as observed.
#[derive(Clone, Debug)]
pub struct UnhealthyWorkload {
    pub object: ObjectId,
    /// Hash of the applied object.
    pub hash: Digest,
    pub pods: OwnPods,
    /// About how many.
    pub pod_count: u32,
    pub progress: RolloutProgress,
    pub has_failed: bool,
    /// Its newest template has pods that may show a cause, or has none and an event shows why.
    pub has_pods: bool,
    /// Its first search does not wait until it is stuck.
    pub is_urgent: bool,
}

#[derive(Debug)]
pub struct CauseSearch {
    pub(super) pods: OwnPods,
    pub(super) pod_count: u32,
    hash: Digest,
    progress: RolloutProgress,
    has_failed: bool,
    has_pods: bool,
    due: Instant,
    pause: Duration,
    begun: Option<Instant>,
    is_under_way: bool,
    is_answered: bool,
    is_alone: bool,
    healthy_since: Option<Instant>,
}

impl CauseSearch {
    pub fn new(seen: UnhealthyWorkload, now: Instant) -> Self {
        Self {
            due: if seen.has_failed || seen.is_urgent { now } else { now + STUCK_AFTER },
            pods: seen.pods,
            pod_count: seen.pod_count,
            hash: seen.hash,
            progress: seen.progress,
            has_failed: seen.has_failed,
            has_pods: seen.has_pods,
            pause: FIRST_PAUSE,
            begun: None,
            is_under_way: false,
            is_answered: false,
            is_alone: false,
            healthy_since: None,
        }
    }

    pub fn update(&mut self, seen: UnhealthyWorkload, now: Instant) {
        let is_other = self.hash != seen.hash;
        let movement = self.progress.update(seen.progress);
        let has_moved = is_other || movement == ProgressChange::Forward;
        let begins_to_fail = seen.has_failed && (is_other || !self.has_failed);
        if is_other || begins_to_fail {
            self.is_answered = false;
        }
        if begins_to_fail || has_moved && seen.has_failed {
            (self.due, self.pause) = (now, FIRST_PAUSE);
        } else if has_moved {
            (self.due, self.pause) = (now + STUCK_AFTER, FIRST_PAUSE);
        }
        if let Some(soonest) = self.begun.map(|begun| begun + FIRST_PAUSE) {
            if movement == ProgressChange::Changed {
                (self.due, self.pause) = (self.due.min(soonest), FIRST_PAUSE);
            }
            self.due = self.due.max(soonest);
        }
        self.is_alone &= !is_other;
        self.hash = seen.hash;
        self.pods = seen.pods;
        self.pod_count = seen.pod_count;
        self.has_failed = seen.has_failed;
        self.has_pods = seen.has_pods;
        self.healthy_since = None;
    }

    pub fn mark_healthy(&mut self, now: Instant) {
        self.healthy_since.get_or_insert(now);
        self.has_failed = false;
    }

    /// Its pods are listed now.
    pub fn begin(&mut self, now: Instant) {
        self.begun = Some(now);
        self.is_under_way = true;
        self.due = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    pub fn mark_answered(&mut self, now: Instant) {
        self.is_under_way = false;
        self.is_answered = true;
        self.is_alone = false;
        // A slow server gets at least this pause.
        self.due = self.due.max(now + FIRST_PAUSE);
    }

    pub fn mark_cut_off(&mut self, now: Instant) {
        self.is_under_way = false;
        self.is_alone = true;
        self.due = now;
    }

    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// It is unhealthy, not a healthy one that is kept for a while.
    pub fn is_searched(&self) -> bool {
        self.healthy_since.is_none()
    }

    /// The time of its search or of its removal. `None` while a list is in progress.
    pub fn deadline(&self) -> Option<Instant> {
        match self.healthy_since {
            _ if self.is_under_way => None,
            Some(since) => Some(since + FORGET_AFTER),
            None => self.has_pods.then_some(self.due),
        }
    }

    pub fn is_pending(&self, now: Instant) -> bool {
        let is_due = self.has_pods && self.due <= now;
        !self.is_answered && self.is_searched() && (self.is_under_way || is_due)
    }

    /// It has no answer yet. `patience`: how long after the deadline an answer is waited for.
    pub fn is_unanswered(&self, now: Instant, patience: Duration) -> bool {
        self.has_pods && !self.is_answered && self.is_searched() && now < self.due + patience
    }

    /// It has no answer since it failed. This holds too if it was listed shortly before the failure and is due again a moment
    /// later. `patience`: how long after the deadline an answer is waited for.
    pub fn is_awaited(&self, now: Instant, patience: Duration) -> bool {
        self.has_failed && self.is_unanswered(now, patience)
    }
}
