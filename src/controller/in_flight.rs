//! Work in flight: reconciliations and deletes that were started and have not ended.
//!
//! This registry is the only owner of that state. Its keys are targets and objects, so a task is found even after its cluster
//! reconnected or its app was removed and added again. So
//! - a target never has two reconciliations, and an object never two deletes;
//! - a cluster never has more of them than its limit, counted over all its connections;
//! - a stop waits for each of them.
//!
//! A cancelled task still runs to its end: only [`InFlight::end`] and [`InFlight::end_delete`] free its slot. Each operation
//! costs one lookup.

use std::collections::{BTreeMap, BTreeSet};

use tokio_util::sync::CancellationToken;

use crate::cluster::WritePermit;
use crate::fleet::Target;
use crate::model::{AppId, ClusterName, ObjectId};

/// Reconciliations at the same time on one cluster.
const MAX_RECONCILIATIONS: usize = 8;
/// Deletes at the same time on one cluster. A slow one does not block the others.
const MAX_DELETES: usize = 8;

/// An object on a cluster.
pub type ObjectKey = (ClusterName, ObjectId);

#[derive(Debug)]
pub struct InFlight {
    /// Allows tasks to write to clusters.
    permit: WritePermit,
    reconciliations: BTreeMap<Target, RunningReconciliation>,
    deletes: BTreeSet<ObjectKey>,
    /// The same tasks by cluster. A cluster without tasks has no entry.
    by_cluster: BTreeMap<ClusterName, ClusterTasks>,
    started: u64,
}

#[derive(Debug)]
struct RunningReconciliation {
    number: u64,
    cancelled: CancellationToken,
}

#[derive(Debug, Default)]
struct ClusterTasks {
    apps: BTreeSet<AppId>,
    deletes: usize,
}

#[derive(Debug)]
pub struct StartedReconciliation {
    /// Distinguishes it from other reconciliations of the target.
    pub number: u64,
    pub cancelled: CancellationToken,
}

impl InFlight {
    pub fn new(permit: WritePermit) -> Self {
        Self {
            permit,
            reconciliations: BTreeMap::new(),
            deletes: BTreeSet::new(),
            by_cluster: BTreeMap::new(),
            started: 0,
        }
    }

    /// Registers a reconciliation; `None` while another one of the target runs.
    pub fn start(&mut self, target: &Target) -> Option<StartedReconciliation> {
        if self.is_running(target) {
            return None;
        }
        self.started += 1;
        let (number, cancelled) = (self.started, self.permit.task_token());
        let entry = RunningReconciliation { number, cancelled: cancelled.clone() };
        self.reconciliations.insert(target.clone(), entry);
        self.by_cluster.entry(target.cluster.clone()).or_default().apps.insert(target.app.clone());
        Some(StartedReconciliation { number, cancelled })
    }

    /// Ends a reconciliation. Returns whether it was cancelled; `None` if it is not the running one.
    pub fn end(&mut self, target: &Target, number: u64) -> Option<bool> {
        if self.reconciliations.get(target)?.number != number {
            return None;
        }
        let ended = self.reconciliations.remove(target)?;
        self.decrement(&target.cluster, |on| {
            on.apps.remove(&target.app);
        });
        Some(ended.cancelled.is_cancelled())
    }

    /// Work in progress may still read, but starts no write any more.
    pub fn cancel(&self, target: &Target) {
        if let Some(reconciliation) = self.reconciliations.get(target) {
            reconciliation.cancelled.cancel();
        }
    }

    pub fn cancel_cluster(&self, cluster: &ClusterName) {
        for app in self.by_cluster.get(cluster).into_iter().flat_map(|on| &on.apps) {
            self.cancel(&Target { app: app.clone(), cluster: cluster.clone() });
        }
    }

    pub fn cancel_all(&self) {
        self.reconciliations.values().for_each(|it| it.cancelled.cancel());
    }

    /// The process stops: no task starts a write any more, deletes and later tasks included.
    pub fn stop(&self) {
        self.permit.revoke();
    }

    pub fn is_running(&self, target: &Target) -> bool {
        self.reconciliations.contains_key(target)
    }

    pub fn has_free_slot(&self, cluster: &ClusterName) -> bool {
        self.by_cluster.get(cluster).is_none_or(|on| on.apps.len() < MAX_RECONCILIATIONS)
    }

    /// Registers a delete or a release, and returns its cancellation; `None` while another one of the object runs.
    pub fn start_delete(&mut self, object: &ObjectKey) -> Option<CancellationToken> {
        if !self.deletes.insert(object.clone()) {
            return None;
        }
        self.by_cluster.entry(object.0.clone()).or_default().deletes += 1;
        Some(self.permit.task_token())
    }

    pub fn end_delete(&mut self, object: &ObjectKey) {
        if self.deletes.remove(object) {
            self.decrement(&object.0, |on| on.deletes -= 1);
        }
    }

    pub fn is_deleting(&self, object: &ObjectKey) -> bool {
        self.deletes.contains(object)
    }

    pub fn has_deletes(&self) -> bool {
        !self.deletes.is_empty()
    }

    pub fn free_delete_slots(&self, cluster: &ClusterName) -> usize {
        MAX_DELETES.saturating_sub(self.by_cluster.get(cluster).map_or(0, |on| on.deletes))
    }

    pub fn is_idle(&self) -> bool {
        self.by_cluster.is_empty()
    }

