//! PersistentVolumeClaims whose storage class binds them only when a pod uses them.
//!
//! The claim does not show this; its storage class does. The class is read only for an unbound claim that no running workload of
//! its app uses, once per connection to a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::cluster_entry::ClusterEntry;
use super::event::{ClusterNews, Event};
use super::state::ControllerState;
use super::target_entry::TargetEntry;
use crate::cluster::Client;
use crate::fleet::Target;
use crate::health;
use crate::model::{GroupVersionKind, HealthStatus, LiveObject, ObjectId, RenderedObject};

/// Most claims are bound within this time.
const CLASS_READ_DELAY: Duration = Duration::from_secs(1);
/// A class that could not be read is read again after this time.
const CLASS_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Detail of the phase for such a claim.
pub const IDLE_CLAIM_MESSAGE: &str =
    "Suspended, its storage class waits for the first consumer, and no running workload of its app uses it";

/// When claims of a storage class are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeBindingMode {
    Immediate,
    WaitForFirstConsumer,
}

#[derive(Clone, Copy, Debug)]
enum StorageClassState {
    Unread { due: Instant },
    Reading,
    Read(VolumeBindingMode),
}

/// The unbound claims of a cluster, and the known storage classes.
#[derive(Debug, Default)]
pub struct UnboundClaims {
    claims: BTreeMap<ObjectId, Arc<str>>,
    classes: BTreeMap<Arc<str>, StorageClassState>,
}

impl UnboundClaims {
    pub fn note(&mut self, id: &ObjectId, object: &Value) {
        match health::unbound_class(object) {
            Some(class) => {
                self.claims.insert(id.clone(), class.into());
            }
            None => self.remove(id),
        }
    }

    pub fn remove(&mut self, id: &ObjectId) {
        self.claims.remove(id);
    }

    pub fn retain(&mut self, stays: impl Fn(&ObjectId) -> bool) {
        self.claims.retain(|id, _| stays(id));
    }

    /// A new connection may lead to a cluster with other classes.
    pub fn clear_classes(&mut self) {
        self.classes.clear();
    }

    /// `None`: the class could not be read.
    pub fn note_class(&mut self, class: Arc<str>, binding: Option<VolumeBindingMode>, now: Instant) {
        let state = binding
            .map_or(StorageClassState::Unread { due: now + CLASS_RETRY_DELAY }, StorageClassState::Read);
        self.classes.insert(class, state);
    }

    pub fn claims_of_class(&self, class: &str) -> impl Iterator<Item = &ObjectId> {
        self.claims.iter().filter(move |(_, it)| ***it == *class).map(|(id, _)| id)
    }

    fn waits_for_consumer(&self, id: &ObjectId) -> bool {
        let class = self.claims.get(id).and_then(|class| self.classes.get(class));
        matches!(class, Some(StorageClassState::Read(VolumeBindingMode::WaitForFirstConsumer)))
    }

    /// The class must be read, unless the claim is in use.
    fn is_of_unread_class(&self, id: &ObjectId) -> bool {
        self.claims.get(id).is_some_and(|class| {
            matches!(self.classes.get(class), None | Some(StorageClassState::Unread { .. }))
        })
    }

    /// The class that must be read for a claim, and the time of the read.
    fn unread_class(&mut self, id: &ObjectId, now: Instant) -> Option<(Arc<str>, Instant)> {
        let class = self.claims.get(id)?;
        let state = self
            .classes
            .entry(Arc::clone(class))
            .or_insert(StorageClassState::Unread { due: now + CLASS_READ_DELAY });
        match state {
            StorageClassState::Unread { due } => Some((Arc::clone(class), *due)),
            StorageClassState::Reading | StorageClassState::Read(_) => None,
        }
    }
}

/// The claims of a render, with the workloads that use them. Computed once per render.
#[derive(Debug, Default)]
pub struct ClaimConsumers {
    consumers: BTreeMap<ObjectId, Vec<ClaimConsumer>>,
}

#[derive(Debug)]
struct ClaimConsumer {
    id: ObjectId,
    /// It was not rendered with zero replicas.
    wants_pods: bool,
}

impl ClaimConsumers {
    pub fn of(objects: &[RenderedObject]) -> Self {
        let claims = objects.iter().map(|object| &object.id).filter(|id| is_claim(id));
        let claims: BTreeMap<(Option<&str>, &str), &ObjectId> =
            claims.map(|id| ((id.namespace.as_deref(), &*id.name), id)).collect();
        let mut consumers: BTreeMap<ObjectId, Vec<ClaimConsumer>> = BTreeMap::new();
        // The Jobs of a CronJob may never run.
        let users = objects
            .iter()
            .filter(|object| !claims.is_empty() && !is_claim(&object.id) && &*object.id.kind != "CronJob");
        for object in
            users.filter(|object| object.body.contains_text("laim") || object.body.contains_text("LAIM"))
        {
            let fields = object.body.fields();
            let mut named = BTreeSet::new();
            note_claims(&fields, &mut named);
            let namespace = object.id.namespace.as_deref();
            for claim in named.into_iter().filter_map(|name| claims.get(&(namespace, name))) {
                let wants_pods = fields.pointer("/spec/replicas") != Some(&Value::from(0));
                let consumer = ClaimConsumer { id: object.id.clone(), wants_pods };
                consumers.entry((*claim).clone()).or_default().push(consumer);
            }
        }
        Self { consumers }
    }

