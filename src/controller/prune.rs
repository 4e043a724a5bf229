//! Deletes objects that Git no longer contains. The decision covers the whole instance; the deletes run one by one.

use std::cell::{LazyCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use std::{iter, mem};

use tokio::time::Instant;

use super::apps::AppEntry;
use super::cluster_entry::{ClusterEntry, Reach};
use super::event::Event;
use super::file_versions::FileVersions;
use super::in_flight::{InFlight, ObjectKey as Key};
use super::target::TargetEntry;
use super::world::World;
use crate::fleet::{Fleet, Target};
use crate::model::{
    AppId, Approval, ApprovedObject, ClusterName, ClusterState, Digest, Mode, ObjectId, Occasion, Question,
    RenderedObject, Revision, Status,
};
use crate::plan::{
    self, Action, AppFacts, Candidate, ClusterFacts, Decided, PruneDecision, PruneInput, Reason, Standing,
    Turn,
};
use crate::reconcile::Farewell;
use crate::report::Phase;

const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// An object that changed is sent again at once, but only this often in a row.
const AT_ONCE: u32 = 3;

/// An object that is being deleted.
#[derive(Debug)]
pub struct Going {
    pub app: AppId,
    /// Objects of later turns wait until it is gone.
    turn: Turn,
}

/// The state of deletes.
#[derive(Debug, Default)]
pub struct Pruning {
    pub decision: PruneDecision,
    /// Objects that Git no longer contains, with the head at which that was first seen.
    pub vanished: BTreeMap<Key, Revision>,
    /// Apps that left a cluster whose objects are not known yet, with the commit that removed them.
    pub partings: BTreeMap<Target, Revision>,
    /// Objects with a deletionTimestamp, or whose delete was sent.
    pub going: BTreeMap<Key, Going>,
    /// Deletes that were sent at this head, and accepted or in progress. The uid is part of it: a later object of the same name
    /// is another one.
    asked: BTreeMap<Key, Asked>,
    /// Number of deleted objects per commit, for its final report.
    pub confirmed: BTreeMap<(Revision, ClusterName), usize>,
    /// Objects that were over the cap once. A later commit that lowers the count, hides objects or delays them does not release
    /// the others without an approval.
    over: BTreeSet<ApprovedObject>,
    /// Those that were over the cap while the total or the renders of a cluster were incomplete. Decided again when all is known.
    over_in_doubt: BTreeSet<ApprovedObject>,
    refused: BTreeMap<Key, Refusal>,
}

/// A delete that was sent.
#[derive(Debug)]
struct Asked {
    uid: String,
    /// Counts against the cap. Approved deletes and ended runs do not.
    counts: bool,
    /// The cluster is being listed again. If the object is still there after that, the delete must be sent again.
    is_doubted: bool,
}

/// A refusal by the cluster. The same request is retried with a growing delay.
#[derive(Debug)]
struct Refusal {
    /// Another state of the object is another request.
    resource_version: String,
    text: String,
    attempts: u32,
    retry_at: Instant,
}

impl Pruning {
    /// A new head: deletes of the previous head do not count against its cap. Objects over the cap stay over it.
    pub fn begin(&mut self, in_flight: &InFlight) {
        self.asked.retain(|key, _| in_flight.is_deleting(key));
    }

    /// The cluster is listed again. It may have been restored from a backup, or be another cluster.
    pub fn connected(&mut self, cluster: &ClusterName, in_flight: &InFlight) {
        for (key, asked) in &mut self.asked {
            asked.is_doubted |= key.0 == *cluster && !in_flight.is_deleting(key);
        }
    }

    pub fn accepted(&mut self, candidate: &Candidate) {
        self.refused.remove(&key(candidate));
    }

    /// Cancelled before it was sent.
    pub fn not_sent(&mut self, candidate: &Candidate) {
        self.asked.remove(&key(candidate));
    }

    /// Accepted over an earlier connection. The current cluster may be another one, or a restored backup.
    pub fn accepted_before(&mut self, candidate: &Candidate) {
        self.accepted(candidate);
        if let Some(asked) = self.asked.get_mut(&key(candidate)) {
            asked.is_doubted = true;
        }
    }

    /// Another instance name is another inventory.
    pub fn forget(&mut self) {
        self.partings.clear();
        self.over.clear();
        self.over_in_doubt.clear();
    }

    pub fn refused(&mut self, candidate: &Candidate, text: String, now: Instant) {
        self.asked.remove(&key(candidate));
        self.put_off(candidate, text, now);
    }

    /// The decision is final when the state of all clusters is known.
    fn note_over(&mut self, is_sure: bool) {
        for object in &self.decision.over_cap {
            if self.over.insert(object.clone()) && !is_sure {
                self.over_in_doubt.insert(object.clone());
            }
        }
    }

    /// The result is unknown: at this head the delete counts until the object is seen again.
    pub fn failed(&mut self, candidate: &Candidate, text: String, now: Instant) {
        if let Some(asked) = self.asked.get_mut(&key(candidate)) {
            asked.is_doubted = true;
        }
        self.put_off(candidate, text, now);
    }

    /// The leader's Lease was not renewed in time: like [`Self::failed`], with a constant delay.
    pub fn awaits_lease(&mut self, candidate: &Candidate, text: String, now: Instant) {
        self.refused.remove(&key(candidate));
        self.failed(candidate, text, now);
    }

    fn put_off(&mut self, candidate: &Candidate, text: String, now: Instant) {
        let key = key(candidate);
        let attempts = self.refused.get(&key).map_or(0, |refusal| refusal.attempts + 1);
        let pause = FIRST_PAUSE.saturating_mul(1 << attempts.min(6)).min(LONGEST_PAUSE);
        let resource_version = candidate.resource_version.clone();
        self.refused.insert(key, Refusal { resource_version, text, attempts, retry_at: now + pause });
    }

    /// The refusal of a delete that is due.
    pub fn refusal(&self, key: &Key) -> Option<&str> {
        self.refused.get(key).map(|refusal| refusal.text.as_str())
    }

    /// `cluster`: the cluster that shows the object.
    fn is_asked(&self, cluster: &ClusterEntry, key: &Key, uid: &str) -> bool {
        let holds = |asked: &Asked| !asked.is_doubted || !cluster.observation.complete;
        self.asked.get(key).is_some_and(|asked| asked.uid == uid && holds(asked))
    }

    fn may_ask(&self, candidate: &Candidate, now: Instant) -> bool {
        self.refused.get(&key(candidate)).is_none_or(|refusal| {
            let is_another = refusal.resource_version != candidate.resource_version;
            refusal.retry_at <= now || (is_another && refusal.attempts < AT_ONCE)
        })
    }
}

fn key(candidate: &Candidate) -> Key {
    (candidate.cluster.clone(), candidate.object.clone())
}

impl World {
    /// Decides and starts deletes. Returns the time of the next try.
    pub(super) fn advance_prune(&mut self, now: Instant) -> Option<Instant> {
        let fleet = self.fleet.clone()?;
        if self.head.is_none() || self.head != self.rendered_head || !fleet.is_usable() {
            return None;
        }
        if self.is_anything_unwanted(&fleet) {
            self.decide_prune(&fleet, now);
        }
        let judged_at = self.judge_deletes(now);
        self.end_over(&fleet);
        self.end_partings();
        // The cap covers all clusters, so nothing is deleted before all of them were observed.
        if self.mode() == Mode::Enforce && self.unseen(now).is_none() {
            self.start_deletes(now);
        }
        let refused = self.prune.refused.values().map(|refusal| refusal.retry_at).filter(|at| *at > now);
        let decision = &self.prune.decision;
        let decided = decision.deletes.iter().chain(&decision.releases);
        let held_off = decided.filter_map(|decided| self.held_off(decided, now));
        refused.chain(held_off).chain(judged_at).min()
    }

    /// A cluster without a complete observation. Nothing is deleted anywhere until it has one.
    pub(super) fn unseen(&self, now: Instant) -> Option<&ClusterEntry> {
        self.clusters.values().find(|entry| !entry.is_looked_at(now))
    }

    /// Whether a delete is pending, was pending, or may be approved. If not, the size of the fleet costs nothing.
    fn is_anything_unwanted(&self, fleet: &Fleet) -> bool {
        let Pruning { decision, vanished, going, asked, refused, .. } = &self.prune;
        let is_idle = *decision == PruneDecision::default()
            && vanished.is_empty()
            && going.is_empty()
            && asked.is_empty()
            && !self.in_flight.has_deletes()
            && refused.is_empty();
        !is_idle
            || !fleet.approvals.is_empty()
            || self.clusters.values().any(|entry| !entry.strays.is_empty())
    }

    fn decide_prune(&mut self, fleet: &Fleet, now: Instant) {
        let Some(head) = self.head.clone() else { return };
        let mut candidates = Vec::new();
        let mut going = BTreeMap::new();
        let mut managed = 0;
        for (name, entry) in &self.clusters {
            managed += entry.observation.objects.len();
            if entry.strays.is_empty() {
                continue;
            }
            let rendered = entry.wanted.ids();
            let plural = |id: &ObjectId| entry.catalog.plural(&id.group, &id.kind).map(ToOwned::to_owned);
            candidates.extend(plan::candidates(name, &entry.observation, &entry.strays, rendered, &plural));
            let strays = entry.strays.iter().filter_map(|id| entry.observation.objects.get_key_value(id));
            for (id, live) in strays {
                let key = (name.clone(), id.clone());
                let leaves = live.deleting || self.prune.is_asked(entry, &key, &live.uid);
                if let (true, false, Some(app)) = (leaves, rendered.contains(id), AppId::parse(&live.app)) {
                    going.insert(key, Going { app, turn: Turn::of_delete(id, live.wave) });
                }
            }
        }
        // The share counts the objects at the start of this revision: its own deletes must not lower its cap.
        managed += self.prune.asked.iter().filter(|(key, asked)| !self.is_there(key, &asked.uid)).count();
        // An object that is still visible after its delete was sent counts once.
        candidates.retain(|it| {
            let cluster = self.clusters.get(&it.cluster);
            cluster.is_none_or(|cluster| !self.prune.is_asked(cluster, &key(it), &it.uid))
        });
        let before = mem::replace(&mut self.prune.going, going);
        self.note_gone(before.into_keys());

        let broken: BTreeSet<&AppId> = self.targets.broken().iter().map(|id| &id.app).collect();
        let valid = fleet.is_valid() && broken.is_empty();
        if valid {
            let wanted: BTreeSet<Key> =
                candidates.iter().map(key).chain(self.prune.going.keys().cloned()).collect();
            // A cluster that is listed again has no candidates until the list is complete.
            let is_unread = |key: &Key| {
                self.clusters.get(&key.0).is_some_and(|entry| {
                    !entry.observation.complete && entry.observation.objects.contains_key(&key.1)
                })
            };
            self.prune.vanished.retain(|key, _| wanted.contains(key) || is_unread(key));
            self.prune.refused.retain(|key, _| wanted.contains(key));
        } else {
            // The renders of a broken app are unknown, so its objects are no candidates.
            candidates.retain(|it| fleet.apps.contains_key(&it.app) && !broken.contains(&it.app));
        }
        for candidate in &candidates {
            let left = Target { app: candidate.app.clone(), cluster: candidate.cluster.clone() };
            let parting = self.prune.partings.get(&left).filter(|_| self.targets.get(&left).is_none());
            let vanished_at = parting.unwrap_or(&head);
            self.prune.vanished.entry(key(candidate)).or_insert_with(|| vanished_at.clone());
        }
        let is_sure = valid && self.clusters.values().all(ClusterEntry::is_known);
        if is_sure {
            let doubted = mem::take(&mut self.prune.over_in_doubt);
            self.prune.over.retain(|it| !doubted.contains(it));
        }
        let (decision, asks) = self.decide(fleet, &candidates, managed, valid);
        self.prune.decision = decision;
        for (asked, app) in asks {
            self.ask_who_agreed([asked].into(), &app);
        }
        // Nothing is deleted before that either.
        if valid && self.unseen(now).is_none() {
            self.prune.note_over(is_sure);
        }
    }

    /// An object stays over the cap until it is gone or Git contains it again.
    fn end_over(&mut self, fleet: &Fleet) {
        let valid = LazyCell::new(|| fleet.is_valid() && self.targets.broken().is_empty());
        let clusters = &self.clusters;
        self.prune.over.retain(|ApprovedObject { cluster, id, uid }| {
            let Some(entry) = clusters.get(cluster) else { return true };
            // A render without the capabilities of the cluster may change.
            let is_sure = entry.facts.is_some() && !entry.stale;
            let is_wanted = || is_sure && entry.wanted.ids().contains(id) && *valid;
            !entry.has_gone(id, uid) && !is_wanted()
        });
        let Pruning { over, over_in_doubt, .. } = &mut self.prune;
        over_in_doubt.retain(|it| over.contains(it));
    }

    fn is_there(&self, (cluster, object): &Key, uid: &str) -> bool {
        self.clusters.get(cluster).is_some_and(|entry| entry.observation.shows(object, uid))
    }

    /// Records objects that were being deleted and are no longer visible.
    fn note_gone(&mut self, before: impl Iterator<Item = Key>) {
        for key in before.filter(|key| !self.prune.going.contains_key(key)) {
            let is_gone = self
                .clusters
                .get(&key.0)
                .is_some_and(|entry| entry.is_ready() && !entry.observation.objects.contains_key(&key.1));
            if let (true, Some(revision)) = (is_gone, self.prune.vanished.get(&key)) {
                *self.prune.confirmed.entry((revision.clone(), key.0)).or_default() += 1;
            }
        }
        let told = &self.told;
        self.prune.confirmed.retain(|(revision, _), _| told.contains(revision));
    }

    /// Also returns the questions that must be answered for a better decision.
    fn decide(
        &self,
        fleet: &Fleet,
        candidates: &[Candidate],
        managed: usize,
        valid: bool,
    ) -> (PruneDecision, BTreeSet<(Question, AppId)>) {
        // Runs at each event while a delete waits: only the targets of candidates are visited.
        let places: BTreeSet<Target> =
            candidates.iter().map(|it| Target { app: it.app.clone(), cluster: it.cluster.clone() }).collect();
        let is_empty = |id: &Target| {
            let render = self.targets.get(id).map(|target| &target.head);
            render.is_some_and(|it| it.as_ref().is_ok_and(|rendered| rendered.objects.is_empty()))
        };
        let empty_renders = places.into_iter().filter(is_empty).map(|id| (id.app, id.cluster)).collect();
        let again: BTreeSet<(Key, &str)> = candidates.iter().map(|it| (key(it), it.uid.as_str())).collect();
        let is_counted = |(key, asked): &(&Key, &Asked)| {
            asked.counts && !again.contains(&((*key).clone(), asked.uid.as_str()))
        };
        let under_cap = self.prune.asked.iter().filter(is_counted).count();
        let asks = RefCell::default();
        let files = self.snapshot.as_ref().map(|snapshot| FileVersions::new(snapshot));
        let rule_asks = |candidate: &Candidate, approvals: &[&Approval]| {
            self.rule_asks(fleet, candidate, approvals, files.as_ref()?, &asks)
        };
        let decision = plan::decide(&PruneInput {
            asks: &rule_asks,
            // The mode of the instance, not of this run: a command in observe mode shows the decision of the instance, and the
            // approvals that it needs. Nothing is deleted unless this run enforces.
            mode: self.instance.mode,
            fleet_valid: valid,
            caps: self.instance.caps,
            managed_total: managed as u64,
            already_deleted: under_cap as u64,
            over: &self.prune.over,
            candidates,
            approvals: &fleet.approvals,
            empty_renders: &empty_renders,
            denial: &|candidate| self.policing.denial(candidate).cloned(),
            app: &|id| self.facts_of(fleet, id),
            cluster: &|name| match self.clusters.get(name) {
                Some(entry) => ClusterFacts {
                    state: entry.cluster.state,
                    complete: entry.is_whole(),
                    away: matches!(entry.reach, Reach::Offline { .. }),
                },
                None => ClusterFacts { state: ClusterState::Ready, complete: false, away: true },
            },
        });
        (decision, asks.into_inner())
    }

    fn facts_of(&self, fleet: &Fleet, id: &AppId) -> AppFacts {
        let default = self.instance.defaults.prune;
        let rendered = self.rendered_digest(id);
        match fleet.apps.get(id) {
            None => AppFacts { rendered, ..AppFacts::gone(default) },
            Some(app) => {
                let (places, unwell) = self.places(id);
                AppFacts {
                    rendered,
                    is_gone: false,
                    places,
                    unwell,
                    prune: app.prune.unwrap_or(default),
                    paused: app.paused,
                    unmanaged: app.unmanaged,
                    rollout_is_open: self.apps.get(id).is_some_and(AppEntry::is_open),
                }
            }
        }
    }

    fn start_deletes(&mut self, now: Instant) {
        let mut rooms: BTreeMap<&ClusterName, usize> = BTreeMap::new();
        let (mut started, mut elsewhere) = (Vec::new(), Vec::new());
        for decided in self.next_releases(now).chain(self.next_deletes(now)) {
            let cluster = &decided.candidate.cluster;
            let room = rooms.entry(cluster).or_insert_with(|| self.in_flight.room_for_deletes(cluster));
            if *room == 0 || self.held_off(decided, now).is_some() {
                continue;
            }
            let is_delete = decided.action == Action::Delete;
            if is_delete && !self.policing.allows(&decided.candidate) {
                continue;
            }
            if self.in_flight.is_deleting(&key(&decided.candidate)) {
                continue;
            }
            match self.wanted_through(&decided.candidate) {
                Some(other) => elsewhere.push((decided.candidate.clone(), other.clone())),
                None => {
                    *room -= 1;
                    started.push(decided.clone());
                }
            }
        }
        self.changed |= !elsewhere.is_empty();
        for (candidate, other) in elsewhere {
            let text = format!(
                "cluster {other} shows the same object and wants it: both lead to one server, so one of their files may go"
            );
            self.prune.refused(&candidate, text, now);
        }
        for decided in started {
            self.start(decided);
        }
    }

    /// Two clusters of the config repository may be one server, for example by a copied kubeconfig or a renamed cluster. An
    /// object that is undesired through one cluster may be desired through the other.
    fn wanted_through(&self, candidate: &Candidate) -> Option<&ClusterName> {
        let is_it = |entry: &ClusterEntry| {
            entry.observation.shows(&candidate.object, &candidate.uid)
                && entry.wanted.ids().contains(&candidate.object)
        };
        let others = self.clusters.iter().filter(|(name, _)| **name != candidate.cluster);
        others.into_iter().find(|(_, entry)| is_it(entry)).map(|(name, _)| name)
    }

    fn held_off(&self, decided: &Decided, now: Instant) -> Option<Instant> {
        let Candidate { cluster, object, .. } = &decided.candidate;
        self.clusters.get(cluster)?.held_off_in(iter::once(&*object.group), now)
    }

    /// Deletes or releases one object.
    fn start(&mut self, Decided { candidate, action, reason }: Decided) {
        let Some(cluster) = self.clusters.get(&candidate.cluster) else { return };
        let Some(client) = cluster.client.clone() else { return };
        let (catalog, rules, epoch) = (Arc::clone(&cluster.catalog), cluster.rules(), cluster.epoch);
        let instance = self.instance.name.clone();
        let is_delete = action == Action::Delete;
        let Some(cancelled) = self.in_flight.start_delete(&key(&candidate)) else { return };
        if is_delete {
            let counts = !candidate.is_ended_run && !matches!(reason, Reason::Approved { .. });
            let asked = Asked { uid: candidate.uid.clone(), counts, is_doubted: false };
            self.prune.asked.insert(key(&candidate), asked);
            let going = Going { app: candidate.app.clone(), turn: candidate.turn() };
            self.prune.going.insert(key(&candidate), going);
        }
        self.changed = true;
        let events = self.events.clone();
        tokio::spawn(async move {
            let farewell = Farewell {
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
            let _ = events.send(Event::Deleted { candidate: Box::new(candidate), epoch, result }).await;
        });
    }

    /// A release loses nothing, so it needs no order.
    fn next_releases(&self, now: Instant) -> impl Iterator<Item = &Decided> {
        let is_due = move |decided: &&Decided| self.prune.may_ask(&decided.candidate, now);
        self.prune.decision.releases.iter().filter(is_due)
    }

    /// The deletes whose turn it is. Each app on each cluster deletes only its last turn, after all earlier deletes are gone: the
    /// reverse of the apply order. A cluster that is being removed counts as one app.
    fn next_deletes(&self, now: Instant) -> impl Iterator<Item = &Decided> {
        let is_removed = |name: &ClusterName| {
            self.clusters.get(name).is_some_and(|entry| entry.cluster.state == ClusterState::Removed)
        };
        let queue = move |cluster, app| (cluster, Some(app).filter(|_| !is_removed(cluster)));
        let deletes = &self.prune.decision.deletes;
        // The waves of an app do not order another app.
        let turn =
            move |cluster: &ClusterName, turn: Turn| if is_removed(cluster) { turn.by_phase() } else { turn };
        let going = self.prune.going.iter();
        let going = going.map(|((cluster, _), it)| (cluster, &it.app, turn(cluster, it.turn)));
        let due = deletes.iter().map(|decided| &decided.candidate);
        let due = due.map(|it| (&it.cluster, &it.app, turn(&it.cluster, it.turn())));
        let mut turns: BTreeMap<(&ClusterName, Option<&AppId>), Turn> = BTreeMap::new();
        for (cluster, app, turn) in going.chain(due) {
            let last = turns.entry(queue(cluster, app)).or_insert(turn);
            *last = (*last).max(turn);
        }
        deletes.iter().filter(move |Decided { candidate, .. }| {
            let turn = turn(&candidate.cluster, candidate.turn());
            turns.get(&queue(&candidate.cluster, &candidate.app)) == Some(&turn)
                && self.prune.may_ask(candidate, now)
        })
    }

    /// The digest of the app's objects on all clusters; for a removed app the digest of nothing.
    fn rendered_digest(&self, app: &AppId) -> Digest {
        let renders = self.targets.of_app(app);
        plan::rendered_digest(renders.filter_map(|(_, target)| target.head.as_deref().ok()))
    }

    /// The state of an app on each of its clusters, and the unhealthy ones.
    fn places(&self, app: &AppId) -> (BTreeMap<ClusterName, Standing>, BTreeMap<ClusterName, String>) {
        use Phase::{Degraded, Paused, Progressing, Refused};
        let (mut places, mut kept_out, mut unwell) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (id, target) in self.targets.of_app(app) {
            let (phase, words) = self.phase(id);
            if matches!(phase, Degraded | Paused | Progressing | Refused) && !words.is_empty() {
                unwell.insert(id.cluster.clone(), words);
            }
            let standing = match phase {
                Phase::KeptOut => {
                    kept_out.insert(id.cluster.clone(), Standing::Unhealthy);
                    continue;
                }
                phase if phase.is_done() && self.holds_no_pods_back(id, target) => Standing::Healthy,
                Phase::Unreachable if self.was_as_rendered(id, target) => Standing::AwayAsRendered,
                _ => Standing::Unhealthy,
            };
            places.insert(id.cluster.clone(), standing);
        }
        // A cluster whose taint excludes new apps is not waited for. If an app can run only there, its previous placement is
        // kept.
        (if places.is_empty() { kept_out } else { places }, unwell)
    }

    /// A workload that is paused before its pods came is healthy, but the workload that it replaces still serves.
    fn holds_no_pods_back(&self, id: &Target, target: &TargetEntry) -> bool {
        let (Some(cluster), Ok(rendered)) = (self.clusters.get(&id.cluster), &target.render) else {
            return true;
        };
        let mut seen =
            rendered.objects.iter().filter_map(|object| cluster.observation.objects.get(&object.id));
        seen.all(|live| live.health.status != Status::Suspended || live.can_take_over())
    }

    /// At the last full observation of its cluster, all objects were there as rendered now, and healthy. A process without such
    /// an observation returns false.
    fn was_as_rendered(&self, id: &Target, target: &TargetEntry) -> bool {
        let (Some(cluster), Ok(rendered)) = (self.clusters.get(&id.cluster), &target.render) else {
            return false;
        };
        // An object that only some releases have may be absent.
        let may_be_absent = |object: &RenderedObject| {
            object.hook.is_some_and(|hook| hook.occasion != Occasion::Each)
                && !cluster.observation.objects.contains_key(&object.id)
        };
        let was_seen = |object: &RenderedObject| {
            cluster.observation.objects.get(&object.id).is_some_and(|live| {
                let is_applied =
                    !live.deleting && live.hash == Some(object.hash) && *live.app == id.app.to_string();
                is_applied && live.can_take_over()
            })
        };
        cluster.observation.complete
            && !cluster.left
            && !target.stale
            && rendered.objects.iter().all(|object| may_be_absent(object) || was_seen(object))
    }

    /// No delete is in progress, and the waiting ones need a person or stay for good.
    pub(super) fn is_prune_settled(&self) -> bool {
        !self.policing.is_reading() && self.mode() == Mode::Observe
            || (!self.in_flight.has_deletes()
                && self.prune.going.is_empty()
                && self.prune.decision.deletes.is_empty()
                && self.prune.decision.releases.is_empty()
                && !self.prune.decision.waiting.iter().any(|decided| self.waits_for_moments(decided)))
    }

    /// Its cluster is whole except for an API that may return soon.
    fn waits_for_moments(&self, decided: &Decided) -> bool {
        decided.reason == Reason::ObservationIncomplete
            && self.clusters.get(&decided.candidate.cluster).is_some_and(ClusterEntry::awaits_an_api)
    }
}
