//! Indexes an overview and computes the state of each thread for a route.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::facts::{MOST_NAMES, worst_of};
use super::{Condition, Facts, Seen, Thread};
use crate::model::{AppId, ClusterName, Happened, Mode, Revision};
use crate::report::words::invalid;
use crate::report::{ClusterReport, DeletionReport, Overview, Phase, RolloutReport, TargetReport, version};

/// Days before a credential expires.
const CREDENTIAL_DAYS: i64 = 14;

/// What one route selects.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// It selects apps, so what belongs to no app is not for it.
    pub wants_apps: bool,
    /// It selects rings or clusters.
    pub wants_places: bool,
    pub app: &'a dyn Fn(&AppId) -> bool,
    pub ring: &'a dyn Fn(Option<&str>) -> bool,
    pub cluster: &'a dyn Fn(&ClusterName) -> bool,
}

impl std::fmt::Debug for Look<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Look").field("wants_apps", &self.wants_apps).finish_non_exhaustive()
    }
}

type Ring<'a> = Option<&'a str>;
/// By app, so that a route for few apps costs little.
type Targets<'a> = BTreeMap<&'a AppId, Vec<&'a TargetReport>>;

/// What belongs to one commit in one ring.
#[derive(Debug, Default)]
struct Part<'a> {
    targets: Targets<'a>,
    /// In progress, or waiting.
    deletes: Vec<&'a DeletionReport>,
    /// Deleted objects, by cluster.
    deleted: Vec<(&'a ClusterName, usize)>,
}

/// An overview, indexed once. The cost depends on its size and not on the number of routes.
#[derive(Debug)]
pub struct Moment<'a> {
    overview: &'a Overview,
    /// Of tracked commits.
    parts: BTreeMap<(&'a Revision, Ring<'a>), Part<'a>>,
    told: BTreeSet<&'a Revision>,
    /// Targets of older commits that are not Running, by ring.
    older: BTreeMap<Ring<'a>, Targets<'a>>,
    rings: BTreeMap<&'a ClusterName, Ring<'a>>,
    failing: BTreeSet<&'a AppId>,
    /// Rings with a cluster that was not read whole.
    unseen: BTreeSet<Ring<'a>>,
}

