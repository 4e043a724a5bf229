//! Over the whole instance: which of the objects that nobody renders may be deleted now.

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

/// How an app stands on one of its clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Everything that it renders is there, and healthy.
    Healthy,
    /// Its cluster does not answer. When it was seen last, everything was there as it is rendered now, and
    /// healthy: so nothing that leaves another cluster comes to this one.
    AwayAsRendered,
    Unhealthy,
}

/// What the decision needs to know of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppFacts {
    /// [`super::rendered_digest`] of it.
    pub rendered: Digest,
    /// It is in the config repository no longer.
    pub is_gone: bool,
    /// The clusters that it is placed on.
    pub places: BTreeMap<ClusterName, Standing>,
    /// What is not well there, where that can be said.
    pub unwell: BTreeMap<ClusterName, String>,
    /// Its own, or the instance's.
    pub prune: PruneMode,
    pub paused: bool,
    pub unmanaged: bool,
    /// Its units change wave by wave, and have not come to the end of that.
    pub rollout_is_open: bool,
}

impl AppFacts {
    /// Of an app that is in the config repository no longer.
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

    /// Where it must become healthy before an object of it on `cluster` may go. That is on all its clusters, as what goes
    /// here may come there. One that is away and has everything already gets nothing from here; but an app that leaves a
    /// cluster altogether must be seen healthy on those that are left.
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

/// What the decision needs to know of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterFacts {
    pub state: ClusterState,
    /// Its view is whole, and it answers.
    pub complete: bool,
    /// It does not answer.
    pub away: bool,
}

#[derive(Clone, Copy)]
pub struct PruneInput<'a> {
    pub mode: Mode,
    /// No error stands anywhere in the config repository, and everything could be rendered.
    pub fleet_valid: bool,
    pub caps: Caps,
    /// Objects of ours on all clusters.
    pub managed_total: u64,
    /// Deletes of this revision that no approval covered and that are not among the candidates now.
    pub already_deleted: u64,
    /// What was over the cap before: it goes by somebody's word alone.
    pub over: &'a BTreeSet<ApprovedObject>,
    /// Of all clusters.
    pub candidates: &'a [Candidate],
    pub approvals: &'a [Approval],
    /// Pairs that belong together and whose render holds no object.
    pub empty_renders: &'a BTreeSet<(AppId, ClusterName)>,
    /// What a policy says of a delete.
    pub denial: &'a dyn Fn(&Candidate) -> Option<Denial>,
    pub app: &'a dyn Fn(&AppId) -> AppFacts,
    pub cluster: &'a dyn Fn(&ClusterName) -> ClusterFacts,
    /// What a rule asks for that none of the approvals gives.
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

/// Decides about every candidate. What waits today counts again tomorrow, so that an unrelated commit frees nothing; of the past
/// only `already_deleted` and `over` matter.
pub fn decide(input: &PruneInput<'_>) -> PruneDecision {
    let judge = Judge::of(input);
    let mut verdicts: Vec<(&Candidate, Verdict)> =
        input.candidates.iter().map(|candidate| (candidate, judge.verdict(candidate))).collect();
    verdicts.sort_by_key(|(candidate, _)| in_order_of_deletion(candidate));
    // Where it is over the cap, it is asked for before anything else is waited for.
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
    // What may go beside what was over the cap before is asked for along with it: who looks without knowing what was before
    // (`tutti approve`) asks for the same.
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

/// Why a person's word is needed.
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

/// What is the same for all candidates.
struct Judge<'a> {
    input: &'a PruneInput<'a>,
    /// Of every app that is asked about, once.
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
        // An approval lifts the cap, not the order: what replaces it must be there first.
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
        // No approval of deletes lifts a policy.
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

/// Stays as it is, whatever else holds.
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

/// A cluster that is being removed is written to no more, and deleted from.
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
        // Who approves six of twelve, of one app or of many, has not approved the other six. When the six are gone they must
        // still count, or the rest would fit under the cap for a process that never saw the twelve. What is over it by them
        // alone is over it until they are void or their file goes.
        counted.extend(approvals.valid.iter().flat_map(|approval| approval.objects.iter().cloned()));
        Self { cap, pending: with_deleted(counted.len()), over }
    }
}

/// Approvals whose app still renders to what they were given for. Which of the others are void can
/// be said only of a valid fleet.
struct Approvals<'a> {
    valid: Vec<&'a Approval>,
    /// Those that delete nothing, and so are never void.
    releases: Vec<&'a Approval>,
}

impl<'a> Approvals<'a> {
    fn of(input: &PruneInput<'a>, apps: &Apps<'_>) -> Self {
        let (deletes, releases): (Vec<_>, Vec<_>) =
            input.approvals.iter().partition(|it| it.action == ApprovedAction::Delete);
        let valid = deletes.into_iter().filter(|it| apps[&it.app].rendered == it.rendered).collect();
        Self { valid, releases }
    }

    /// The approval by which the object is left, and ours no longer.
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

/// For each app what a person would approve for these deletes of it to run.
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
