//! The loop that runs all controllers of a cluster from one queue.

use std::collections::{HashSet, VecDeque};
use std::sync::Weak;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::controller_context::{ControllerContext, ControllerMemory, RequeueTimers, key_of};
use super::{
    adoption, autoscaler, cron_job, custom_definition, daemon_set, deployment, disruption_budget, endpoints,
    event, garbage_collector, job, job_pods, label_lookup, namespace, pod, quota, replica_set, service,
    stateful_set, volume_claim,
};
use crate::cluster::{SandboxCluster, SandboxState};
use crate::custom;
use crate::object;
use crate::store::{NamespacedName, ParsedObject, StoreKey};

#[derive(Debug, Default)]
struct ControllerLoop {
    queue: VecDeque<StoreKey>,
    /// The keys in the queue.
    queued: HashSet<StoreKey>,
    timers: RequeueTimers,
    memory: ControllerMemory,
}

/// The longest wait without a timer.
const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);
/// How long parsed objects are kept after the last work, because more usually follows.
const PARSED_OBJECT_RETENTION: Duration = Duration::from_secs(3);

/// Runs until the last handle of the cluster is gone.
pub(crate) async fn run(cluster: Weak<SandboxCluster>, mut work: watch::Receiver<u64>) {
    let mut driver = ControllerLoop::default();
    loop {
        work.borrow_and_update();
        if driver.run_until_idle(&cluster).await.is_none() {
            return;
        }
        let next = driver.timers.next().unwrap_or_else(|| Instant::now() + MAX_WAIT);
        let quiet = Instant::now() + PARSED_OBJECT_RETENTION;
        if next > quiet {
            match wait_for_work(&mut work, quiet).await {
                LoopWakeup::End => return,
                LoopWakeup::Work => continue,
                LoopWakeup::Time => {
                    let Some(cluster) = cluster.upgrade() else { return };
                    driver.release_memory(&cluster);
                }
            }
        }
        if let LoopWakeup::End = wait_for_work(&mut work, next).await {
            return;
        }
    }
}

/// Why a wait is over.
enum LoopWakeup {
    Work,
    Time,
    /// The cluster is gone.
    End,
}

async fn wait_for_work(work: &mut watch::Receiver<u64>, at_latest: Instant) -> LoopWakeup {
    tokio::select! {
        // by chance otherwise, and no run would be like another
        biased;
        changed = work.changed() => if changed.is_err() { LoopWakeup::End } else { LoopWakeup::Work },
        () = tokio::time::sleep_until(at_latest) => LoopWakeup::Time,
    }
}

