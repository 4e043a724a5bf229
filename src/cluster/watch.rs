//! Watching one kind for this instance's objects.
//!
//! A kind is watched in the version that is rendered, because values of two versions cannot be compared. When that version is served no more,
//! it is watched in another one.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use kube::api::Api;
use serde_json::Value;

use super::object::{Bare, Whole};
use super::watching::{self, Wanted};
use super::{Catalog, Client, Resource};
use crate::model::{Kind, labels};

/// Objects that make a cluster serve something.
const SERVING: [(&str, &str); 2] =
    [("apiextensions.k8s.io", "CustomResourceDefinition"), ("apiregistration.k8s.io", "APIService")];

/// Metadata of those are small.
const PAGE_OF_SERVING: u32 = 500;
/// A list that is refused and that tutti can do without: most likely it has no right to it.
const LONGEST_PAUSE_OF_SERVING: Duration = Duration::from_secs(1800);

/// What a watch tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A list begins (at first, and when the server has forgotten where we were): what is not told
    /// before [`Change::Listed`] is no longer there.
    Listing,
    Seen(Box<Value>),
    /// Deleted, or the label was taken off; while a list is told, too.
    Left(Box<Value>),
    /// All that there was at this resourceVersion was told. Without this nothing can be concluded from what was not.
    Listed {
        version: String,
    },
    /// The stream broke; it is taken up again with back-off.
    Broken(String),
    /// It broke again and again since then, for half a minute at least, and never told anything: what changes is seen by lists alone, one every five
    /// minutes, until [`Change::Sees`].
    Blind {
        since: Timestamp,
        why: String,
    },
    /// The watch tells what happens again.
    Sees,
}

impl Client {
    /// All objects of a kind that carry the instance's label, and what becomes of them, for ever.
    /// `metadata_only` leaves out spec and status on the wire.
    pub fn watch(
        &self,
        resource: &Resource,
        instance: &str,
        metadata_only: bool,
    ) -> impl Stream<Item = Change> + Send + use<> {
        let wanted = Wanted {
            cluster: self.name().clone(),
            labels: Some(format!("{}={instance}", labels::MANAGED_BY)),
            page: watching::PAGE,
            longest_pause: watching::LONGEST_PAUSE,
        };
        if metadata_only {
            return self.metadata_of(resource, wanted);
        }
        let objects: Api<Whole> = Api::all_with(self.kube().clone(), &resource.api);
        watching::changes(objects, resource.api.clone(), wanted, self.streams()).boxed()
    }

    /// What makes the cluster serve something: definitions and API services, whosever they are; for ever. Each change with
    /// which of the two it is of.
    pub fn watch_served(&self, catalog: &Catalog) -> BoxStream<'static, (usize, Change)> {
        let streams = SERVING.iter().enumerate().filter_map(|(index, (group, kind))| {
            let resource = catalog.get(&Kind::new(group, "v1", kind))?;
            let wanted = Wanted {
                cluster: self.name().clone(),
                labels: None,
                page: PAGE_OF_SERVING,
                longest_pause: LONGEST_PAUSE_OF_SERVING,
            };
            Some(self.metadata_of(resource, wanted).map(move |change| (index, change)).boxed())
        });
        futures::stream::select_all(streams).boxed()
    }

    fn metadata_of(&self, resource: &Resource, wanted: Wanted) -> BoxStream<'static, Change> {
        let objects: Api<Bare> = Api::all_with(self.kube().clone(), &resource.api);
        watching::changes(objects, resource.api.clone(), wanted, self.streams()).boxed()
    }
}
