//! Watches the objects of this instance of one kind.
//!
//! A kind is watched in the rendered version, because values of two versions cannot be compared. If that version is
//! no longer served, another one is watched.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use kube::api::Api;
use serde_json::Value;

use super::object::{MetadataObject, WholeObject};
use super::watch_loop::{self, WatchConfig};
use super::{Catalog, Client, Resource};
use crate::model::{GroupVersionKind, labels};

/// Objects that change what a cluster serves.
const SERVING: [(&str, &str); 2] =
    [("apiextensions.k8s.io", "CustomResourceDefinition"), ("apiregistration.k8s.io", "APIService")];

/// Their metadata is small.
const PAGE_OF_SERVING: u32 = 500;
/// The list is optional: if it is refused, a right is most likely missing.
const LONGEST_PAUSE_OF_SERVING: Duration = Duration::from_secs(1800);

#[derive(Clone, Debug, PartialEq)]
pub enum WatchChange {
    /// A list begins: at the start, and when the server has lost the watch position. An object that is not reported
    /// before [`WatchChange::ListEnded`] no longer exists.
    ListStarted,
    Updated(Box<Value>),
    /// Deleted, or its label was removed. Also possible during a list.
    Removed(Box<Value>),
    /// The list was read to its end, at this resourceVersion. Without it nothing counts as gone.
    ListEnded {
        version: String,
    },
    /// The stream broke; it continues after a backoff.
    Disconnected(String),
    /// The watch failed repeatedly for half a minute or longer without any event. Until [`WatchChange::WatchRestored`] a list every
    /// five minutes replaces it.
    WatchLost {
        since: Timestamp,
        why: String,
    },
    /// The watch delivers events again.
    WatchRestored,
}

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
