//! One reconcile of a deployment: its ReplicaSets, the decided status, and the writes.
//!
//! The real controller works on a cached copy. Its second status write in one reconcile is refused as outdated and
//! retried a little later. Clients see the resulting order of writes, so it is reproduced here.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::controller_context::{ControllerContext, key_of};
use super::event_component::EventComponent;
use super::rolling_limits::RollingLimits;
use super::rolling_update;
use super::{deployment_replica_sets, template_hash};
use crate::object;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs::WriteCaller;

/// The first wait of a controller's queue after a refused write.
const REFUSED_RETRY: Duration = Duration::from_millis(5);

pub(super) struct DeploymentRollout<'r, 'c> {
    pub(super) context: &'r mut ControllerContext<'c>,
    pub(super) key: &'r StoreKey,
    /// The deployment in this reconcile, with the decided status.
    pub(super) deployment: ParsedObject,
    /// The ReplicaSet of the present template.
    pub(super) new_set: Option<ParsedObject>,
    /// The others, oldest first.
    pub(super) old_sets: Vec<ParsedObject>,
    /// The status was written in this look already.
    pub(super) status_written: bool,
    pub(super) scaled: bool,
}

impl<'r, 'c> DeploymentRollout<'r, 'c> {
    pub(super) fn begin(
        context: &'r mut ControllerContext<'c>,
        key: &'r StoreKey,
        deployment: &ParsedObject,
    ) -> Self {
        let (new, old) = deployment_replica_sets::new_and_old_sets(context, deployment);
        Self {
            context,
            key,
            deployment: deployment.clone(),
            new_set: new,
            old_sets: old,
            status_written: false,
            scaled: false,
        }
    }

    pub(super) fn desired(&self) -> i64 {
        object::integer(&self.deployment, &["spec", "replicas"])
    }

    pub(super) fn limits(&self) -> RollingLimits {
        RollingLimits::of(&self.deployment)
    }

    pub(super) fn has_deadline(&self) -> bool {
        object::integer(&self.deployment, &["spec", "progressDeadlineSeconds"]) != i64::from(i32::MAX)
    }

    pub(super) fn sets(&self) -> impl Iterator<Item = &ParsedObject> {
        self.old_sets.iter().chain(&self.new_set)
    }

    /// Writes what was decided about the status. `may_lose` is false where the real controller's
    /// second write is usually late enough to see the same state.
    pub(super) fn write_status(&mut self, may_lose: bool) {
        if self.status_written && may_lose {
            self.context.retry(self.key, REFUSED_RETRY);
            return;
        }
        let annotations = object::value_at(&self.deployment, &["metadata", "annotations"]);
        let live = self.context.state.store.object_at(self.key);
        let is_said = live.is_some_and(|live| {
            live["status"] == self.deployment["status"]
                && (annotations.is_none()
                    || annotations == object::value_at(live, &["metadata", "annotations"]))
        });
        if is_said {
            return;
        }
        let before = live.map(|live| object::revision(live));
        let (status, annotations) = (self.deployment["status"].clone(), annotations.cloned());
        let written = self.context.write(self.key, "status", &WriteCaller::controller(), |live| {
            live["status"] = status;
            if let Some(annotations) = annotations {
                object::set(live, &["metadata", "annotations"], annotations);
            }
        });
        self.status_written |= written.map(|live| object::revision(&live)) != before;
    }

    /// The present template's ReplicaSet, created when it is missing and `create`. The newest
    /// template has the highest revision, also after going back to an old one.
    pub(super) fn settle_revision(&mut self, create: bool) {
        let newest_old =
            self.old_sets.iter().map(|set| deployment_replica_sets::revision_of(set)).max().unwrap_or(0);
        let revision = newest_old.saturating_add(1);
        match self.new_set.clone() {
            Some(set) => self.keep_revision(&set, revision),
            None if create => self.create_set(revision),
            None => {}
        }
    }

