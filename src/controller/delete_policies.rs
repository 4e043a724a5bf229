//! Policies at deploy time: the current policies, and their verdicts on deletes.
//!
//! Verdicts on writes are kept with the observation of each object (`Observation::verdicts`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::event::{ClusterNews, Event};
use super::in_flight::ObjectKey;
use super::state::ControllerState;
use crate::cluster::Error;
use crate::model::{ClusterName, PolicyDenial};
use crate::plan::{PruneCandidate, StepReason};
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
}

fn key(candidate: &PruneCandidate) -> ObjectKey {
    (candidate.cluster.clone(), candidate.object.clone())
}

/// Another state of the object needs another verdict.
fn object_state(candidate: &PruneCandidate) -> String {
    format!("{} {}", candidate.uid, candidate.resource_version)
}

impl ControllerState {
    /// Earlier verdicts were about other policies, or about other objects of the app.
    pub(super) fn update_admission(&mut self, admission: Option<Arc<Admission>>) {
        if self.policy_state.admission.is_none() && admission.is_none() {
            return;
        }
        let is_as_before = match (&self.policy_state.admission, &admission) {
            (Some(before), Some(after)) => after.has_same_policies(before),
            (None, Some(_)) => false,
            (_, None) => true,
        };
        if !is_as_before {
            // Work in progress was judged by other policies.
            self.in_flight.cancel_all();
        }
        self.policy_state = PolicyState { admission, deletes: BTreeMap::new() };
        for cluster in self.clusters.values_mut() {
            cluster.observation.verdicts.clear();
        }
        let mut denied = Vec::new();
        for (id, entry) in self.targets.iter() {
            let is_denied =
                |it: &crate::plan::PlanStep| matches!(it.reason.cause(), StepReason::Denied { .. });
            if entry.plan.as_ref().is_some_and(|plan| plan.steps.iter().any(is_denied)) {
                denied.push(id.clone());
            }
        }
        for id in denied {
            if let Some(entry) = self.targets.get_mut(&id) {
                entry.reset_rechecks();
            }
            self.mark_due(&id);
        }
    }

    /// Reads objects whose deletes policies judge. Returns the time of the next try.
    pub(super) fn judge_deletes(&mut self, now: Instant) -> Option<Instant> {
        let admission = self.policy_state.admission.clone()?;
        let due = self.prune.decision.deletes.iter().map(|decided| &decided.candidate);
        let due = due.filter(|it| admission.may_deny_deletes(&it.kind));
        let due: Vec<PruneCandidate> = due
            .filter(|it| match self.policy_state.verdict(it) {
                None => true,
                Some(DeleteVerdict::Failed { again }) => *again <= now,
                Some(DeleteVerdict::Reading | DeleteVerdict::Judged(_)) => false,
            })
            .cloned()
            .collect();
        for candidate in due {
            self.judge_delete(&admission, candidate);
        }
        let failed = self.policy_state.deletes.values().filter_map(|(_, verdict)| match verdict {
            DeleteVerdict::Failed { again } => Some(*again),
            _ => None,
        });
        failed.filter(|again| *again > now).min()
    }

    fn judge_delete(&mut self, admission: &Arc<Admission>, candidate: PruneCandidate) {
        let Some(cluster) = self.clusters.get(&candidate.cluster) else { return };
        let (Some(client), Some(resource)) =
            (cluster.client.clone(), cluster.catalog.get(&candidate.kind).cloned())
        else {
            return;
        };
        let (epoch, events, admission) = (cluster.epoch, self.events.clone(), Arc::clone(admission));
        self.policy_state.deletes.insert(key(&candidate), (object_state(&candidate), DeleteVerdict::Reading));
        tokio::spawn(async move {
            let found = client.get(&resource, &candidate.object).await;
            // For an object that is gone by now, the delete finds that out.
            let PruneCandidate { app, cluster, .. } = &candidate;
            let result =
                found.map(|live| admission.denies_delete(app, cluster, live.as_ref()?, resource.plural()));
            let name = candidate.cluster.clone();
            let news = ClusterNews::DeleteJudged { candidate: Box::new(candidate), admission, result };
            // The send fails only when the controller has stopped.
            let _ = events.send(Event::Cluster { cluster: name, epoch, news }).await;
        });
    }

    pub(super) fn handle_delete_verdict(
        &mut self,
        candidate: &PruneCandidate,
        admission: &Arc<Admission>,
        result: Result<Option<PolicyDenial>, Error>,
    ) {
        if !self.policy_state.admission.as_ref().is_some_and(|now| Arc::ptr_eq(now, admission)) {
            return;
        }
        let known = self.policy_state.deletes.get_mut(&key(candidate));
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
