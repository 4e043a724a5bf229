//! Builds the overview: the whole state, as reports show it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use super::apps::{AppEntry, UnitEntry};
use super::cluster_entry::{ClusterEntry, ConnectionState};
use super::load_result::LoadError;
use super::prune_state::key;
use super::state::ControllerState;
use super::target_entry::TargetEntry;
use crate::cluster::Credential;
use crate::fleet::Target;
use crate::model::{
    AppId, ClusterName, ClusterState, LiveObject, ObjectId, PodCount, RenderedObject, RenderedTarget,
    Revision, RolloutApproval,
};
use crate::plan::{CandidateDecision, ObjectDiff, PlanAction, StepReason};
use crate::report::{
    ClusterReport, DeletionReport, Overview, PodSetReport, RolloutReport, TargetReport, UnitReport,
    UnusedRolloutApproval, merge_diagnostics,
};
use crate::rollout::{MeasurementResult, RolloutDecision, UnitCondition, UnitFacts, UnitId, VersionRefusal};

impl ControllerState {
    pub fn overview(&self) -> Overview {
        let settled = self.targets.iter().filter(|(id, target)| !self.is_provisional(id, target));
        let of_targets = settled.filter_map(|(_, target)| target.render.as_ref().err()).flatten();
        let of_fleet = self.fleet.iter().flat_map(|fleet| &fleet.diagnostics);
        // One error in a template affects every cluster; it is reported once.
        let diagnostics =
            merge_diagnostics(of_fleet.chain(of_targets), |app| self.targets.of_app(app).count());
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
            rollouts: self.rollout_apps.iter().map(|(id, entry)| self.rollout_report(id, entry)).collect(),
            clusters: self
                .clusters
                .values()
                .map(|entry| self.cluster_report(entry))
                .chain(self.unregistered_reports())
                .collect(),
            deletions: self.deletions(),
            held: self.held_deletions(),
            orphans: self.orphan_reports(),
            deleted_counts: self.prune.confirmed_deletes.clone(),
            approvals_wanted: decision.approvals_wanted.clone(),
            approvals_early: decision.approvals_not_yet_needed.clone(),
            approvals_unused: decision.approvals_unused.iter().map(|unused| unused.name.clone()).collect(),
            diagnostics,
            tracked_commits: self.tracked_commits.clone(),
            recent_commits: self.forge.recent_commits.clone(),
            errors_by_commit: self.blamed_diagnostics.clone(),
            source_error: self.load_error.as_ref().map(LoadError::to_message),
        }
    }

    fn ring_of(&self, cluster: &ClusterName) -> Option<String> {
        let fleet = self.fleet.as_ref()?;
        let known = fleet.ring_of(cluster).map(ToOwned::to_owned);
        // The file of a known cluster may have an error now.
        known.or_else(|| fleet.matching_ring(&self.clusters.get(cluster)?.cluster))
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
            measures: decision.map(measurements).unwrap_or_default(),
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
        let is_it = |refusal: &VersionRefusal| entry.position(&refusal.head) <= entry.position(newest);
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
            version: entry.versions.pod_set_version(name, left),
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
            version: entry.versions.running_version(left),
            pod_sets,
            created: created.map(ToOwned::to_owned),
            plan: entry.plan.clone(),
            differences: dry_run_differences(entry),
        }
    }

    fn cluster_report(&self, entry: &ClusterEntry) -> ClusterReport {
        let (state, detail) = match (&entry.connection_state, entry.cluster.state) {
            (ConnectionState::Connecting, _) => ("Connecting", String::new()),
            (ConnectionState::Offline { detail, .. }, _) => ("Offline", detail.clone()),
            (ConnectionState::Ready, ClusterState::Maintaining) => ("Maintaining", String::new()),
            (ConnectionState::Ready, ClusterState::Ready) => {
                ("Ready", entry.watch_error().unwrap_or_default())
            }
            (ConnectionState::Ready, ClusterState::Removed) => self.removal_progress(entry),
        };
        ClusterReport {
            name: entry.name().clone(),
            ring: self.ring_of(entry.name()),
            state,
            detail,
            observed: entry.is_observed(),
            objects: entry.observation.objects.len(),
            credential_expires: entry.client.as_ref().and_then(|client| expiry_message(&client.credential())),
            dropped_by: None,
        }
    }

    /// Deletes that are due, wait or are in progress, without objects that stay for good.
    fn deletions(&self) -> Vec<DeletionReport> {
        let decision = &self.prune.decision;
        let waiting = decision.waiting.iter().filter(|it| it.action == PlanAction::Wait);
        let due = decision.deletes.iter().chain(&decision.releases);
        let unseen = self.unobserved_cluster(Instant::now()).map(ClusterEntry::name);
        let due = due.map(|decided| match unseen {
            Some(unseen) => self.blocked_report(decided, unseen),
            None => self.decided_deletion(decided),
        });
        let going = self.prune.terminating.iter().map(|(key, going)| {
            let words = "being deleted".to_owned();
            DeletionReport {
                reason: words,
                ..self.deletion_report(key, going.app.clone(), PlanAction::Delete, None)
            }
        });
        due.chain(waiting.map(|decided| self.decided_deletion(decided)))
            .chain(going)
            .chain(self.unread_deletions())
            .chain(self.pending_removal_reports())
            .collect()
    }

    /// The delete waits until this cluster was observed.
    fn blocked_report(&self, decided: &CandidateDecision, unseen: &ClusterName) -> DeletionReport {
        let cause = StepReason::WaitsForReading { on: unseen.clone() };
        DeletionReport {
            waits: true,
            reason: cause.to_string(),
            cause: Some(cause),
            ..self.decided_deletion(decided)
        }
    }

    /// Objects that were undesired on a cluster that is being listed again: they may still exist.
    fn unread_deletions(&self) -> impl Iterator<Item = DeletionReport> {
        let going = &self.prune.terminating;
        self.prune.undesired_since.keys().filter(|key| !going.contains_key(key)).filter_map(|key| {
            let observation = &self.clusters.get(&key.0)?.observation;
            let live = observation.objects.get(&key.1).filter(|_| !observation.complete)?;
            let cause = Some(&StepReason::ObservationIncomplete);
            Some(self.deletion_report(key, AppId::parse(&live.app)?, PlanAction::Wait, cause))
        })
    }

    fn held_deletions(&self) -> Vec<DeletionReport> {
        let held = self.prune.decision.waiting.iter().filter_map(|decided| match decided.reason {
            StepReason::Held { would, .. } => {
                Some(DeletionReport { action: would, ..self.decided_deletion(decided) })
            }
            _ => None,
        });
        held.collect()
    }

    fn orphan_reports(&self) -> Vec<DeletionReport> {
        self.prune.decision.orphans.iter().map(|decided| self.decided_deletion(decided)).collect()
    }

    fn decided_deletion(
        &self,
        CandidateDecision { candidate, action, reason }: &CandidateDecision,
    ) -> DeletionReport {
        let key = key(candidate);
        // A refusal of an earlier try is not the reason of this wait.
        let refusal = self.prune.refusal(&key).filter(|_| *action != PlanAction::Wait);
        let report = self.deletion_report(&key, candidate.app.clone(), *action, Some(reason));
        match refusal {
            Some(refusal) => DeletionReport { cause: None, reason: refusal.to_owned(), ..report },
            None => report,
        }
    }

    fn deletion_report(
        &self,
        key: &(ClusterName, ObjectId),
        app: AppId,
        action: PlanAction,
        cause: Option<&StepReason>,
    ) -> DeletionReport {
        let head = || self.head.clone().unwrap_or_else(|| Revision::from(Revision::WORKTREE));
        DeletionReport {
            cluster: key.0.clone(),
            app,
            object: key.1.to_string(),
            revision: self.prune.undesired_since.get(key).cloned().unwrap_or_else(head),
            action,
            waits: action == PlanAction::Wait,
            approval: cause.and_then(StepReason::approval_digest).map(|digest| digest.short()),
            reason: cause.map_or_else(String::new, StepReason::to_string),
            cause: cause.cloned(),
        }
    }

    fn unit_report(&self, (id, entry): (&AppId, &AppEntry), unit: &UnitId, known: &UnitEntry) -> UnitReport {
        let verdict = entry.decision.as_ref().and_then(|decision| decision.units.get(unit));
        let facts = entry.facts.get(unit);
        let wave = facts.and_then(|facts| entry.head.waves.list().get(facts.wave));
        let detail = match facts.map(|facts| &facts.condition) {
            Some(UnitCondition::Progressing(because) | UnitCondition::Failed(because)) => {
                self.unit_cause(id, unit).unwrap_or_else(|| because.to_string())
            }
            Some(UnitCondition::Done) | None => String::new(),
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

    fn unit_cause(&self, app: &AppId, unit: &UnitId) -> Option<String> {
        let entry = self.targets.get(&Target { app: app.clone(), cluster: unit.cluster.clone() })?;
        let of_unit = |object: &&RenderedObject| match &*object.pod_sets {
            [] => unit.pod_set.is_empty(),
            pod_sets => pod_sets.contains(&unit.pod_set),
        };
        let objects = entry.render.as_ref().ok()?.objects.iter().filter(of_unit);
        objects.filter_map(|object| entry.causes.of(&object.id)).map(ToString::to_string).next()
    }
}

fn other_approval(approval: &RolloutApproval) -> UnusedRolloutApproval {
    let file = approval.location.as_ref().map(|location| location.file.clone()).unwrap_or_default();
    UnusedRolloutApproval { name: approval.name.clone(), file, digest: approval.digest }
}

/// The pods of the workloads that only this podSet renders.
fn pods_of(
    pod_set: &str,
    (rendered, observed): (&Arc<RenderedTarget>, &BTreeMap<ObjectId, Arc<LiveObject>>),
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
fn dry_run_differences(entry: &TargetEntry) -> Option<Arc<Vec<ObjectDiff>>> {
    let ((digest, differences), plan) = entry.dry_run_result.as_ref().zip(entry.plan.as_ref())?;
    (plan.digest() == *digest).then(|| Arc::clone(differences))
}

/// A credential that is renewed automatically is mentioned only when its renewal failed.
fn expiry_message(credential: &Credential) -> Option<String> {
    let is_told = !credential.is_renewed || credential.warning(Timestamp::now()).is_some();
    credential.expires.filter(|_| is_told).map(|expires| format!("{expires:.0}"))
}

fn measurements(decision: &RolloutDecision) -> Vec<MeasurementResult> {
    let measures = decision.measurements.iter();
    measures
        .map(|(measure, outcome)| MeasurementResult { measure: measure.clone(), outcome: outcome.clone() })
        .collect()
}