impl<'a> Moment<'a> {
    /// `open`: commits whose start was sent and whose end was not. `None`: the overview is not rendered yet.
    pub fn of(overview: &'a Overview, open: &'a BTreeSet<Revision>) -> Option<Self> {
        if overview.revision.is_none() || !overview.is_rendered {
            return None;
        }
        let told: BTreeSet<&Revision> = overview.told.iter().chain(&overview.recent).chain(open).collect();
        let rings: BTreeMap<&ClusterName, Ring<'_>> =
            overview.clusters.iter().map(|cluster| (&cluster.name, cluster.ring.as_deref())).collect();
        let unseen = overview.clusters.iter().filter(|cluster| !cluster.observed && !cluster.is_dropped());
        let unseen = unseen.map(|cluster| cluster.ring.as_deref()).collect();
        let failing = overview.targets.iter().filter(|target| target.phase.is_failure());
        let failing = failing.map(|target| &target.app).collect();
        let mut parts: BTreeMap<(&Revision, Ring<'_>), Part<'_>> = BTreeMap::new();
        let mut older: BTreeMap<Ring<'_>, Targets<'_>> = BTreeMap::new();
        // In observe mode no rollout makes progress.
        if overview.mode == Mode::Enforce {
            older.extend(rings.values().map(|ring| (*ring, Targets::new())));
            for target in &overview.targets {
                let ring = target.ring.as_deref();
                if matches!(target.phase, Phase::Unmanaged | Phase::KeptOut) {
                    continue;
                }
                if told.contains(&target.revision) {
                    let part = parts.entry((&target.revision, ring)).or_default();
                    part.targets.entry(&target.app).or_default().push(target);
                } else if target.phase != Phase::Running {
                    older.entry(ring).or_default().entry(&target.app).or_default().push(target);
                }
            }
            for deletion in overview.deletions.iter().filter(|it| told.contains(&it.revision)) {
                let ring = rings.get(&deletion.cluster).copied().flatten();
                parts.entry((&deletion.revision, ring)).or_default().deletes.push(deletion);
            }
            for ((revision, cluster), objects) in &overview.deleted {
                if told.contains(revision) {
                    let ring = rings.get(cluster).copied().flatten();
                    parts.entry((revision, ring)).or_default().deleted.push((cluster, *objects));
                }
            }
        }
        Some(Self { overview, parts, told, older, rings, failing, unseen })
    }

    /// Apps that fail somewhere, whichever route selects them.
    pub fn failing(&self) -> BTreeSet<AppId> {
        self.failing.iter().map(|app| (*app).clone()).collect()
    }

    /// The state of each thread for one route. `reverted`: commits that later commits of the branch reverted.
    pub fn seen(
        &self,
        look: &Look<'_>,
        reverted: &BTreeSet<Revision>,
        now: Timestamp,
    ) -> BTreeMap<Thread, Seen> {
        let mut threads = BTreeMap::new();
        for ((commit, ring), part) in self.parts.iter().filter(|((_, ring), _)| (look.ring)(*ring)) {
            let Some(mut seen) = self.rollout(*ring, part, look) else { continue };
            if reverted.contains(*commit) {
                seen.condition = Condition::Reverted;
            }
            let ring = ring.map(ToOwned::to_owned);
            threads.insert(Thread::Rollout { commit: (*commit).clone(), ring }, seen);
        }
        for (ring, targets) in self.older.iter().filter(|(ring, _)| (look.ring)(**ring)) {
            let thread = Thread::Health { ring: ring.map(ToOwned::to_owned) };
            threads.insert(thread, self.health(*ring, targets, look));
        }
        self.deletes(look, &mut threads);
        if !look.wants_apps {
            if !look.wants_places {
                self.errors(&mut threads);
            }
            self.clusters(look, now, &mut threads);
        }
        threads
    }

    /// `None`: nothing of it is for this route.
    fn rollout(&self, ring: Ring<'_>, part: &Part<'a>, look: &Look<'_>) -> Option<Seen> {
        let fits = |app: &AppId, cluster: &ClusterName| (look.app)(app) && (look.cluster)(cluster);
        let targets = chosen(&part.targets, look);
        let deletes: Vec<_> = part.deletes.iter().filter(|it| fits(&it.app, &it.cluster)).collect();
        // The apps of deleted objects are no longer known.
        let deleted = part.deleted.iter().filter(|(cluster, _)| !look.wants_apps && (look.cluster)(cluster));
        let deleted: Vec<_> = deleted.collect();
        if targets.is_empty() && deletes.is_empty() && deleted.is_empty() {
            return None;
        }
        let of_apps = || targets.chunk_by(|one, other| one.app == other.app);
        let asked: BTreeMap<String, String> = of_apps().filter_map(|targets| self.asked(targets)).collect();
        let worst = worst_of(&targets);
        let condition = match worst.map(|worst| worst.phase) {
            Some(phase) if phase.is_failure() => Condition::Failed(asked.keys().cloned().collect()),
            _ if !asked.is_empty() => Condition::Waiting(asked.keys().cloned().collect()),
            Some(Phase::Running) | None if deletes.is_empty() && !self.unseen.contains(&ring) => {
                Condition::Done
            }
            _ => Condition::UnderWay,
        };
        let mut facts = Facts {
            healthy: targets.iter().filter(|target| target.phase.is_done()).count(),
            total: targets.len(),
            objects: deletes.len() + deleted.iter().map(|(_, objects)| objects).sum::<usize>(),
            url: self.overview.page_url.clone(),
            ..Facts::default()
        };
        let apps = of_apps().filter_map(|targets| targets.first()).map(|target| &target.app);
        facts.name_apps(apps.chain(deletes.iter().map(|it| &it.app)));
        let of_deleted = deleted.iter().map(|(cluster, _)| *cluster);
        let of_deletes = deletes.iter().map(|it| &it.cluster);
        facts.name_clusters(targets.iter().map(|it| &it.cluster).chain(of_deletes).chain(of_deleted));
        // A target that waits for its turn still runs the previous version.
        let waits = targets.iter().any(|target| target.phase == Phase::Waiting);
        if facts.app_count == 1 && !waits {
            let version = version::merge(targets.iter().map(|target| target.version.as_str()));
            facts.version = Some(version).filter(|version| !version.is_empty());
        }
        facts.say_worst(&targets);
        if matches!(condition, Condition::Failed(_)) {
            let rollout = worst.and_then(|worst| self.overview.rollout_of(&worst.app));
            facts.mend = rollout.map(RolloutReport::commands).unwrap_or_default();
        }
        facts.confirm = asked.into_values().take(MOST_NAMES).collect();
        Some(Seen { condition, facts })
    }

    /// The confirmation that targets of one app wait for, and its command.
    fn asked(&self, targets: &[&TargetReport]) -> Option<(String, String)> {
        let mut waiting = targets.iter().filter(|target| target.phase == Phase::Waiting).peekable();
        let rollout = self.overview.rollout_of(&waiting.peek()?.app)?;
        let target = waiting.find(|target| {
            let holds = rollout.units_on(&target.cluster).filter_map(|unit| unit.hold.as_ref());
            holds.into_iter().any(|hold| hold.confirmation().is_some())
        })?;
        let asked = rollout.confirmation.as_ref()?;
        Some((format!("{} {}", target.app, asked.through), rollout.commands().into_iter().next()?))
    }

    /// The health of apps whose rollout ended long ago.
    fn health(&self, ring: Ring<'_>, targets: &Targets<'a>, look: &Look<'_>) -> Seen {
        let targets = chosen(targets, look);
        let failing: Vec<&TargetReport> =
            targets.iter().copied().filter(|it| it.phase.is_failure()).collect();
        // The health of these is not known yet.
        let is_unknown = |target: &&TargetReport| {
            use Phase::{Pending, Progressing, Unreachable, Waiting};
            matches!(target.phase, Pending | Progressing | Unreachable | Waiting)
        };
        let condition = match failing.is_empty() {
            false => Condition::Unwell,
            true if self.unseen.contains(&ring) || targets.iter().any(is_unknown) => Condition::Unclear,
            true => Condition::Well,
        };
        let mut facts = Facts { url: self.overview.page_url.clone(), ..Facts::default() };
        facts.name_apps(failing.iter().map(|target| &target.app));
        facts.name_clusters(failing.iter().map(|target| &target.cluster));
        facts.say_worst(&failing);
        Seen { condition, facts }
    }

    /// One thread for each approval digest.
    fn deletes(&self, look: &Look<'_>, threads: &mut BTreeMap<Thread, Seen>) {
        let ring_of = |name: &ClusterName| self.rings.get(name).copied().flatten();
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
            let mut facts = Facts {
                objects: deletions.len(),
                text: deletions.first().map(|first| first.object.clone()).unwrap_or_default(),
                confirm: vec![format!("tutti approve {digest}")],
                url: self.overview.page_url.clone(),
                ..Facts::default()
            };
            facts.name_apps(deletions.iter().map(|it| &it.app));
            facts.name_clusters(deletions.iter().map(|it| &it.cluster));
            let condition = Condition::Is(Happened::DeleteWaits);
            threads.insert(Thread::Deletes(digest.to_owned()), Seen { condition, facts });
        }
    }

