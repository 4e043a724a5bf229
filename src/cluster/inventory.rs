//! Lists the kinds of which a cluster has objects of this instance. It runs at each connection and every 12 to 14.5
//! hours, so the inventory needs no memory of earlier applies.

use futures::StreamExt as _;
use kube::api::{Api, ListParams};
use kube::discovery::ApiResource;

use super::object::MetadataObject;
use super::{Catalog, Client, Error};
use crate::model::{GroupVersionKind, labels};

/// The start of a cluster's inventory.
#[derive(Debug, Default)]
pub struct KindsInUse {
    pub kinds: Vec<GroupVersionKind>,
    /// Kinds that could not be listed, because their server is down or a right is missing. Nothing of them is pruned:
    /// unseen objects never count as gone.
    pub unlistable: Vec<(GroupVersionKind, Error)>,
}

impl KindsInUse {
    /// Kinds to list again later.
    pub fn retryable_kinds(&self) -> Vec<GroupVersionKind> {
        self.hidden_by(Error::is_transient)
    }

    /// Kinds that another attempt will not list either.
    pub fn denied_kinds(&self) -> Vec<GroupVersionKind> {
        self.hidden_by(|error| !error.is_transient())
    }

    fn hidden_by(&self, is_meant: impl Fn(&Error) -> bool) -> Vec<GroupVersionKind> {
        self.unlistable.iter().filter(|(_, error)| is_meant(error)).map(|(kind, _)| kind.clone()).collect()
    }
}

/// Events expire on their own, and a label search among so many is expensive for the server.
const UNSEARCHED_KINDS: &[(&str, &str)] = &[("", "Event"), ("events.k8s.io", "Event")];

/// Controllers create these objects from Services and copy the labels, so our label may be a copy. Other controllers
/// copy labels from templates, which lack our labels, or none.
const COPIED_KINDS: &[(&str, &str)] = &[("", "Endpoints"), ("discovery.k8s.io", "EndpointSlice")];

/// Page size for kinds whose copies are told apart.
const PAGE_OF_COPIES: u32 = 500;

/// Pages of one list. A kind with more is watched: that costs less than an unseen object, and has its own bounds.
const PAGES: usize = 200;

/// Kinds with objects of ours on one cluster: each is a watch.
const IN_USE: usize = 1000;

fn is_one_of(kind: &GroupVersionKind, kinds: &[(&str, &str)]) -> bool {
    kinds.contains(&(&*kind.group, &*kind.kind))
}

impl Client {
    /// The kinds with at least one object of this instance: one small metadata list for each manageable kind.
    pub async fn kinds_in_use(&self, catalog: &Catalog, instance: &str) -> Result<KindsInUse, Error> {
        let searched = catalog.preferred().filter(|kind| !is_one_of(kind, UNSEARCHED_KINDS));
        let kinds: Vec<GroupVersionKind> = searched.cloned().collect();
        self.kinds_in_use_of(&kinds, catalog, instance).await
    }

    /// Like [`Client::kinds_in_use`], for some kinds.
    pub async fn kinds_in_use_of(
        &self,
        kinds: &[GroupVersionKind],
        catalog: &Catalog,
        instance: &str,
    ) -> Result<KindsInUse, Error> {
        let ours = &ListParams::default().labels(&format!("{}={instance}", labels::MANAGED_BY));
        let resources: Vec<_> = kinds
            .iter()
            .filter_map(|kind| catalog.get(kind).map(|resource| (kind.clone(), resource.api.clone())))
            .collect();
        let mut answers = futures::stream::iter(resources.into_iter().map(|(kind, api)| async move {
            let is_copied = is_one_of(&kind, COPIED_KINDS);
            let page = if is_copied { PAGE_OF_COPIES } else { 1 };
            let is_ours = |object: MetadataObject| !is_copied || object.matches_origin(&api);
            let is_used = self.holds(&api, ours.clone().limit(page), is_ours).await;
            (kind, is_used)
        }))
        .buffer_unordered(8);
        let mut found = KindsInUse::default();
        while let Some((kind, answer)) = answers.next().await {
            match answer {
                Ok(false) => {}
                Ok(true) => found.kinds.push(kind),
                // A refused login hides all kinds for now.
                Err(
                    error @ (Error::Request { .. }
                    | Error::OverBound { .. }
                    | Error::Denied { forbidden: true, .. }),
                ) => {
                    found.unlistable.push((kind, error));
                }
                // A single kind may not answer: a hanging webhook or an aggregated server is behind it.
                Err(error @ Error::Unreachable { .. }) => {
                    self.probe().await?;
                    found.unlistable.push((kind, error));
                }
                Err(error) => return Err(error),
            }
            if found.kinds.len() > IN_USE {
                let detail = format!("it has objects of tutti of more than {IN_USE} kinds");
                return Err(Error::OverBound { cluster: self.name().clone(), detail });
            }
        }
        Ok(found)
    }

    /// Reads page by page until a matching object is found. An empty page may not be the last one.
    async fn holds(
        &self,
        api: &ApiResource,
        mut ours: ListParams,
        is_one: impl Fn(MetadataObject) -> bool,
    ) -> Result<bool, Error> {
        let objects: Api<MetadataObject> = Api::all_with(self.kube().clone(), api);
        for _ in 0..PAGES {
            let page = match self.with_retries("list", || objects.list(&ours)).await {
                Ok(page) => page,
                // The list expired meanwhile: a useless watch costs less than an unseen object.
                Err(Error::Request { code: 410, .. }) => return Ok(true),
                Err(error) => return Err(error),
            };
            if page.items.into_iter().any(&is_one) {
                return Ok(true);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => ours.continue_token = Some(token),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}
