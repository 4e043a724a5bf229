//! Discovery: reads which kinds and versions a cluster serves.

use std::time::Duration;

use futures::StreamExt as _;
use kube::core::GroupVersion;
use kube::core::discovery::ApiCapabilities;
use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery, APIVersionDiscovery};
use kube::discovery::{self, ApiResource};
use tokio::time::Instant;

use super::error::classify;
use super::response_bounds::with_reservation;
use super::{Catalog, Client, Error};
use crate::model::ObjectId;

/// Kinds that one cluster serves in all versions. Kubernetes itself has about a hundred.
const KINDS: usize = 10_000;
/// Groups and their versions.
const API_VERSIONS: usize = 2000;

impl Client {
    /// Reads the catalog: two requests with aggregated discovery (1.26 and later), otherwise one for each group and
    /// version; and one for the server's version.
    pub async fn discover(&self) -> Result<Catalog, Error> {
        let version = self.with_retries("discover", || self.kube().apiserver_version()).await?.git_version;
        self.streams().note_version(&version);
        // An old server answers an aggregated request with an empty list and no error. Behind a load balancer only
        // one of the two requests may have reached it. Every server has the core group and others.
        let mut catalog = match self.with_timeout("discover", self.aggregated()).await {
            Ok(groups) if is_whole(&groups) => aggregate(groups),
            Err(error) if error.is_unreachable() => return Err(error),
            Ok(_) | Err(_) => self.discover_one_by_one().await?,
        };
        if catalog.iter().len() > KINDS {
            return Err(self.serves_too_many(KINDS, "kinds"));
        }
        catalog.version = version;
        Ok(catalog)
    }

    async fn aggregated(&self) -> Result<Vec<APIGroupDiscovery>, kube::Error> {
        let mut groups = self.kube().list_api_groups_aggregated().await?.items;
        groups.extend(self.kube().list_core_api_versions_aggregated().await?.items);
        Ok(groups)
    }

    /// A group whose server is down hides only its own kinds.
    async fn discover_one_by_one(&self) -> Result<Catalog, Error> {
        let mut catalog = Catalog::default();
        let core = self.with_retries("discover", || self.kube().list_core_api_versions()).await?;
        if core.versions.len() > API_VERSIONS {
            return Err(self.serves_too_many(API_VERSIONS, "API versions"));
        }
        for version in &core.versions {
            catalog.insert("", version, self.resources_of("", version).await?, version == "v1");
        }
        let groups = self.with_retries("discover", || self.kube().list_api_groups()).await?;
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
        if versions.len() > API_VERSIONS {
            return Err(self.serves_too_many(API_VERSIONS, "API versions"));
        }
        let mut answers =
            futures::stream::iter(versions.into_iter().map(|(group, version, preferred)| async move {
                let resources = self.resources_of(&group, &version).await;
                (group, version, preferred, resources)
            }))
            .buffered(8);
        while let Some((group, version, preferred, resources)) = answers.next().await {
            match resources {
                Ok(resources) => {
                    catalog.insert(&group, &version, resources, preferred);
                    // The catalog is over the bound already.
                    if catalog.iter().len() > KINDS {
                        break;
                    }
                }
                Err(error) if error.is_unreachable() => return Err(error),
                Err(error) => {
                    tracing::warn!(
                        cluster = %self.name(), group, version, %error,
                        "a group of kinds cannot be read and is left out"
                    );
                    catalog.insert(&group, &version, Vec::new(), preferred);
                    catalog.set_stale(&group, &version);
                }
            }
        }
        Ok(catalog)
    }

    fn serves_too_many(&self, most: usize, what: &str) -> Error {
        let detail = format!("it serves more than {most} {what}");
        Error::OverBound { cluster: self.name().clone(), detail }
    }

    async fn resources_of(
        &self,
        group: &str,
        version: &str,
    ) -> Result<Vec<(ApiResource, ApiCapabilities)>, Error> {
        let place = GroupVersion::gv(group, version);
        let found = self.with_retries("discover", || discovery::pinned_group(self.kube(), &place)).await?;
        Ok(found.versioned_resources(version))
    }

