//! Policies at deploy time: takes over those of a new head, and judges deletes by them.
//!
//! Verdicts on writes are kept with the observation of each object (`Observation::verdicts`).

use std::sync::Arc;

use tokio::time::Instant;

use super::event::{ClusterNews, Event};
use super::policy_state::PolicyState;
use super::state::ControllerState;
use crate::cluster::Error;
use crate::model::PolicyDenial;
use crate::plan::{PruneCandidate, StepReason};
use crate::render::Admission;

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
        self.policy_state = PolicyState::new(admission);
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
        let due: Vec<PruneCandidate> =
            due.filter(|it| self.policy_state.needs_reading(it, now)).cloned().collect();
        for candidate in due {
            self.judge_delete(&admission, candidate);
        }
        self.policy_state.next_retry(now)
    }

    fn judge_delete(&mut self, admission: &Arc<Admission>, candidate: PruneCandidate) {
        let Some(cluster) = self.clusters.get(&candidate.cluster) else { return };
        let (Some(client), Some(resource)) =
            (cluster.client.clone(), cluster.catalog.get(&candidate.kind).cloned())
        else {
            return;
        };
        let (epoch, events, admission) = (cluster.epoch, self.events.clone(), Arc::clone(admission));
        self.policy_state.mark_reading(&candidate);
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
        self.policy_state.record_result(candidate, result);
    }
}
