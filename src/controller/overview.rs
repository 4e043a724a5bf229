//! Builds the overview: the whole state, as reports show it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use super::apps::{AppEntry, UnitEntry};
use super::cluster_entry::{ClusterEntry, Reach};
use super::event::LoadError;
use super::target::TargetEntry;
use super::world::World;
use crate::cluster::Credential;
use crate::fleet::Target;
use crate::model::{
    AppId, ClusterName, ClusterState, Live, ObjectId, PodCount, Rendered, RenderedObject, Revision,
    RolloutApproval,
};
use crate::plan::{Action, Decided, Difference, Reason};
use crate::report::{
    ClusterReport, DeletionReport, OtherApproval, Overview, PodSetReport, RolloutReport, TargetReport,
    UnitReport, merged,
};
use crate::rollout::{Condition, Decision, Measured, Refusal, UnitFacts, UnitId};

impl World {
    pub fn overview(&self) -> Overview {
        let settled = self.targets.iter().filter(|(id, target)| !self.is_provisional(id, target));
        let of_targets = settled.filter_map(|(_, target)| target.render.as_ref().err()).flatten();
        let of_fleet = self.fleet.iter().flat_map(|fleet| &fleet.diagnostics);
        // One error in a template affects every cluster; it is reported once.
        let diagnostics = merged(of_fleet.chain(of_targets), |app| self.targets.of_app(app).count());
        let decision = &self.prune.decision;
        Overview {
            revision: self.head.clone(),
            is_rendered: self.head.is_some() && self.head == self.rendered_head,
            writes: self.writes.clone(),
            mode: self.mode(),
            status_prefix: self.instance.status_prefix.clone(),
            page_url: self.instance.page_url.clone(),
            rings: self.fleet.iter().flat_map(|fleet| &fleet.rings).map(|ring| ring.name.clone()).collect(),
            targets: self.targets.iter().map(|(id, entry)| self.target_report(id, entry)).collect(),
            rollouts: self.apps.iter().map(|(id, entry)| self.rollout_report(id, entry)).collect(),
            clusters: self
                .clusters
                .values()
                .map(|entry| self.cluster_report(entry))
                .chain(self.dropped_reports())
                .collect(),
            deletions: self.deletions(),
            held: self.held(),
            orphans: self.orphans(),
            deleted: self.prune.confirmed.clone(),
            approvals_wanted: decision.approvals_wanted.clone(),
            approvals_early: decision.approvals_early.clone(),
            approvals_unused: decision.approvals_unused.iter().map(|unused| unused.name.clone()).collect(),
            diagnostics,
            told: self.told.clone(),
            recent: self.telling.recent.clone(),
            blamed: self.blamed.clone(),
            source_error: self.load_error.as_ref().map(LoadError::in_words),
        }
    }

    fn ring_of(&self, cluster: &ClusterName) -> Option<String> {
        let fleet = self.fleet.as_ref()?;
        let known = fleet.ring_of(cluster).map(ToOwned::to_owned);
        // The file of a known cluster may have an error now.
        known.or_else(|| fleet.ring_for(&self.clusters.get(cluster)?.cluster))
    }

    fn rollout_report(&self, id: &AppId, entry: &AppEntry) -> RolloutReport {
        let decision = entry.decision.as_ref();
        let of_app = self.fleet.iter().filter_map(|fleet| fleet.rollout_approvals.get(id)).flatten();
        let is_unused = |approval: &&RolloutApproval| !entry.head.has_version(&approval.digest);
        RolloutReport {
            app: id.clone(),
            digest: entry.head.digest,
            commit: self.newest_commit(id, entry),
            is_open: entry.is_open(),
            waves: decision.map(|decision| decision.waves.clone()).unwrap_or_default(),
            confirmation: decision.and_then(|decision| decision.confirmation.clone()),
            measures: decision.map(measures).unwrap_or_default(),
            units: entry
                .units
                .iter()
                .map(|(unit, known)| self.unit_report((id, entry), unit, known))
                .collect(),
            approvals_unused: of_app.filter(is_unused).map(other_approval).collect(),
        }
    }

