//! Decides for which workloads pods are listed, and when, to find why they are unhealthy.
//!
//! A search runs at once for a failed workload, and after ten seconds without progress for any other. It repeats after 5 s to 60
//! s while nothing changes. One list serves all workloads of a namespace, so the requests of a large rollout depend on what is
//! stuck. This module decides everything and sends nothing; the time is an argument.

mod deadlines;
mod search;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::deadlines::Deadlines;
use self::search::CauseSearch;
pub use self::search::UnhealthyWorkload;
use crate::fleet::Target;
use crate::health::{OwnPods, PodSelector, SelectorUnion};
use crate::model::{AppId, ClusterName, ObjectId};

/// Between two lists of pods on a cluster: at most two per second.
const MIN_LIST_INTERVAL: Duration = Duration::from_millis(500);
/// Between two lists of one namespace that served all due workloads. Workloads that get stuck meanwhile share the next list.
const MIN_NAMESPACE_INTERVAL: Duration = Duration::from_secs(4);
/// Lists in progress on a cluster. A slow cluster gets no more.
const MAX_CONCURRENT_LISTS: usize = 2;
/// How long the end of a run waits for the cause of a failure.
const CAUSE_TIMEOUT: Duration = Duration::from_secs(15);
/// Workloads that do not fit into a list are skipped up to this number; the next list starts with them.
const MAX_SKIPPED: usize = 100;
/// Pods that one workload needs to find its cause, and the limit of one list.
const PODS_PER_WORKLOAD: u32 = 50;
const MAX_PODS_PER_LIST: u32 = 500;

/// A workload, and the app that it is searched for.
pub type WorkloadKey = (AppId, ObjectId);

#[derive(Debug, Default)]
pub struct CauseSearches {
    clusters: BTreeMap<ClusterName, ClusterSearches>,
    deadlines: Deadlines<ClusterName>,
}

#[derive(Debug, Default)]
struct ClusterSearches {
    apps: BTreeMap<AppId, BTreeMap<ObjectId, CauseSearch>>,
    namespaces: BTreeMap<Arc<str>, NamespaceSearches>,
    deadlines: Deadlines<Arc<str>>,
    next_list: Option<Instant>,
    under_way: usize,
    /// The cluster does not answer: nothing is due until it does.
    is_unreachable: bool,
}

#[derive(Debug, Default)]
struct NamespaceSearches {
    due: Deadlines<WorkloadKey>,
    next_list: Option<Instant>,
    is_listed: bool,
}

/// One list of pods, and the workloads whose causes it shows.
#[derive(Debug, PartialEq)]
pub struct PodSearch {
    pub cluster: ClusterName,
    pub namespace: Arc<str>,
    /// `None`: all of `workloads` are pods themselves, and nothing is listed.
    pub selector: Option<PodSelector>,
    pub limit: u32,
    pub workloads: Vec<(WorkloadKey, OwnPods)>,
}

/// Whether requests to a cluster are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchAccess {
    Open,
    /// The server requested a pause until then.
    Throttled(Instant),
    NotReady,
}

impl CauseSearches {
    /// Sets the unhealthy workloads of a target. Its other workloads are healthy or gone.
    pub fn update_unhealthy(&mut self, target: &Target, unhealthy: Vec<UnhealthyWorkload>, now: Instant) {
        if unhealthy.is_empty()
            && !self.clusters.get(&target.cluster).is_some_and(|it| it.apps.contains_key(&target.app))
        {
            return;
        }
        let cluster = self.clusters.entry(target.cluster.clone()).or_default();
        let moved = cluster.update_unhealthy(&target.app, unhealthy, now);
        moved.iter().for_each(|workload| cluster.schedule(workload));
        self.schedule(&target.cluster);
    }

