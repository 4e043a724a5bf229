//! Cause, not symptom: lists the pods of workloads that are not healthy, as [`CauseSearches`](super::cause_searches::CauseSearches)
//! decides, and divides the answer among them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::cause_searches::{Access, PodSearch, Unhealthy, Workload};
use super::event::Event;
use super::last_lines::Explanation;
use super::no_pods;
use super::world::World;
use crate::cluster::{Client, PodPage};
use crate::fleet::Target;
use crate::health::{
    Crash, OwnPods, PodIndex, Progress, has_new_pods, lacks_pods, likely_pods, own_pods, pods_cause,
};
use crate::model::{ClusterName, Digest, ObjectId, Status};

/// How long the events about all workloads of one list are waited for.
const PATIENCE_FOR_EVENTS: Duration = Duration::from_secs(10);

/// What came of one list.
#[derive(Debug)]
pub struct PodsListed {
    cluster: ClusterName,
    namespace: Arc<str>,
    /// Pods were asked for; not where all workloads are pods themselves.
    is_list: bool,
    asked: Vec<Workload>,
    /// Nothing where the list failed.
    found: Vec<Found>,
}

#[derive(Debug)]
enum Found {
    Explained(Box<Explanation>),
    /// There were more pods than the list could take, and none of this workload among them.
    CutOff(Workload),
}

/// A workload whose cause is searched.
#[derive(Debug)]
struct Asked {
    workload: Workload,
    pods: OwnPods,
    object: Value,
    rendered: Digest,
    /// The crashes whose last lines are known.
    known: Vec<Crash>,
    /// The one that is told.
    told: Option<Crash>,
}

impl World {
    /// Takes note of the workloads of a target that run what was applied and are not healthy.
    pub(super) fn see_unhealthy(&mut self, id: &Target, now: Instant) {
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
        let unhealthy: Vec<Unhealthy> = rendered
            .objects
            .iter()
            .filter_map(|object| {
                let workload = cluster.unwell.get(&object.id)?;
                let live = cluster.observation.objects.get(&object.id)?;
                let pods = own_pods(workload).filter(|_| live.hash == Some(object.hash))?;
                Some(Unhealthy {
                    object: object.id.clone(),
                    hash: object.hash,
                    pods,
                    pod_count: likely_pods(workload),
                    progress: Progress::of(workload),
                    has_failed: live.health.status == Status::Failed,
                    has_pods: has_new_pods(workload) || lacks_pods(workload, true),
                })
            })
            .collect();
        if unhealthy.is_empty() {
            // What its pods suffered from is over.
            entry.causes.clear();
        } else {
            let objects: BTreeSet<&ObjectId> = unhealthy.iter().map(|it| &it.object).collect();
            entry.causes.forget_well(|workload| objects.contains(workload));
        }
        self.searches.see(id, unhealthy, now);
    }

    /// Lists the pods of those that are due, and says when others will be.
    pub(super) fn search_causes(&mut self, now: Instant) -> Option<Instant> {
        let clusters = &self.clusters;
        let access = |name: &ClusterName| match clusters.get(name).filter(|cluster| cluster.is_ready()) {
            None => Access::NotReady,
            Some(cluster) => cluster.held_off(now).map_or(Access::Open, Access::HeldOff),
        };
        let mut searches = Vec::new();
        while let Some(search) = self.searches.take(now, access) {
            searches.push(search);
        }
        for search in searches {
            // What waits for its turn is told to be searched.
            self.changed = true;
            self.list_pods(search, now);
        }
        self.searches.next_deadline()
    }

