//! Deleting what Git no longer wants: decided over the whole instance, carried out one by one.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::event::Event;
use super::world::{Asked, World};
use crate::apply;
use crate::fleet::Target;
use crate::model::{AppId, ClusterName, ClusterState, Digest, Mode, ObjectId};
use crate::plan::{self, AppFacts, Candidate, ClusterFacts, Decided, PruneDecision, PruneInput, Reason};

/// Deletes side by side over all clusters.
const SIDE_BY_SIDE: usize = 16;

/// The last decision, and when to try again after a failure.
#[derive(Debug, Default)]
pub struct Pruning {
    pub decision: PruneDecision,
    pub retry_at: Option<Instant>,
}

impl World {
    /// Decides and starts deletes; returns when to try again.
    pub(super) fn advance_prune(&mut self, now: Instant) -> Option<Instant> {
        if self.head.is_none() || self.head != self.rendered_head {
            return None;
        }
        let decision = self.decide_prune();
        self.prune.decision = decision;
        if let Some(at) = self.prune.retry_at {
            if at > now {
                return Some(at);
            }
            self.prune.retry_at = None;
        }
        if self.mode() == Mode::Enforce {
            self.start_deletes();
        }
        None
    }

    fn decide_prune(&mut self) -> PruneDecision {
        let Some(fleet) = self.fleet.clone() else { return PruneDecision::default() };
        let Some(head) = self.head.clone() else { return PruneDecision::default() };
        let mut candidates = Vec::new();
        let mut managed = 0;
        for (name, cluster) in &self.clusters {
            managed += cluster.observation.objects.len();
            if !cluster.is_complete() {
                continue;
            }
            let rendered: BTreeSet<ObjectId> = self
                .targets
                .iter()
                .filter(|(id, _)| id.cluster == *name)
                .filter_map(|(_, target)| target.render.as_ref().ok())
                .flat_map(|rendered| rendered.objects.iter().map(|object| object.id.clone()))
                .collect();
            candidates.extend(plan::candidates(name, &cluster.observation, &rendered));
        }
        let wanted: BTreeSet<(ClusterName, ObjectId)> =
            candidates.iter().map(|it| (it.cluster.clone(), it.object.clone())).collect();
        self.vanished.retain(|key, _| wanted.contains(key));
        for key in wanted {
            self.vanished.entry(key).or_insert_with(|| head.clone());
        }

        // What was asked for already and is still shown counts once, as deleted.
        candidates.retain(|it| !self.deleted.contains_key(&(it.cluster.clone(), it.object.clone())));

        let rendered_ok = self.targets.values().all(|target| target.render.is_ok());
        let default = self.instance.defaults.prune;
        let empty_renders = self
            .targets
            .iter()
            .filter(|(_, target)| target.render.as_ref().is_ok_and(|rendered| rendered.objects.is_empty()))
            .map(|(id, _)| (id.app.clone(), id.cluster.clone()))
            .collect();
        plan::decide(&PruneInput {
            // Not the mode of this run: a command that only looks shows what the instance decides, and
            // which approvals it wants. Nothing is deleted here unless this run enforces.
            mode: self.instance.mode,
            fleet_valid: fleet.is_valid() && rendered_ok,
            caps: self.instance.caps,
            managed_total: managed as u64,
            already_deleted: self.deleted.values().filter(|asked| **asked == Asked::UnderCap).count() as u64,
            candidates: &candidates,
            approvals: &fleet.approvals,
            empty_renders: &empty_renders,
            app: &|id| {
                let rendered = self.rendered_digest(id);
                match fleet.apps.get(id) {
                    None => AppFacts { rendered, ..AppFacts::gone(default) },
                    Some(app) => AppFacts {
                        rendered,
                        healthy: self.is_app_healthy(id),
                        prune: app.prune.unwrap_or(default),
                        paused: app.paused,
                        unmanaged: app.unmanaged,
                    },
                }
            },
            cluster: &|name| match self.clusters.get(name) {
                Some(entry) => ClusterFacts { state: entry.cluster.state, complete: entry.is_complete() },
                None => ClusterFacts { state: ClusterState::Ready, complete: false },
            },
        })
    }

