//! The loop that runs all controllers of a cluster from one queue.

use std::collections::{HashSet, VecDeque};
use std::sync::Weak;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::context::{Context, Memory, Timers, key_of};
use super::{
    adoption, autoscaler, claim, cron_job, daemon_set, definition, deployment, disruption, endpoints, event,
    garbage, job, job_pods, labelled, namespace, pods, quota, replica_set, service, stateful_set,
};
use crate::cluster::{Cluster, State};
use crate::custom;
use crate::object;
use crate::store::{Key, Object, ObjectName};

#[derive(Debug, Default)]
struct Driver {
    queue: VecDeque<Key>,
    /// The keys in the queue.
    queued: HashSet<Key>,
    timers: Timers,
    memory: Memory,
}

/// The longest wait without a timer.
const IDLE: Duration = Duration::from_secs(24 * 3600);
/// How long parsed objects are kept after the last work, because more usually follows.
const SOON: Duration = Duration::from_secs(3);

/// Runs until the last handle of the cluster is gone.
pub(crate) async fn run(cluster: Weak<Cluster>, mut work: watch::Receiver<u64>) {
    let mut driver = Driver::default();
    loop {
        work.borrow_and_update();
        if driver.settle(&cluster).await.is_none() {
            return;
        }
        let next = driver.timers.next().unwrap_or_else(|| Instant::now() + IDLE);
        let quiet = Instant::now() + SOON;
        if next > quiet {
            match woken(&mut work, quiet).await {
                Woken::End => return,
                Woken::Work => continue,
                Woken::Time => {
                    let Some(cluster) = cluster.upgrade() else { return };
                    driver.rest(&cluster);
                }
            }
        }
        if let Woken::End = woken(&mut work, next).await {
            return;
        }
    }
}

/// Why a wait is over.
enum Woken {
    Work,
    Time,
    /// The cluster is gone.
    End,
}

async fn woken(work: &mut watch::Receiver<u64>, at_latest: Instant) -> Woken {
    tokio::select! {
        // by chance otherwise, and no run would be like another
        biased;
        changed = work.changed() => if changed.is_err() { Woken::End } else { Woken::Work },
        () = tokio::time::sleep_until(at_latest) => Woken::Time,
    }
}

impl Driver {
    /// Works until nothing is left to do now. Others get a turn after every step, so that clients
    /// can see the states in between.
    async fn settle(&mut self, cluster: &Weak<Cluster>) -> Option<()> {
        loop {
            let busy = {
                let cluster = cluster.upgrade()?;
                let mut state = cluster.state.lock();
                self.step(&mut state)
            };
            if !busy {
                return Some(());
            }
            tokio::task::yield_now().await;
        }
    }

    /// Releases parsed objects and unused capacity.
    fn rest(&mut self, cluster: &Cluster) {
        cluster.state.lock().store.rest();
        self.queue.shrink_to_fit();
        self.queued.shrink_to_fit();
    }

    fn step(&mut self, state: &mut State) -> bool {
        let now = Instant::now();
        let touched = state.store.take_touched();
        for (key, object) in touched {
            self.enqueue_touched(state, key, &object);
        }
        // what is to be done now comes before what was asked for later
        if self.queue.is_empty() {
            for key in self.timers.due(now) {
                self.enqueue(key);
            }
        }
        let Some(key) = self.queue.pop_front() else { return false };
        self.queued.remove(&key);
        let mut context = Context { state, timers: &mut self.timers, memory: &mut self.memory, now };
        reconcile(&mut context, &key);
        true
    }

    fn enqueue(&mut self, key: Key) {
        if self.queued.insert(key.clone()) {
            self.queue.push_back(key);
        }
    }

