//! Reads the storage classes of unbound PersistentVolumeClaims: only for a claim that no running workload of its app uses, once per
//! connection to a cluster.

use std::sync::Arc;

use tokio::time::Instant;

use super::event::{ClusterNews, Event};
use super::state::ControllerState;
use super::unbound_claims::VolumeBindingMode;
use crate::cluster::{Client, Resource};
use crate::fleet::Target;
use crate::model::{GroupVersionKind, ObjectId};

impl ControllerState {
    /// Reads the storage class of an unused unbound claim. Returns the time of the next read.
    pub(super) fn read_storage_class(&mut self, id: &Target, now: Instant) -> Option<Instant> {
        let entry = self.targets.get(id)?;
        let rendered = entry.render.as_ref().ok()?;
        let cluster = self.clusters.get_mut(&id.cluster).filter(|cluster| cluster.is_ready())?;
        if cluster.unbound_claims.is_empty() {
            return None;
        }
        let idle: Vec<&ObjectId> = rendered
            .objects
            .iter()
            .map(|object| &object.id)
            .filter(|id| {
                cluster.unbound_claims.is_of_unread_class(id)
                    && !entry.claim_uses().is_in_use(id, &cluster.observation)
            })
            .collect();
        let unread = idle.into_iter().filter_map(|id| cluster.unbound_claims.unread_class(id, now));
        let (class, due) = unread.min_by_key(|(_, due)| *due)?;
        let due = cluster.throttled_until(now).map_or(due, |until| until.max(due));
        if due > now {
            return Some(due);
        }
        cluster.unbound_claims.mark_reading(Arc::clone(&class));
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

async fn read_binding_mode(client: &Client, resource: &Resource, class: &str) -> Option<VolumeBindingMode> {
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