    fn start_deletes(&mut self) {
        let free = SIDE_BY_SIDE.saturating_sub(self.deleting.len());
        let started: Vec<Decided> = self.next_deletes().take(free).cloned().collect();
        for Decided { candidate, reason, .. } in started {
            let Some(cluster) = self.clusters.get(&candidate.cluster) else { continue };
            let Some(client) = cluster.client.clone() else { continue };
            let catalog = std::sync::Arc::clone(&cluster.catalog);
            let key = (candidate.cluster.clone(), candidate.object.clone());
            self.deleting.insert(key.clone());
            let approved = matches!(reason, Reason::Approved { .. });
            self.deleted.insert(key, if approved { Asked::Approved } else { Asked::UnderCap });
            self.changed = true;
            let events = self.events.clone();
            tokio::spawn(async move {
                let result = apply::delete(&client, &catalog, &candidate).await;
                let target = Target { cluster: candidate.cluster, app: candidate.app };
                // A closed queue means that the controller has stopped: nobody is left to tell.
                let _ = events.send(Event::Deleted { target, object: candidate.object, result }).await;
            });
        }
    }

    /// The deletes whose turn it is: of each app on each cluster only those of its last phase, and
    /// only when what was asked for before is gone. So an app goes in the reverse of the order it came in.
    fn next_deletes(&self) -> impl Iterator<Item = &Decided> {
        let deletes = &self.prune.decision.deletes;
        let asked = self.deleted.keys().filter_map(|(cluster, object)| {
            let live = self.clusters.get(cluster)?.observation.objects.get(object)?;
            Some((cluster, AppId::parse(&live.app)?, plan::Phase::of(object)))
        });
        let due = deletes.iter().map(|Decided { candidate, .. }| {
            (&candidate.cluster, candidate.app.clone(), plan::Phase::of(&candidate.object))
        });
        let mut turn: BTreeMap<(&ClusterName, AppId), plan::Phase> = BTreeMap::new();
        for (cluster, app, phase) in asked.chain(due) {
            let last = turn.entry((cluster, app)).or_insert(phase);
            *last = (*last).max(phase);
        }
        deletes.iter().filter(move |Decided { candidate, .. }| {
            turn.get(&(&candidate.cluster, candidate.app.clone()))
                == Some(&plan::Phase::of(&candidate.object))
        })
    }

    /// The app as rendered on all its clusters; of an app that is gone, of nothing.
    fn rendered_digest(&self, app: &AppId) -> Digest {
        let renders = self.targets.iter().filter(|(id, _)| id.app == *app);
        plan::rendered_digest(renders.filter_map(|(_, target)| target.render.as_deref().ok()))
    }

    /// On every cluster; an app that is gone has nothing that could be unhealthy.
    fn is_app_healthy(&self, app: &AppId) -> bool {
        self.targets.keys().filter(|id| id.app == *app).all(|id| self.phase(id).0.is_done())
    }

    /// Nothing is being deleted, and what waits waits for a person or for good.
    pub(super) fn is_prune_settled(&self) -> bool {
        let enforce = self.mode() == Mode::Enforce;
        let seen = |candidate: &Candidate| {
            self.clusters
                .get(&candidate.cluster)
                .is_some_and(|cluster| cluster.observation.objects.contains_key(&candidate.object))
        };
        self.deleting.is_empty()
            && !(enforce && self.prune.decision.deletes.iter().any(|deletion| seen(&deletion.candidate)))
            && !(enforce && self.is_deleting_something())
    }

    /// A deleted object that its cluster still shows: finalizers, or the watch is behind.
    fn is_deleting_something(&self) -> bool {
        self.deleted.keys().any(|(cluster, object)| {
            self.clusters.get(cluster).is_some_and(|entry| entry.observation.objects.contains_key(object))
        })
    }
}
