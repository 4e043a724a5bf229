//! Deleting what Git no longer wants: decided over the whole instance, carried out one by one.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::cluster_entry::ClusterEntry;
use super::event::Event;
use super::world::World;
use crate::apply;
use crate::fleet::{Fleet, Target};
use crate::model::{AppId, ClusterName, ClusterState, Digest, Mode, ObjectId, Revision};
use crate::plan::{self, AppFacts, Candidate, ClusterFacts, Decided, PruneDecision, PruneInput, Reason};

/// Deletes side by side over all clusters.
const SIDE_BY_SIDE: usize = 16;
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

type Key = (ClusterName, ObjectId);

/// What is known of deletes.
#[derive(Debug, Default)]
pub struct Pruning {
    pub decision: PruneDecision,
    /// Objects that Git no longer wants: the head at which that was first seen.
    pub vanished: BTreeMap<Key, Revision>,
    /// Objects that are on their way out, with their app: asked for by us, or with a deletionTimestamp.
    pub going: BTreeMap<Key, AppId>,
    /// Asked for at this head, and accepted or under way, with the uid that was meant: an object of the
    /// same name that came later is another one.
    asked: BTreeMap<Key, (Asked, String)>,
    /// Requests under way.
    asking: BTreeSet<Key>,
    refused: BTreeMap<Key, Refusal>,
}

/// Whether a delete that was asked for counts against the cap: not what somebody approved, nor an ended run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    UnderCap,
    Uncounted,
}

/// The cluster said no; the same request is not hammered.
#[derive(Debug)]
struct Refusal {
    /// Another state of the object is another request.
    resource_version: String,
    text: String,
    attempts: u32,
    retry_at: Instant,
}

impl Pruning {
    /// A new head: what was deleted before does not count against its cap.
    pub fn begin(&mut self) {
        self.asked.retain(|key, _| self.asking.contains(key));
    }

    pub fn is_asking(&self) -> bool {
        !self.asking.is_empty()
    }

    pub fn accepted(&mut self, candidate: &Candidate) {
        let key = key(candidate);
        self.asking.remove(&key);
        self.refused.remove(&key);
    }

    pub fn refused(&mut self, candidate: &Candidate, text: String, now: Instant) {
        let key = key(candidate);
        self.asking.remove(&key);
        self.asked.remove(&key);
        let attempts = self.refused.get(&key).map_or(0, |refusal| refusal.attempts + 1);
        let pause = FIRST_PAUSE.saturating_mul(1 << attempts.min(6)).min(LONGEST_PAUSE);
        let resource_version = candidate.resource_version.clone();
        self.refused.insert(key, Refusal { resource_version, text, attempts, retry_at: now + pause });
    }

    /// Why a delete that is due is not made, if the cluster refused it.
    pub fn refusal(&self, key: &Key) -> Option<&str> {
        self.refused.get(key).map(|refusal| refusal.text.as_str())
    }

    fn is_asked(&self, key: &Key, uid: &str) -> bool {
        self.asked.get(key).is_some_and(|(_, known)| known == uid)
    }

    fn may_ask(&self, candidate: &Candidate, now: Instant) -> bool {
        self.refused.get(&key(candidate)).is_none_or(|refusal| {
            refusal.retry_at <= now || refusal.resource_version != candidate.resource_version
        })
    }
}

fn key(candidate: &Candidate) -> Key {
    (candidate.cluster.clone(), candidate.object.clone())
}

impl World {
    /// Decides and starts deletes; returns when to try again.
    pub(super) fn advance_prune(&mut self, now: Instant) -> Option<Instant> {
        let fleet = self.fleet.clone()?;
        if self.head.is_none() || self.head != self.rendered_head || !fleet.is_usable() {
            return None;
        }
        if self.is_anything_unwanted(&fleet) {
            self.decide_prune(&fleet);
        }
        // The cap holds over all clusters: nothing is deleted before all of them were looked at.
        let whole = self.clusters.values().all(ClusterEntry::is_observed);
        if self.mode() == Mode::Enforce && whole {
            self.start_deletes(now);
        }
        self.prune.refused.values().map(|refusal| refusal.retry_at).filter(|at| *at > now).min()
    }

