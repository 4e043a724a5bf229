//! What every controller gets: the locked state, requeue timers and memory between reconciles.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::adoptable_objects::AdoptableObjects;
use super::event_recorder::EventRecorderState;
use super::pod_run::PodRun;
use super::virtual_pods;
use crate::api_error::ApiError;
use crate::cluster::SandboxState;
use crate::object;
use crate::registry::ResourceKind;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs::{self, ObjectUpdate, RequestDeleteOptions, WriteCaller};
use crate::wire::route::RequestTarget;

/// One reconcile of one object.
pub(super) struct ControllerContext<'c> {
    pub(super) state: &'c mut SandboxState,
    pub(super) timers: &'c mut RequeueTimers,
    pub(super) memory: &'c mut ControllerMemory,
    pub(super) now: Instant,
}

/// When each object is reconciled again.
#[derive(Debug, Default)]
pub(super) struct RequeueTimers(BTreeSet<(Instant, StoreKey)>);

impl RequeueTimers {
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    pub(super) fn cancel(&mut self, at: Instant, key: &StoreKey) {
        self.0.remove(&(at, key.clone()));
    }

    pub(super) fn due(&mut self, now: Instant) -> Vec<StoreKey> {
        let mut due = Vec::new();
        while self.0.first().is_some_and(|(at, _)| *at <= now) {
            due.extend(self.0.pop_first().map(|(_, key)| key));
        }
        due
    }
}

/// The memory of controllers between reconciles, by uid; a real controller loses it in a restart.
#[derive(Debug, Default)]
pub(super) struct ControllerMemory {
    pub(super) pod_runs: HashMap<String, PodRun>,
    /// When a deployment last progressed.
    pub(super) last_progress: HashMap<String, Instant>,
    /// Deadline checks of progressing deployments.
    pub(super) deadlines: BTreeMap<StoreKey, Vec<Instant>>,
    /// How many pods of a job have failed, and since when.
    pub(super) job_failures: HashMap<String, (i64, Instant)>,
    /// When the scheduler last failed to place a pod.
    pub(super) failed_scheduling: HashMap<String, Instant>,
    /// Objects that are not reconciled before this time.
    pub(super) retry_at: BTreeMap<StoreKey, Instant>,
    /// The next reconcile of an object without a change.
    pub(super) next_check: BTreeMap<StoreKey, Instant>,
    /// How often a controller failed at an object in a row.
    pub(super) failures: BTreeMap<StoreKey, u32>,
    pub(super) events: EventRecorderState,
    /// By job: the last reconciled generation, and when its pods' changes are due.
    pub(super) job_batches: HashMap<String, (i64, Option<Instant>)>,
    pub(super) adoptable: AdoptableObjects,
    /// Owners that have searched for objects to adopt.
    pub(super) adoption_done: BTreeSet<String>,
    /// Deleted objects whose dependents are still to be checked.
    pub(super) deleted_uids: Vec<String>,
}

