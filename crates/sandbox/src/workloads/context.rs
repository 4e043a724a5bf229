//! What every controller gets: the locked state, requeue timers and memory between reconciles.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::virtual_pods;
use crate::cluster::State;
use crate::object;
use crate::registry::ResourceKind;
use crate::status::ApiError;
use crate::store::{Key, Object};
use crate::verbs::{self, Caller, DeleteOptions, Update};
use crate::wire::route::Target;

/// One reconcile of one object.
pub(super) struct Context<'c> {
    pub(super) state: &'c mut State,
    pub(super) timers: &'c mut Timers,
    pub(super) memory: &'c mut Memory,
    pub(super) now: Instant,
}

/// When each object is reconciled again.
#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<(Instant, Key)>);

impl Timers {
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    pub(super) fn cancel(&mut self, at: Instant, key: &Key) {
        self.0.remove(&(at, key.clone()));
    }

    pub(super) fn due(&mut self, now: Instant) -> Vec<Key> {
        let mut due = Vec::new();
        while self.0.first().is_some_and(|(at, _)| *at <= now) {
            due.extend(self.0.pop_first().map(|(_, key)| key));
        }
        due
    }
}

/// The memory of controllers between reconciles, by uid; a real controller loses it in a restart.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) pods: HashMap<String, super::kubelet::Run>,
    /// When a deployment last progressed.
    pub(super) progress: HashMap<String, Instant>,
    /// Deadline checks of progressing deployments.
    pub(super) deadlines: BTreeMap<Key, Vec<Instant>>,
    /// How many pods of a job have failed, and since when.
    pub(super) job_failures: HashMap<String, (i64, Instant)>,
    /// When the scheduler last failed to place a pod.
    pub(super) tries: HashMap<String, Instant>,
    /// Objects that are not reconciled before this time.
    pub(super) waits: BTreeMap<Key, Instant>,
    /// The next reconcile of an object without a change.
    pub(super) pending: BTreeMap<Key, Instant>,
    /// How often a controller failed at an object in a row.
    pub(super) failures: BTreeMap<Key, u32>,
    pub(super) events: super::event::EventLog,
    /// By job: the last reconciled generation, and when its pods' changes are due.
    pub(super) batches: HashMap<String, (i64, Option<Instant>)>,
    pub(super) orphans: super::adoption::Orphans,
    /// Owners that have searched for objects to adopt.
    pub(super) seen: BTreeSet<String>,
    /// Deleted objects whose dependents are still to be checked.
    pub(super) gone: Vec<String>,
}

