//! Computes which commit gets which status, as a pure function of the overview.
//!
//! A commit covers the targets whose inputs it changed last, and the errors in files that it changed last. The head has a
//! status in every context, so that a context required by branch protection is never missing.

use std::collections::{BTreeMap, BTreeSet};

use super::{ClusterReport, DeletionReport, Overview, TargetPhase, TargetReport, status_text};
use crate::forge::{CommitStatus, CommitStatusState, shorten_description};
use crate::model::{ClusterName, Diagnostic, InstanceMode, Revision};

pub type StatusKey = (Revision, String);

/// The desired statuses of all commits in `told`.
pub fn desired_statuses(overview: &Overview) -> BTreeMap<StatusKey, CommitStatus> {
    if overview.revision.is_none() {
        return BTreeMap::new();
    }
    let mut statuses = BTreeMap::new();
    for revision in &overview.tracked_commits {
        for (_, status) in commit_statuses(overview, revision) {
            statuses.insert((revision.clone(), status.context.clone()), status);
        }
    }
    statuses
}

/// The statuses of one commit, in the order of the rings. A ring without anything to report is left out.
pub fn commit_statuses<'a>(
    overview: &'a Overview,
    revision: &Revision,
) -> Vec<(Option<&'a str>, CommitStatus)> {
    let is_head = overview.revision.as_ref() == Some(revision);
    let of_ring = |ring: Option<&'a str>| {
        let told = RingStatusInput::of(overview, revision, ring);
        let (state, description) = match told.is_empty() {
            // Success is final, and deletes are only known once everything was read.
            true if is_head && !is_observed(overview, ring) => {
                (CommitStatusState::Pending, status_text::observing())
            }
            true if is_head => (CommitStatusState::Success, status_text::unchanged()),
            true => return None,
            false => told.status(),
        };
        let status = CommitStatus {
            context: status_context(&overview.status_prefix, ring),
            state,
            description: shorten_description(&description).into_owned(),
            target_url: overview.page_url.clone(),
        };
        Some((ring, status))
    };
    rings(overview, revision).into_iter().filter_map(of_ring).collect()
}

/// The first status of a new head, in every context.
pub fn initial_statuses(overview: &Overview, revision: &Revision) -> BTreeMap<StatusKey, CommitStatus> {
    rings(overview, revision)
        .into_iter()
        .map(|ring| {
            let context = status_context(&overview.status_prefix, ring);
            let status = CommitStatus {
                context: context.clone(),
                state: CommitStatusState::Pending,
                description: status_text::rendering(),
                target_url: overview.page_url.clone(),
            };
            ((revision.clone(), context), status)
        })
        .collect()
}

/// `tutti/deploy/<ring>`; clusters in no ring: `tutti/deploy`.
fn status_context(prefix: &str, ring: Option<&str>) -> String {
    match ring {
        Some(ring) => format!("{prefix}/deploy/{ring}"),
        None => format!("{prefix}/deploy"),
    }
}

/// All rings, and the clusters outside of them if there are any.
fn rings<'a>(overview: &'a Overview, revision: &Revision) -> Vec<Option<&'a str>> {
    let mut rings: Vec<Option<&str>> = overview.rings.iter().map(|ring| Some(ring.as_str())).collect();
    // A cluster that was removed from Git concerns only the commit that removed it.
    let is_concerned = |it: &ClusterReport| !it.is_unregistered() || it.dropped_by.as_ref() == Some(revision);
    if rings.is_empty() || overview.clusters.iter().any(|it| it.ring.is_none() && is_concerned(it)) {
        rings.push(None);
    }
    rings
}

/// Every cluster of the ring was read whole, or does not answer.
fn is_observed(overview: &Overview, ring: Option<&str>) -> bool {
    overview.clusters.iter().filter(|cluster| cluster.ring.as_deref() == ring).all(|cluster| cluster.observed)
}

