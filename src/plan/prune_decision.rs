//! Decides which objects that no app renders may be deleted now. The decision covers the whole instance, because the
//! cap on deletes does. `controller/prune.rs` calls it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::candidate_decision::{CandidateDecision, PruneDecision, UnusedApproval, UnusedReason};
use super::prune::PruneCandidate;
use super::settings::find_write_hold;
use super::{PlanAction, StepOrder, StepReason, WriteHold};
use crate::model::{
    AppId, Approval, ApprovedAction, ApprovedObject, ClusterName, ClusterState, DeleteCaps, Digest,
    InstanceMode, ObjectId, PolicyDenial, PruneMode, UnmetApprovalRule,
};

/// The state of an app on one of its clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppReadiness {
    /// All rendered objects exist and are healthy.
    Healthy,
    /// The cluster is offline. Its last observation matched the current render and was healthy, so objects that leave
    /// another cluster do not move to this one.
    OfflineUpToDate,
    Unhealthy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PruneAppFacts {
    /// [`super::rendered_digest`] of it.
    pub rendered: Digest,
    /// The app is no longer in the config repository.
    pub is_removed: bool,
    pub placements: BTreeMap<ClusterName, AppReadiness>,
    /// The reason why the app is unhealthy there, if known.
    pub unhealthy_reasons: BTreeMap<ClusterName, String>,
    /// The app's own setting, or the default of the instance.
    pub prune: PruneMode,
    pub paused: bool,
    pub unmanaged: bool,
    /// A rollout in waves has not ended.
    pub has_open_rollout: bool,
}

impl PruneAppFacts {
    /// An app that is no longer in the config repository.
    pub fn of_removed_app(prune: PruneMode) -> Self {
        Self {
            rendered: super::rendered_digest([]),
            is_removed: true,
            placements: BTreeMap::new(),
            unhealthy_reasons: BTreeMap::new(),
            prune,
            paused: false,
            unmanaged: false,
            has_open_rollout: false,
        }
    }

    /// The cluster that must become healthy before an object on `cluster` may be deleted. All clusters of the app
    /// count, because a deleted object may move to any of them. An offline cluster that is already up to date does
    /// not count, unless the app leaves `cluster` altogether.
    fn unhealthy_cluster_for(&self, cluster: &ClusterName) -> Option<&ClusterName> {
        let stays_here = self.placements.contains_key(cluster);
        let holds = |(_, standing): &(&ClusterName, &AppReadiness)| match standing {
            AppReadiness::Healthy => false,
            AppReadiness::OfflineUpToDate => !stays_here,
            AppReadiness::Unhealthy => true,
        };
        self.placements.iter().find(holds).map(|(name, _)| name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneClusterFacts {
    pub state: ClusterState,
    /// The observation is complete, and the cluster answers.
    pub is_complete: bool,
    /// The cluster is offline.
    pub is_offline: bool,
}

#[derive(Clone, Copy)]
pub struct PruneInput<'a> {
    pub mode: InstanceMode,
    /// The config repository has no error, and every app was rendered.
    pub fleet_valid: bool,
    pub caps: DeleteCaps,
    /// Objects of this instance on all clusters.
    pub managed_total: u64,
    /// Deletes of this revision without an approval, whose objects are no longer among the candidates.
    pub already_deleted: u64,
    /// Candidates that were over the cap before. They need an approval even if the cap has room again.
    pub over_cap_before: &'a BTreeSet<ApprovedObject>,
    /// From all clusters.
    pub candidates: &'a [PruneCandidate],
    pub approvals: &'a [Approval],
    /// Targets whose render has no object.
    pub empty_renders: &'a BTreeSet<(AppId, ClusterName)>,
    /// The policy that denies the delete, if any.
    pub denial: &'a dyn Fn(&PruneCandidate) -> Option<PolicyDenial>,
    pub app: &'a dyn Fn(&AppId) -> PruneAppFacts,
    pub cluster: &'a dyn Fn(&ClusterName) -> PruneClusterFacts,
    /// The approval that a rule requires and that the given approvals do not satisfy.
    pub missing_approval: &'a dyn Fn(&PruneCandidate, &[&Approval]) -> Option<UnmetApprovalRule>,
}

impl fmt::Debug for PruneInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PruneInput")
            .field("fleet_valid", &self.fleet_valid)
            .field("candidates", &self.candidates)
            .finish_non_exhaustive()
    }
}

