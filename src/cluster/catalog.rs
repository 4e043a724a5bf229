//! What a cluster serves.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use kube::core::GroupVersion;
use kube::core::discovery::{ApiCapabilities, Scope};
use kube::discovery::{self, ApiResource, Discovery, verbs};

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
                let preferred = version == group.preferred_version_or_latest();
                catalog.insert(group.versioned_resources(version), preferred);
            }
        }
        catalog
    }

    /// Everything of one version of one group.
    fn insert(&mut self, resources: Vec<(ApiResource, ApiCapabilities)>, preferred: bool) {
        for (api, capabilities) in resources {
            let kind = kind_of(&api);
            let resource = resource(api, &capabilities);
            if preferred && resource.manageable {
                self.preferred.insert((kind.group.to_string(), kind.kind.to_string()), kind.clone());
            }
            self.resources.insert(kind, resource);
        }
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
        self.discover_one_by_one().await
    }

    /// A group whose own server is down hides its kinds and no others.
    async fn discover_one_by_one(&self) -> Result<Catalog, Error> {
        let mut catalog = Catalog::default();
        let core = self.patiently("discover", || self.kube().list_core_api_versions()).await?;
        for version in &core.versions {
            catalog.insert(self.resources_of("", version).await?, version == "v1");
        }
        let groups = self.patiently("discover", || self.kube().list_api_groups()).await?;
        let versions: Vec<(String, String, bool)> = groups
            .groups
            .into_iter()
            .flat_map(|group| {
                let first = group.versions.first().map(|version| version.version.clone());
                let preferred = group.preferred_version.map(|version| version.version).or(first);
                group.versions.into_iter().map(move |version| {
                    let is_preferred = preferred.as_ref() == Some(&version.version);
                    (group.name.clone(), version.version, is_preferred)
                })
            })
            .collect();
        let mut answers =
            futures::stream::iter(versions.into_iter().map(|(group, version, preferred)| async move {
                let resources = self.resources_of(&group, &version).await;
                (group, version, preferred, resources)
            }))
            .buffer_unordered(8);
        while let Some((group, version, preferred, resources)) = answers.next().await {
            match resources {
                Ok(resources) => catalog.insert(resources, preferred),
                Err(error) if error.is_unreachable() => return Err(error),
                Err(error) => tracing::warn!(
                    cluster = %self.name(), group, version, %error,
                    "a group of kinds cannot be read and is left out"
                ),
            }
        }
        Ok(catalog)
    }

    async fn resources_of(
        &self,
        group: &str,
        version: &str,
    ) -> Result<Vec<(ApiResource, ApiCapabilities)>, Error> {
        let place = GroupVersion::gv(group, version);
        let found = self.patiently("discover", || discovery::pinned_group(self.kube(), &place)).await?;
        Ok(found.versioned_resources(version))
    }

    /// Asks again, twice, when the server is busy or one of its parts is not there just now.
    pub(super) async fn patiently<T, F>(
        &self,
        action: &'static str,
        request: impl Fn() -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, kube::Error>>,
    {
        for pause in [Duration::from_millis(500), Duration::from_secs(1)] {
            match self.bounded(action, request()).await {
                Err(error @ Error::Request { .. }) if error.is_transient() => {
                    tracing::debug!(cluster = %self.name(), %error, "asking again");
                    tokio::time::sleep(pause).await;
                }
                answer => return answer,
            }
        }
        self.bounded(action, request()).await
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