    /// Enqueues the object and all objects that depend on it: its owner, the services of a pod, the pods that wait for
    /// a node, and its namespace while that is deleting.
    fn enqueue_touched(&mut self, state: &State, key: Key, object: &Object) {
        let gone = state.store.at(&key).is_none();
        // an owner that goes waits for all that it owns, not only for what it controls
        for owner in object::list(object, &["metadata", "ownerReferences"]) {
            if (gone || owner["controller"] == true)
                && let Some(owner) = state.store.by_uid(owner["uid"].as_str().unwrap_or(""))
            {
                self.enqueue(owner);
            }
        }
        let home = Key { resource: "namespaces".to_owned(), name: ObjectName::new("", &key.name.namespace) };
        if state.store.at(&home).is_some_and(|home| object::is_deleting(home)) {
            self.enqueue(home);
        }
        if !matches!(key.resource.as_str(), "events" | "resourcequotas") {
            for quota in state.store.list("resourcequotas", Some(&key.name.namespace)) {
                self.enqueue(key_of("resourcequotas", quota));
            }
        }
        if key.resource == "nodes" {
            self.enqueue_dwellers(state, &key.name.name);
        }
        if key.resource == "pods" {
            let services = labelled::services_of(state, object);
            let concerned =
                services.into_iter().chain(disruption::of_pod(state, object)).chain(claim::of_pod(object));
            concerned.for_each(|key| self.enqueue(key));
        }
        if key.resource == custom::DEFINITIONS && gone {
            // its names are free for others
            for other in state.store.list(custom::DEFINITIONS, None) {
                self.enqueue(Key { resource: key.resource.clone(), name: ObjectName::of(other) });
            }
        }
        self.memory.orphans.note(&key, object, state.store.stored(&key.resource, &key.name).is_some());
        if gone {
            self.memory.gone.push(object::uid(object).to_owned());
        }
        self.enqueue(key);
    }

    /// A node that comes, goes or changes concerns the pods on it, those that have none, and every
    /// DaemonSet.
    fn enqueue_dwellers(&mut self, state: &State, node: &str) {
        let concerned = |pod: &Object| object::text(pod, &["spec", "nodeName"]).is_none_or(|on| on == node);
        let pods = state.store.list("pods", None).filter(|pod| concerned(pod));
        let pods: Vec<Key> = pods.map(|pod| key_of("pods", pod)).collect();
        let sets = state.store.list("daemonsets.apps", None).map(|set| key_of("daemonsets.apps", set));
        sets.chain(pods).for_each(|key| self.enqueue(key));
    }
}

fn reconcile(context: &mut Context<'_>, key: &Key) {
    garbage::collect_forgotten(context);
    let Some(object) = context.state.store.at(key).cloned() else {
        context.memory.pending.remove(key);
        context.forget_deadlines(key);
        if key.resource == "services" {
            endpoints::forget(context, key);
        }
        return;
    };
    if key.resource == custom::DEFINITIONS {
        return definition::reconcile(context, key, &object);
    }
    match context.memory.waits.get(key) {
        Some(until) if *until > context.now => return,
        Some(_) => _ = context.memory.waits.remove(key),
        None => {}
    }
    if garbage::handle(context, key, &object) {
        return;
    }
    adoption::adopt(context, key, &object);
    match key.resource.as_str() {
        "deployments.apps" => deployment::reconcile(context, key, &object),
        "replicasets.apps" => replica_set::reconcile(context, key, &object),
        "statefulsets.apps" => stateful_set::reconcile(context, key, &object),
        "daemonsets.apps" => daemon_set::reconcile(context, key, &object),
        "jobs.batch" => job::reconcile(context, key, &object),
        "cronjobs.batch" => cron_job::reconcile(context, key, &object),
        "poddisruptionbudgets.policy" => disruption::reconcile(context, key, &object),
        "horizontalpodautoscalers.autoscaling" => autoscaler::reconcile(context, key, &object),
        "services" => service::reconcile(context, key, &object),
        "ingresses.networking.k8s.io" => service::balance(context, key, &object),
        "persistentvolumes" => claim::release_volume(context, key, &object),
        "persistentvolumeclaims" => claim::reconcile(context, key, &object),
        "resourcequotas" => quota::reconcile(context, key, &object),
        "events" => event::expire(context, key, &object),
        "pods" if job_pods::release(context, key, &object) => {}
        "pods" => pods::reconcile(context, key, &object),
        "namespaces" => namespace::reconcile(context, key, &object),
        _ => {}
    }
}