/// How many objects one revision may delete without an approval.
pub fn delete_cap(caps: DeleteCaps, managed_total: u64) -> u64 {
    let percent = managed_total.saturating_mul(u64::from(caps.delete_percent)) / 100;
    u64::from(caps.deletes).min(percent).max(u64::from(DeleteCaps::FLOOR))
}

/// Decides about every candidate. A waiting candidate counts again in the next decision, so an unrelated commit frees
/// nothing. Only `already_deleted` and `over` carry state from earlier decisions.
pub fn decide_prunes(input: &PruneInput<'_>) -> PruneDecision {
    let judge = PruneEvaluator::of(input);
    let mut verdicts: Vec<(&PruneCandidate, PruneVerdict)> =
        input.candidates.iter().map(|candidate| (candidate, judge.verdict(candidate))).collect();
    verdicts.sort_by_key(|(candidate, _)| in_order_of_deletion(candidate));
    // The approval for candidates over the cap is requested before any other wait.
    let is_due = |candidate: &PruneCandidate, verdict: &PruneVerdict| match verdict {
        PruneVerdict::NeedsApproval(_) => true,
        PruneVerdict::Settled(PlanAction::Delete, StepReason::NoLongerRendered) => !candidate.is_ended_run,
        PruneVerdict::Settled(_, StepReason::WaitsForHealth { .. } | StepReason::WaitsForRollout) => {
            judge.approvals.find_covering(candidate).is_none()
        }
        PruneVerdict::Settled(..) => false,
    };
    let due = approvals_of(&judge.apps, &verdicts, &is_due);
    let over_cap = |(_, verdict): &&(&PruneCandidate, PruneVerdict)| {
        matches!(verdict, PruneVerdict::NeedsApproval(ApprovalNeed::OverCap))
    };
    let apps_over: BTreeSet<&AppId> =
        verdicts.iter().filter(over_cap).map(|(candidate, _)| &candidate.app).collect();
    // Deletes of an app that is over the cap are requested together with those that were over it before. So `tutti
    // approve`, which has no history, requests the same set.
    let is_wanted = |candidate: &PruneCandidate, verdict: &PruneVerdict| {
        let is_beside = || apps_over.contains(&candidate.app) && is_due(candidate, verdict);
        matches!(verdict, PruneVerdict::NeedsApproval(_)) || is_beside()
    };
    let wanted = approvals_of(&judge.apps, &verdicts, &is_wanted);

    let limit = &judge.limit;
    let mut decision = PruneDecision {
        over_cap: limit.over_cap.clone(),
        approvals_unused: judge.approvals.unused(input),
        ..PruneDecision::default()
    };
    for (candidate, verdict) in verdicts {
        let digest = wanted.get(&candidate.app).map_or_else(|| Digest::of(&[]), Approval::digest);
        let (action, reason) = verdict.into_step(limit, candidate, digest);
        let list = match action {
            PlanAction::Delete => &mut decision.deletes,
            PlanAction::Orphan if matches!(reason, StepReason::Released { .. }) => &mut decision.releases,
            PlanAction::Orphan => &mut decision.orphans,
            _ => &mut decision.waiting,
        };
        list.push(CandidateDecision { candidate: candidate.clone(), action, reason });
    }
    let is_another = |(app, approval): &(AppId, Approval)| wanted.get(app) != Some(approval);
    decision.approvals_not_yet_needed =
        due.into_iter().filter(is_another).map(|(_, approval)| approval).collect();
    decision.approvals_wanted = wanted.into_values().collect();
    decision
}

