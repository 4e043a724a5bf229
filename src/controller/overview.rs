//! Everything that is known, as the report shows it.

use super::cluster_entry::{ClusterEntry, Reach};
use super::target::TargetEntry;
use super::world::World;
use crate::fleet::Target;
use crate::model::{ClusterName, ClusterState, Diagnostic, PodCount, Revision};
use crate::plan::Candidate;
use crate::report::{ClusterReport, DeletionReport, Overview, TargetReport, version};

impl World {
    pub fn overview(&self) -> Overview {
        let mut diagnostics = self.fleet.as_ref().map(|fleet| fleet.diagnostics.clone()).unwrap_or_default();
        for mistake in self.targets.values().filter_map(|target| target.render.as_ref().err()).flatten() {
            // One mistake in a template breaks it on every cluster: it is said once.
            let same =
                |known: &Diagnostic| known.location == mistake.location && known.message == mistake.message;
            if !diagnostics.iter().any(same) {
                diagnostics.push(mistake.clone());
            }
        }
        let decision = &self.prune.decision;
        let deletes =
            decision.deletes.iter().map(|it| self.deletion(&it.candidate, false, it.reason.to_string()));
        let waiting =
            decision.waiting.iter().map(|it| self.deletion(&it.candidate, true, it.reason.to_string()));
        Overview {
            revision: self.head.clone(),
            mode: self.mode(),
            status_prefix: self.instance.status_prefix.clone(),
            page_url: self.instance.page_url.clone(),
            rings: self.fleet.iter().flat_map(|fleet| &fleet.rings).map(|ring| ring.name.clone()).collect(),
            targets: self.targets.iter().map(|(id, entry)| self.target_report(id, entry)).collect(),
            clusters: self
                .clusters
                .values()
                .map(|entry| self.cluster_report(entry))
                .chain(self.dropped.iter().map(|name| dropped_report(name.clone())))
                .collect(),
            deletions: deletes.chain(waiting).collect(),
            approvals_wanted: decision.approvals_wanted.clone(),
            approvals_unused: decision.approvals_unused.iter().map(|unused| unused.name.clone()).collect(),
            diagnostics,
            told: self.told.clone(),
            blamed: self.blamed.clone(),
            source_error: self.load_error.as_ref().map(|error| error.message.clone()),
        }
    }

    fn ring_of(&self, cluster: &ClusterName) -> Option<String> {
        self.fleet.as_ref().and_then(|fleet| fleet.ring_of(cluster)).map(ToOwned::to_owned)
    }

    fn target_report(&self, id: &Target, entry: &TargetEntry) -> TargetReport {
        let (phase, detail) = self.phase(id);
        let mut pods = PodCount::default();
        let mut created: Option<&str> = None;
        let mut versions = Vec::new();
        if let (Ok(rendered), Some(cluster)) = (&entry.render, self.clusters.get(&id.cluster)) {
            for object in &rendered.objects {
                versions.extend(version::of_workload(&object.body));
                if let Some(live) = cluster.observation.objects.get(&object.id) {
                    let counted = live.pods.unwrap_or_default();
                    pods.desired += counted.desired;
                    pods.available += counted.available;
                    created = [created, live.created.as_deref()].into_iter().flatten().min();
                }
            }
        }
        TargetReport {
            app: id.app.clone(),
            kind: entry.app.kind(),
            cluster: id.cluster.clone(),
            ring: self.ring_of(&id.cluster),
            revision: entry.revision.clone(),
            phase,
            detail,
            pods,
            version: version::merge(versions.iter().map(String::as_str)),
            created: created.map(ToOwned::to_owned),
            plan: entry.plan.clone(),
        }
    }

    fn cluster_report(&self, entry: &ClusterEntry) -> ClusterReport {
        let (state, detail) = match (&entry.reach, entry.cluster.state) {
            (Reach::Connecting, _) => ("Connecting", String::new()),
            (Reach::Offline { detail, .. }, _) => ("Offline", detail.clone()),
            (Reach::Ready, ClusterState::Maintaining) => ("Maintaining", String::new()),
            (Reach::Ready, ClusterState::Ready) => ("Ready", entry.trouble().unwrap_or_default()),
        };
        ClusterReport {
            name: entry.name().clone(),
            ring: self.ring_of(entry.name()),
            state,
            detail,
            objects: entry.observation.objects.len(),
        }
    }

    fn deletion(&self, candidate: &Candidate, waits: bool, reason: String) -> DeletionReport {
        let key = (candidate.cluster.clone(), candidate.object.clone());
        let head = || self.head.clone().unwrap_or_else(|| Revision::from(Revision::WORKTREE));
        DeletionReport {
            cluster: candidate.cluster.clone(),
            app: candidate.app.clone(),
            object: candidate.object.to_string(),
            revision: self.vanished.get(&key).cloned().unwrap_or_else(head),
            waits,
            reason,
        }
    }
}

/// A Cluster file that vanished is no reason to delete anything: every report says so instead.
fn dropped_report(name: ClusterName) -> ClusterReport {
    let detail = "its file is gone from the repository; its objects are left as they are".to_owned();
    ClusterReport { name, ring: None, state: "Dropped", detail, objects: 0 }
}