    /// The newest known commit that changed an app. For a refused version: the commit that brought it. Of several refused
    /// versions the one that the first unit waits for, as [`RolloutReport::refused`] names it.
    fn newest_commit(&self, id: &AppId, entry: &AppEntry) -> Option<Revision> {
        let refusal = entry.decision.as_ref().and_then(|decision| {
            let refusals = &decision.refusals;
            let mut named = decision.units.iter().filter_map(|(unit, verdict)| {
                let wave = entry.facts.get(unit)?.wave;
                refusals.iter().find(|it| it.is_reason_of(verdict.hold.as_ref(), wave))
            });
            named.next().or(refusals.first())
        });
        let of_ring = |ring: usize| -> BTreeSet<&ClusterName> {
            let units = entry.facts.iter().filter(|(_, facts)| facts.wave == ring);
            units.map(|(unit, _)| &unit.cluster).collect()
        };
        let of_ring = refusal.and_then(|refusal| refusal.ring).map(of_ring);
        let is_of_it = |cluster: &ClusterName| of_ring.as_ref().is_none_or(|ring| ring.contains(cluster));
        let mut pins = entry.app.pins.iter().filter(|(cluster, _)| of_ring.is_some() && is_of_it(cluster));
        let newest = match pins.next() {
            Some((_, pin)) => self.snapshot.as_ref()?.last_change([pin.location.file.as_str()]),
            None => {
                let targets = self.targets.of_app(id).filter(|(target, _)| is_of_it(&target.cluster));
                let known = targets.map(|(_, target)| &target.revision).filter(|it| entry.is_known(it));
                known.min_by_key(|commit| entry.position(commit))?
            }
        };
        // A commit after the failure did not bring the failed version.
        let is_it = |refusal: &Refusal| entry.position(&refusal.head) <= entry.position(newest);
        refusal.is_none_or(is_it).then(|| newest.clone())
    }

    fn target_report(&self, id: &Target, entry: &TargetEntry) -> TargetReport {
        let (phase, detail) = self.phase(id);
        let mut pods = PodCount::default();
        let mut created: Option<&str> = None;
        let observed = self.clusters.get(&id.cluster).map(|cluster| &cluster.observation.objects);
        let left = |object: &ObjectId| observed?.get(object)?.ignored.as_ref()?.version.as_deref();
        if let (Ok(rendered), Some(cluster)) = (&entry.render, self.clusters.get(&id.cluster)) {
            for object in &*rendered.objects {
                if let Some(live) = cluster.observation.objects.get(&object.id) {
                    let counted = live.pods.unwrap_or_default();
                    pods.desired += counted.desired;
                    pods.available += counted.available;
                    created = [created, live.created.as_deref()].into_iter().flatten().min();
                }
            }
        }
        let rendered = entry.render.as_ref().ok();
        let pod_set = |name: &Arc<str>| PodSetReport {
            name: name.to_string(),
            pods: rendered.zip(observed).map(|it| pods_of(name, it)).unwrap_or_default(),
            version: entry.versions.of_pod_set(name, left),
        };
        let pod_sets = rendered.iter().flat_map(|rendered| rendered.pod_sets.iter().map(pod_set)).collect();
        TargetReport {
            app: id.app.clone(),
            kind: entry.app.kind(),
            cluster: id.cluster.clone(),
            ring: self.ring_of(&id.cluster),
            revision: entry.revision.clone(),
            phase,
            detail,
            pods,
            version: entry.versions.running(left),
            pod_sets,
            created: created.map(ToOwned::to_owned),
            plan: entry.plan.clone(),
            differences: foreseen(entry),
        }
    }