fn in_order_of_deletion(
    candidate: &PruneCandidate,
) -> (ClusterName, AppId, Reverse<StepOrder>, Reverse<ObjectId>) {
    let object = candidate.object.clone();
    (candidate.cluster.clone(), candidate.app.clone(), Reverse(candidate.delete_order()), Reverse(object))
}

enum PruneVerdict {
    Settled(PlanAction, StepReason),
    NeedsApproval(ApprovalNeed),
}

/// Why an approval is needed.
enum ApprovalNeed {
    Rule(UnmetApprovalRule),
    OverCap,
    Kind,
    Claims,
    EmptyRender,
    PlacedNowhere,
}

impl PruneVerdict {
    fn into_step(
        self,
        limit: &DeleteLimit,
        candidate: &PruneCandidate,
        digest: Digest,
    ) -> (PlanAction, StepReason) {
        let need = match self {
            Self::Settled(action, reason) => return (action, reason),
            Self::NeedsApproval(need) => need,
        };
        let reason = match need {
            ApprovalNeed::Rule(asks) => StepReason::RuleAsks { asks, digest },
            ApprovalNeed::OverCap => StepReason::OverCap { pending: limit.pending, cap: limit.cap, digest },
            ApprovalNeed::Kind => StepReason::KindNeedsApproval { kind: candidate.kind.clone(), digest },
            ApprovalNeed::Claims => StepReason::ClaimsGoAlong { digest },
            ApprovalNeed::EmptyRender => StepReason::EmptyRender { digest },
            ApprovalNeed::PlacedNowhere => StepReason::PlacedNowhere { digest },
        };
        (PlanAction::Wait, reason)
    }
}

struct PruneEvaluator<'a> {
    input: &'a PruneInput<'a>,
    /// Computed once for each app.
    apps: PruneAppIndex<'a>,
    approvals: DeleteApprovals<'a>,
    limit: DeleteLimit,
}

type PruneAppIndex<'a> = BTreeMap<&'a AppId, PruneAppFacts>;

impl<'a> PruneEvaluator<'a> {
    fn of(input: &'a PruneInput<'a>) -> Self {
        let asked = input.candidates.iter().map(|it| &it.app).chain(input.approvals.iter().map(|it| &it.app));
        let mut apps = PruneAppIndex::new();
        for app in asked {
            apps.entry(app).or_insert_with(|| (input.app)(app));
        }
        let approvals = DeleteApprovals::of(input, &apps);
        let limit = DeleteLimit::of(input, &apps, &approvals);
        Self { input, apps, approvals, limit }
    }

    fn verdict(&self, candidate: &PruneCandidate) -> PruneVerdict {
        let input = self.input;
        let app = &self.apps[&candidate.app];
        if let Some((action, reason)) = self.find_retention(candidate) {
            return PruneVerdict::Settled(action, reason);
        }
        let released = self.approvals.find_release(candidate);
        let wait = |reason| PruneVerdict::Settled(PlanAction::Wait, reason);
        if !input.fleet_valid {
            return wait(StepReason::FleetInvalid);
        }
        let cluster = (input.cluster)(&candidate.cluster);
        if cluster.is_offline {
            return wait(StepReason::WaitsForCluster { cluster: candidate.cluster.clone() });
        }
        if !cluster.is_complete {
            return wait(StepReason::ObservationIncomplete);
        }
        if let Some(by) = hold_of_delete(input.mode, cluster.state, app.paused) {
            let because = Box::new(StepReason::NoLongerRendered);
            let would = if released.is_some() { PlanAction::Orphan } else { PlanAction::Delete };
            return PruneVerdict::Settled(PlanAction::Skip, StepReason::Held { by, would, because });
        }
        if let Some(approval) = released {
            let approval = approval.name.clone();
            return PruneVerdict::Settled(PlanAction::Orphan, StepReason::Released { approval });
        }
        let approval = self.approvals.find_covering(candidate);
        if approval.is_none()
            && let Some(need) = self.need(app, candidate)
        {
            return PruneVerdict::NeedsApproval(need);
        }
        if let Some(asks) = (input.missing_approval)(candidate, &self.approvals.all_covering(candidate))
            .filter(|_| !candidate.is_ended_run)
        {
            return PruneVerdict::NeedsApproval(ApprovalNeed::Rule(asks));
        }
        if app.has_open_rollout {
            return wait(StepReason::WaitsForRollout);
        }
        // An approval lifts the cap and keeps the order: the replacement must be healthy first.
        if app.prune == PruneMode::WhenHealthy
            && let Some(unhealthy) = app.unhealthy_cluster_for(&candidate.cluster)
        {
            let on = Some(unhealthy).filter(|name| **name != candidate.cluster).cloned();
            let because = app.unhealthy_reasons.get(unhealthy).cloned();
            return wait(StepReason::WaitsForHealth { on, because });
        }
        if let Some((first, others)) = candidate.contents.split_first() {
            return wait(StepReason::WaitsForContents { object: first.clone(), others: others.len() });
        }
        // An approval of deletes does not override a policy.
        if let Some(denial) = (input.denial)(candidate) {
            return wait(StepReason::of_denial(&denial));
        }
        let reason = match approval {
            Some(approval) => StepReason::Approved { approval: approval.name.clone() },
            None => StepReason::NoLongerRendered,
        };
        PruneVerdict::Settled(PlanAction::Delete, reason)
    }

