//! Finds causes: lists the pods of unhealthy workloads, as [`CauseSearches`](super::cause_searches::CauseSearches) decides, and
//! assigns the pods to the workloads.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::cause_results::{CauseSearchResult, PodListResult, PodsListed};
use super::cause_searches::{PodSearch, SearchAccess, UnhealthyWorkload, WorkloadKey};
use super::event::Event;
use super::event_causes;
use super::state::ControllerState;
use crate::cluster::{Client, PodPage};
use crate::fleet::Target;
use crate::health::{
    ContainerCrash, OwnPods, PodIndex, RolloutProgress, expected_pod_count, find_pod_cause, lacks_pods,
    may_have_new_pods, own_pods,
};
use crate::model::{ClusterName, Digest, HealthStatus, ObjectId};

/// Time limit for the events of all workloads of one list.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// A workload without pods, whose events are read.
#[derive(Debug)]
struct PodlessWorkload {
    object: Value,
    result: CauseSearchResult,
}

/// A workload whose cause is searched.
#[derive(Debug)]
struct SearchedWorkload {
    workload: WorkloadKey,
    pods: OwnPods,
    object: Value,
    rendered: Digest,
    /// The crashes with a known log line.
    known: Vec<ContainerCrash>,
    /// The crash that is shown.
    shown_crash: Option<ContainerCrash>,
}

impl ControllerState {
    /// Records the workloads of a target that run the applied render and are unhealthy.
    pub(super) fn record_unhealthy(&mut self, id: &Target, now: Instant) {
        // A run that ends soon has no time to wait for progress.
        let is_urgent = self.explains_causes();
        let (Some(entry), Some(cluster)) = (self.targets.get_mut(id), self.clusters.get(&id.cluster)) else {
            return;
        };
        let Ok(rendered) = &entry.render else {
            self.searches.forget(id);
            return;
        };
        if !cluster.is_ready() {
            return;
        }
        let unhealthy: Vec<UnhealthyWorkload> = rendered
            .objects
            .iter()
            .filter_map(|object| {
                let workload = cluster.unhealthy_objects.get(&object.id)?;
                let live = cluster.observation.objects.get(&object.id)?;
                let pods = own_pods(workload).filter(|_| live.hash == Some(object.hash))?;
                Some(UnhealthyWorkload {
                    object: object.id.clone(),
                    hash: object.hash,
                    pods,
                    pod_count: expected_pod_count(workload),
                    progress: RolloutProgress::of(workload),
                    has_failed: live.health.status == HealthStatus::Failed,
                    has_pods: may_have_new_pods(workload) || lacks_pods(workload, true),
                    is_urgent,
                })
            })
            .collect();
        if unhealthy.is_empty() {
            // The causes of its pods have ended.
            entry.causes.clear();
        } else {
            let objects: BTreeSet<&ObjectId> = unhealthy.iter().map(|it| &it.object).collect();
            entry.causes.remove_healthy(|workload| objects.contains(workload));
        }
        self.searches.update_unhealthy(id, unhealthy, now);
    }

    /// Lists the pods of workloads that are due. Returns the next deadline.
    pub(super) fn search_causes(&mut self, now: Instant) -> Option<Instant> {
        let clusters = &self.clusters;
        let access = |name: &ClusterName| match clusters.get(name).filter(|cluster| cluster.is_ready()) {
            None => SearchAccess::NotReady,
            Some(cluster) => cluster.throttled_until(now).map_or(SearchAccess::Open, SearchAccess::Throttled),
        };
        let mut searches = Vec::new();
        while let Some(search) = self.searches.start_next_list(now, access) {
            searches.push(search);
        }
        for search in searches {
            // A workload that waits for its list is shown as searched.
            self.is_overview_outdated = true;
            self.list_pods(search, now);
        }
        self.searches.next_deadline()
    }

    fn list_pods(&mut self, search: PodSearch, now: Instant) {
        let PodSearch { cluster, namespace, selector, limit, workloads } = search;
        let mut asked = Vec::new();
        for ((app, object), pods) in workloads {
            let target = Target { app: app.clone(), cluster: cluster.clone() };
            match self.searched_workload(&target, &object, pods) {
                Some(it) => asked.push(it),
                None if self.targets.get(&target).is_none() => self.searches.forget(&target),
                None => self.searches.mark_answered(&target, &object, now),
            }
        }
        let client = self.clusters.get(&cluster).and_then(|cluster| cluster.client.clone());
        let (Some(client), false) = (client, asked.is_empty()) else {
            if selector.is_some() {
                self.searches.mark_listed(&cluster, &namespace);
            }
            return;
        };
        let all: Vec<WorkloadKey> = asked.iter().map(|it| it.workload.clone()).collect();
        let ended = selector.is_some().then(|| Arc::clone(&namespace));
        let (name, events) = (cluster.clone(), self.events.clone());
        let work = tokio::spawn(async move {
            let page = match &selector {
                Some(selector) => client.pods(&namespace, &selector.to_string(), limit).await,
                None => Ok(PodPage::default()),
            };
            let page = match page {
                Ok(page) => page,
                Err(error) => {
                    tracing::debug!(%error, "the pods could not be listed");
                    return asked.into_iter().map(|it| PodListResult::Unknown(it.workload)).collect();
                }
            };
            let (found, lacking) = assign_pods(&name, asked, &page);
            if lacking.is_empty() {
                return found;
            }
            // The other results do not wait for slow events.
            send_pods_listed(&events, PodsListed { cluster: name, listed_namespace: None, results: found })
                .await;
            results_from_events(&client, &namespace, lacking).await
        });
        let events = self.events.clone();
        tokio::spawn(async move {
            let found = work.await.unwrap_or_else(|error| {
                tracing::error!(%error, "the search for a cause has crashed");
                all.into_iter().map(PodListResult::Unknown).collect()
            });
            send_pods_listed(&events, PodsListed { cluster, listed_namespace: ended, results: found }).await;
        });
    }