    /// The next list that is due.
    pub fn start_next_list(
        &mut self,
        now: Instant,
        access: impl Fn(&ClusterName) -> SearchAccess,
    ) -> Option<PodSearch> {
        while let Some(name) = self.deadlines.first_due(now).cloned() {
            let cluster = self.clusters.get_mut(&name)?;
            let taken = match access(&name) {
                SearchAccess::Open => cluster.start_next_list(&name, now),
                SearchAccess::Throttled(until) => {
                    cluster.next_list = Some(until.max(now + MIN_LIST_INTERVAL));
                    None
                }
                SearchAccess::NotReady => {
                    cluster.is_unreachable = true;
                    None
                }
            };
            self.schedule(&name);
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    pub fn connected(&mut self, cluster: &ClusterName) {
        if let Some(searches) = self.clusters.get_mut(cluster) {
            searches.is_unreachable = false;
            self.schedule(cluster);
        }
    }

    /// The cluster was removed, or another one has its name.
    pub fn forget_cluster(&mut self, cluster: &ClusterName) {
        self.clusters.remove(cluster);
        self.deadlines.set(cluster, None);
    }

    /// A list ended or failed.
    pub fn mark_listed(&mut self, cluster: &ClusterName, namespace: &Arc<str>) {
        if let Some(searches) = self.clusters.get_mut(cluster) {
            searches.under_way = searches.under_way.saturating_sub(1);
            if let Some(place) = searches.namespaces.get_mut(namespace) {
                place.is_listed = false;
            }
            searches.schedule_namespace(namespace);
            self.schedule(cluster);
        }
    }

    /// The cause of a workload is known, or known to be missing.
    pub fn mark_answered(&mut self, target: &Target, workload: &ObjectId, now: Instant) {
        self.change(target, workload, |search| search.mark_answered(now));
    }

    /// The list was cut off before the pods of this workload: the next list is for it alone.
    pub fn mark_cut_off(&mut self, target: &Target, workload: &ObjectId, now: Instant) {
        self.change(target, workload, |search| search.mark_cut_off(now));
    }

    fn change(&mut self, target: &Target, workload: &ObjectId, change: impl FnOnce(&mut CauseSearch)) {
        let Some(cluster) = self.clusters.get_mut(&target.cluster) else { return };
        let Some(search) = cluster.apps.get_mut(&target.app).and_then(|app| app.get_mut(workload)) else {
            return;
        };
        change(search);
        cluster.schedule(&(target.app.clone(), workload.clone()));
        self.schedule(&target.cluster);
    }

    pub fn forget(&mut self, target: &Target) {
        let Some(cluster) = self.clusters.get_mut(&target.cluster) else { return };
        let objects = cluster.apps.remove(&target.app).into_iter().flatten();
        for (object, _) in objects {
            cluster.schedule(&(target.app.clone(), object));
        }
        self.schedule(&target.cluster);
    }

    /// The cause of this workload is being searched, without an answer yet.
    pub fn is_pending(&self, target: &Target, workload: &ObjectId, now: Instant) -> bool {
        let cluster = self.clusters.get(&target.cluster);
        let search = cluster.and_then(|it| it.apps.get(&target.app)?.get(workload));
        search.is_some_and(|search| search.is_pending(now))
    }

    /// The cause of a failure of this target is expected soon.
    pub fn is_awaited(&self, target: &Target, now: Instant) -> bool {
        self.searches_of(target).any(|search| search.is_awaited(now, CAUSE_TIMEOUT))
    }

    /// A workload of this target has no answer yet, failed or not.
    pub fn is_unanswered(&self, target: &Target, now: Instant) -> bool {
        self.searches_of(target).any(|search| search.is_unanswered(now, CAUSE_TIMEOUT))
    }

    fn searches_of(&self, target: &Target) -> impl Iterator<Item = &CauseSearch> {
        let app = self.clusters.get(&target.cluster).and_then(|cluster| cluster.apps.get(&target.app));
        app.into_iter().flatten().map(|(_, search)| search)
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first()
    }

    fn schedule(&mut self, name: &ClusterName) {
        let Some(cluster) = self.clusters.get(name) else { return };
        if cluster.apps.is_empty() && cluster.under_way == 0 && cluster.deadlines.first().is_none() {
            self.clusters.remove(name);
            self.deadlines.set(name, None);
            return;
        }
        let first = cluster
            .deadlines
            .first()
            .filter(|_| cluster.under_way < MAX_CONCURRENT_LISTS && !cluster.is_unreachable);
        let at = first.map(|at| cluster.next_list.map_or(at, |next| next.max(at)));
        self.deadlines.set(name, at);
    }
}

impl ClusterSearches {
    /// Sets the unhealthy workloads of an app. Returns those whose deadline changed.
    fn update_unhealthy(
        &mut self,
        app: &AppId,
        unhealthy: Vec<UnhealthyWorkload>,
        now: Instant,
    ) -> Vec<WorkloadKey> {
        let known = self.apps.entry(app.clone()).or_default();
        let mut moved = Vec::new();
        let objects: BTreeSet<&ObjectId> = unhealthy.iter().map(|it| &it.object).collect();
        for (object, search) in known.iter_mut().filter(|(object, _)| !objects.contains(object)) {
            let before = search.deadline();
            search.mark_healthy(now);
            if search.deadline() != before {
                moved.push((app.clone(), object.clone()));
            }
        }
        for it in unhealthy {
            let object = it.object.clone();
            let before = known.get(&object).and_then(CauseSearch::deadline);
            let after = match known.get_mut(&object) {
                Some(search) => {
                    search.update(it, now);
                    search.deadline()
                }
                None => known.entry(object.clone()).or_insert(CauseSearch::new(it, now)).deadline(),
            };
            if after != before {
                moved.push((app.clone(), object));
            }
        }
        moved
    }

    fn start_next_list(&mut self, name: &ClusterName, now: Instant) -> Option<PodSearch> {
        let namespace = self.deadlines.first_due(now)?.clone();
        let place = self.namespaces.get_mut(&namespace)?;
        let mut union = SelectorUnion::default();
        // A workload whose selector names no values is listed alone, and so is one whose pods were cut off.
        let mut alone = None;
        let mut taken: Vec<(WorkloadKey, OwnPods)> = Vec::new();
        let (mut over, mut skipped) = (Vec::new(), 0);
        // More pods would be cut off, and each workload that is cut off needs a list of its own.
        let mut pods: u32 = 0;
        for workload in place.due.all_due(now) {
            let (app, object) = workload;
            let Some(search) =
                self.apps.get(app).and_then(|app| app.get(object)).filter(|it| it.is_searched())
            else {
                over.push(workload.clone());
                continue;
            };
            let is_first = union == SelectorUnion::default() && alone.is_none();
            let is_taken = match &search.pods {
                OwnPods::Itself => true,
                OwnPods::Selected(selector) if is_first && (search.is_alone() || !union.add(selector)) => {
                    alone = Some(selector.clone());
                    true
                }
                OwnPods::Selected(_) if is_first => true,
                OwnPods::Selected(selector) => {
                    let fits = pods.saturating_add(search.pod_count) <= MAX_PODS_PER_LIST;
                    alone.is_none() && !search.is_alone() && fits && union.add(selector)
                }
            };
            if is_taken {
                pods = pods.saturating_add(search.pod_count);
                taken.push((workload.clone(), search.pods.clone()));
            } else {
                skipped += 1;
            }
            if skipped == MAX_SKIPPED {
                break;
            }
        }
        for workload in over {
            place.due.set(&workload, None);
            if let Some(app) = self.apps.get_mut(&workload.0) {
                app.remove(&workload.1);
                if app.is_empty() {
                    self.apps.remove(&workload.0);
                }
            }
        }
        for ((app, object), _) in &taken {
            if let Some(search) = self.apps.get_mut(app).and_then(|app| app.get_mut(object)) {
                search.begin(now);
            }
            place.due.set(&(app.clone(), object.clone()), None);
        }
        let listed: Vec<&PodSelector> = taken
            .iter()
            .filter_map(|(_, pods)| match pods {
                OwnPods::Selected(selector) => Some(selector),
                OwnPods::Itself => None,
            })
            .collect();
        // A single workload uses its whole selector.
        let selector = match (alone, &listed[..]) {
            (Some(alone), _) => Some(alone),
            (None, [one]) => Some((*one).clone()),
            (None, _) => union.selector(),
        };
        let limit = match u32::try_from(listed.len()).unwrap_or(u32::MAX) {
            0 | 1 => PODS_PER_WORKLOAD,
            several => PODS_PER_WORKLOAD.saturating_mul(several).max(pods).min(MAX_PODS_PER_LIST),
        };
        if selector.is_some() {
            place.is_listed = true;
            place.next_list = place.due.first_due(now).is_none().then_some(now + MIN_NAMESPACE_INTERVAL);
            self.next_list = Some(now + MIN_LIST_INTERVAL);
            self.under_way += 1;
        }
        self.schedule_namespace(&namespace);
        (!taken.is_empty()).then(|| PodSearch {
            cluster: name.clone(),
            namespace,
            selector,
            limit,
            workloads: taken,
        })
    }

    fn schedule(&mut self, workload: &WorkloadKey) {
        let Some(namespace) = workload.1.namespace.clone() else { return };
        let search = self.apps.get(&workload.0).and_then(|app| app.get(&workload.1));
        let at = search.and_then(CauseSearch::deadline);
        self.namespaces.entry(Arc::clone(&namespace)).or_default().due.set(workload, at);
        self.schedule_namespace(&namespace);
    }

    fn schedule_namespace(&mut self, namespace: &Arc<str>) {
        let Some(place) = self.namespaces.get(namespace) else { return };
        let first = place.due.first();
        let at = first.filter(|_| !place.is_listed).map(|at| place.next_list.map_or(at, |next| next.max(at)));
        if first.is_none() && !place.is_listed {
            self.namespaces.remove(namespace);
        }
        self.deadlines.set(namespace, at);
    }
}