/// What one commit covers in one ring.
struct RingStatusInput<'a> {
    overview: &'a Overview,
    ring: Option<&'a str>,
    targets: Vec<&'a TargetReport>,
    errors: Vec<&'a Diagnostic>,
    /// In progress, and waiting.
    pending_deletes: Vec<&'a DeletionReport>,
    waiting: Vec<&'a DeletionReport>,
    /// Deleted objects, and the number of their clusters.
    deleted: (usize, usize),
    /// Clusters whose file it removed.
    unregistered: Vec<&'a ClusterName>,
    is_head: bool,
}

impl<'a> RingStatusInput<'a> {
    fn of(overview: &'a Overview, revision: &Revision, ring: Option<&'a str>) -> Self {
        // tutti does not manage an unmanaged app, and an app kept off by a taint has no objects: neither is reported.
        let targets = overview.targets.iter().filter(|target| {
            let is_promised = !matches!(target.phase, TargetPhase::Unmanaged | TargetPhase::KeptOut);
            target.revision == *revision && target.ring.as_deref() == ring && is_promised
        });
        let errors =
            overview.errors_by_commit.iter().filter(|(commit, _)| commit == revision).map(|(_, error)| error);
        let ring_of = |name: &ClusterName| {
            overview.clusters.iter().find(|cluster| cluster.name == *name).map(|it| it.ring.as_deref())
        };
        let deletions = overview
            .deletions
            .iter()
            .filter(|deletion| deletion.revision == *revision && ring_of(&deletion.cluster) == Some(ring));
        let (waiting, deletes) = deletions.partition(|deletion| deletion.waits);
        let deleted = overview
            .deleted_counts
            .iter()
            .filter(|((commit, cluster), _)| commit == revision && ring_of(cluster) == Some(ring))
            .fold((0, 0), |(objects, clusters), (_, count)| (objects + count, clusters + 1));
        let dropped = overview.clusters.iter().filter(|cluster| {
            cluster.dropped_by.as_ref() == Some(revision) && cluster.ring.as_deref() == ring
        });
        Self {
            overview,
            ring,
            targets: targets.collect(),
            errors: errors.collect(),
            pending_deletes: deletes,
            waiting,
            deleted,
            unregistered: dropped.map(|cluster| &cluster.name).collect(),
            is_head: overview.revision.as_ref() == Some(revision),
        }
    }

    fn is_empty(&self) -> bool {
        self.targets.is_empty()
            && self.errors.is_empty()
            && self.pending_deletes.is_empty()
            && self.waiting.is_empty()
            && self.deleted.0 == 0
            // On an older commit this text follows what is left of it, and does not turn its failure into success.
            && (self.unregistered.is_empty() || !self.is_head)
    }

    fn status(&self) -> (CommitStatusState, String) {
        let (state, text) = self.status_of_apps();
        match self.unregistered.is_empty() {
            true => (state, text),
            false => (state, status_text::with_removed_clusters(&text, &self.unregistered)),
        }
    }

