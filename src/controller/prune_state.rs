//! The state of deletes: decided, sent, refused.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::cluster_entry::ClusterEntry;
use super::in_flight::{InFlight, ObjectKey as Key};
use crate::fleet::Target;
use crate::model::{AppId, ApprovedObject, ClusterName, Revision};
use crate::plan::{PruneCandidate, PruneDecision, StepOrder};

const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// An object that changed is sent again at once, but only this often in a row.
const IMMEDIATE_RETRIES: u32 = 3;

/// An object that is being deleted.
#[derive(Debug)]
pub struct TerminatingObject {
    pub app: AppId,
    /// Objects of later turns wait until it is gone.
    pub turn: StepOrder,
}

/// The state of deletes.
#[derive(Debug, Default)]
pub struct PruneState {
    pub decision: PruneDecision,
    /// Objects that Git no longer contains, with the head at which that was first seen.
    pub undesired_since: BTreeMap<Key, Revision>,
    /// Apps that left a cluster whose objects are not known yet, with the commit that removed them.
    pub pending_removals: BTreeMap<Target, Revision>,
    /// Objects with a deletionTimestamp, or whose delete was sent.
    pub terminating: BTreeMap<Key, TerminatingObject>,
    /// Deletes that were sent at this head, and accepted or in progress. The uid is part of it: a later object of the same name
    /// is another one.
    pub sent_deletes: BTreeMap<Key, SentDelete>,
    /// Number of deleted objects per commit, for its final report.
    pub confirmed_deletes: BTreeMap<(Revision, ClusterName), usize>,
    /// Objects that were over the cap once. A later commit that lowers the count, hides objects or delays them does not release
    /// the others without an approval.
    pub over_cap: BTreeSet<ApprovedObject>,
    /// Those that were over the cap while the total or the renders of a cluster were incomplete. Decided again when all is known.
    pub over_cap_provisional: BTreeSet<ApprovedObject>,
    pub refused: BTreeMap<Key, DeleteRefusal>,
}

/// A delete that was sent.
#[derive(Debug)]
pub struct SentDelete {
    pub uid: String,
    /// Counts against the cap. Approved deletes and ended runs do not.
    pub counts_against_cap: bool,
    /// The cluster is being listed again. If the object is still there after that, the delete must be sent again.
    pub needs_recheck: bool,
}

/// A refusal by the cluster. The same request is retried with a growing delay.
#[derive(Debug)]
pub struct DeleteRefusal {
    /// Another state of the object is another request.
    resource_version: String,
    text: String,
    attempts: u32,
    pub retry_at: Instant,
}

impl PruneState {
    /// A new head: deletes of the previous head do not count against its cap. Objects over the cap stay over it.
    pub fn begin_head(&mut self, in_flight: &InFlight) {
        self.sent_deletes.retain(|key, _| in_flight.is_deleting(key));
    }

    /// The cluster is listed again. It may have been restored from a backup, or be another cluster.
    pub fn begin_connection(&mut self, cluster: &ClusterName, in_flight: &InFlight) {
        for (key, asked) in &mut self.sent_deletes {
            asked.needs_recheck |= key.0 == *cluster && !in_flight.is_deleting(key);
        }
    }

    pub fn mark_accepted(&mut self, candidate: &PruneCandidate) {
        self.refused.remove(&key(candidate));
    }

    /// Cancelled before it was sent.
    pub fn mark_not_sent(&mut self, candidate: &PruneCandidate) {
        self.sent_deletes.remove(&key(candidate));
    }

    /// Accepted over an earlier connection. The current cluster may be another one, or a restored backup.
    pub fn mark_accepted_earlier(&mut self, candidate: &PruneCandidate) {
        self.mark_accepted(candidate);
        if let Some(asked) = self.sent_deletes.get_mut(&key(candidate)) {
            asked.needs_recheck = true;
        }
    }

    /// Another instance name is another inventory.
    pub fn clear(&mut self) {
        self.pending_removals.clear();
        self.over_cap.clear();
        self.over_cap_provisional.clear();
    }

    pub fn refused(&mut self, candidate: &PruneCandidate, text: String, now: Instant) {
        self.sent_deletes.remove(&key(candidate));
        self.delay(candidate, text, now);
    }

    /// The decision is final when the state of all clusters is known.
    pub fn record_over_cap(&mut self, is_sure: bool) {
        for object in &self.decision.over_cap {
            if self.over_cap.insert(object.clone()) && !is_sure {
                self.over_cap_provisional.insert(object.clone());
            }
        }
    }

    /// The result is unknown: at this head the delete counts until the object is seen again.
    pub fn mark_failed(&mut self, candidate: &PruneCandidate, text: String, now: Instant) {
        if let Some(asked) = self.sent_deletes.get_mut(&key(candidate)) {
            asked.needs_recheck = true;
        }
        self.delay(candidate, text, now);
    }

    /// The leader's Lease was not renewed in time: like [`Self::mark_failed`], with a constant delay.
    pub fn mark_lease_wait(&mut self, candidate: &PruneCandidate, text: String, now: Instant) {
        self.refused.remove(&key(candidate));
        self.mark_failed(candidate, text, now);
    }

    fn delay(&mut self, candidate: &PruneCandidate, text: String, now: Instant) {
        let key = key(candidate);
        let attempts = self.refused.get(&key).map_or(0, |refusal| refusal.attempts + 1);
        let pause = FIRST_PAUSE.saturating_mul(1 << attempts.min(6)).min(LONGEST_PAUSE);
        let resource_version = candidate.resource_version.clone();
        self.refused.insert(key, DeleteRefusal { resource_version, text, attempts, retry_at: now + pause });
    }

    /// The refusal of a delete that is due.
    pub fn refusal(&self, key: &Key) -> Option<&str> {
        self.refused.get(key).map(|refusal| refusal.text.as_str())
    }

    /// `cluster`: the cluster that shows the object.
    pub fn is_sent(&self, cluster: &ClusterEntry, key: &Key, uid: &str) -> bool {
        let holds = |asked: &SentDelete| !asked.needs_recheck || !cluster.observation.complete;
        self.sent_deletes.get(key).is_some_and(|asked| asked.uid == uid && holds(asked))
    }

    pub fn may_send(&self, candidate: &PruneCandidate, now: Instant) -> bool {
        self.refused.get(&key(candidate)).is_none_or(|refusal| {
            let is_another = refusal.resource_version != candidate.resource_version;
            refusal.retry_at <= now || (is_another && refusal.attempts < IMMEDIATE_RETRIES)
        })
    }
}

pub fn key(candidate: &PruneCandidate) -> Key {
    (candidate.cluster.clone(), candidate.object.clone())
}
