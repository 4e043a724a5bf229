//! Deletes objects that Git no longer contains. The decision covers the whole instance; the deletes run one by one.

use std::cell::{LazyCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::{iter, mem};

use tokio::time::Instant;

use super::apps::AppEntry;
use super::cluster_entry::{ClusterEntry, ConnectionState};
use super::event::Event;
use super::file_versions::FileVersions;
use super::in_flight::ObjectKey as Key;
use super::prune_state::{PruneState, SentDelete, TerminatingObject, key};
use super::state::ControllerState;
use super::target_entry::TargetEntry;
use crate::fleet::{Fleet, Target};
use crate::model::{
    AppId, Approval, ApprovalQuery, ApprovedObject, ClusterName, ClusterState, Digest, HealthStatus,
    HookReleases, InstanceMode, ObjectId, RenderedObject,
};
use crate::plan::{
    self, AppReadiness, CandidateDecision, PlanAction, PruneAppFacts, PruneCandidate, PruneClusterFacts,
    PruneDecision, PruneInput, StepOrder, StepReason,
};
use crate::reconcile::ObjectRemoval;
use crate::report::TargetPhase;

impl ControllerState {
    /// Decides and starts deletes. Returns the time of the next try.
    pub(super) fn advance_prune(&mut self, now: Instant) -> Option<Instant> {
        let fleet = self.fleet.clone()?;
        if self.head.is_none() || self.head != self.rendered_head || !fleet.is_usable() {
            return None;
        }
        if self.has_undesired_objects(&fleet) {
            self.decide_prune(&fleet, now);
        }
        let judged_at = self.judge_deletes(now);
        self.clear_over_cap(&fleet);
        self.clear_pending_removals();
        // The cap covers all clusters, so nothing is deleted before all of them were observed.
        if self.mode() == InstanceMode::Enforce && self.unobserved_cluster(now).is_none() {
            self.start_deletes(now);
        }
        let refused = self.prune.refused.values().map(|refusal| refusal.retry_at).filter(|at| *at > now);
        let decision = &self.prune.decision;
        let decided = decision.deletes.iter().chain(&decision.releases);
        let held_off = decided.filter_map(|decided| self.throttled_until(decided, now));
        refused.chain(held_off).chain(judged_at).min()
    }

    /// A cluster without a complete observation. Nothing is deleted anywhere until it has one.
    pub(super) fn unobserved_cluster(&self, now: Instant) -> Option<&ClusterEntry> {
        self.clusters.values().find(|entry| !entry.allows_deletes_elsewhere(now))
    }

    /// Whether a delete is pending, was pending, or may be approved. If not, the size of the fleet costs nothing.
    fn has_undesired_objects(&self, fleet: &Fleet) -> bool {
        let PruneState {
            decision,
            undesired_since: vanished,
            terminating: going,
            sent_deletes: asked,
            refused,
            ..
        } = &self.prune;
        let is_idle = *decision == PruneDecision::default()
            && vanished.is_empty()
            && going.is_empty()
            && asked.is_empty()
            && !self.in_flight.has_deletes()
            && refused.is_empty();
        !is_idle
            || !fleet.approvals.is_empty()
            || self.clusters.values().any(|entry| !entry.undesired_objects.is_empty())
    }

    fn decide_prune(&mut self, fleet: &Fleet, now: Instant) {
        let Some(head) = self.head.clone() else { return };
        let mut candidates = Vec::new();
        let mut going = BTreeMap::new();
        let mut managed = 0;
        for (name, entry) in &self.clusters {
            managed += entry.observation.objects.len();
            if entry.undesired_objects.is_empty() {
                continue;
            }
            let rendered = entry.desired.ids();
            let plural = |id: &ObjectId| entry.catalog.plural(&id.group, &id.kind).map(ToOwned::to_owned);
            candidates.extend(plan::candidates(
                name,
                &entry.observation,
                &entry.undesired_objects,
                rendered,
                &plural,
            ));
            let strays =
                entry.undesired_objects.iter().filter_map(|id| entry.observation.objects.get_key_value(id));
            for (id, live) in strays {
                let key = (name.clone(), id.clone());
                let leaves = live.deleting || self.prune.is_sent(entry, &key, &live.uid);
                if let (true, false, Some(app)) = (leaves, rendered.contains(id), AppId::parse(&live.app)) {
                    going.insert(key, TerminatingObject { app, turn: StepOrder::of_delete(id, live.wave) });
                }
            }
        }
        // The share counts the objects at the start of this revision: its own deletes must not lower its cap.
        managed +=
            self.prune.sent_deletes.iter().filter(|(key, asked)| !self.is_there(key, &asked.uid)).count();
        // An object that is still visible after its delete was sent counts once.
        candidates.retain(|it| {
            let cluster = self.clusters.get(&it.cluster);
            cluster.is_none_or(|cluster| !self.prune.is_sent(cluster, &key(it), &it.uid))
        });
        let before = mem::replace(&mut self.prune.terminating, going);
        self.record_gone_objects(before.into_keys());

        let broken: BTreeSet<&AppId> = self.targets.broken().iter().map(|id| &id.app).collect();
        let valid = fleet.is_valid() && broken.is_empty();
        if valid {
            let wanted: BTreeSet<Key> =
                candidates.iter().map(key).chain(self.prune.terminating.keys().cloned()).collect();
            // A cluster that is listed again has no candidates until the list is complete.
            let is_unread = |key: &Key| {
                self.clusters.get(&key.0).is_some_and(|entry| {
                    !entry.observation.complete && entry.observation.objects.contains_key(&key.1)
                })
            };
            self.prune.undesired_since.retain(|key, _| wanted.contains(key) || is_unread(key));
            self.prune.refused.retain(|key, _| wanted.contains(key));
        } else {
            // The renders of a broken app are unknown, so its objects are no candidates.
            candidates.retain(|it| fleet.apps.contains_key(&it.app) && !broken.contains(&it.app));
        }
        for candidate in &candidates {
            let left = Target { app: candidate.app.clone(), cluster: candidate.cluster.clone() };
            let parting =
                self.prune.pending_removals.get(&left).filter(|_| self.targets.get(&left).is_none());
            let vanished_at = parting.unwrap_or(&head);
            self.prune.undesired_since.entry(key(candidate)).or_insert_with(|| vanished_at.clone());
        }
        let is_sure = valid && self.clusters.values().all(ClusterEntry::is_known);
        if is_sure {
            let doubted = mem::take(&mut self.prune.over_cap_provisional);
            self.prune.over_cap.retain(|it| !doubted.contains(it));
        }
        let (decision, asks) = self.compute_prune_decision(fleet, &candidates, managed, valid);
        self.prune.decision = decision;
        for (asked, app) in asks {
            self.request_agreements([asked].into(), &app);
        }
        // Nothing is deleted before that either.
        if valid && self.unobserved_cluster(now).is_none() {
            self.prune.record_over_cap(is_sure);
        }
    }

    /// An object stays over the cap until it is gone or Git contains it again.
    fn clear_over_cap(&mut self, fleet: &Fleet) {
        let valid = LazyCell::new(|| fleet.is_valid() && self.targets.broken().is_empty());
        let clusters = &self.clusters;
        self.prune.over_cap.retain(|ApprovedObject { cluster, id, uid }| {
            let Some(entry) = clusters.get(cluster) else { return true };
            // A render without the capabilities of the cluster may change.
            let is_sure = entry.capabilities.is_some() && !entry.has_stale_renders;
            let is_wanted = || is_sure && entry.desired.ids().contains(id) && *valid;
            !entry.has_gone(id, uid) && !is_wanted()
        });
        let PruneState { over_cap: over, over_cap_provisional: over_in_doubt, .. } = &mut self.prune;
        over_in_doubt.retain(|it| over.contains(it));
    }

    fn is_there(&self, (cluster, object): &Key, uid: &str) -> bool {
        self.clusters.get(cluster).is_some_and(|entry| entry.observation.has_object(object, uid))
    }

    /// Records objects that were being deleted and are no longer visible.
    fn record_gone_objects(&mut self, before: impl Iterator<Item = Key>) {
        for key in before.filter(|key| !self.prune.terminating.contains_key(key)) {
            let is_gone = self
                .clusters
                .get(&key.0)
                .is_some_and(|entry| entry.is_ready() && !entry.observation.objects.contains_key(&key.1));
            if let (true, Some(revision)) = (is_gone, self.prune.undesired_since.get(&key)) {
                *self.prune.confirmed_deletes.entry((revision.clone(), key.0)).or_default() += 1;
            }
        }
        let told = &self.tracked_commits;
        self.prune.confirmed_deletes.retain(|(revision, _), _| told.contains(revision));
    }

    /// Also returns the questions that must be answered for a better decision.
    fn compute_prune_decision(
        &self,
        fleet: &Fleet,
        candidates: &[PruneCandidate],
        managed: usize,
        valid: bool,
    ) -> (PruneDecision, BTreeSet<(ApprovalQuery, AppId)>) {
        // Runs at each event while a delete waits: only the targets of candidates are visited.
        let places: BTreeSet<Target> =
            candidates.iter().map(|it| Target { app: it.app.clone(), cluster: it.cluster.clone() }).collect();
        let is_empty = |id: &Target| {
            let render = self.targets.get(id).map(|target| &target.head);
            render.is_some_and(|it| it.as_ref().is_ok_and(|rendered| rendered.objects.is_empty()))
        };
        let empty_renders = places.into_iter().filter(is_empty).map(|id| (id.app, id.cluster)).collect();
        let again: BTreeSet<(Key, &str)> = candidates.iter().map(|it| (key(it), it.uid.as_str())).collect();
        let is_counted = |(key, asked): &(&Key, &SentDelete)| {
            asked.counts_against_cap && !again.contains(&((*key).clone(), asked.uid.as_str()))
        };
        let under_cap = self.prune.sent_deletes.iter().filter(is_counted).count();
        let asks = RefCell::default();
        let files = self.snapshot.as_ref().map(|snapshot| FileVersions::new(snapshot));
        let rule_asks = |candidate: &PruneCandidate, approvals: &[&Approval]| {
            self.rule_asks(fleet, candidate, approvals, files.as_ref()?, &asks)
        };
        let decision = plan::decide_prunes(&PruneInput {
            missing_approval: &rule_asks,
            // The mode of the instance, not of this run: a command in observe mode shows the decision of the instance, and the
            // approvals that it needs. Nothing is deleted unless this run enforces.
            mode: self.instance.mode,
            fleet_valid: valid,
            caps: self.instance.caps,
            managed_total: managed as u64,
            already_deleted: under_cap as u64,
            over_cap_before: &self.prune.over_cap,
            candidates,
            approvals: &fleet.approvals,
            empty_renders: &empty_renders,
            denial: &|candidate| self.policy_state.denial(candidate).cloned(),
            app: &|id| self.app_facts(fleet, id),
            cluster: &|name| match self.clusters.get(name) {
                Some(entry) => PruneClusterFacts {
                    state: entry.cluster.state,
                    is_complete: entry.is_whole(),
                    is_offline: matches!(entry.connection_state, ConnectionState::Offline { .. }),
                },
                None => {
                    PruneClusterFacts { state: ClusterState::Ready, is_complete: false, is_offline: true }
                }
            },
        });
        (decision, asks.into_inner())
    }

    fn app_facts(&self, fleet: &Fleet, id: &AppId) -> PruneAppFacts {
        let default = self.instance.defaults.prune;
        let rendered = self.rendered_digest(id);
        match fleet.apps.get(id) {
            None => PruneAppFacts { rendered, ..PruneAppFacts::of_removed_app(default) },
            Some(app) => {
                let (places, unwell) = self.placements(id);
                PruneAppFacts {
                    rendered,
                    is_removed: false,
                    placements: places,
                    unhealthy_reasons: unwell,
                    prune: app.prune.unwrap_or(default),
                    paused: app.paused,
                    unmanaged: app.unmanaged,
                    has_open_rollout: self.rollout_apps.get(id).is_some_and(AppEntry::is_open),
                }
            }
        }
    }

    fn start_deletes(&mut self, now: Instant) {
        let mut rooms: BTreeMap<&ClusterName, usize> = BTreeMap::new();
        let (mut started, mut elsewhere) = (Vec::new(), Vec::new());
        for decided in self.next_releases(now).chain(self.next_deletes(now)) {
            let cluster = &decided.candidate.cluster;
            let room = rooms.entry(cluster).or_insert_with(|| self.in_flight.free_delete_slots(cluster));
            if *room == 0 || self.throttled_until(decided, now).is_some() {
                continue;
            }
            let is_delete = decided.action == PlanAction::Delete;
            if is_delete && !self.policy_state.allows(&decided.candidate) {
                continue;
            }
            if self.in_flight.is_deleting(&key(&decided.candidate)) {
                continue;
            }
            match self.desiring_cluster(&decided.candidate) {
                Some(other) => elsewhere.push((decided.candidate.clone(), other.clone())),
                None => {
                    *room -= 1;
                    started.push(decided.clone());
                }
            }
        }
        self.is_overview_outdated |= !elsewhere.is_empty();
        for (candidate, other) in elsewhere {
            let text = format!(
                "cluster {other} shows the same object and renders it: both Cluster files lead to one \
                 server; delete one of them"
            );
            self.prune.refused(&candidate, text, now);
        }
        for decided in started {
            self.start_delete(decided);
        }
    }

    /// Two clusters of the config repository may be one server, for example by a copied kubeconfig or a renamed cluster. An
    /// object that is undesired through one cluster may be desired through the other.
    fn desiring_cluster(&self, candidate: &PruneCandidate) -> Option<&ClusterName> {
        let is_it = |entry: &ClusterEntry| {
            entry.observation.has_object(&candidate.object, &candidate.uid)
                && entry.desired.ids().contains(&candidate.object)
        };
        let others = self.clusters.iter().filter(|(name, _)| **name != candidate.cluster);
        others.into_iter().find(|(_, entry)| is_it(entry)).map(|(name, _)| name)
    }

    fn throttled_until(&self, decided: &CandidateDecision, now: Instant) -> Option<Instant> {
        let PruneCandidate { cluster, object, .. } = &decided.candidate;
        self.clusters.get(cluster)?.throttled_until_for(iter::once(&*object.group), now)
    }

    /// Deletes or releases one object.
    fn start_delete(&mut self, CandidateDecision { candidate, action, reason }: CandidateDecision) {
        let Some(cluster) = self.clusters.get(&candidate.cluster) else { return };
        let Some(client) = cluster.client.clone() else { return };
        let (catalog, rules, epoch) = (Arc::clone(&cluster.catalog), cluster.rules(), cluster.epoch);
        let instance = self.instance.name.clone();
        let is_delete = action == PlanAction::Delete;
        let Some(cancelled) = self.in_flight.start_delete(&key(&candidate)) else { return };
        if is_delete {
            let counts = !candidate.is_ended_run && !matches!(reason, StepReason::Approved { .. });
            let asked =
                SentDelete { uid: candidate.uid.clone(), counts_against_cap: counts, needs_recheck: false };
            self.prune.sent_deletes.insert(key(&candidate), asked);
            let going = TerminatingObject { app: candidate.app.clone(), turn: candidate.delete_order() };
            self.prune.terminating.insert(key(&candidate), going);
        }
        self.is_overview_outdated = true;
        let events = self.events.clone();
        tokio::spawn(async move {
            let farewell = ObjectRemoval {
                client: &client,
                catalog: &catalog,
                instance: &instance,
                rules: &rules,
                cancelled: &cancelled,
            };
            let result = if is_delete {
                farewell.delete(&candidate).await
            } else {
                farewell.release(&candidate).await
            };
            // The send fails only when the controller has stopped.
            let _ = events.send(Event::ObjectDeleted { candidate: Box::new(candidate), epoch, result }).await;
        });
    }

    /// A release loses nothing, so it needs no order.
    fn next_releases(&self, now: Instant) -> impl Iterator<Item = &CandidateDecision> {
        let is_due = move |decided: &&CandidateDecision| self.prune.may_send(&decided.candidate, now);
        self.prune.decision.releases.iter().filter(is_due)
    }

    /// The deletes whose turn it is. Each app on each cluster deletes only its last turn, after all earlier deletes are gone: the
    /// reverse of the apply order. A cluster that is being removed counts as one app.
    fn next_deletes(&self, now: Instant) -> impl Iterator<Item = &CandidateDecision> {
        let is_removed = |name: &ClusterName| {
            self.clusters.get(name).is_some_and(|entry| entry.cluster.state == ClusterState::Removed)
        };
        let queue = move |cluster, app| (cluster, Some(app).filter(|_| !is_removed(cluster)));
        let deletes = &self.prune.decision.deletes;
        // The waves of an app do not order another app.
        let turn = move |cluster: &ClusterName, turn: StepOrder| {
            if is_removed(cluster) { turn.without_hooks_and_waves() } else { turn }
        };
        let going = self.prune.terminating.iter();
        let going = going.map(|((cluster, _), it)| (cluster, &it.app, turn(cluster, it.turn)));
        let due = deletes.iter().map(|decided| &decided.candidate);
        let due = due.map(|it| (&it.cluster, &it.app, turn(&it.cluster, it.delete_order())));
        let mut turns: BTreeMap<(&ClusterName, Option<&AppId>), StepOrder> = BTreeMap::new();
        for (cluster, app, turn) in going.chain(due) {
            let last = turns.entry(queue(cluster, app)).or_insert(turn);
            *last = (*last).max(turn);
        }
        deletes.iter().filter(move |CandidateDecision { candidate, .. }| {
            let turn = turn(&candidate.cluster, candidate.delete_order());
            turns.get(&queue(&candidate.cluster, &candidate.app)) == Some(&turn)
                && self.prune.may_send(candidate, now)
        })
    }

    /// The digest of the app's objects on all clusters; for a removed app the digest of nothing.
    fn rendered_digest(&self, app: &AppId) -> Digest {
        let renders = self.targets.of_app(app);
        plan::rendered_digest(renders.filter_map(|(_, target)| target.head.as_deref().ok()))
    }

    /// The state of an app on each of its clusters, and the unhealthy ones.
    fn placements(
        &self,
        app: &AppId,
    ) -> (BTreeMap<ClusterName, AppReadiness>, BTreeMap<ClusterName, String>) {
        use TargetPhase::{Degraded, Paused, Progressing, Refused};
        let (mut places, mut kept_out, mut unwell) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (id, target) in self.targets.of_app(app) {
            let (phase, words) = self.phase(id);
            if matches!(phase, Degraded | Paused | Progressing | Refused) && !words.is_empty() {
                unwell.insert(id.cluster.clone(), words);
            }
            let standing = match phase {
                TargetPhase::KeptOut => {
                    kept_out.insert(id.cluster.clone(), AppReadiness::Unhealthy);
                    continue;
                }
                phase if phase.is_done() && self.has_no_held_pods(id, target) => AppReadiness::Healthy,
                TargetPhase::Unreachable if self.was_fully_applied(id, target) => {
                    AppReadiness::OfflineUpToDate
                }
                _ => AppReadiness::Unhealthy,
            };
            places.insert(id.cluster.clone(), standing);
        }
        // A cluster whose taint excludes new apps is not waited for. If an app can run only there, its previous placement is
        // kept.
        (if places.is_empty() { kept_out } else { places }, unwell)
    }

    /// A workload that is paused before its pods came is healthy, but the workload that it replaces still serves.
    fn has_no_held_pods(&self, id: &Target, target: &TargetEntry) -> bool {
        let (Some(cluster), Ok(rendered)) = (self.clusters.get(&id.cluster), &target.render) else {
            return true;
        };
        let mut seen =
            rendered.objects.iter().filter_map(|object| cluster.observation.objects.get(&object.id));
        seen.all(|live| live.health.status != HealthStatus::Suspended || live.can_replace())
    }

    /// At the last full observation of its cluster, all objects were there as rendered now, and healthy. A process without such
    /// an observation returns false.
    fn was_fully_applied(&self, id: &Target, target: &TargetEntry) -> bool {
        let (Some(cluster), Ok(rendered)) = (self.clusters.get(&id.cluster), &target.render) else {
            return false;
        };
        // An object that only some releases have may be absent.
        let may_be_absent = |object: &RenderedObject| {
            object.hook.is_some_and(|hook| hook.occasion != HookReleases::Each)
                && !cluster.observation.objects.contains_key(&object.id)
        };
        let was_seen = |object: &RenderedObject| {
            cluster.observation.objects.get(&object.id).is_some_and(|live| {
                let is_applied =
                    !live.deleting && live.hash == Some(object.hash) && *live.app == id.app.to_string();
                is_applied && live.can_replace()
            })
        };
        cluster.observation.complete
            && !cluster.kubeconfig_changed
            && !target.is_stale
            && rendered.objects.iter().all(|object| may_be_absent(object) || was_seen(object))
    }

    /// No delete is in progress, and the waiting ones need a person or stay for good.
    pub(super) fn is_prune_settled(&self) -> bool {
        !self.policy_state.is_reading() && self.mode() == InstanceMode::Observe
            || (!self.in_flight.has_deletes()
                && self.prune.terminating.is_empty()
                && self.prune.decision.deletes.is_empty()
                && self.prune.decision.releases.is_empty()
                && !self.prune.decision.waiting.iter().any(|decided| self.waits_only_for_api(decided)))
    }

    /// Its cluster is whole except for an API that may return soon.
    fn waits_only_for_api(&self, decided: &CandidateDecision) -> bool {
        decided.reason == StepReason::ObservationIncomplete
            && self.clusters.get(&decided.candidate.cluster).is_some_and(ClusterEntry::has_missing_api)
    }
}
