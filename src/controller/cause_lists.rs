//! Finds causes: lists the pods of unhealthy workloads, as [`CauseSearches`](super::cause_searches::CauseSearches) decides, and
//! assigns the pods to the workloads.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::cause_searches::{Access, PodSearch, Unhealthy, Workload};
use super::event::Event;
use super::last_lines::Explanation;
use super::no_pods;
use super::world::World;
use crate::cluster::{Client, PodPage};
use crate::fleet::Target;
use crate::health::{
    Crash, OwnPods, PodIndex, Progress, lacks_pods, likely_pods, may_have_new_pods, own_pods, pods_cause,
};
use crate::model::{ClusterName, Digest, ObjectId, Status};

/// Time limit for the events of all workloads of one list.
const PATIENCE_FOR_EVENTS: Duration = Duration::from_secs(10);

/// The result of one list, or a part of it.
#[derive(Debug)]
pub struct PodsListed {
    cluster: ClusterName,
    /// The namespace whose list ended. `None` if all workloads are pods themselves, because nothing is listed then.
    ended: Option<Arc<str>>,
    found: Vec<Found>,
}

#[derive(Debug)]
enum Found {
    Explained(Box<Explanation>),
    /// The list was cut off, and has no pod of this workload.
    CutOff(Workload),
    /// The server did not answer. The known cause stays, and the search is repeated after its pause.
    Unknown(Workload),
}

/// A workload without pods, whose events are read.
#[derive(Debug)]
struct Lacking {
    object: Value,
    told: Explanation,
}

/// A workload whose cause is searched.
#[derive(Debug)]
struct Asked {
    workload: Workload,
    pods: OwnPods,
    object: Value,
    rendered: Digest,
    /// The crashes with a known log line.
    known: Vec<Crash>,
    /// The crash that is shown.
    told: Option<Crash>,
}

impl World {
    /// Records the workloads of a target that run the applied render and are unhealthy.
    pub(super) fn see_unhealthy(&mut self, id: &Target, now: Instant) {
        // A run that ends soon has no time to wait for progress.
        let is_urgent = self.explains();
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
            entry.causes.forget_well(|workload| objects.contains(workload));
        }
        self.searches.see(id, unhealthy, now);
    }

    /// Lists the pods of workloads that are due. Returns the next deadline.
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
            // A workload that waits for its list is shown as searched.
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
        let all: Vec<Workload> = asked.iter().map(|it| it.workload.clone()).collect();
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
                    return asked.into_iter().map(|it| Found::Unknown(it.workload)).collect();
                }
            };
            let (found, lacking) = divide(&name, asked, &page);
            if lacking.is_empty() {
                return found;
            }
            // The other results do not wait for slow events.
            tell(&events, PodsListed { cluster: name, ended: None, found }).await;
            told_by_events(&client, &namespace, lacking).await
        });
        let events = self.events.clone();
        tokio::spawn(async move {
            let found = work.await.unwrap_or_else(|error| {
                tracing::error!(%error, "the search for a cause has crashed");
                all.into_iter().map(Found::Unknown).collect()
            });
            tell(&events, PodsListed { cluster, ended, found }).await;
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

    /// Handles the result of a list.
    pub(super) fn pods_listed(&mut self, listed: PodsListed) {
        let now = Instant::now();
        let PodsListed { cluster, ended, found } = listed;
        for found in found {
            match found {
                Found::Explained(told) => self.explained(*told),
                Found::CutOff((app, object)) => {
                    self.searches.cut_off(&Target { app, cluster: cluster.clone() }, &object, now);
                }
                Found::Unknown((app, object)) => {
                    self.searches.answered(&Target { app, cluster: cluster.clone() }, &object, now);
                }
            }
        }
        if let Some(namespace) = ended {
            self.searches.listed(&cluster, &namespace);
        }
    }
}

async fn tell(events: &mpsc::Sender<Event>, listed: PodsListed) {
    // The send fails only when the controller has stopped.
    let _ = events.send(Event::PodsListed(Box::new(listed))).await;
}

/// Assigns the listed pods to the workloads. Returns the results, and the workloads whose events must be read.
fn divide(cluster: &ClusterName, asked: Vec<Asked>, page: &PodPage) -> (Vec<Found>, Vec<Lacking>) {
    let index = PodIndex::of(&page.pods);
    let is_one = asked.len() == 1;
    let (mut found, mut lacking) = (Vec::with_capacity(asked.len()), Vec::new());
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
        let cause = pods_cause((!is_itself).then_some(&object), pods.iter().copied(), &known);
        let has_none = cause.is_none() && !is_itself && lacks_pods(&object, !pods.is_empty());
        let pod_stays = told.is_none_or(|crash| pods.iter().any(|pod| crash.is_of(pod)));
        let (app, workload) = workload;
        let target = Target { app, cluster: cluster.clone() };
        let told = Explanation { target, rendered, workload, cause, pod_stays };
        if has_none {
            lacking.push(Lacking { object, told });
        } else {
            found.push(Found::Explained(Box::new(told)));
        }
    }
    (found, lacking)
}

async fn told_by_events(client: &Client, namespace: &str, lacking: Vec<Lacking>) -> Vec<Found> {
    let workloads: Vec<&Value> = lacking.iter().map(|it| &it.object).collect();
    let until = Instant::now() + PATIENCE_FOR_EVENTS;
    let mut causes = no_pods::causes(client, namespace, &workloads, until).await;
    let found = lacking.into_iter().map(|Lacking { object, told }| {
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
        match uid.and_then(|uid| causes.remove(uid)) {
            Some(cause) => Found::Explained(Box::new(Explanation { cause, ..told })),
            None => Found::Unknown((told.target.app, told.workload)),
        }
    });
    found.collect()
}