    fn find_retention(&self, candidate: &PruneCandidate) -> Option<(PlanAction, StepReason)> {
        let is_released = self.approvals.find_release(candidate).is_some();
        find_retention(&self.apps[&candidate.app], candidate, is_released)
    }

    fn need(&self, app: &PruneAppFacts, candidate: &PruneCandidate) -> Option<ApprovalNeed> {
        if candidate.object.deletes_contents() {
            return Some(ApprovalNeed::Kind);
        }
        if candidate.claims_go_along {
            return Some(ApprovalNeed::Claims);
        }
        if !app.is_removed && app.placements.is_empty() {
            return Some(ApprovalNeed::PlacedNowhere);
        }
        let place = (candidate.app.clone(), candidate.cluster.clone());
        if self.input.empty_renders.contains(&place) {
            return Some(ApprovalNeed::EmptyRender);
        }
        let is_over = || {
            self.limit.pending > self.limit.cap
                || self.input.over_cap_before.contains(&candidate.approved_object())
        };
        (!candidate.is_ended_run && is_over()).then_some(ApprovalNeed::OverCap)
    }
}

/// Returns an action if the object stays in the cluster, whatever else holds.
fn find_retention(
    app: &PruneAppFacts,
    candidate: &PruneCandidate,
    is_released: bool,
) -> Option<(PlanAction, StepReason)> {
    if app.unmanaged {
        return Some((PlanAction::Skip, StepReason::Unmanaged));
    }
    if is_released {
        return None;
    }
    if candidate.keep {
        return Some((PlanAction::Orphan, StepReason::KeepAnnotation));
    }
    (app.prune == PruneMode::Never).then_some((PlanAction::Orphan, StepReason::PruneNever))
}

/// A removed cluster gets no applies. Deletes still run there.
fn hold_of_delete(mode: InstanceMode, cluster: ClusterState, paused: bool) -> Option<WriteHold> {
    let state = if cluster == ClusterState::Removed { ClusterState::Ready } else { cluster };
    find_write_hold(mode, state, paused)
}

struct DeleteLimit {
    cap: u64,
    pending: u64,
    /// [`PruneDecision::over_cap`].
    over_cap: BTreeSet<ApprovedObject>,
}

impl DeleteLimit {
    fn of(input: &PruneInput<'_>, apps: &PruneAppIndex<'_>, approvals: &DeleteApprovals<'_>) -> Self {
        let counts = |candidate: &&PruneCandidate| {
            let is_released = approvals.find_release(candidate).is_some();
            let stays = is_released || find_retention(&apps[&candidate.app], candidate, false).is_some();
            !candidate.is_ended_run && !stays
        };
        let cap = delete_cap(input.caps, input.managed_total);
        let with_deleted = |count: usize| (count as u64).saturating_add(input.already_deleted);
        let mut counted: BTreeSet<ApprovedObject> =
            input.candidates.iter().filter(counts).map(PruneCandidate::approved_object).collect();
        let over = if with_deleted(counted.len()) > cap { counted.clone() } else { BTreeSet::new() };
        // Approved objects count too. An approval of six deletes out of twelve does not cover the other six. Without
        // this, a restarted process would see only six and find them below the cap. The approved ones count until the
        // approval is void or its file is removed.
        counted.extend(approvals.valid.iter().flat_map(|approval| approval.objects.iter().cloned()));
        Self { cap, pending: with_deleted(counted.len()), over_cap: over }
    }
}

