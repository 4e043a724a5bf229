//! The current policies, and their verdicts on deletes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::in_flight::ObjectKey;
use super::prune_state::key;
use crate::cluster::Error;
use crate::model::{ClusterName, PolicyDenial};
use crate::plan::PruneCandidate;
use crate::render::Admission;

/// An object that could not be read is read again after this time.
const READ_RETRY_DELAY: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct PolicyState {
    /// `None`: there are no policies.
    pub admission: Option<Arc<Admission>>,
    /// Verdicts on deletes, by the state of the object.
    deletes: BTreeMap<ObjectKey, (String, DeleteVerdict)>,
}

#[derive(Debug)]
enum DeleteVerdict {
    Reading,
    Failed { again: Instant },
    Judged(Option<PolicyDenial>),
}

impl PolicyState {
    pub fn new(admission: Option<Arc<Admission>>) -> Self {
        Self { admission, deletes: BTreeMap::new() }
    }

    fn verdict(&self, candidate: &PruneCandidate) -> Option<&DeleteVerdict> {
        let (state, verdict) = self.deletes.get(&key(candidate))?;
        (*state == object_state(candidate)).then_some(verdict)
    }

    pub fn denial(&self, candidate: &PruneCandidate) -> Option<&PolicyDenial> {
        match self.verdict(candidate)? {
            DeleteVerdict::Judged(denial) => denial.as_ref(),
            DeleteVerdict::Reading | DeleteVerdict::Failed { .. } => None,
        }
    }

    /// No policy matches it, or its delete was judged and allowed.
    pub fn allows(&self, candidate: &PruneCandidate) -> bool {
        let Some(admission) = &self.admission else { return true };
        !admission.may_deny_deletes(&candidate.kind)
            || matches!(self.verdict(candidate), Some(DeleteVerdict::Judged(None)))
    }

    /// The cluster is listed again: requests over the previous connection get no answer any more.
    pub fn connected(&mut self, cluster: &ClusterName) {
        self.deletes.retain(|(of, _), _| of != cluster);
    }

    pub fn is_reading(&self) -> bool {
        self.deletes.values().any(|(_, verdict)| matches!(verdict, DeleteVerdict::Reading))
    }

    /// The object must be read for a verdict.
    pub fn needs_reading(&self, candidate: &PruneCandidate, now: Instant) -> bool {
        match self.verdict(candidate) {
            None => true,
            Some(DeleteVerdict::Failed { again }) => *again <= now,
            Some(DeleteVerdict::Reading | DeleteVerdict::Judged(_)) => false,
        }
    }

    /// The time of the next try, after a read that failed.
    pub fn next_retry(&self, now: Instant) -> Option<Instant> {
        let failed = self.deletes.values().filter_map(|(_, verdict)| match verdict {
            DeleteVerdict::Failed { again } => Some(*again),
            _ => None,
        });
        failed.filter(|again| *again > now).min()
    }

    pub fn mark_reading(&mut self, candidate: &PruneCandidate) {
        self.deletes.insert(key(candidate), (object_state(candidate), DeleteVerdict::Reading));
    }

    /// Records the result of a read, unless another state of the object is read by now.
    pub fn record_result(&mut self, candidate: &PruneCandidate, result: Result<Option<PolicyDenial>, Error>) {
        let known = self.deletes.get_mut(&key(candidate));
        let is_it = |known: &&mut (String, DeleteVerdict)| {
            known.0 == object_state(candidate) && matches!(known.1, DeleteVerdict::Reading)
        };
        let Some((_, verdict)) = known.filter(is_it) else { return };
        *verdict = match result {
            Ok(denial) => DeleteVerdict::Judged(denial),
            Err(error) => {
                tracing::warn!(cluster = %candidate.cluster, %error, "failed to read the object: its delete \
                    waits until the policies can be evaluated");
                DeleteVerdict::Failed { again: Instant::now() + READ_RETRY_DELAY }
            }
        };
    }
}

/// Another state of the object needs another verdict.
fn object_state(candidate: &PruneCandidate) -> String {
    format!("{} {}", candidate.uid, candidate.resource_version)
}