    /// Or was, or may be approved. If not, there is nothing to decide, whatever the size of the fleet.
    fn is_anything_unwanted(&self, fleet: &Fleet) -> bool {
        let Pruning { decision, vanished, going, asked, asking, refused } = &self.prune;
        let is_idle = *decision == PruneDecision::default()
            && vanished.is_empty()
            && going.is_empty()
            && asked.is_empty()
            && asking.is_empty()
            && refused.is_empty();
        !is_idle
            || !fleet.approvals.is_empty()
            || self.clusters.values().any(|entry| !entry.strays.is_empty())
    }

    fn decide_prune(&mut self, fleet: &Fleet) {
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
            candidates.extend(plan::candidates(name, &entry.observation, &entry.strays, rendered));
            let strays = entry.strays.iter().filter_map(|id| entry.observation.objects.get_key_value(id));
            for (id, live) in strays {
                let key = (name.clone(), id.clone());
                let leaves = live.deleting || self.prune.is_asked(&key, &live.uid);
                if let (true, false, Some(app)) = (leaves, rendered.contains(id), AppId::parse(&live.app)) {
                    going.insert(key, app);
                }
            }
        }
        // What was asked for already and is still shown counts once.
        candidates.retain(|it| !self.prune.is_asked(&key(it), &it.uid));
        self.prune.going = going;

