//! Indexes an overview and computes the state of each thread for a route.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::facts::{MOST_NAMES, worst_target};
use super::{NoticeFacts, NotificationThread, ThreadCondition, ThreadState};
use crate::model::{AppId, ClusterName, InstanceMode, NotificationPhase, Revision};
use crate::report::status_text::invalid;
use crate::report::{
    ClusterReport, DeletionReport, Overview, RolloutReport, TargetPhase, TargetReport, version,
};

/// Days before a credential expires.
const CREDENTIAL_DAYS: i64 = 14;

/// What one route selects.
#[derive(Clone, Copy)]
pub struct RouteFilter<'a> {
    /// It selects apps, so what belongs to no app is not for it.
    pub wants_apps: bool,
    /// It selects rings or clusters.
    pub wants_rings_or_clusters: bool,
    pub app: &'a dyn Fn(&AppId) -> bool,
    pub ring: &'a dyn Fn(Option<&str>) -> bool,
    pub cluster: &'a dyn Fn(&ClusterName) -> bool,
}

impl std::fmt::Debug for RouteFilter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RouteFilter").field("wants_apps", &self.wants_apps).finish_non_exhaustive()
    }
}

type RingName<'a> = Option<&'a str>;
/// By app, so that a route for few apps costs little.
type TargetsByApp<'a> = BTreeMap<&'a AppId, Vec<&'a TargetReport>>;

/// What belongs to one commit in one ring.
#[derive(Debug, Default)]
struct RingNoticeInput<'a> {
    targets: TargetsByApp<'a>,
    /// In progress, or waiting.
    deletes: Vec<&'a DeletionReport>,
    /// Deleted objects, by cluster.
    deleted: Vec<(&'a ClusterName, usize)>,
}

/// An overview, indexed once. The cost depends on its size and not on the number of routes.
#[derive(Debug)]
pub struct OverviewIndex<'a> {
    overview: &'a Overview,
    /// Of tracked commits.
    inputs: BTreeMap<(&'a Revision, RingName<'a>), RingNoticeInput<'a>>,
    tracked_commits: BTreeSet<&'a Revision>,
    /// Targets of older commits that are not Running, by ring.
    older_targets: BTreeMap<RingName<'a>, TargetsByApp<'a>>,
    ring_of: BTreeMap<&'a ClusterName, RingName<'a>>,
    failing_apps: BTreeSet<&'a AppId>,
    /// Rings with a cluster that was not read whole.
    unobserved_rings: BTreeSet<RingName<'a>>,
}