    fn keep_revision(&mut self, set: &ParsedObject, revision: i64) {
        let is_annotated = deployment_replica_sets::is_annotated(&self.deployment, set, revision);
        let ready_after = object::integer(&self.deployment, &["spec", "minReadySeconds"]);
        if !is_annotated || object::integer(set, &["spec", "minReadySeconds"]) != ready_after {
            let mut wanted = (**set).clone();
            deployment_replica_sets::annotate(&self.deployment, &mut wanted, revision, true);
            if ready_after == 0 {
                object::take(&mut wanted, &["spec", "minReadySeconds"]);
            } else {
                object::set(&mut wanted, &["spec", "minReadySeconds"], ready_after);
            }
            let key = key_of("replicasets.apps", set);
            if let Some(set) = self.context.change(&key, |live| *live = wanted) {
                self.new_set = Some(set);
            }
        }
        let mut decided = match self
            .new_set
            .as_ref()
            .and_then(|set| object::annotation(set, deployment_replica_sets::REVISION))
        {
            Some(text) => {
                let text = text.to_owned();
                self.annotate_revision(&text)
            }
            None => false,
        };
        if self.has_deadline() && object::condition(&self.deployment, "Progressing").is_none() {
            let message = format!("Found new replica set \"{}\"", object::name(set));
            self.set_progressing("True", "FoundNewReplicaSet", &message);
            decided = true;
        }
        if decided {
            self.write_status(true);
        }
    }

    fn annotate_revision(&mut self, revision: &str) -> bool {
        if object::annotation(&self.deployment, deployment_replica_sets::REVISION) == Some(revision) {
            return false;
        }
        let deployment = Arc::make_mut(&mut self.deployment);
        object::set(deployment, &["metadata", "annotations", deployment_replica_sets::REVISION], revision);
        true
    }

    fn create_set(&mut self, revision: i64) {
        let total: i64 = self.old_sets.iter().map(|set| rolling_update::replicas(set)).sum();
        let size = rolling_update::new_size(&self.deployment, 0, total);
        let collisions = object::integer(&self.deployment, &["status", "collisionCount"]);
        let hash = template_hash(&self.deployment["spec"]["template"], collisions);
        let set = deployment_replica_sets::new_set(&self.deployment, &hash, size, revision);
        let name = object::name(&set).to_owned();
        let namespace = object::namespace(&self.deployment).to_owned();
        match self.context.try_create("replicasets.apps", &namespace, set) {
            Ok(made) => self.new_set = Some(made),
            Err(error) if error.reason == "AlreadyExists" => {
                // the name is taken by a set of another template: the next name is tried
                let deployment = Arc::make_mut(&mut self.deployment);
                object::set(deployment, &["status", "collisionCount"], collisions + 1);
                return self.write_status(true);
            }
            Err(error) => {
                let message = format!("Failed to create new replica set \"{name}\": {error}");
                if self.has_deadline() {
                    self.set_progressing("False", "ReplicaSetCreateError", &message);
                    self.write_status(true);
                }
                let about = self.deployment.clone();
                self.context.event(
                    &about,
                    EventComponent::Deployment,
                    "Warning",
                    "ReplicaSetCreateError",
                    &message,
                );
                return self.context.retry(self.key, Duration::from_secs(1));
            }
        }
        if size > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {size}");
            let about = self.deployment.clone();
            self.context.event(&about, EventComponent::Deployment, "Normal", "ScalingReplicaSet", &message);
        }
        self.annotate_revision(&revision.to_string());
        if self.has_deadline() {
            self.set_progressing(
                "True",
                "NewReplicaSetCreated",
                &format!("Created new replica set \"{name}\""),
            );
        }
        self.write_status(true);
    }

    /// Sets a ReplicaSet's size and its annotations of the desired size.
    pub(super) fn scale(&mut self, set: &ParsedObject, size: i64) {
        let (desired, most) = (self.desired(), self.desired() + self.limits().surge);
        let present = rolling_update::replicas(set);
        if present == size && deployment_replica_sets::has_size_annotations(set, desired, most) {
            return;
        }
        let key = key_of("replicasets.apps", set);
        let Some(_) = self.context.change(&key, |set| {
            set["spec"]["replicas"] = json!(size);
            deployment_replica_sets::set_size_annotations(set, desired, most);
        }) else {
            return;
        };
        if present != size {
            self.scaled = true;
            let way = if present < size { "up" } else { "down" };
            let message = format!("Scaled {way} replica set {} from {present} to {size}", object::name(set));
            let about = self.deployment.clone();
            self.context.event(&about, EventComponent::Deployment, "Normal", "ScalingReplicaSet", &message);
        }
    }
}