/// Approvals whose app still renders to the approved digest. Only a valid fleet can tell which of the others are
/// void.
struct DeleteApprovals<'a> {
    valid: Vec<&'a Approval>,
    /// Approvals that only release objects. They never become void.
    releases: Vec<&'a Approval>,
}

impl<'a> DeleteApprovals<'a> {
    fn of(input: &PruneInput<'a>, apps: &PruneAppIndex<'_>) -> Self {
        let (deletes, releases): (Vec<_>, Vec<_>) =
            input.approvals.iter().partition(|it| it.action == ApprovedAction::Delete);
        let valid = deletes.into_iter().filter(|it| apps[&it.app].rendered == it.rendered).collect();
        Self { valid, releases }
    }

    /// The approval that releases the object: it stays in the cluster and is no longer managed.
    fn find_release(&self, candidate: &PruneCandidate) -> Option<&'a Approval> {
        self.releases.iter().copied().find(|approval| approval.app == candidate.app)
    }

    fn all_covering(&self, candidate: &PruneCandidate) -> Vec<&'a Approval> {
        let object = candidate.approved_object();
        let covers = |it: &&Approval| it.app == candidate.app && it.objects.contains(&object);
        self.valid.iter().copied().filter(covers).collect()
    }

    fn find_covering(&self, candidate: &PruneCandidate) -> Option<&'a Approval> {
        let object = candidate.approved_object();
        self.valid
            .iter()
            .copied()
            .find(|approval| approval.app == candidate.app && approval.objects.contains(&object))
    }

    fn unused(&self, input: &PruneInput<'_>) -> Vec<UnusedApproval> {
        if !input.fleet_valid {
            return Vec::new();
        }
        let useful = |approval: &Approval| {
            input.candidates.iter().any(|candidate| {
                let is_whole = approval.action == ApprovedAction::Orphan;
                approval.app == candidate.app
                    && (is_whole || approval.objects.contains(&candidate.approved_object()))
            })
        };
        input
            .approvals
            .iter()
            .filter_map(|approval| {
                let mut known = self.valid.iter().chain(&self.releases);
                let valid = known.any(|valid| std::ptr::eq(*valid, approval));
                let because = if !valid { UnusedReason::RenderChanged } else { UnusedReason::NothingPending };
                (!valid || !useful(approval)).then(|| UnusedApproval { name: approval.name.clone(), because })
            })
            .collect()
    }
}

/// For each app the approval that would let these deletes run.
fn approvals_of(
    apps: &PruneAppIndex<'_>,
    verdicts: &[(&PruneCandidate, PruneVerdict)],
    is_one: &dyn Fn(&PruneCandidate, &PruneVerdict) -> bool,
) -> BTreeMap<AppId, Approval> {
    let mut wanted: BTreeMap<AppId, Approval> = BTreeMap::new();
    for (candidate, verdict) in verdicts {
        if is_one(candidate, verdict) {
            let approval = wanted.entry(candidate.app.clone()).or_insert_with(|| Approval {
                name: format!("delete-{}-{}", candidate.app.namespace, candidate.app.name),
                app: candidate.app.clone(),
                action: ApprovedAction::Delete,
                rendered: apps[&candidate.app].rendered,
                objects: Vec::new(),
                location: None,
                is_alone: true,
            });
            approval.objects.push(candidate.approved_object());
        }
    }
    for approval in wanted.values_mut() {
        approval.objects.sort();
    }
    wanted
}