    fn is_in_use(&self, claim: &ObjectId, cluster: &ClusterEntry) -> bool {
        let live = |consumer: &ClaimConsumer| cluster.observation.objects.get(&consumer.id).map(Arc::as_ref);
        let consumers = self.consumers.get(claim);
        consumers.into_iter().flatten().any(|consumer| consumer.may_run(live(consumer)))
    }
}

impl ClaimConsumer {
    /// Whether it has pods or will have some. A workload that is not there yet will.
    fn may_run(&self, live: Option<&LiveObject>) -> bool {
        let Some(live) = live else { return self.wants_pods };
        let has_ended = &*self.id.kind == "Job"
            && matches!(live.health.status, HealthStatus::Current | HealthStatus::Failed);
        match live.pods {
            _ if live.health.status == HealthStatus::Suspended || has_ended => false,
            Some(pods) => pods.desired > 0,
            None => self.wants_pods,
        }
    }
}

fn is_claim(id: &ObjectId) -> bool {
    id.group.is_empty() && &*id.kind == "PersistentVolumeClaim"
}

/// Claims that fields name: `claimName` of a pod's volume, `existingClaim` of a custom kind.
fn note_claims<'f>(value: &'f Value, named: &mut BTreeSet<&'f str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(name) if key.to_ascii_lowercase().contains("claim") => {
                        named.insert(name);
                    }
                    _ => note_claims(value, named),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| note_claims(item, named)),
        _ => {}
    }
}

/// The claim is unbound because its class waits for a pod, and no running workload of the app uses it.
pub fn is_idle_claim(claim: &ObjectId, entry: &TargetEntry, cluster: &ClusterEntry) -> bool {
    cluster.unbound_claims.waits_for_consumer(claim) && !entry.claim_uses().is_in_use(claim, cluster)
}

impl ControllerState {
    /// Reads the storage class of an unused unbound claim. Returns the time of the next read.
    pub(super) fn read_storage_class(&mut self, id: &Target, now: Instant) -> Option<Instant> {
        let entry = self.targets.get(id)?;
        let rendered = entry.render.as_ref().ok()?;
        let cluster = self.clusters.get_mut(&id.cluster).filter(|cluster| cluster.is_ready())?;
        if cluster.unbound_claims.claims.is_empty() {
            return None;
        }
        let idle: Vec<&ObjectId> = rendered
            .objects
            .iter()
            .map(|object| &object.id)
            .filter(|id| {
                cluster.unbound_claims.is_of_unread_class(id) && !entry.claim_uses().is_in_use(id, cluster)
            })
            .collect();
        let unread = idle.into_iter().filter_map(|id| cluster.unbound_claims.unread_class(id, now));
        let (class, due) = unread.min_by_key(|(_, due)| *due)?;
        let due = cluster.throttled_until(now).map_or(due, |until| until.max(due));
        if due > now {
            return Some(due);
        }
        cluster.unbound_claims.classes.insert(Arc::clone(&class), StorageClassState::Reading);
        let (client, epoch, name) = (cluster.client.clone()?, cluster.epoch, id.cluster.clone());
        let resource =
            cluster.catalog.get(&GroupVersionKind::new("storage.k8s.io", "v1", "StorageClass")).cloned();
        let events = self.events.clone();
        tokio::spawn(async move {
            let binding = match resource {
                Some(resource) => read_binding_mode(&client, &resource, &class).await,
                None => None,
            };
            let news = ClusterNews::StorageClass { class, binding };
            let _ = events.send(Event::Cluster { cluster: name, epoch, news }).await;
        });
        None
    }
}

async fn read_binding_mode(
    client: &Client,
    resource: &crate::cluster::Resource,
    class: &str,
) -> Option<VolumeBindingMode> {
    let id = ObjectId::new("storage.k8s.io", "StorageClass", None, class);
    match client.get(resource, &id).await {
        Ok(found) => {
            let mode = found?.get("volumeBindingMode")?.as_str()?.to_owned();
            Some(if mode == "WaitForFirstConsumer" {
                VolumeBindingMode::WaitForFirstConsumer
            } else {
                VolumeBindingMode::Immediate
            })
        }
        Err(error) => {
            tracing::debug!(%error, class, "the storage class could not be read");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn workloads_use_claims_they_name() {
        let object = |kind: &str, namespace: &str, name: &str, spec: Value| {
            let version = if kind == "PersistentVolumeClaim" { "v1" } else { "apps/v1" };
            let metadata = json!({"name": name, "namespace": namespace});
            let body = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
            RenderedObject::for_test(&body, None)
        };
        let claim =
            |name: &str| object("PersistentVolumeClaim", "shop", name, json!({"storageClassName": "late"}));
        let mounts = |name: &str| json!({"template": {"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": name}}]}}});
        let objects = [
            claim("data"),
            claim("other"),
            object("Deployment", "shop", "web", mounts("data")),
            object("Deployment", "till", "web", mounts("data")),
            object("CronJob", "shop", "nightly", mounts("data")),
            object("Deployment", "shop", "words", json!({"note": "data", "claims": ["data"]})),
            object("Database", "shop", "db", json!({"replicas": 0, "storage": {"existingClaim": "other"}})),
            object("Deployment", "shop", "elsewhere", mounts("unknown")),
        ];
        let uses = ClaimConsumers::of(&objects);
        let told: Vec<(&str, Vec<(&str, bool)>)> = uses
            .consumers
            .iter()
            .map(|(claim, consumers)| {
                (&*claim.name, consumers.iter().map(|it| (&*it.id.name, it.wants_pods)).collect())
            })
            .collect();
        assert_eq!(told, [("data", vec![("web", true)]), ("other", vec![("db", false)])]);
    }
}