    /// Retries twice if the server is busy or temporarily unavailable.
    pub(super) async fn with_retries<T, F>(
        &self,
        action: &'static str,
        request: impl Fn() -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, kube::Error>>,
    {
        for pause in [Duration::from_millis(500), Duration::from_secs(1)] {
            match self.with_timeout(action, request()).await {
                Err(error @ Error::Request { .. }) if error.is_transient() => {
                    tracing::debug!(cluster = %self.name(), %error, "asking again");
                    let asked = self
                        .reads_throttled_until(Instant::now())
                        .filter(|it| *it < Instant::now() + Self::REQUEST_TIMEOUT);
                    tokio::time::sleep_until(asked.unwrap_or_else(Instant::now).max(Instant::now() + pause))
                        .await;
                }
                answer => return answer,
            }
        }
        self.with_timeout(action, request()).await
    }

    /// Awaits one request for at most [`Client::REQUEST_TIMEOUT`].
    pub(super) async fn with_timeout<T>(
        &self,
        action: &'static str,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        self.with_timeout_about(action, None, request).await
    }

    /// The same, about one object.
    pub(super) async fn with_timeout_about<T>(
        &self,
        action: &'static str,
        object: Option<&ObjectId>,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        // The share of the budget is kept until the response was parsed. Boxed: a caller that awaits several would
        // become large.
        let (answer, _room) =
            with_reservation(tokio::time::timeout(Self::REQUEST_TIMEOUT, Box::pin(request))).await;
        let answer = match answer {
            Ok(answer) => answer.map_err(|error| classify(self.name(), action, object, &error)),
            Err(_) => Err(self.timeout_error()),
        };
        if matches!(answer, Err(Error::Unreachable { .. } | Error::Denied { forbidden: false, .. })) {
            self.streams().note_failure();
        }
        answer
    }
}

fn is_whole(groups: &[APIGroupDiscovery]) -> bool {
    let (named, core): (Vec<_>, Vec<_>) = groups.iter().partition(|group| !name_of(group).is_empty());
    !named.is_empty() && !core.is_empty()
}

fn name_of(group: &APIGroupDiscovery) -> &str {
    group.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default()
}

fn aggregate(groups: Vec<APIGroupDiscovery>) -> Catalog {
    let mut catalog = Catalog::default();
    for group in groups {
        let name = name_of(&group).to_owned();
        // Sorted by preference.
        for (index, found) in group.versions.into_iter().enumerate() {
            let version = found.version.clone().unwrap_or_default();
            // The server of this version is down: its kinds are old, or missing.
            let stale = found.freshness.as_deref() == Some("Stale");
            catalog.insert(&name, &version, resources(&name, &version, found), index == 0);
            if stale {
                catalog.set_stale(&name, &version);
            }
        }
    }
    catalog
}

fn resources(group: &str, version: &str, found: APIVersionDiscovery) -> Vec<(ApiResource, ApiCapabilities)> {
    let place = GroupVersion::gv(group, version);
    let resource = |resource: APIResourceDiscovery| {
        let kind = resource.response_kind.and_then(|kind| kind.kind)?;
        let scope = match resource.scope.as_deref() {
            Some("Namespaced") => discovery::Scope::Namespaced,
            _ => discovery::Scope::Cluster,
        };
        let api = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: place.api_version(),
            kind,
            plural: resource.resource.unwrap_or_default(),
        };
        let subresource = |name: String, verbs: Vec<String>| {
            let api = ApiResource { plural: name, ..api.clone() };
            (api, ApiCapabilities { scope: scope.clone(), subresources: Vec::new(), operations: verbs })
        };
        let subresources = resource.subresources.into_iter();
        let subresources =
            subresources.filter_map(|it| Some(subresource(it.subresource?, it.verbs))).collect();
        Some((api, ApiCapabilities { scope, subresources, operations: resource.verbs }))
    };
    found.resources.into_iter().filter_map(resource).collect()
}