    fn decrement(&mut self, cluster: &ClusterName, ended: impl FnOnce(&mut ClusterTasks)) {
        let Some(on) = self.by_cluster.get_mut(cluster) else { return };
        ended(on);
        if on.apps.is_empty() && on.deletes == 0 {
            self.by_cluster.remove(cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(app: &str, cluster: &str) -> Target {
        Target { app: AppId::new("shop", app), cluster: ClusterName::from(cluster) }
    }

    fn object(cluster: &str, name: &str) -> ObjectKey {
        (ClusterName::from(cluster), ObjectId::new("", "ConfigMap", Some("shop"), name))
    }

    fn registry() -> (WritePermit, InFlight) {
        let process = WritePermit::default();
        let in_flight = InFlight::new(process.child());
        (process, in_flight)
    }

    #[test]
    fn target_has_one_reconciliation_at_a_time() {
        let (_, mut in_flight) = registry();
        let pay = target("pay", "one");
        let first = in_flight.start(&pay).expect("none is under way").number;
        assert!(in_flight.start(&pay).is_none());
        assert!(in_flight.start(&target("pay", "two")).is_some(), "another cluster is another target");
        in_flight.cancel(&pay);
        assert!(in_flight.start(&pay).is_none(), "a cancelled task is still under way");
        assert_eq!(in_flight.end(&pay, first + 100), None, "it was not started");
        assert!(in_flight.is_running(&pay));
        assert_eq!(in_flight.end(&pay, first), Some(true));
        assert_eq!(in_flight.end(&pay, first), None, "it has come back already");
        let second = in_flight.start(&pay).expect("the first has come back").number;
        assert_eq!(in_flight.end(&pay, first), None, "the second one is under way");
        assert_eq!(in_flight.end(&pay, second), Some(false));
    }

    #[test]
    fn limits_are_counted_by_cluster_and_kind() {
        let (_, mut in_flight) = registry();
        let (one, two) = (ClusterName::from("one"), ClusterName::from("two"));
        let names: Vec<String> = (0..MAX_RECONCILIATIONS).map(|number| format!("app-{number}")).collect();
        let mut numbers = Vec::new();
        for name in &names {
            assert!(in_flight.has_free_slot(&one));
            numbers.extend(in_flight.start(&target(name, "one")).map(|it| it.number));
            in_flight.cancel_cluster(&one);
        }
        assert!(!in_flight.has_free_slot(&one) && in_flight.has_free_slot(&two));
        assert_eq!(in_flight.free_delete_slots(&one), MAX_DELETES);
        for name in &names {
            in_flight.start_delete(&object("one", name)).expect("none is under way");
            assert!(in_flight.start_delete(&object("one", name)).is_none());
        }
        assert_eq!((in_flight.free_delete_slots(&one), in_flight.free_delete_slots(&two)), (0, MAX_DELETES));
        in_flight.end_delete(&object("one", "app-3"));
        in_flight.end_delete(&object("one", "app-3"));
        assert_eq!(in_flight.free_delete_slots(&one), 1);
        assert!(!in_flight.is_deleting(&object("one", "app-3")));
        assert!(!in_flight.has_free_slot(&one), "a delete has no place of a reconciliation");
        assert_eq!(in_flight.end(&target("app-0", "one"), numbers[0]), Some(true));
        assert!(in_flight.has_free_slot(&one));
    }

    #[test]
    fn idle_only_when_all_tasks_ended() {
        let (_, mut in_flight) = registry();
        assert!(in_flight.is_idle());
        let pay = in_flight.start(&target("pay", "one")).expect("started").number;
        in_flight.start_delete(&object("one", "web")).expect("started");
        in_flight.cancel_all();
        assert_eq!(in_flight.end(&target("pay", "one"), pay), Some(true));
        assert!(!in_flight.is_idle() && in_flight.has_deletes());
        in_flight.end_delete(&object("one", "web"));
        assert!(in_flight.is_idle() && !in_flight.has_deletes());
    }

    #[test]
    fn cancel_reaches_only_its_tasks() {
        type Cancel = fn(&InFlight, &WritePermit);
        // The cancelled ones among pay on one, pay on two, cart on two and a delete on two.
        let cases: [(&str, Cancel, [bool; 4]); 6] = [
            ("a target", |it, _| it.cancel(&target("pay", "one")), [true, false, false, false]),
            ("no task", |it, _| it.cancel(&target("cart", "one")), [false; 4]),
            ("a cluster", |it, _| it.cancel_cluster(&ClusterName::from("two")), [false, true, true, false]),
            ("all", |it, _| it.cancel_all(), [true, true, true, false]),
            ("the stop", |it, _| it.stop(), [true; 4]),
            ("the permit", |_, process| process.revoke(), [true; 4]),
        ];
        for (what, cancel, expected) in cases {
            let (process, mut in_flight) = registry();
            let targets = [target("pay", "one"), target("pay", "two"), target("cart", "two")];
            let mut tasks: Vec<CancellationToken> =
                targets.iter().filter_map(|it| Some(in_flight.start(it)?.cancelled)).collect();
            tasks.extend(in_flight.start_delete(&object("two", "web")));
            cancel(&in_flight, &process);
            let cancelled: Vec<bool> = tasks.iter().map(CancellationToken::is_cancelled).collect();
            assert_eq!(cancelled, expected, "{what}");
            assert!(what == "the permit" || !process.is_revoked(), "{what}");
        }
    }
}