impl ControllerLoop {
    /// Works until nothing is left to do now. Others get a turn after every step, so that clients
    /// can see the states in between.
    async fn run_until_idle(&mut self, cluster: &Weak<SandboxCluster>) -> Option<()> {
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
    fn release_memory(&mut self, cluster: &SandboxCluster) {
        cluster.state.lock().store.release_memory();
        self.queue.shrink_to_fit();
        self.queued.shrink_to_fit();
    }

    fn step(&mut self, state: &mut SandboxState) -> bool {
        let now = Instant::now();
        let touched = state.store.take_changed();
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
        let mut context =
            ControllerContext { state, timers: &mut self.timers, memory: &mut self.memory, now };
        reconcile(&mut context, &key);
        true
    }

    fn enqueue(&mut self, key: StoreKey) {
        if self.queued.insert(key.clone()) {
            self.queue.push_back(key);
        }
    }

    /// Enqueues the object and all objects that depend on it: its owner, the services of a pod, the pods that wait for
    /// a node, and its namespace while that is deleting.
    fn enqueue_touched(&mut self, state: &SandboxState, key: StoreKey, object: &ParsedObject) {
        let gone = state.store.object_at(&key).is_none();
        // an owner that goes waits for all that it owns, not only for what it controls
        for owner in object::list(object, &["metadata", "ownerReferences"]) {
            if (gone || owner["controller"] == true)
                && let Some(owner) = state.store.by_uid(owner["uid"].as_str().unwrap_or(""))
            {
                self.enqueue(owner);
            }
        }
        let home = StoreKey {
            resource: "namespaces".to_owned(),
            name: NamespacedName::new("", &key.name.namespace),
        };
        if state.store.object_at(&home).is_some_and(|home| object::is_deleting(home)) {
            self.enqueue(home);
        }
        if !matches!(key.resource.as_str(), "events" | "resourcequotas") {
            for quota in state.store.list("resourcequotas", Some(&key.name.namespace)) {
                self.enqueue(key_of("resourcequotas", quota));
            }
        }
        if key.resource == "nodes" {
            self.enqueue_node_pods(state, &key.name.name);
        }
        if key.resource == "pods" {
            let services = label_lookup::services_selecting(state, object);
            let concerned = services
                .into_iter()
                .chain(disruption_budget::budgets_of_pod(state, object))
                .chain(volume_claim::claims_of_pod(object));
            concerned.for_each(|key| self.enqueue(key));
        }
        if key.resource == custom::DEFINITIONS && gone {
            // its names are free for others
            for other in state.store.list(custom::DEFINITIONS, None) {
                self.enqueue(StoreKey { resource: key.resource.clone(), name: NamespacedName::of(other) });
            }
        }
        self.memory.adoptable.update(
            &key,
            object,
            state.store.stored_object(&key.resource, &key.name).is_some(),
        );
        if gone {
            self.memory.deleted_uids.push(object::uid(object).to_owned());
        }
        self.enqueue(key);
    }

    /// A node that comes, goes or changes concerns the pods on it, those that have none, and every
    /// DaemonSet.
    fn enqueue_node_pods(&mut self, state: &SandboxState, node: &str) {
        let concerned =
            |pod: &ParsedObject| object::text(pod, &["spec", "nodeName"]).is_none_or(|on| on == node);
        let pods = state.store.list("pods", None).filter(|pod| concerned(pod));
        let pods: Vec<StoreKey> = pods.map(|pod| key_of("pods", pod)).collect();
        let sets = state.store.list("daemonsets.apps", None).map(|set| key_of("daemonsets.apps", set));
        sets.chain(pods).for_each(|key| self.enqueue(key));
    }
}

fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey) {
    garbage_collector::collect_dependents_of_deleted(context);
    let Some(object) = context.state.store.object_at(key).cloned() else {
        context.memory.next_check.remove(key);
        context.clear_deadlines(key);
        if key.resource == "services" {
            endpoints::forget(context, key);
        }
        return;
    };
    if key.resource == custom::DEFINITIONS {
        return custom_definition::reconcile(context, key, &object);
    }
    match context.memory.retry_at.get(key) {
        Some(until) if *until > context.now => return,
        Some(_) => _ = context.memory.retry_at.remove(key),
        None => {}
    }
    if garbage_collector::reconcile_deletion(context, key, &object) {
        return;
    }
    adoption::adopt_matching(context, key, &object);
    match key.resource.as_str() {
        "deployments.apps" => deployment::reconcile(context, key, &object),
        "replicasets.apps" => replica_set::reconcile(context, key, &object),
        "statefulsets.apps" => stateful_set::reconcile(context, key, &object),
        "daemonsets.apps" => daemon_set::reconcile(context, key, &object),
        "jobs.batch" => job::reconcile(context, key, &object),
        "cronjobs.batch" => cron_job::reconcile(context, key, &object),
        "poddisruptionbudgets.policy" => disruption_budget::reconcile(context, key, &object),
        "horizontalpodautoscalers.autoscaling" => autoscaler::reconcile(context, key, &object),
        "services" => service::reconcile(context, key, &object),
        "ingresses.networking.k8s.io" => service::assign_load_balancer(context, key, &object),
        "persistentvolumes" => volume_claim::release_volume(context, key, &object),
        "persistentvolumeclaims" => volume_claim::reconcile(context, key, &object),
        "resourcequotas" => quota::reconcile(context, key, &object),
        "events" => event::expire(context, key, &object),
        "pods" if job_pods::release(context, key, &object) => {}
        "pods" => pod::reconcile(context, key, &object),
        "namespaces" => namespace::reconcile(context, key, &object),
        _ => {}
    }
}