    fn cluster_report(&self, entry: &ClusterEntry) -> ClusterReport {
        let (state, detail) = match (&entry.reach, entry.cluster.state) {
            (Reach::Connecting, _) => ("Connecting", String::new()),
            (Reach::Offline { detail, .. }, _) => ("Offline", detail.clone()),
            (Reach::Ready, ClusterState::Maintaining) => ("Maintaining", String::new()),
            (Reach::Ready, ClusterState::Ready) => ("Ready", entry.trouble().unwrap_or_default()),
            (Reach::Ready, ClusterState::Removed) => self.removal(entry),
        };
        ClusterReport {
            name: entry.name().clone(),
            ring: self.ring_of(entry.name()),
            state,
            detail,
            observed: entry.is_observed(),
            objects: entry.observation.objects.len(),
            credential_expires: entry.client.as_ref().and_then(|client| expiry(&client.credential())),
            dropped_by: None,
        }
    }

    /// Deletes that are due, wait or are in progress, without objects that stay for good.
    fn deletions(&self) -> Vec<DeletionReport> {
        let decision = &self.prune.decision;
        let waiting = decision.waiting.iter().filter(|it| it.action == Action::Wait);
        let due = decision.deletes.iter().chain(&decision.releases);
        let unseen = self.unseen(Instant::now()).map(ClusterEntry::name);
        let due = due.map(|decided| match unseen {
            Some(unseen) => self.held_up(decided, unseen),
            None => self.decided(decided),
        });
        let going = self.prune.going.iter().map(|(key, going)| {
            let words = "being deleted".to_owned();
            self.deletion(key, going.app.clone(), Action::Delete, None, words)
        });
        due.chain(waiting.map(|decided| self.decided(decided)))
            .chain(going)
            .chain(self.unread())
            .chain(self.partings())
            .collect()
    }

    /// The delete waits until this cluster was observed.
    fn held_up(&self, decided: &Decided, unseen: &ClusterName) -> DeletionReport {
        let words = format!("nothing is deleted before cluster {unseen} was read");
        DeletionReport { waits: true, reason: words, ..self.decided(decided) }
    }

    /// Objects that were undesired on a cluster that is being listed again: they may still exist.
    fn unread(&self) -> impl Iterator<Item = DeletionReport> {
        let going = &self.prune.going;
        self.prune.vanished.keys().filter(|key| !going.contains_key(key)).filter_map(|key| {
            let observation = &self.clusters.get(&key.0)?.observation;
            let live = observation.objects.get(&key.1).filter(|_| !observation.complete)?;
            let words = Reason::ObservationIncomplete.to_string();
            Some(self.deletion(key, AppId::parse(&live.app)?, Action::Wait, None, words))
        })
    }

    fn held(&self) -> Vec<DeletionReport> {
        let held = self.prune.decision.waiting.iter().filter_map(|decided| match decided.reason {
            Reason::Held { would, .. } => Some(DeletionReport { action: would, ..self.decided(decided) }),
            _ => None,
        });
        held.collect()
    }

    fn orphans(&self) -> Vec<DeletionReport> {
        self.prune.decision.orphans.iter().map(|decided| self.decided(decided)).collect()
    }

    fn decided(&self, Decided { candidate, action, reason }: &Decided) -> DeletionReport {
        let key = (candidate.cluster.clone(), candidate.object.clone());
        // A refusal of an earlier try is not the reason of this wait.
        let refusal = self.prune.refusal(&key).filter(|_| *action != Action::Wait);
        let words = refusal.map_or_else(|| reason.to_string(), ToOwned::to_owned);
        let approval = reason.approval().map(|digest| digest.short());
        self.deletion(&key, candidate.app.clone(), *action, approval, words)
    }

    fn deletion(
        &self,
        key: &(ClusterName, ObjectId),
        app: AppId,
        action: Action,
        approval: Option<String>,
        reason: String,
    ) -> DeletionReport {
        let head = || self.head.clone().unwrap_or_else(|| Revision::from(Revision::WORKTREE));
        DeletionReport {
            cluster: key.0.clone(),
            app,
            object: key.1.to_string(),
            revision: self.prune.vanished.get(key).cloned().unwrap_or_else(head),
            action,
            waits: action == Action::Wait,
            approval,
            reason,
        }
    }

