//! Of which kinds a cluster holds something of ours: asked at each connection and every 12 to 14.5 hours, so that an inventory
//! needs no memory of what was applied before a restart.

use futures::StreamExt as _;
use kube::api::{Api, ListParams};
use kube::discovery::ApiResource;

use super::object::Bare;
use super::{Catalog, Client, Error};
use crate::model::{Kind, labels};

/// What the inventory of a cluster begins with.
#[derive(Debug, Default)]
pub struct KindsInUse {
    pub kinds: Vec<Kind>,
    /// Could not be listed: their own server is down, or we may not. What is ours there is not
    /// pruned, as what is unseen is never taken for gone.
    pub hidden: Vec<(Kind, Error)>,
}

impl KindsInUse {
    /// What may be listed some time later.
    pub fn unlisted(&self) -> Vec<Kind> {
        self.hidden_by(Error::is_transient)
    }

    /// What will not be listed either when it is asked for again.
    pub fn denied(&self) -> Vec<Kind> {
        self.hidden_by(|error| !error.is_transient())
    }

    fn hidden_by(&self, is_meant: impl Fn(&Error) -> bool) -> Vec<Kind> {
        self.hidden.iter().filter(|(_, error)| is_meant(error)).map(|(kind, _)| kind.clone()).collect()
    }
}

/// Events end by themselves, and are so many that looking for a label among them costs the server more than all else.
const NOT_SEARCHED: &[(&str, &str)] = &[("", "Event"), ("events.k8s.io", "Event")];

/// Kinds whose objects are made by controllers from Services, labels copied: one that carries our label may be a copy. All
/// other controllers copy labels from templates, where ours are not, or none.
const COPIED: &[(&str, &str)] = &[("", "Endpoints"), ("discovery.k8s.io", "EndpointSlice")];

/// Objects of one page, where copies are told from ours.
const PAGE_OF_COPIES: u32 = 500;

/// Pages of one list. What has more is watched: that is cheaper than something unseen, and has bounds of its own.
const PAGES: usize = 200;

/// Kinds of which one cluster holds objects of ours: each is a watch.
const IN_USE: usize = 1000;

fn is_one_of(kind: &Kind, kinds: &[(&str, &str)]) -> bool {
    kinds.contains(&(&*kind.group, &*kind.kind))
}

impl Client {
    /// Kinds of which the cluster holds at least one object of this instance: one small metadata list per manageable kind.
    pub async fn kinds_in_use(&self, catalog: &Catalog, instance: &str) -> Result<KindsInUse, Error> {
        let searched = catalog.preferred().filter(|kind| !is_one_of(kind, NOT_SEARCHED));
        let kinds: Vec<Kind> = searched.cloned().collect();
        self.kinds_in_use_of(&kinds, catalog, instance).await
    }

    /// As [`Client::kinds_in_use`], of some kinds.
    pub async fn kinds_in_use_of(
        &self,
        kinds: &[Kind],
        catalog: &Catalog,
        instance: &str,
    ) -> Result<KindsInUse, Error> {
        let ours = &ListParams::default().labels(&format!("{}={instance}", labels::MANAGED_BY));
        let resources: Vec<_> = kinds
            .iter()
            .filter_map(|kind| catalog.get(kind).map(|resource| (kind.clone(), resource.api.clone())))
            .collect();
        let mut answers = futures::stream::iter(resources.into_iter().map(|(kind, api)| async move {
            let is_copied = is_one_of(&kind, COPIED);
            let page = if is_copied { PAGE_OF_COPIES } else { 1 };
            let is_ours = |object: Bare| !is_copied || object.names_itself(&api);
            let is_used = self.holds(&api, ours.clone().limit(page), is_ours).await;
            (kind, is_used)
        }))
        .buffer_unordered(8);
        let mut found = KindsInUse::default();
        while let Some((kind, answer)) = answers.next().await {
            match answer {
                Ok(false) => {}
                Ok(true) => found.kinds.push(kind),
                // A login that is refused hides everything, for the moment.
                Err(
                    error @ (Error::Request { .. }
                    | Error::OverBound { .. }
                    | Error::Denied { forbidden: true, .. }),
                ) => {
                    found.hidden.push((kind, error));
                }
                // One kind may be silent where all others answer: behind it is a webhook that hangs, or a server of its own.
                Err(error @ Error::Unreachable { .. }) => {
                    self.probe().await?;
                    found.hidden.push((kind, error));
                }
                Err(error) => return Err(error),
            }
            if found.kinds.len() > IN_USE {
                let detail = format!("it holds objects of ours of more than {IN_USE} kinds");
                return Err(Error::OverBound { cluster: self.name().clone(), detail });
            }
        }
        Ok(found)
    }

    /// Page by page, until there is such an object: also a page of nothing may not be the last one.
    async fn holds(
        &self,
        api: &ApiResource,
        mut ours: ListParams,
        is_one: impl Fn(Bare) -> bool,
    ) -> Result<bool, Error> {
        let objects: Api<Bare> = Api::all_with(self.kube().clone(), api);
        for _ in 0..PAGES {
            let page = match self.patiently("list", || objects.list(&ours)).await {
                Ok(page) => page,
                // Its list went stale while we read it: a watch in vain is cheaper than something unseen.
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
