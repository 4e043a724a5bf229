//! What a cluster serves.

use std::collections::BTreeMap;

use kube::core::discovery::{ApiCapabilities, Scope};
use kube::discovery::{ApiResource, Discovery, verbs};

use super::error::classify;
use super::{Client, Error};
use crate::model::Kind;

/// One kind in one version.
#[derive(Clone, Debug)]
pub struct Resource {
    pub namespaced: bool,
    /// It can be listed, watched, patched and deleted: tutti can manage it.
    pub manageable: bool,
    pub(super) api: ApiResource,
}

/// All kinds that a cluster serves, every version.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    resources: BTreeMap<Kind, Resource>,
    /// The version of a kind (by group and kind) that the cluster prefers.
    preferred: BTreeMap<(String, String), Kind>,
}

impl Catalog {
    pub fn get(&self, kind: &Kind) -> Option<&Resource> {
        self.resources.get(kind)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Kind, &Resource)> {
        self.resources.iter()
    }

    /// The preferred version of every kind that tutti can manage.
    pub fn preferred(&self) -> impl Iterator<Item = &Kind> {
        self.preferred.values()
    }

    fn of(discovery: &Discovery) -> Self {
        let mut catalog = Self::default();
        for group in discovery.groups() {
            for version in group.versions() {
                for (api, capabilities) in group.versioned_resources(version) {
                    catalog.resources.insert(kind_of(&api), resource(api, &capabilities));
                }
            }
            for (api, _) in group.recommended_resources() {
                let kind = kind_of(&api);
                if catalog.resources.get(&kind).is_some_and(|resource| resource.manageable) {
                    catalog.preferred.insert((kind.group.to_string(), kind.kind.to_string()), kind);
                }
            }
        }
        catalog
    }
}

fn kind_of(api: &ApiResource) -> Kind {
    Kind::new(&api.group, &api.version, &api.kind)
}

fn resource(api: ApiResource, capabilities: &ApiCapabilities) -> Resource {
    let manageable = [verbs::LIST, verbs::WATCH, verbs::PATCH, verbs::DELETE]
        .iter()
        .all(|verb| capabilities.supports_operation(verb));
    Resource { namespaced: capabilities.scope == Scope::Namespaced, manageable, api }
}

impl Client {
    /// Asks the cluster what it serves: two requests where discovery is aggregated (1.26 and later),
    /// one per group and version where it is not.
    pub async fn discover(&self) -> Result<Catalog, Error> {
        // An old server answers the aggregated request with an empty list and no error.
        match self.bounded("discover", Discovery::new(self.kube().clone()).run_aggregated()).await {
            Ok(discovery) if discovery.has_group("") => return Ok(Catalog::of(&discovery)),
            Ok(_) => {}
            Err(error) if error.is_unreachable() => return Err(error),
            Err(_) => {}
        }
        let discovery = self.bounded("discover", Discovery::new(self.kube().clone()).run()).await?;
        Ok(Catalog::of(&discovery))
    }

    /// Waits for one request, not longer than [`Client::PATIENCE`].
    pub(super) async fn bounded<T>(
        &self,
        action: &'static str,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(Self::PATIENCE, request).await {
            Ok(answer) => answer.map_err(|error| classify(self.name(), action, None, &error)),
            Err(_) => Err(self.no_answer()),
        }
    }
}
