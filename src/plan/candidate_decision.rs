//! The decision about each object that no app renders any more, and its step in a plan.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use super::prune::PruneCandidate;
use super::reason::with_words;
use super::{ApplyPhase, IgnoredPaths, Plan, PlanAction, PlanStep, SentReplicas, StepReason};
use crate::model::{Approval, ApprovedObject};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateDecision {
    pub candidate: PruneCandidate,
    pub action: PlanAction,
    #[serde(serialize_with = "with_words")]
    pub reason: StepReason,
}

impl CandidateDecision {
    pub fn step(&self) -> PlanStep {
        let PruneCandidate { object, kind, uid, resource_version, wave, .. } = self.candidate.clone();
        PlanStep {
            live_values: None,
            install_mark: None,
            rollout: None,
            replicas: SentReplicas::default(),
            phase: ApplyPhase::of(&object),
            hook: None,
            wave,
            object,
            unit: Arc::default(),
            kind,
            action: self.action,
            reason: self.reason.clone(),
            uid: Some(uid),
            resource_version: Some(resource_version),
            live_uid: None,
            is_at_rest: false,
            applied: None,
            source: None,
            force: false,
            may_replace: false,
            ignored_paths: IgnoredPaths::default(),
            last_applied: None,
            foreign_changes: None,
        }
    }
}

/// Each list is sorted by cluster and app, and then in the order of deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneDecision {
    pub deletes: Vec<CandidateDecision>,
    /// Stay in the cluster; labels and field ownership are removed now.
    pub releases: Vec<CandidateDecision>,
    /// Wait, or Skip during a hold.
    pub waiting: Vec<CandidateDecision>,
    /// Stay in the cluster for good.
    pub orphans: Vec<CandidateDecision>,
    /// The approvals that are requested, one for each app that needs one.
    pub approvals_wanted: Vec<Approval>,
    /// Approvals for deletes that need none here. A process with another history of deletes at this commit may still
    /// request them.
    #[serde(skip)]
    pub approvals_not_yet_needed: Vec<Approval>,
    /// If the deletes exceed the cap: all that count, also those that wait for something else or that a revocable
    /// approval covers.
    #[serde(skip)]
    pub over_cap: BTreeSet<ApprovedObject>,
    pub approvals_unused: Vec<UnusedApproval>,
}

impl PruneDecision {
    pub fn all(&self) -> impl Iterator<Item = &CandidateDecision> {
        self.deletes.iter().chain(&self.releases).chain(&self.waiting).chain(&self.orphans)
    }
}

impl Plan {
    /// Appends the decisions about its objects that are no longer rendered.
    #[must_use]
    pub fn with_prunes(mut self, decision: &PruneDecision) -> Self {
        let mine = |decided: &&CandidateDecision| {
            decided.candidate.app == self.app && decided.candidate.cluster == self.cluster
        };
        let mut prunes: Vec<PlanStep> = decision.all().filter(mine).map(CandidateDecision::step).collect();
        prunes.sort_by(|one, other| (other.order(), &other.object).cmp(&(one.order(), &one.object)));
        self.steps.extend(prunes);
        self
    }
}

/// An approval without any effect, which is reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnusedApproval {
    pub name: String,
    pub because: UnusedReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum UnusedReason {
    /// The app now renders to something else.
    RenderChanged,
    /// None of its objects waits for a delete.
    NothingPending,
}
