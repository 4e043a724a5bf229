//! Watches the objects of this instance of one kind.
//!
//! A kind is watched in the rendered version, because values of two versions cannot be compared. If that version is
//! no longer served, another one is watched.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use kube::api::Api;

use super::object::{MetadataObject, WholeObject};
use super::watch_loop::{self, WatchConfig};
use super::{Catalog, Client, Resource, WatchChange};
use crate::model::{GroupVersionKind, labels};

/// Objects that change what a cluster serves.
const SERVING: [(&str, &str); 2] =
    [("apiextensions.k8s.io", "CustomResourceDefinition"), ("apiregistration.k8s.io", "APIService")];

/// Their metadata is small.
const PAGE_OF_SERVING: u32 = 500;
/// The list is optional: if it is refused, a right is most likely missing.
const LONGEST_PAUSE_OF_SERVING: Duration = Duration::from_secs(1800);

impl Client {
    /// All objects of a kind with the instance's label, and their changes, without end. `metadata_only` requests no
    /// spec and status.
    pub fn watch(
        &self,
        resource: &Resource,
        instance: &str,
        metadata_only: bool,
    ) -> impl Stream<Item = WatchChange> + Send + use<> {
        let wanted = WatchConfig {
            cluster: self.name().clone(),
            labels: Some(format!("{}={instance}", labels::MANAGED_BY)),
            page: watch_loop::PAGE,
            longest_pause: watch_loop::LONGEST_PAUSE,
        };
        if metadata_only {
            return self.metadata_of(resource, wanted);
        }
        let objects: Api<WholeObject> = Api::all_with(self.kube().clone(), &resource.api);
        watch_loop::watch_changes(objects, resource.api.clone(), wanted, self.streams()).boxed()
    }

    /// All definitions and API services, of any owner, without end. Each change has the index of its kind.
    pub fn watch_served(&self, catalog: &Catalog) -> BoxStream<'static, (usize, WatchChange)> {
        let streams = SERVING.iter().enumerate().filter_map(|(index, (group, kind))| {
            let resource = catalog.get(&GroupVersionKind::new(group, "v1", kind))?;
            let wanted = WatchConfig {
                cluster: self.name().clone(),
                labels: None,
                page: PAGE_OF_SERVING,
                longest_pause: LONGEST_PAUSE_OF_SERVING,
            };
            Some(self.metadata_of(resource, wanted).map(move |change| (index, change)).boxed())
        });
        futures::stream::select_all(streams).boxed()
    }

    fn metadata_of(&self, resource: &Resource, wanted: WatchConfig) -> BoxStream<'static, WatchChange> {
        let objects: Api<MetadataObject> = Api::all_with(self.kube().clone(), &resource.api);
        watch_loop::watch_changes(objects, resource.api.clone(), wanted, self.streams()).boxed()
    }
}