impl ControllerContext<'_> {
    pub(super) fn requeue_after(&mut self, key: &StoreKey, after: Duration) {
        self.requeue_at(key, self.now + after);
    }

    pub(super) fn requeue_at(&mut self, key: &StoreKey, at: Instant) {
        self.timers.0.insert((at, key.clone()));
    }

    /// Nothing can be late any more.
    pub(super) fn clear_deadlines(&mut self, key: &StoreKey) {
        for at in self.memory.deadlines.remove(key).unwrap_or_default() {
            self.timers.cancel(at, key);
        }
    }

    pub(super) fn kind(&self, resource: &str) -> Option<Arc<ResourceKind>> {
        self.state.registry.resource(resource).cloned()
    }

    /// The objects of a resource that `owner` controls, in name order.
    pub(super) fn owned(&self, owner: &Value, resource: &str) -> Vec<ParsedObject> {
        let uid = object::uid(owner);
        self.state
            .store
            .dependents(uid)
            .iter()
            .filter(|key| key.resource == resource)
            .filter_map(|key| self.state.store.object_at(key).cloned())
            .filter(|object| object::controller(object).is_some_and(|one| one["uid"] == uid))
            .collect()
    }

    /// Calls again after at most this long, with one timer however often it is asked.
    pub(super) fn requeue_once(&mut self, key: &StoreKey, after: Duration) {
        let at = self.now + after;
        if self.memory.next_check.get(key).is_none_or(|pending| *pending <= self.now || *pending > at) {
            self.memory.next_check.insert(key.clone(), at);
            self.requeue_at(key, at);
        }
    }

    /// True once in a period; in between nothing needs to be done.
    pub(super) fn is_due(&mut self, key: &StoreKey, period: Duration) -> bool {
        if self.memory.next_check.get(key).is_some_and(|pending| *pending > self.now) {
            return false;
        }
        self.requeue_once(key, period);
        true
    }

    /// Calls again soon because a write was refused; until then nothing is done about the object.
    pub(super) fn retry(&mut self, key: &StoreKey, after: Duration) {
        self.memory.retry_at.insert(key.clone(), self.now + after);
        self.requeue_after(key, after);
    }

    /// Calls again after a failure, each time after a longer wait.
    pub(super) fn retry_with_backoff(&mut self, key: &StoreKey) {
        let failures = self.memory.failures.entry(key.clone()).or_default();
        *failures += 1;
        let wait = Duration::from_millis(5) * 2_u32.pow((*failures - 1).min(17));
        self.retry(key, wait);
    }

    /// Creates an object as another caller than the controllers.
    pub(super) fn create_as(
        &mut self,
        caller: &WriteCaller,
        resource: &str,
        namespace: &str,
        object: Value,
    ) -> Option<ParsedObject> {
        let kind = self.kind(resource)?;
        verbs::create(self.state, &kind, namespace, object, caller).ok()
    }

    pub(super) fn create(&mut self, resource: &str, namespace: &str, object: Value) -> Option<ParsedObject> {
        self.try_create(resource, namespace, object).ok()
    }

    pub(super) fn try_create(
        &mut self,
        resource: &str,
        namespace: &str,
        object: Value,
    ) -> Result<ParsedObject, ApiError> {
        let Some(kind) = self.kind(resource) else { return Err(ApiError::no_such_resource()) };
        if virtual_pods::is_virtual(self.state, resource) {
            return virtual_pods::create(self.state, namespace, object);
        }
        let made = verbs::create(self.state, &kind, namespace, object, &WriteCaller::controller());
        made.inspect_err(|error| tracing::debug!(resource, %error, "failed to create"))
    }

    /// Changes an object with `change`; returns it as it is afterwards.
    pub(super) fn change(&mut self, key: &StoreKey, change: impl FnOnce(&mut Value)) -> Option<ParsedObject> {
        self.write(key, "", &WriteCaller::controller(), change)
    }

    pub(super) fn change_status(
        &mut self,
        key: &StoreKey,
        caller: &WriteCaller,
        change: impl FnOnce(&mut Value),
    ) -> Option<ParsedObject> {
        let live = self.state.store.object_at(key)?.clone();
        let before = live.get("status").unwrap_or(&Value::Null);
        let mut status = before.clone();
        change(&mut status);
        if status == *before {
            return Some(live);
        }
        let Value::Object(fields) = &*live else { return None };
        // the rest is copied only now: most looks change nothing
        let others = fields.iter().filter(|(name, _)| *name != "status");
        let mut new: Map<String, Value> = others.map(|(name, field)| (name.clone(), field.clone())).collect();
        new.insert("status".to_owned(), status);
        self.commit(key, "status", caller, live, Value::Object(new))
    }

    pub(super) fn write(
        &mut self,
        key: &StoreKey,
        subresource: &str,
        caller: &WriteCaller,
        change: impl FnOnce(&mut Value),
    ) -> Option<ParsedObject> {
        let live = self.state.store.object_at(key)?.clone();
        let mut new = (*live).clone();
        change(&mut new);
        if *live == new {
            return Some(live);
        }
        self.commit(key, subresource, caller, live, new)
    }

    /// Writes a changed copy of the live object.
    fn commit(
        &mut self,
        key: &StoreKey,
        subresource: &str,
        caller: &WriteCaller,
        live: ParsedObject,
        new: Value,
    ) -> Option<ParsedObject> {
        let kind = self.kind(&key.resource)?;
        if virtual_pods::is_virtual(self.state, &key.resource) {
            return virtual_pods::write(self.state, key, new);
        }
        let update = ObjectUpdate { live, new, subresource: subresource.to_owned() };
        let written = match subresource {
            "status" => update.store_tracked_status(self.state, &kind, caller),
            _ => update.store_tracked(self.state, &kind, caller),
        };
        written.inspect_err(|error| tracing::debug!(?key, %error, "failed to update")).ok()
    }

    /// Removes a finalizer.
    pub(super) fn drop_finalizer(&mut self, key: &StoreKey, finalizer: &str) {
        self.change(key, |object| object::drop_finalizer(object, finalizer));
    }

    pub(super) fn delete(&mut self, key: &StoreKey, options: &RequestDeleteOptions) {
        let Some(kind) = self.kind(&key.resource) else { return };
        let target = RequestTarget {
            kind,
            namespace: key.name.namespace.clone(),
            name: key.name.name.clone(),
            subresource: String::new(),
        };
        if let Err(error) = verbs::delete(self.state, &target, options) {
            tracing::debug!(?key, %error, "failed to delete");
        }
    }
}

pub(super) fn key_of(resource: &str, object: &Value) -> StoreKey {
    StoreKey { resource: resource.to_owned(), name: crate::store::NamespacedName::of(object) }
}