        let broken: BTreeSet<&AppId> =
            self.targets.iter().filter(|(_, target)| target.render.is_err()).map(|(id, _)| &id.app).collect();
        let valid = fleet.is_valid() && broken.is_empty();
        if valid {
            let wanted: BTreeSet<Key> =
                candidates.iter().map(key).chain(self.prune.going.keys().cloned()).collect();
            self.prune.vanished.retain(|key, _| wanted.contains(key));
            self.prune.refused.retain(|key, _| wanted.contains(key));
        } else {
            // What a broken app wants is not known, so neither is whether nobody wants its objects.
            candidates.retain(|it| fleet.apps.contains_key(&it.app) && !broken.contains(&it.app));
        }
        for candidate in &candidates {
            self.prune.vanished.entry(key(candidate)).or_insert_with(|| head.clone());
        }
        self.prune.decision = self.decide(fleet, &candidates, managed, valid);
    }

    fn decide(&self, fleet: &Fleet, candidates: &[Candidate], managed: usize, valid: bool) -> PruneDecision {
        // Asked for again with each candidate, and as dear as the app has clusters.
        let facts: RefCell<BTreeMap<AppId, AppFacts>> = RefCell::default();
        let empty_renders = self
            .targets
            .iter()
            .filter(|(_, target)| target.render.as_ref().is_ok_and(|rendered| rendered.objects.is_empty()))
            .map(|(id, _)| (id.app.clone(), id.cluster.clone()))
            .collect();
        let under_cap = self.prune.asked.values().filter(|(asked, _)| *asked == Asked::UnderCap).count();
        plan::decide(&PruneInput {
            // Not the mode of this run: a command that only looks shows what the instance decides, and
            // which approvals it wants. Nothing is deleted here unless this run enforces.
            mode: self.instance.mode,
            fleet_valid: valid,
            caps: self.instance.caps,
            managed_total: managed as u64,
            already_deleted: under_cap as u64,
            candidates,
            approvals: &fleet.approvals,
            empty_renders: &empty_renders,
            app: &|id| *facts.borrow_mut().entry(id.clone()).or_insert_with(|| self.facts_of(fleet, id)),
            cluster: &|name| match self.clusters.get(name) {
                Some(entry) => ClusterFacts { state: entry.cluster.state, complete: entry.is_whole() },
                None => ClusterFacts { state: ClusterState::Ready, complete: false },
            },
        })
    }

    fn facts_of(&self, fleet: &Fleet, id: &AppId) -> AppFacts {
        let default = self.instance.defaults.prune;
        let rendered = self.rendered_digest(id);
        match fleet.apps.get(id) {
            None => AppFacts { rendered, ..AppFacts::gone(default) },
            Some(app) => AppFacts {
                rendered,
                healthy: self.is_app_healthy(id),
                prune: app.prune.unwrap_or(default),
                paused: app.paused,
                unmanaged: app.unmanaged,
                waits_for_waves: app.is_in_waves() && self.waits_for_waves(id),
            },
        }
    }

    fn start_deletes(&mut self, now: Instant) {
        let free = SIDE_BY_SIDE.saturating_sub(self.prune.asking.len());
        let started: Vec<Decided> = self.next_deletes(now).take(free).cloned().collect();
        for Decided { candidate, reason, .. } in started {
            let Some(cluster) = self.clusters.get(&candidate.cluster) else { continue };
            let Some(client) = cluster.client.clone() else { continue };
            let catalog = Arc::clone(&cluster.catalog);
            let counts = !candidate.is_ended_run && !matches!(reason, Reason::Approved { .. });
            self.prune.asking.insert(key(&candidate));
            let asked = if counts { Asked::UnderCap } else { Asked::Uncounted };
            self.prune.asked.insert(key(&candidate), (asked, candidate.uid.clone()));
            self.prune.going.insert(key(&candidate), candidate.app.clone());
            self.changed = true;
            let events = self.events.clone();
            tokio::spawn(async move {
                let result = apply::delete(&client, &catalog, &candidate).await;
                // A closed queue means that the controller has stopped: nobody is left to tell.
                let _ = events.send(Event::Deleted { candidate: Box::new(candidate), result }).await;
            });
        }
    }

    /// The deletes whose turn it is: of each app on each cluster only those of its last phase, and
    /// only when what was asked for before is gone. So an app goes in the reverse of the order it came in.
    fn next_deletes(&self, now: Instant) -> impl Iterator<Item = &Decided> {
        let deletes = &self.prune.decision.deletes;
        let going =
            self.prune.going.iter().map(|((cluster, object), app)| (cluster, app, plan::Phase::of(object)));
        let due = deletes.iter().map(|Decided { candidate, .. }| {
            (&candidate.cluster, &candidate.app, plan::Phase::of(&candidate.object))
        });
        let mut turn: BTreeMap<(&ClusterName, &AppId), plan::Phase> = BTreeMap::new();
        for (cluster, app, phase) in going.chain(due) {
            let last = turn.entry((cluster, app)).or_insert(phase);
            *last = (*last).max(phase);
        }
        deletes.iter().filter(move |Decided { candidate, .. }| {
            turn.get(&(&candidate.cluster, &candidate.app)) == Some(&plan::Phase::of(&candidate.object))
                && self.prune.may_ask(candidate, now)
        })
    }

    /// The app as rendered on all its clusters; of an app that is gone, of nothing.
    fn rendered_digest(&self, app: &AppId) -> Digest {
        let renders = self.targets.of_app(app);
        plan::rendered_digest(renders.filter_map(|(_, target)| target.render.as_deref().ok()))
    }

    /// On some cluster, one of its workloads would become another, or go.
    fn waits_for_waves(&self, app: &AppId) -> bool {
        let instance = &self.instance.name;
        self.clusters.iter().any(|(name, cluster)| {
            let observation = &cluster.observation;
            let id = Target { app: app.clone(), cluster: name.clone() };
            let changed = match self.targets.get(&id).map(|target| &target.render) {
                Some(Ok(rendered)) => plan::waves::changed_workload(instance, rendered, observation),
                Some(Err(_)) => None,
                // It belongs there no longer.
                None => plan::waves::gone_workload(app, None, observation),
            };
            changed.is_some()
        })
    }

    /// On every cluster; an app that is gone has nothing that could be unhealthy.
    fn is_app_healthy(&self, app: &AppId) -> bool {
        self.targets.of_app(app).all(|(id, _)| self.phase(id).0.is_done())
    }

    /// Nothing is being deleted, and what waits waits for a person or for good.
    pub(super) fn is_prune_settled(&self) -> bool {
        self.mode() == Mode::Observe
            || (self.prune.asking.is_empty()
                && self.prune.going.is_empty()
                && self.prune.decision.deletes.is_empty())
    }
}