    fn errors(&self, threads: &mut BTreeMap<Thread, Seen>) {
        let mut by_commit: BTreeMap<&Revision, Vec<_>> = BTreeMap::new();
        for (commit, error) in self.overview.blamed.iter().filter(|(commit, _)| self.told.contains(commit)) {
            by_commit.entry(commit).or_default().push(error);
        }
        for (commit, errors) in by_commit {
            let text = errors.first().map(|first| invalid(first, errors.len() - 1)).unwrap_or_default();
            let facts = Facts { text, url: self.overview.page_url.clone(), ..Facts::default() };
            let seen = Seen { condition: Condition::Failed(BTreeSet::new()), facts };
            threads.insert(Thread::Errors { commit: commit.clone() }, seen);
        }
    }

    fn clusters(&self, look: &Look<'_>, now: Timestamp, threads: &mut BTreeMap<Thread, Seen>) {
        let is_ours = |it: &&ClusterReport| {
            !it.is_dropped() && (look.cluster)(&it.name) && (look.ring)(it.ring.as_deref())
        };
        for cluster in self.overview.clusters.iter().filter(is_ours) {
            let mut facts = Facts { text: cluster.detail.clone(), ..Facts::default() };
            facts.name_clusters(std::iter::once(&cluster.name));
            let condition = match cluster.state {
                "Offline" => Condition::Is(Happened::Offline),
                "Connecting" => Condition::Unclear,
                _ => Condition::Well,
            };
            threads.insert(Thread::Cluster(cluster.name.clone()), Seen { condition, facts: facts.clone() });
            let Some(ends) = &cluster.credential_expires else { continue };
            let left = ends.parse::<Timestamp>().map(|ends| ends.duration_since(now).as_hours() / 24);
            if left.is_ok_and(|days| days < CREDENTIAL_DAYS) {
                facts.ends = Some(ends.clone());
                let thread = Thread::Credential { cluster: cluster.name.clone(), ends: ends.clone() };
                threads.insert(thread, Seen { condition: Condition::Is(Happened::CredentialEnds), facts });
            }
        }
    }
}

/// The targets that a route selects.
fn chosen<'a>(targets: &Targets<'a>, look: &Look<'_>) -> Vec<&'a TargetReport> {
    let apps = targets.iter().filter(|(app, _)| (look.app)(app));
    apps.flat_map(|(_, targets)| targets).copied().filter(|target| (look.cluster)(&target.cluster)).collect()
}