    fn list_pods(&mut self, search: PodSearch, now: Instant) {
        let PodSearch { cluster, namespace, selector, limit, workloads } = search;
        let mut asked = Vec::new();
        for ((app, object), pods) in workloads {
            let target = Target { app: app.clone(), cluster: cluster.clone() };
            match self.asked(&target, &object, pods) {
                Some(it) => asked.push(it),
                None if self.targets.get(&target).is_none() => self.searches.forget(&target),
                None => self.searches.answered(&target, &object, now),
            }
        }
        let client = self.clusters.get(&cluster).and_then(|cluster| cluster.client.clone());
        let (Some(client), false) = (client, asked.is_empty()) else {
            if selector.is_some() {
                self.searches.listed(&cluster, &namespace);
            }
            return;
        };
        let mut listed = PodsListed {
            cluster,
            namespace: Arc::clone(&namespace),
            is_list: selector.is_some(),
            asked: asked.iter().map(|it| it.workload.clone()).collect(),
            found: Vec::new(),
        };
        let name = listed.cluster.clone();
        let work = tokio::spawn(async move {
            let page = match &selector {
                Some(selector) => client.pods(&namespace, &selector.to_string(), limit).await,
                None => Ok(PodPage::default()),
            };
            match page {
                Ok(page) => divide(&client, &name, asked, &page).await,
                Err(error) => {
                    tracing::debug!(%error, "the pods could not be listed");
                    Vec::new()
                }
            }
        });
        let events = self.events.clone();
        tokio::spawn(async move {
            match work.await {
                Ok(found) => listed.found = found,
                Err(error) => tracing::error!(%error, "the search for a cause has crashed"),
            }
            // A closed queue means that the controller has stopped: nobody is left to tell.
            let _ = events.send(Event::PodsListed(Box::new(listed))).await;
        });
    }

    fn asked(&self, target: &Target, object: &ObjectId, pods: OwnPods) -> Option<Asked> {
        let entry = self.targets.get(target)?;
        let workload = self.clusters.get(&target.cluster)?.unwell.get(object)?;
        Some(Asked {
            workload: (target.app.clone(), object.clone()),
            pods,
            object: workload.clone(),
            rendered: entry.render.as_ref().ok()?.digest(),
            known: entry.last_lines.crashes(object),
            told: entry.causes.of(object).and_then(|cause| cause.crash.clone()),
        })
    }

    /// Takes in what a list has shown.
    pub(super) fn pods_listed(&mut self, listed: PodsListed) {
        let now = Instant::now();
        let PodsListed { cluster, namespace, is_list, asked, found } = listed;
        if found.is_empty() {
            // What is known stays as it is, and is asked for again after its pause.
            for (app, object) in asked {
                self.searches.answered(&Target { app, cluster: cluster.clone() }, &object, now);
            }
        }
        for found in found {
            match found {
                Found::Explained(told) => self.explained(*told),
                Found::CutOff((app, object)) => {
                    self.searches.cut_off(&Target { app, cluster: cluster.clone() }, &object, now);
                }
            }
        }
        if is_list {
            self.searches.listed(&cluster, &namespace);
        }
    }
}

/// What the pods of one answer say of each workload, and where there are none, its events.
async fn divide(client: &Client, cluster: &ClusterName, asked: Vec<Asked>, page: &PodPage) -> Vec<Found> {
    let index = PodIndex::of(&page.pods);
    let is_one = asked.len() == 1;
    // The others do not wait for a server that is slow to tell of events.
    let until = Instant::now() + PATIENCE_FOR_EVENTS;
    let mut found = Vec::with_capacity(asked.len());
    for asked in asked {
        let Asked { workload, pods, object, rendered, known, told } = asked;
        let is_itself = pods == OwnPods::Itself;
        let pods = match &pods {
            OwnPods::Itself => vec![&object],
            OwnPods::Selected(selector) => index.selected(selector),
        };
        if pods.is_empty() && page.is_cut && !is_one {
            found.push(Found::CutOff(workload));
            continue;
        }
        let mut cause = pods_cause((!is_itself).then_some(&object), pods.iter().copied(), &known);
        if cause.is_none() && !is_itself {
            let by_events = no_pods::cause(client, &object, !pods.is_empty());
            cause = tokio::time::timeout_at(until, by_events).await.ok().flatten();
        }
        let pod_stays = told.is_none_or(|crash| pods.iter().any(|pod| crash.is_of(pod)));
        let (app, workload) = workload;
        let target = Target { app, cluster: cluster.clone() };
        let told = Explanation { target, rendered, workload, cause, pod_stays };
        found.push(Found::Explained(Box::new(told)));
    }
    found
}