    fn status_of_apps(&self) -> (CommitStatusState, String) {
        let (healthy, total) = self.healthy_counts();
        if let Some(error) = self.errors.first() {
            return (CommitStatusState::Failure, status_text::invalid(error, self.errors.len() - 1));
        }
        // Of equal targets the first, so that the text stays stable.
        let worst = self.targets.iter().copied().rev().max_by_key(|target| target.phase);
        match worst {
            Some(worst) if worst.phase.is_failure() => {
                let in_wave =
                    self.overview.rollout_of(&worst.app).and_then(|rollout| rollout.failure_texts(worst));
                let text = match in_wave {
                    Some(rests) => self.with_counts(status_text::failed_in_wave(worst, &rests)),
                    None => status_text::failed(healthy, total, worst),
                };
                (CommitStatusState::Failure, text)
            }
            _ if !self.approval_digests().is_empty() => (CommitStatusState::Pending, self.waiting()),
            Some(worst)
                if worst.phase == TargetPhase::OutOfSync && self.overview.mode == InstanceMode::Observe =>
            {
                let steps = self
                    .targets
                    .iter()
                    .filter_map(|target| target.plan.as_ref())
                    .flat_map(|plan| &plan.steps);
                let writes = steps.filter(|step| step.intended_action().is_write()).count();
                (CommitStatusState::Pending, status_text::observed(writes, total))
            }
            Some(worst) if !worst.phase.is_done() => {
                let text = self.wave_text(worst.phase).map(|text| self.with_counts(text));
                (
                    CommitStatusState::Pending,
                    text.unwrap_or_else(|| status_text::under_way(healthy, total, worst)),
                )
            }
            // Nobody has to act on these, so what the apps wait for comes first.
            _ if !self.waiting.is_empty() => (CommitStatusState::Pending, self.waiting()),
            _ if !self.pending_deletes.is_empty() && self.overview.mode == InstanceMode::Enforce => {
                (CommitStatusState::Pending, status_text::deletes_pending(self.pending_deletes.len()))
            }
            _ if self.targets.iter().any(|target| target.phase == TargetPhase::Paused) => {
                let paused = self.targets.iter().filter(|target| target.phase == TargetPhase::Paused).count();
                (CommitStatusState::Pending, status_text::paused(total - paused, total, paused))
            }
            _ if !is_observed(self.overview, self.ring) => {
                (CommitStatusState::Pending, status_text::observing())
            }
            _ if total == 0 && self.deleted.0 > 0 => {
                (CommitStatusState::Success, status_text::deleted(self.deleted.0, self.deleted.1))
            }
            _ if total == 0 && self.pending_deletes.is_empty() && !self.unregistered.is_empty() => {
                (CommitStatusState::Success, status_text::unchanged())
            }
            _ => {
                let mut clusters: Vec<_> = self.targets.iter().map(|target| &target.cluster).collect();
                clusters.sort_unstable();
                clusters.dedup();
                (CommitStatusState::Success, status_text::healthy(total, clusters.len()))
            }
        }
    }

    /// Done targets, and all targets.
    fn healthy_counts(&self) -> (usize, usize) {
        (self.targets.iter().filter(|target| target.phase.is_done()).count(), self.targets.len())
    }

    /// A text about one of several apps gets the counts too, if they fit.
    fn with_counts(&self, text: String) -> String {
        let mut apps = self.targets.iter().map(|target| &target.app);
        let first = apps.next();
        if apps.all(|app| Some(app) == first) {
            return text;
        }
        let (healthy, total) = self.healthy_counts();
        status_text::with_healthy(text, healthy, total)
    }

    /// What targets of a phase wait for in waves. Of several, the one that a person can resolve.
    fn wave_text(&self, phase: TargetPhase) -> Option<String> {
        let of_phase = || self.targets.iter().copied().filter(|target| target.phase == phase);
        let told = |target: &TargetReport| self.overview.rollout_of(&target.app)?.waiting_text(target);
        let is_asking = |target: &&TargetReport| {
            let rollout = self.overview.rollout_of(&target.app);
            phase == TargetPhase::Waiting && rollout.is_some_and(|rollout| rollout.confirmation.is_some())
        };
        let mut asking = of_phase().filter(is_asking).filter_map(|target| Some((&target.app, told(target)?)));
        let Some((app, text)) = asking.next() else { return told(of_phase().next()?) };
        let others: BTreeSet<_> = asking.map(|(other, _)| other).filter(|other| *other != app).collect();
        Some(status_text::and_others(text, others.len()))
    }

    fn waiting(&self) -> String {
        let digests = self.approval_digests();
        match (digests.is_empty(), self.waiting.first()) {
            (true, Some(first)) => status_text::deletes_held(self.waiting.len(), &first.reason),
            _ => status_text::deletes_wait(self.waiting.len(), &digests),
        }
    }
    /// The digests to approve, each once.
    fn approval_digests(&self) -> BTreeSet<&'a str> {
        self.waiting.iter().filter_map(|it| it.approval.as_deref()).collect()
    }
}