    fn searched_workload(
        &self,
        target: &Target,
        object: &ObjectId,
        pods: OwnPods,
    ) -> Option<SearchedWorkload> {
        let entry = self.targets.get(target)?;
        let workload = self.clusters.get(&target.cluster)?.unhealthy_objects.get(object)?;
        Some(SearchedWorkload {
            workload: (target.app.clone(), object.clone()),
            pods,
            object: workload.clone(),
            rendered: entry.render.as_ref().ok()?.digest(),
            known: entry.crash_logs.crashes(object),
            shown_crash: entry.causes.of(object).and_then(|cause| cause.crash.clone()),
        })
    }

    /// Handles the result of a list.
    pub(super) fn handle_pods_listed(&mut self, listed: PodsListed) {
        let now = Instant::now();
        let PodsListed { cluster, listed_namespace: ended, results: found } = listed;
        for found in found {
            match found {
                PodListResult::Explained(told) => self.handle_search_result(*told),
                PodListResult::CutOff((app, object)) => {
                    self.searches.mark_cut_off(&Target { app, cluster: cluster.clone() }, &object, now);
                }
                PodListResult::Unknown((app, object)) => {
                    self.searches.mark_answered(&Target { app, cluster: cluster.clone() }, &object, now);
                }
            }
        }
        if let Some(namespace) = ended {
            self.searches.mark_listed(&cluster, &namespace);
        }
    }
}

async fn send_pods_listed(events: &mpsc::Sender<Event>, listed: PodsListed) {
    // The send fails only when the controller has stopped.
    let _ = events.send(Event::PodsListed(Box::new(listed))).await;
}

/// Assigns the listed pods to the workloads. Returns the results, and the workloads whose events must be read.
fn assign_pods(
    cluster: &ClusterName,
    asked: Vec<SearchedWorkload>,
    page: &PodPage,
) -> (Vec<PodListResult>, Vec<PodlessWorkload>) {
    let index = PodIndex::of(&page.pods);
    let is_one = asked.len() == 1;
    let (mut found, mut lacking) = (Vec::with_capacity(asked.len()), Vec::new());
    for asked in asked {
        let SearchedWorkload { workload, pods, object, rendered, known, shown_crash: told } = asked;
        let is_itself = pods == OwnPods::Itself;
        let pods = match &pods {
            OwnPods::Itself => vec![&object],
            OwnPods::Selected(selector) => index.selected(selector),
        };
        if pods.is_empty() && page.is_truncated && !is_one {
            found.push(PodListResult::CutOff(workload));
            continue;
        }
        let cause = find_pod_cause((!is_itself).then_some(&object), pods.iter().copied(), &known);
        let has_none = cause.is_none() && !is_itself && lacks_pods(&object, !pods.is_empty());
        let pod_stays = told.is_none_or(|crash| pods.iter().any(|pod| crash.is_of_pod(pod)));
        let (app, workload) = workload;
        let target = Target { app, cluster: cluster.clone() };
        let told = CauseSearchResult { target, rendered, workload, cause, pod_exists: pod_stays };
        if has_none {
            lacking.push(PodlessWorkload { object, result: told });
        } else {
            found.push(PodListResult::Explained(Box::new(told)));
        }
    }
    (found, lacking)
}

async fn results_from_events(
    client: &Client,
    namespace: &str,
    lacking: Vec<PodlessWorkload>,
) -> Vec<PodListResult> {
    let workloads: Vec<&Value> = lacking.iter().map(|it| &it.object).collect();
    let until = Instant::now() + EVENTS_TIMEOUT;
    let mut causes = event_causes::causes_from_events(client, namespace, &workloads, until).await;
    let found = lacking.into_iter().map(|PodlessWorkload { object, result: told }| {
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
        match uid.and_then(|uid| causes.remove(uid)) {
            Some(cause) => PodListResult::Explained(Box::new(CauseSearchResult { cause, ..told })),
            None => PodListResult::Unknown((told.target.app, told.workload)),
        }
    });
    found.collect()
}