impl<'a> OverviewIndex<'a> {
    /// `open`: commits whose start was sent and whose end was not. `None`: the overview is not rendered yet.
    pub fn of(overview: &'a Overview, open: &'a BTreeSet<Revision>) -> Option<Self> {
        if overview.revision.is_none() || !overview.is_rendered {
            return None;
        }
        let told: BTreeSet<&Revision> =
            overview.tracked_commits.iter().chain(&overview.recent_commits).chain(open).collect();
        let rings: BTreeMap<&ClusterName, RingName<'_>> =
            overview.clusters.iter().map(|cluster| (&cluster.name, cluster.ring.as_deref())).collect();
        let unseen =
            overview.clusters.iter().filter(|cluster| !cluster.observed && !cluster.is_unregistered());
        let unseen = unseen.map(|cluster| cluster.ring.as_deref()).collect();
        let failing = overview.targets.iter().filter(|target| target.phase.is_failure());
        let failing = failing.map(|target| &target.app).collect();
        let mut parts: BTreeMap<(&Revision, RingName<'_>), RingNoticeInput<'_>> = BTreeMap::new();
        let mut older: BTreeMap<RingName<'_>, TargetsByApp<'_>> = BTreeMap::new();
        // In observe mode no rollout makes progress.
        if overview.mode == InstanceMode::Enforce {
            older.extend(rings.values().map(|ring| (*ring, TargetsByApp::new())));
            for target in &overview.targets {
                let ring = target.ring.as_deref();
                if matches!(target.phase, TargetPhase::Unmanaged | TargetPhase::KeptOut) {
                    continue;
                }
                if told.contains(&target.revision) {
                    let part = parts.entry((&target.revision, ring)).or_default();
                    part.targets.entry(&target.app).or_default().push(target);
                } else if target.phase != TargetPhase::Running {
                    older.entry(ring).or_default().entry(&target.app).or_default().push(target);
                }
            }
            for deletion in overview.deletions.iter().filter(|it| told.contains(&it.revision)) {
                let ring = rings.get(&deletion.cluster).copied().flatten();
                parts.entry((&deletion.revision, ring)).or_default().deletes.push(deletion);
            }
            for ((revision, cluster), objects) in &overview.deleted_counts {
                if told.contains(revision) {
                    let ring = rings.get(cluster).copied().flatten();
                    parts.entry((revision, ring)).or_default().deleted.push((cluster, *objects));
                }
            }
        }
        Some(Self {
            overview,
            inputs: parts,
            tracked_commits: told,
            older_targets: older,
            ring_of: rings,
            failing_apps: failing,
            unobserved_rings: unseen,
        })
    }

    /// Apps that fail somewhere, whichever route selects them.
    pub fn failing_apps(&self) -> BTreeSet<AppId> {
        self.failing_apps.iter().map(|app| (*app).clone()).collect()
    }

    /// The state of each thread for one route. `reverted`: commits that later commits of the branch reverted.
    pub fn thread_states(
        &self,
        look: &RouteFilter<'_>,
        reverted: &BTreeSet<Revision>,
        now: Timestamp,
    ) -> BTreeMap<NotificationThread, ThreadState> {
        let mut threads = BTreeMap::new();
        for ((commit, ring), part) in self.inputs.iter().filter(|((_, ring), _)| (look.ring)(*ring)) {
            let Some(mut seen) = self.rollout_state(*ring, part, look) else { continue };
            if reverted.contains(*commit) {
                seen.condition = ThreadCondition::Reverted;
            }
            let ring = ring.map(ToOwned::to_owned);
            threads.insert(NotificationThread::Rollout { commit: (*commit).clone(), ring }, seen);
        }
        for (ring, targets) in self.older_targets.iter().filter(|(ring, _)| (look.ring)(**ring)) {
            let thread = NotificationThread::Health { ring: ring.map(ToOwned::to_owned) };
            threads.insert(thread, self.health_state(*ring, targets, look));
        }
        self.add_delete_threads(look, &mut threads);
        if !look.wants_apps {
            if !look.wants_rings_or_clusters {
                self.add_error_threads(&mut threads);
            }
            self.add_cluster_threads(look, now, &mut threads);
        }
        threads
    }

    /// `None`: nothing of it is for this route.
    fn rollout_state(
        &self,
        ring: RingName<'_>,
        part: &RingNoticeInput<'a>,
        look: &RouteFilter<'_>,
    ) -> Option<ThreadState> {
        let fits = |app: &AppId, cluster: &ClusterName| (look.app)(app) && (look.cluster)(cluster);
        let targets = select_targets(&part.targets, look);
        let deletes: Vec<_> = part.deletes.iter().filter(|it| fits(&it.app, &it.cluster)).collect();
        // The apps of deleted objects are no longer known.
        let deleted = part.deleted.iter().filter(|(cluster, _)| !look.wants_apps && (look.cluster)(cluster));
        let deleted: Vec<_> = deleted.collect();
        if targets.is_empty() && deletes.is_empty() && deleted.is_empty() {
            return None;
        }
        let of_apps = || targets.chunk_by(|one, other| one.app == other.app);
        let asked: BTreeMap<String, String> =
            of_apps().filter_map(|targets| self.requested_confirmation(targets)).collect();
        let worst = worst_target(&targets);
        let condition = match worst.map(|worst| worst.phase) {
            Some(phase) if phase.is_failure() => ThreadCondition::Failed(asked.keys().cloned().collect()),
            _ if !asked.is_empty() => ThreadCondition::Waiting(asked.keys().cloned().collect()),
            Some(TargetPhase::Running) | None
                if deletes.is_empty() && !self.unobserved_rings.contains(&ring) =>
            {
                ThreadCondition::Done
            }
            _ => ThreadCondition::UnderWay,
        };
        let mut facts = NoticeFacts {
            healthy: targets.iter().filter(|target| target.phase.is_done()).count(),
            total: targets.len(),
            objects: deletes.len() + deleted.iter().map(|(_, objects)| objects).sum::<usize>(),
            url: self.overview.page_url.clone(),
            ..NoticeFacts::default()
        };
        let apps = of_apps().filter_map(|targets| targets.first()).map(|target| &target.app);
        facts.set_apps(apps.chain(deletes.iter().map(|it| &it.app)));
        let of_deleted = deleted.iter().map(|(cluster, _)| *cluster);
        let of_deletes = deletes.iter().map(|it| &it.cluster);
        facts.set_clusters(targets.iter().map(|it| &it.cluster).chain(of_deletes).chain(of_deleted));
        // A target that waits for its turn still runs the previous version.
        let waits = targets.iter().any(|target| target.phase == TargetPhase::Waiting);
        if facts.app_count == 1 && !waits {
            let version = version::merge_versions(targets.iter().map(|target| target.version.as_str()));
            facts.version = Some(version).filter(|version| !version.is_empty());
        }
        facts.set_worst(&targets);
        if matches!(condition, ThreadCondition::Failed(_)) {
            let rollout = worst.and_then(|worst| self.overview.rollout_of(&worst.app));
            facts.mend = rollout.map(RolloutReport::commands).unwrap_or_default();
        }
        facts.confirm = asked.into_values().take(MOST_NAMES).collect();
        Some(ThreadState { condition, facts })
    }

    /// The confirmation that targets of one app wait for, and its command.
    fn requested_confirmation(&self, targets: &[&TargetReport]) -> Option<(String, String)> {
        let mut waiting = targets.iter().filter(|target| target.phase == TargetPhase::Waiting).peekable();
        let rollout = self.overview.rollout_of(&waiting.peek()?.app)?;
        let target = waiting.find(|target| {
            let holds = rollout.units_on(&target.cluster).filter_map(|unit| unit.hold.as_ref());
            holds.into_iter().any(|hold| hold.confirmation().is_some())
        })?;
        let asked = rollout.confirmation.as_ref()?;
        Some((format!("{} {}", target.app, asked.through), rollout.commands().into_iter().next()?))
    }

    /// The health of apps whose rollout ended long ago.
    fn health_state(
        &self,
        ring: RingName<'_>,
        targets: &TargetsByApp<'a>,
        look: &RouteFilter<'_>,
    ) -> ThreadState {
        let targets = select_targets(targets, look);
        let failing: Vec<&TargetReport> =
            targets.iter().copied().filter(|it| it.phase.is_failure()).collect();
        // The health of these is not known yet.
        let is_unknown = |target: &&TargetReport| {
            use TargetPhase::{Pending, Progressing, Unreachable, Waiting};
            matches!(target.phase, Pending | Progressing | Unreachable | Waiting)
        };
        let condition = match failing.is_empty() {
            false => ThreadCondition::Unwell,
            true if self.unobserved_rings.contains(&ring) || targets.iter().any(is_unknown) => {
                ThreadCondition::Unknown
            }
            true => ThreadCondition::Well,
        };
        let mut facts = NoticeFacts { url: self.overview.page_url.clone(), ..NoticeFacts::default() };
        facts.set_apps(failing.iter().map(|target| &target.app));
        facts.set_clusters(failing.iter().map(|target| &target.cluster));
        facts.set_worst(&failing);
        ThreadState { condition, facts }
    }

    /// One thread for each approval digest.
    fn add_delete_threads(
        &self,
        look: &RouteFilter<'_>,
        threads: &mut BTreeMap<NotificationThread, ThreadState>,
    ) {
        let ring_of = |name: &ClusterName| self.ring_of.get(name).copied().flatten();
        let is_asked = self.overview.deletions.iter().filter(|it| it.waits);
        let mut by_digest: BTreeMap<&str, Vec<&DeletionReport>> = BTreeMap::new();
        for deletion in is_asked.filter(|it| (look.app)(&it.app) && (look.cluster)(&it.cluster)) {
            if let Some(digest) =
                deletion.approval.as_deref().filter(|_| (look.ring)(ring_of(&deletion.cluster)))
            {
                by_digest.entry(digest).or_default().push(deletion);
            }
        }
        for (digest, deletions) in by_digest {
            let mut facts = NoticeFacts {
                objects: deletions.len(),
                text: deletions.first().map(|first| first.object.clone()).unwrap_or_default(),
                confirm: vec![format!("tutti approve {digest}")],
                url: self.overview.page_url.clone(),
                ..NoticeFacts::default()
            };
            facts.set_apps(deletions.iter().map(|it| &it.app));
            facts.set_clusters(deletions.iter().map(|it| &it.cluster));
            let condition = ThreadCondition::Is(NotificationPhase::DeleteWaits);
            threads.insert(NotificationThread::Deletes(digest.to_owned()), ThreadState { condition, facts });
        }
    }

    fn add_error_threads(&self, threads: &mut BTreeMap<NotificationThread, ThreadState>) {
        let mut by_commit: BTreeMap<&Revision, Vec<_>> = BTreeMap::new();
        for (commit, error) in
            self.overview.errors_by_commit.iter().filter(|(commit, _)| self.tracked_commits.contains(commit))
        {
            by_commit.entry(commit).or_default().push(error);
        }
        for (commit, errors) in by_commit {
            let text = errors.first().map(|first| invalid(first, errors.len() - 1)).unwrap_or_default();
            let facts = NoticeFacts { text, url: self.overview.page_url.clone(), ..NoticeFacts::default() };
            let seen = ThreadState { condition: ThreadCondition::Failed(BTreeSet::new()), facts };
            threads.insert(NotificationThread::Errors { commit: commit.clone() }, seen);
        }
    }

    fn add_cluster_threads(
        &self,
        look: &RouteFilter<'_>,
        now: Timestamp,
        threads: &mut BTreeMap<NotificationThread, ThreadState>,
    ) {
        let is_ours = |it: &&ClusterReport| {
            !it.is_unregistered() && (look.cluster)(&it.name) && (look.ring)(it.ring.as_deref())
        };
        for cluster in self.overview.clusters.iter().filter(is_ours) {
            let mut facts = NoticeFacts { text: cluster.detail.clone(), ..NoticeFacts::default() };
            facts.set_clusters(std::iter::once(&cluster.name));
            let condition = match cluster.state {
                "Offline" => ThreadCondition::Is(NotificationPhase::Offline),
                "Connecting" => ThreadCondition::Unknown,
                _ => ThreadCondition::Well,
            };
            threads.insert(
                NotificationThread::Cluster(cluster.name.clone()),
                ThreadState { condition, facts: facts.clone() },
            );
            let Some(ends) = &cluster.credential_expires else { continue };
            let left = ends.parse::<Timestamp>().map(|ends| ends.duration_since(now).as_hours() / 24);
            if left.is_ok_and(|days| days < CREDENTIAL_DAYS) {
                facts.ends = Some(ends.clone());
                let thread =
                    NotificationThread::Credential { cluster: cluster.name.clone(), ends: ends.clone() };
                threads.insert(
                    thread,
                    ThreadState { condition: ThreadCondition::Is(NotificationPhase::CredentialEnds), facts },
                );
            }
        }
    }
}

/// The targets that a route selects.
fn select_targets<'a>(targets: &TargetsByApp<'a>, look: &RouteFilter<'_>) -> Vec<&'a TargetReport> {
    let apps = targets.iter().filter(|(app, _)| (look.app)(app));
    apps.flat_map(|(_, targets)| targets).copied().filter(|target| (look.cluster)(&target.cluster)).collect()
}
