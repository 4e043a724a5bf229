//! Volume claims whose storage class binds them only when a pod uses them.
//!
//! A claim does not say this itself: its storage class does. The class is read only when an unbound claim is left that no
//! running workload of its app uses, once for each connection to a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::cluster_entry::ClusterEntry;
use super::event::{ClusterNews, Event};
use super::world::World;
use crate::cluster::Client;
use crate::fleet::Target;
use crate::health;
use crate::model::{Kind, Live, ObjectId, Rendered, RenderedObject, Status};

/// Most claims are bound before this.
const READ_FIRST: Duration = Duration::from_secs(1);
/// A class that could not be read is read again after this.
const READ_AGAIN: Duration = Duration::from_secs(60);

/// What the phase of an app says of such a claim.
pub const IDLE: &str =
    "Suspended, its storage class waits for the first consumer, and no running workload of its app uses it";

/// When claims of a storage class are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    Immediate,
    FirstConsumer,
}

#[derive(Clone, Copy, Debug)]
enum Class {
    Unread { due: Instant },
    Reading,
    Read(Binding),
}

/// The claims of a cluster that are not bound, and what is known of their storage classes.
#[derive(Debug, Default)]
pub struct UnboundClaims {
    claims: BTreeMap<ObjectId, Arc<str>>,
    classes: BTreeMap<Arc<str>, Class>,
}

impl UnboundClaims {
    /// Takes in an object as it is now.
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

    /// The answer of a cluster; `None` when the class could not be read.
    pub fn note_class(&mut self, class: Arc<str>, binding: Option<Binding>, now: Instant) {
        let state = binding.map_or(Class::Unread { due: now + READ_AGAIN }, Class::Read);
        self.classes.insert(class, state);
    }

    fn waits_for_consumer(&self, id: &ObjectId) -> bool {
        let class = self.claims.get(id).and_then(|class| self.classes.get(class));
        matches!(class, Some(Class::Read(Binding::FirstConsumer)))
    }

    /// The class of a claim, when it has to be read, and from when on.
    fn unread_class(&mut self, id: &ObjectId, now: Instant) -> Option<(Arc<str>, Instant)> {
        let class = self.claims.get(id)?;
        let state = self.classes.entry(Arc::clone(class)).or_insert(Class::Unread { due: now + READ_FIRST });
        match state {
            Class::Unread { due } => Some((Arc::clone(class), *due)),
            Class::Reading | Class::Read(_) => None,
        }
    }
}

/// The claim is not bound because its class waits for a pod, and no running workload of the app would make one that uses it.
pub fn is_idle_claim(claim: &RenderedObject, rendered: &Rendered, cluster: &ClusterEntry) -> bool {
    cluster.claims.waits_for_consumer(&claim.id) && !is_in_use(&claim.id, rendered, cluster)
}

fn is_in_use(claim: &ObjectId, rendered: &Rendered, cluster: &ClusterEntry) -> bool {
    rendered.objects.iter().any(|object| {
        if object.id == *claim || object.id.namespace != claim.namespace || !object.body.mentions(&claim.name)
        {
            return false;
        }
        let (fields, live) = (object.body.fields(), cluster.observation.objects.get(&object.id));
        may_run(&fields, live.map(Arc::as_ref)) && names_claim(&fields, &claim.name)
    })
}

/// Whether a workload has pods now or is about to have some. One that is not there yet will be.
fn may_run(body: &Value, live: Option<&Live>) -> bool {
    // Its Jobs come later and may never come.
    if body["kind"] == "CronJob" || body["kind"] == "PersistentVolumeClaim" {
        return false;
    }
    let Some(live) = live else { return body.pointer("/spec/replicas") != Some(&Value::from(0)) };
    let has_ended = body["kind"] == "Job" && matches!(live.health.status, Status::Current | Status::Failed);
    match live.pods {
        _ if live.health.status == Status::Suspended || has_ended => false,
        Some(pods) => pods.desired > 0,
        None => body.pointer("/spec/replicas") != Some(&Value::from(0)),
    }
}

/// A field of a claim holds this name: `claimName` of a pod's volume, `existingClaim` of a custom kind.
fn names_claim(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let is_claim = value == name && key.to_ascii_lowercase().contains("claim");
            is_claim || names_claim(value, name)
        }),
        Value::Array(items) => items.iter().any(|item| names_claim(item, name)),
        _ => false,
    }
}

impl World {
    /// Reads the storage class of an unbound claim that nothing uses; returns when it is due.
    pub(super) fn read_storage_class(&mut self, id: &Target, now: Instant) -> Option<Instant> {
        let rendered = self.targets.get(id)?.render.as_ref().ok()?;
        let cluster = self.clusters.get_mut(&id.cluster).filter(|cluster| cluster.is_ready())?;
        if cluster.claims.claims.is_empty() {
            return None;
        }
        let idle: Vec<&ObjectId> = rendered
            .objects
            .iter()
            .map(|object| &object.id)
            .filter(|id| cluster.claims.claims.contains_key(*id) && !is_in_use(id, rendered, cluster))
            .collect();
        let unread = idle.into_iter().filter_map(|id| cluster.claims.unread_class(id, now));
        let (class, due) = unread.min_by_key(|(_, due)| *due)?;
        let due = cluster.held_off(now).map_or(due, |until| until.max(due));
        if due > now {
            return Some(due);
        }
        cluster.claims.classes.insert(Arc::clone(&class), Class::Reading);
        let (client, epoch, name) = (cluster.client.clone()?, cluster.epoch, id.cluster.clone());
        let resource = cluster.catalog.get(&Kind::new("storage.k8s.io", "v1", "StorageClass")).cloned();
        let events = self.events.clone();
        tokio::spawn(async move {
            let binding = match resource {
                Some(resource) => binding_of(&client, &resource, &class).await,
                None => None,
            };
            let news = ClusterNews::StorageClass { class, binding };
            let _ = events.send(Event::Cluster { cluster: name, epoch, news }).await;
        });
        None
    }
}

async fn binding_of(client: &Client, resource: &crate::cluster::Resource, class: &str) -> Option<Binding> {
    let id = ObjectId::new("storage.k8s.io", "StorageClass", None, class);
    match client.get(resource, &id).await {
        Ok(found) => {
            let mode = found?.get("volumeBindingMode")?.as_str()?.to_owned();
            Some(if mode == "WaitForFirstConsumer" { Binding::FirstConsumer } else { Binding::Immediate })
        }
        Err(error) => {
            tracing::debug!(%error, class, "the storage class could not be read");
            None
        }
    }
}