    fn unit_report(&self, (id, entry): (&AppId, &AppEntry), unit: &UnitId, known: &UnitEntry) -> UnitReport {
        let verdict = entry.decision.as_ref().and_then(|decision| decision.units.get(unit));
        let facts = entry.facts.get(unit);
        let wave = facts.and_then(|facts| entry.head.waves.list().get(facts.wave));
        let detail = match facts.map(|facts| &facts.condition) {
            Some(Condition::Progressing(because) | Condition::Failed(because)) => {
                self.cause(id, unit).unwrap_or_else(|| because.to_string())
            }
            Some(Condition::Done) | None => String::new(),
        };
        UnitReport {
            unit: unit.clone(),
            wave: wave.map(|wave| wave.name.clone()).unwrap_or_default(),
            is_at_head: facts.is_some_and(|facts| !facts.is_behind),
            is_done: facts.is_some_and(UnitFacts::is_done),
            revision: facts.and_then(|facts| facts.revision.clone()),
            since: known.mark.since,
            done_since: facts.and_then(|facts| facts.timers.done_since),
            previous: known.mark.previous.as_ref().map(|previous| previous.revision.clone()),
            detail,
            hold: verdict.and_then(|verdict| verdict.hold.clone()),
            failure: verdict.and_then(|verdict| verdict.failure.as_ref()).map(ToString::to_string),
        }
    }

    fn cause(&self, app: &AppId, unit: &UnitId) -> Option<String> {
        let entry = self.targets.get(&Target { app: app.clone(), cluster: unit.cluster.clone() })?;
        let of_unit = |object: &&RenderedObject| match &*object.pod_sets {
            [] => unit.pod_set.is_empty(),
            pod_sets => pod_sets.contains(&unit.pod_set),
        };
        let objects = entry.render.as_ref().ok()?.objects.iter().filter(of_unit);
        objects.filter_map(|object| entry.causes.of(&object.id)).map(ToString::to_string).next()
    }
}

fn other_approval(approval: &RolloutApproval) -> OtherApproval {
    let file = approval.location.as_ref().map(|location| location.file.clone()).unwrap_or_default();
    OtherApproval { name: approval.name.clone(), file, digest: approval.digest }
}

/// The pods of the workloads that only this podSet renders.
fn pods_of(
    pod_set: &str,
    (rendered, observed): (&Arc<Rendered>, &BTreeMap<ObjectId, Arc<Live>>),
) -> PodCount {
    let mut pods = PodCount::default();
    let of_it = |object: &&RenderedObject| matches!(&*object.pod_sets, [one] if **one == *pod_set);
    for object in rendered.objects.iter().filter(of_it) {
        let counted = observed.get(&object.id).and_then(|live| live.pods).unwrap_or_default();
        pods.desired += counted.desired;
        pods.available += counted.available;
    }
    pods
}

/// The dry-run result of the current plan of a target; `None` without one.
fn foreseen(entry: &TargetEntry) -> Option<Arc<Vec<Difference>>> {
    let ((digest, differences), plan) = entry.foreseen.as_ref().zip(entry.plan.as_ref())?;
    (plan.digest() == *digest).then(|| Arc::clone(differences))
}

/// A credential that is renewed automatically is mentioned only when its renewal failed.
fn expiry(credential: &Credential) -> Option<String> {
    let is_told = !credential.renewed || credential.warning(Timestamp::now()).is_some();
    credential.expires.filter(|_| is_told).map(|expires| format!("{expires:.0}"))
}

fn measures(decision: &Decision) -> Vec<Measured> {
    let measures = decision.measures.iter();
    measures
        .map(|(measure, outcome)| Measured { measure: measure.clone(), outcome: outcome.clone() })
        .collect()
}
