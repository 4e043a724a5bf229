//! Decides which objects that no app renders may be deleted now. The decision covers the whole instance, because the
//! cap on deletes does. `controller/prune.rs` calls it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::prune::{Candidate, Decided, PruneDecision, Unused, UnusedApproval};
use super::settings::hold;
use super::{Action, Hold, Reason, Turn};
use crate::model::{
    AppId, Approval, ApprovedAction, ApprovedObject, Caps, ClusterName, ClusterState, Denial, Digest, Mode,
    ObjectId, PruneMode, RuleAsks,
};

/// The state of an app on one of its clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All rendered objects exist and are healthy.
    Healthy,
    /// The cluster is offline. Its last observation matched the current render and was healthy, so objects that leave
    /// another cluster do not move to this one.
    AwayAsRendered,
    Unhealthy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppFacts {
    /// [`super::rendered_digest`] of it.
    pub rendered: Digest,
    /// The app is no longer in the config repository.
    pub is_gone: bool,
    pub places: BTreeMap<ClusterName, Standing>,
    /// The reason why the app is unhealthy there, if known.
    pub unwell: BTreeMap<ClusterName, String>,
    /// The app's own setting, or the default of the instance.
    pub prune: PruneMode,
    pub paused: bool,
    pub unmanaged: bool,
    /// A rollout in waves has not ended.
    pub rollout_is_open: bool,
}

impl AppFacts {
    /// An app that is no longer in the config repository.
    pub fn gone(prune: PruneMode) -> Self {
        Self {
            rendered: super::rendered_digest([]),
            is_gone: true,
            places: BTreeMap::new(),
            unwell: BTreeMap::new(),
            prune,
            paused: false,
            unmanaged: false,
            rollout_is_open: false,
        }
    }