impl Context<'_> {
    pub(super) fn again(&mut self, key: &Key, after: Duration) {
        self.again_at(key, self.now + after);
    }

    pub(super) fn again_at(&mut self, key: &Key, at: Instant) {
        self.timers.0.insert((at, key.clone()));
    }

    /// Nothing can be late any more.
    pub(super) fn forget_deadlines(&mut self, key: &Key) {
        for at in self.memory.deadlines.remove(key).unwrap_or_default() {
            self.timers.cancel(at, key);
        }
    }

    pub(super) fn kind(&self, resource: &str) -> Option<Arc<ResourceKind>> {
        self.state.registry.resource(resource).cloned()
    }

    /// The objects of a resource that `owner` controls, in name order.
    pub(super) fn owned(&self, owner: &Value, resource: &str) -> Vec<Object> {
        let uid = object::uid(owner);
        self.state
            .store
            .dependents(uid)
            .iter()
            .filter(|key| key.resource == resource)
            .filter_map(|key| self.state.store.at(key).cloned())
            .filter(|object| object::controller(object).is_some_and(|one| one["uid"] == uid))
            .collect()
    }

    /// Calls again after at most this long, with one timer however often it is asked.
    pub(super) fn again_once(&mut self, key: &Key, after: Duration) {
        let at = self.now + after;
        if self.memory.pending.get(key).is_none_or(|pending| *pending <= self.now || *pending > at) {
            self.memory.pending.insert(key.clone(), at);
            self.again_at(key, at);
        }
    }

    /// True once in a period; in between nothing needs to be done.
    pub(super) fn is_due(&mut self, key: &Key, period: Duration) -> bool {
        if self.memory.pending.get(key).is_some_and(|pending| *pending > self.now) {
            return false;
        }
        self.again_once(key, period);
        true
    }

    /// Calls again soon because a write was refused; until then nothing is done about the object.
    pub(super) fn retry(&mut self, key: &Key, after: Duration) {
        self.memory.waits.insert(key.clone(), self.now + after);
        self.again(key, after);
    }

    /// Calls again after a failure, each time after a longer wait.
    pub(super) fn retry_failed(&mut self, key: &Key) {
        let failures = self.memory.failures.entry(key.clone()).or_default();
        *failures += 1;
        let wait = Duration::from_millis(5) * 2_u32.pow((*failures - 1).min(17));
        self.retry(key, wait);
    }

    /// Creates an object as another caller than the controllers.
    pub(super) fn create_as(
        &mut self,
        caller: &Caller,
        resource: &str,
        namespace: &str,
        object: Value,
    ) -> Option<Object> {
        let kind = self.kind(resource)?;
        verbs::create(self.state, &kind, namespace, object, caller).ok()
    }

    pub(super) fn create(&mut self, resource: &str, namespace: &str, object: Value) -> Option<Object> {
        self.try_create(resource, namespace, object).ok()
    }

    pub(super) fn try_create(
        &mut self,
        resource: &str,
        namespace: &str,
        object: Value,
    ) -> Result<Object, ApiError> {
        let Some(kind) = self.kind(resource) else { return Err(ApiError::no_such_resource()) };
        if virtual_pods::are(self.state, resource) {
            return virtual_pods::create(self.state, namespace, object);
        }
        let made = verbs::create(self.state, &kind, namespace, object, &Caller::controller());
        made.inspect_err(|error| tracing::debug!(resource, %error, "failed to create"))
    }

    /// Changes an object with `change`; returns it as it is afterwards.
    pub(super) fn change(&mut self, key: &Key, change: impl FnOnce(&mut Value)) -> Option<Object> {
        self.write(key, "", &Caller::controller(), change)
    }

    pub(super) fn change_status(
        &mut self,
        key: &Key,
        caller: &Caller,
        change: impl FnOnce(&mut Value),
    ) -> Option<Object> {
        let live = self.state.store.at(key)?.clone();
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
        key: &Key,
        subresource: &str,
        caller: &Caller,
        change: impl FnOnce(&mut Value),
    ) -> Option<Object> {
        let live = self.state.store.at(key)?.clone();
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
        key: &Key,
        subresource: &str,
        caller: &Caller,
        live: Object,
        new: Value,
    ) -> Option<Object> {
        let kind = self.kind(&key.resource)?;
        if virtual_pods::are(self.state, &key.resource) {
            return virtual_pods::write(self.state, key, new);
        }
        let update = Update { live, new, subresource: subresource.to_owned() };
        let written = match subresource {
            "status" => update.tracked_status(self.state, &kind, caller),
            _ => update.tracked(self.state, &kind, caller),
        };
        written.inspect_err(|error| tracing::debug!(?key, %error, "failed to update")).ok()
    }

    /// Removes a finalizer.
    pub(super) fn drop_finalizer(&mut self, key: &Key, finalizer: &str) {
        self.change(key, |object| object::drop_finalizer(object, finalizer));
    }

    pub(super) fn delete(&mut self, key: &Key, options: &DeleteOptions) {
        let Some(kind) = self.kind(&key.resource) else { return };
        let target = Target {
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

pub(super) fn key_of(resource: &str, object: &Value) -> Key {
    Key { resource: resource.to_owned(), name: crate::store::ObjectName::of(object) }
}
