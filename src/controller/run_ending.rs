//! Whether a bounded run is over: everything is read, applied as far as it can be, and explained.

use tokio::time::Instant;

use super::cluster_entry::{ClusterEntry, ConnectionState};
use super::load_result::LoadError;
use super::settings::RunUntil;
use super::state::ControllerState;
use super::target_entry::TargetEntry;
use crate::fleet::Target;
use crate::model::InstanceMode;
use crate::plan::StepReason;
use crate::report::TargetPhase;
use crate::source::ErrorKind;

#[derive(Debug)]
pub enum RunEnding {
    Settled,
    Stopped,
    TimedOut,
    /// The repository could not be read at all.
    Unreadable(LoadError),
}

impl ControllerState {
    /// How the run ends, if it ends now.
    pub fn ending(&self) -> Option<RunEnding> {
        if let (None, Some(error)) = (&self.fleet, &self.load_error) {
            let lasting = matches!(error.kind, ErrorKind::Configuration | ErrorKind::Authentication);
            if lasting || self.settings.until != RunUntil::Stopped {
                return Some(RunEnding::Unreadable(error.clone()));
            }
        }
        // The last change may be the end of the run, and the overview must show it first.
        let may_end = self.settings.until != RunUntil::Stopped && !self.is_overview_outdated;
        (may_end && self.is_settled()).then_some(RunEnding::Settled)
    }

    fn is_settled(&self) -> bool {
        if self.is_loading || self.head.is_none() || self.head != self.rendered_head || self.is_busy() {
            return false;
        }
        let waits_for_rollouts = matches!(self.settings.until, RunUntil::Settled { .. });
        // A run in observe mode opens no wave.
        let waits_for_gates = waits_for_rollouts && self.mode() == InstanceMode::Enforce;
        if self
            .rollout_apps
            .iter()
            .any(|(_, app)| app.is_reading() || waits_for_gates && app.ends_by_itself())
        {
            return false;
        }
        // A command shows agreements too. A refusal by the forge is an answer.
        if self.agreements.has_unanswered() {
            return false;
        }
        let settling = self.targets.keys().any(|id| self.waits_for_other_app(id));
        let now = Instant::now();
        let under_way = self.targets.keys().any(|id| match self.phase(id).0 {
            TargetPhase::Pending => waits_for_rollouts || !self.is_planned(id),
            TargetPhase::Progressing => {
                waits_for_rollouts || self.explains_causes() && self.searches.is_unanswered(id, now)
            }
            // Otherwise the run would end without the cause.
            TargetPhase::Degraded => {
                (waits_for_rollouts || self.explains_causes()) && self.searches.is_awaited(id, now)
            }
            _ => false,
        });
        !under_way
            && !settling
            && self.clusters.values().all(Self::is_cluster_settled)
            && self.is_prune_settled()
    }

    /// The run ends only when the causes are known.
    pub(super) fn explains_causes(&self) -> bool {
        matches!(self.settings.until, RunUntil::Explained { .. })
    }

    /// Its plan is computed.
    fn is_planned(&self, id: &Target) -> bool {
        let is_known = |entry: &TargetEntry| {
            let is_answered = entry.plan.is_some() && entry.failure.is_none() && entry.awaited().is_none();
            is_answered && !self.in_flight.is_running(id) && !entry.is_due
        };
        self.targets.get(id).is_some_and(is_known)
    }

    /// It waits for an object of another app on its cluster, or for one that is being deleted. Both come without help, unless
    /// something there has failed.
    fn waits_for_other_app(&self, id: &Target) -> bool {
        let passing = |reason: &StepReason| {
            matches!(
                reason,
                StepReason::Terminating
                    | StepReason::NamespaceTerminating { .. }
                    | StepReason::NamespacePending { .. }
                    | StepReason::DefinitionPending { .. }
                    | StepReason::KindPending { .. }
            )
        };
        let plan = self.targets.get(id).and_then(|entry| entry.plan.as_ref());
        // A run in observe mode writes nothing.
        self.mode() == InstanceMode::Enforce
            && self.phase(id).0 == TargetPhase::Waiting
            && plan.is_some_and(|plan| plan.steps.iter().any(|step| passing(&step.reason)))
            && !self.targets.targets_on(&id.cluster).iter().any(|it| self.phase(it).0.is_failure())
    }

    /// Observed in full, or given up for this run.
    fn is_cluster_settled(entry: &ClusterEntry) -> bool {
        match &entry.connection_state {
            ConnectionState::Connecting => false,
            ConnectionState::Ready => entry.is_complete() && !entry.has_stale_renders,
            ConnectionState::Offline { attempts, lasting, .. } => *lasting || *attempts >= 3,
        }
    }
}