    /// The cluster that must become healthy before an object on `cluster` may be deleted. All clusters of the app
    /// count, because a deleted object may move to any of them. An offline cluster that is already up to date does
    /// not count, unless the app leaves `cluster` altogether.
    fn unhealthy_on(&self, cluster: &ClusterName) -> Option<&ClusterName> {
        let stays_here = self.places.contains_key(cluster);
        let holds = |(_, standing): &(&ClusterName, &Standing)| match standing {
            Standing::Healthy => false,
            Standing::AwayAsRendered => !stays_here,
            Standing::Unhealthy => true,
        };
        self.places.iter().find(holds).map(|(name, _)| name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterFacts {
    pub state: ClusterState,
    /// The observation is complete, and the cluster answers.
    pub complete: bool,
    /// The cluster is offline.
    pub away: bool,
}

#[derive(Clone, Copy)]
pub struct PruneInput<'a> {
    pub mode: Mode,
    /// The config repository has no error, and every app was rendered.
    pub fleet_valid: bool,
    pub caps: Caps,
    /// Objects of this instance on all clusters.
    pub managed_total: u64,
    /// Deletes of this revision without an approval, whose objects are no longer among the candidates.
    pub already_deleted: u64,
    /// Candidates that were over the cap before. They need an approval even if the cap has room again.
    pub over: &'a BTreeSet<ApprovedObject>,
    /// From all clusters.
    pub candidates: &'a [Candidate],
    pub approvals: &'a [Approval],
    /// Targets whose render has no object.
    pub empty_renders: &'a BTreeSet<(AppId, ClusterName)>,
    /// The policy that denies the delete, if any.
    pub denial: &'a dyn Fn(&Candidate) -> Option<Denial>,
    pub app: &'a dyn Fn(&AppId) -> AppFacts,
    pub cluster: &'a dyn Fn(&ClusterName) -> ClusterFacts,
    /// The approval that a rule requires and that the given approvals do not satisfy.
    pub asks: &'a dyn Fn(&Candidate, &[&Approval]) -> Option<RuleAsks>,
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
pub fn cap(caps: Caps, managed_total: u64) -> u64 {
    let percent = managed_total.saturating_mul(u64::from(caps.delete_percent)) / 100;
    u64::from(caps.deletes).min(percent).max(u64::from(Caps::FLOOR))
}

/// Decides about every candidate. A waiting candidate counts again in the next decision, so an unrelated commit frees
/// nothing. Only `already_deleted` and `over` carry state from earlier decisions.
pub fn decide(input: &PruneInput<'_>) -> PruneDecision {
    let judge = Judge::of(input);
    let mut verdicts: Vec<(&Candidate, Verdict)> =
        input.candidates.iter().map(|candidate| (candidate, judge.verdict(candidate))).collect();
    verdicts.sort_by_key(|(candidate, _)| in_order_of_deletion(candidate));
    // The approval for candidates over the cap is requested before any other wait.
    let is_due = |candidate: &Candidate, verdict: &Verdict| match verdict {
        Verdict::NeedsApproval(_) => true,
        Verdict::Settled(Action::Delete, Reason::NoLongerRendered) => !candidate.is_ended_run,
        Verdict::Settled(_, Reason::WaitsForHealth { .. } | Reason::WaitsForRollout) => {
            judge.approvals.covering(candidate).is_none()
        }
        Verdict::Settled(..) => false,
    };
    let due = approvals_of(&judge.apps, &verdicts, &is_due);
    let over_cap =
        |(_, verdict): &&(&Candidate, Verdict)| matches!(verdict, Verdict::NeedsApproval(Need::OverCap));
    let apps_over: BTreeSet<&AppId> =
        verdicts.iter().filter(over_cap).map(|(candidate, _)| &candidate.app).collect();
    // Deletes of an app that is over the cap are requested together with those that were over it before. So `tutti
    // approve`, which has no history, requests the same set.
    let is_wanted = |candidate: &Candidate, verdict: &Verdict| {
        let is_beside = || apps_over.contains(&candidate.app) && is_due(candidate, verdict);
        matches!(verdict, Verdict::NeedsApproval(_)) || is_beside()
    };
    let wanted = approvals_of(&judge.apps, &verdicts, &is_wanted);

    let limit = &judge.limit;
    let mut decision = PruneDecision {
        over_cap: limit.over.clone(),
        approvals_unused: judge.approvals.unused(input),
        ..PruneDecision::default()
    };
    for (candidate, verdict) in verdicts {
        let digest = wanted.get(&candidate.app).map_or_else(|| Digest::of(&[]), Approval::digest);
        let (action, reason) = verdict.into_step(limit, candidate, digest);
        let list = match action {
            Action::Delete => &mut decision.deletes,
            Action::Orphan if matches!(reason, Reason::Released { .. }) => &mut decision.releases,
            Action::Orphan => &mut decision.orphans,
            _ => &mut decision.waiting,
        };
        list.push(Decided { candidate: candidate.clone(), action, reason });
    }
    let is_another = |(app, approval): &(AppId, Approval)| wanted.get(app) != Some(approval);
    decision.approvals_early = due.into_iter().filter(is_another).map(|(_, approval)| approval).collect();
    decision.approvals_wanted = wanted.into_values().collect();
    decision
}

fn in_order_of_deletion(candidate: &Candidate) -> (ClusterName, AppId, Reverse<Turn>, Reverse<ObjectId>) {
    let object = candidate.object.clone();
    (candidate.cluster.clone(), candidate.app.clone(), Reverse(candidate.turn()), Reverse(object))
}

enum Verdict {
    Settled(Action, Reason),
    NeedsApproval(Need),
}

/// Why an approval is needed.
enum Need {
    Rule(RuleAsks),
    OverCap,
    Kind,
    Claims,
    EmptyRender,
    PlacedNowhere,
}

impl Verdict {
    fn into_step(self, limit: &Limit, candidate: &Candidate, digest: Digest) -> (Action, Reason) {
        let need = match self {
            Self::Settled(action, reason) => return (action, reason),
            Self::NeedsApproval(need) => need,
        };
        let reason = match need {
            Need::Rule(asks) => Reason::RuleAsks { asks, digest },
            Need::OverCap => Reason::OverCap { pending: limit.pending, cap: limit.cap, digest },
            Need::Kind => Reason::KindNeedsApproval { kind: candidate.kind.clone(), digest },
            Need::Claims => Reason::ClaimsGoAlong { digest },
            Need::EmptyRender => Reason::EmptyRender { digest },
            Need::PlacedNowhere => Reason::PlacedNowhere { digest },
        };
        (Action::Wait, reason)
    }
}

struct Judge<'a> {
    input: &'a PruneInput<'a>,
    /// Computed once for each app.
    apps: Apps<'a>,
    approvals: Approvals<'a>,
    limit: Limit,
}

type Apps<'a> = BTreeMap<&'a AppId, AppFacts>;

impl<'a> Judge<'a> {
    fn of(input: &'a PruneInput<'a>) -> Self {
        let asked = input.candidates.iter().map(|it| &it.app).chain(input.approvals.iter().map(|it| &it.app));
        let mut apps = Apps::new();
        for app in asked {
            apps.entry(app).or_insert_with(|| (input.app)(app));
        }
        let approvals = Approvals::of(input, &apps);
        let limit = Limit::of(input, &apps, &approvals);
        Self { input, apps, approvals, limit }
    }

    fn verdict(&self, candidate: &Candidate) -> Verdict {
        let input = self.input;
        let app = &self.apps[&candidate.app];
        if let Some((action, reason)) = self.stays(candidate) {
            return Verdict::Settled(action, reason);
        }
        let released = self.approvals.releasing(candidate);
        let wait = |reason| Verdict::Settled(Action::Wait, reason);
        if !input.fleet_valid {
            return wait(Reason::FleetInvalid);
        }
        let cluster = (input.cluster)(&candidate.cluster);
        if cluster.away {
            return wait(Reason::WaitsForCluster { cluster: candidate.cluster.clone() });
        }
        if !cluster.complete {
            return wait(Reason::ObservationIncomplete);
        }
        if let Some(by) = hold_of_delete(input.mode, cluster.state, app.paused) {
            let because = Box::new(Reason::NoLongerRendered);
            let would = if released.is_some() { Action::Orphan } else { Action::Delete };
            return Verdict::Settled(Action::Skip, Reason::Held { by, would, because });
        }
        if let Some(approval) = released {
            let approval = approval.name.clone();
            return Verdict::Settled(Action::Orphan, Reason::Released { approval });
        }
        let approval = self.approvals.covering(candidate);
        if approval.is_none()
            && let Some(need) = self.need(app, candidate)
        {
            return Verdict::NeedsApproval(need);
        }
        if let Some(asks) = (input.asks)(candidate, &self.approvals.all_covering(candidate))
            .filter(|_| !candidate.is_ended_run)
        {
            return Verdict::NeedsApproval(Need::Rule(asks));
        }
        if app.rollout_is_open {
            return wait(Reason::WaitsForRollout);
        }
        // An approval lifts the cap and keeps the order: the replacement must be healthy first.
        if app.prune == PruneMode::WhenHealthy
            && let Some(unhealthy) = app.unhealthy_on(&candidate.cluster)
        {
            let on = Some(unhealthy).filter(|name| **name != candidate.cluster).cloned();
            let because = app.unwell.get(unhealthy).cloned();
            return wait(Reason::WaitsForHealth { on, because });
        }
        if let Some((first, others)) = candidate.contents.split_first() {
            return wait(Reason::WaitsForContents { object: first.clone(), others: others.len() });
        }
        // An approval of deletes does not override a policy.
        if let Some(denial) = (input.denial)(candidate) {
            return wait(Reason::of_denial(&denial));
        }
        let reason = match approval {
            Some(approval) => Reason::Approved { approval: approval.name.clone() },
            None => Reason::NoLongerRendered,
        };
        Verdict::Settled(Action::Delete, reason)
    }

    fn stays(&self, candidate: &Candidate) -> Option<(Action, Reason)> {
        let is_released = self.approvals.releasing(candidate).is_some();
        stays(&self.apps[&candidate.app], candidate, is_released)
    }

    fn need(&self, app: &AppFacts, candidate: &Candidate) -> Option<Need> {
        if candidate.object.takes_others_along() {
            return Some(Need::Kind);
        }
        if candidate.claims_go_along {
            return Some(Need::Claims);
        }
        if !app.is_gone && app.places.is_empty() {
            return Some(Need::PlacedNowhere);
        }
        let place = (candidate.app.clone(), candidate.cluster.clone());
        if self.input.empty_renders.contains(&place) {
            return Some(Need::EmptyRender);
        }
        let is_over =
            || self.limit.pending > self.limit.cap || self.input.over.contains(&candidate.approved_object());
        (!candidate.is_ended_run && is_over()).then_some(Need::OverCap)
    }
}

/// Returns an action if the object stays in the cluster, whatever else holds.
fn stays(app: &AppFacts, candidate: &Candidate, is_released: bool) -> Option<(Action, Reason)> {
    if app.unmanaged {
        return Some((Action::Skip, Reason::Unmanaged));
    }
    if is_released {
        return None;
    }
    if candidate.keep {
        return Some((Action::Orphan, Reason::KeepAnnotation));
    }
    (app.prune == PruneMode::Never).then_some((Action::Orphan, Reason::PruneNever))
}

/// A removed cluster gets no applies. Deletes still run there.
fn hold_of_delete(mode: Mode, cluster: ClusterState, paused: bool) -> Option<Hold> {
    let state = if cluster == ClusterState::Removed { ClusterState::Ready } else { cluster };
    hold(mode, state, paused)
}

struct Limit {
    cap: u64,
    pending: u64,
    /// [`PruneDecision::over_cap`].
    over: BTreeSet<ApprovedObject>,
}

impl Limit {
    fn of(input: &PruneInput<'_>, apps: &Apps<'_>, approvals: &Approvals<'_>) -> Self {
        let counts = |candidate: &&Candidate| {
            let is_released = approvals.releasing(candidate).is_some();
            let stays = is_released || stays(&apps[&candidate.app], candidate, false).is_some();
            !candidate.is_ended_run && !stays
        };
        let cap = cap(input.caps, input.managed_total);
        let with_deleted = |count: usize| (count as u64).saturating_add(input.already_deleted);
        let mut counted: BTreeSet<ApprovedObject> =
            input.candidates.iter().filter(counts).map(Candidate::approved_object).collect();
        let over = if with_deleted(counted.len()) > cap { counted.clone() } else { BTreeSet::new() };
        // Approved objects count too. An approval of six deletes out of twelve does not cover the other six. Without
        // this, a restarted process would see only six and find them below the cap. The approved ones count until the
        // approval is void or its file is removed.
        counted.extend(approvals.valid.iter().flat_map(|approval| approval.objects.iter().cloned()));
        Self { cap, pending: with_deleted(counted.len()), over }
    }
}

/// Approvals whose app still renders to the approved digest. Only a valid fleet can tell which of the others are
/// void.
struct Approvals<'a> {
    valid: Vec<&'a Approval>,
    /// Approvals that only release objects. They never become void.
    releases: Vec<&'a Approval>,
}

impl<'a> Approvals<'a> {
    fn of(input: &PruneInput<'a>, apps: &Apps<'_>) -> Self {
        let (deletes, releases): (Vec<_>, Vec<_>) =
            input.approvals.iter().partition(|it| it.action == ApprovedAction::Delete);
        let valid = deletes.into_iter().filter(|it| apps[&it.app].rendered == it.rendered).collect();
        Self { valid, releases }
    }

    /// The approval that releases the object: it stays in the cluster and is no longer managed.
    fn releasing(&self, candidate: &Candidate) -> Option<&'a Approval> {
        self.releases.iter().copied().find(|approval| approval.app == candidate.app)
    }

    fn all_covering(&self, candidate: &Candidate) -> Vec<&'a Approval> {
        let object = candidate.approved_object();
        let covers = |it: &&Approval| it.app == candidate.app && it.objects.contains(&object);
        self.valid.iter().copied().filter(covers).collect()
    }

    fn covering(&self, candidate: &Candidate) -> Option<&'a Approval> {
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
                let because = if !valid { Unused::RenderChanged } else { Unused::NothingPending };
                (!valid || !useful(approval)).then(|| UnusedApproval { name: approval.name.clone(), because })
            })
            .collect()
    }
}

/// For each app the approval that would let these deletes run.
fn approvals_of(
    apps: &Apps<'_>,
    verdicts: &[(&Candidate, Verdict)],
    is_one: &dyn Fn(&Candidate, &Verdict) -> bool,
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
