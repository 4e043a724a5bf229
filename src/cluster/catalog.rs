//! The kinds and versions that a cluster serves.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::GroupVersion;
use kube::core::discovery::{ApiCapabilities, Scope};
use kube::discovery::{ApiResource, verbs};

use crate::model::{Capabilities, GroupVersionKind, KindInfo, KubeVersion, unusual_plural};

/// One kind in one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    pub namespaced: bool,
    /// It supports list, watch, patch and delete, which tutti needs.
    pub manageable: bool,
    /// Its status is a subresource.
    pub has_status: bool,
    pub(super) api: ApiResource,
}

impl Resource {
    /// As in paths and roles: `deployments`.
    pub fn plural(&self) -> &str {
        &self.api.plural
    }
}

/// All served kinds in every version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    resources: BTreeMap<GroupVersionKind, Resource>,
    /// The preferred version of a kind, by group and kind: that of its group, or else the best one that has the kind.
    preferred: BTreeMap<(String, String), GroupVersionKind>,
    /// The cluster's own version, as it reports it.
    pub(super) version: String,
    /// `apps/v1`, also those without a kind.
    versions: BTreeSet<String>,
    /// API versions whose aggregated server does not answer.
    stale: BTreeSet<String>,
    /// API versions and kinds that were served a moment ago. Their removal is not certain yet.
    missing: BTreeSet<String>,
}

impl Catalog {
    pub fn get(&self, kind: &GroupVersionKind) -> Option<&Resource> {
        self.resources.get(kind)
    }

    /// The plural of a kind in any version; `None` if tutti cannot manage the kind.
    pub fn plural(&self, group: &str, kind: &str) -> Option<&str> {
        let preferred = self.preferred.get(&(group.to_owned(), kind.to_owned()))?;
        self.get(preferred).map(Resource::plural)
    }

    /// The cluster's own version: `v1.36.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Behind a load balancer, servers of several versions may answer in turn. The caller decides which one counts.
    pub fn set_version(&mut self, version: &str) {
        version.clone_into(&mut self.version);
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&GroupVersionKind, &Resource)> {
        self.resources.iter()
    }

    /// The preferred version of every kind that tutti can manage.
    pub fn preferred(&self) -> impl Iterator<Item = &GroupVersionKind> {
        self.preferred.values()
    }

    /// The capabilities for renders. Kinds of a stale API and kinds that went missing a moment ago still count as
    /// served, because a short outage must not remove objects.
    pub fn capabilities(&self, before: Option<&Capabilities>) -> Capabilities {
        let from_before = before.into_iter().flat_map(|before| &before.api_versions);
        let from_before = from_before.filter(|name| self.is_in_stale_api(name)).cloned();
        let api_versions: BTreeSet<String> =
            self.names().chain(self.missing.iter().cloned()).chain(from_before).collect();
        let version = KubeVersion::parse(&self.version).unwrap_or_else(KubeVersion::newest);
        let is_kept = |name: &String| self.is_in_stale_api(name) || self.missing.contains(name);
        let from_before = before.into_iter().flat_map(|before| &before.kinds);
        let from_before =
            from_before.filter(|(name, _)| is_kept(name)).map(|(name, it)| (name.clone(), it.clone()));
        let custom = self.resources.iter().filter(|(kind, _)| !kind.is_built_in());
        let facts = custom.map(|(kind, resource)| {
            let Resource { namespaced, has_status, .. } = *resource;
            let plural = unusual_plural(&kind.kind, resource.plural());
            (kind.name(), KindInfo { namespaced, has_status, plural })
        });
        let kinds = from_before.chain(facts).collect();
        Capabilities { version, api_versions: api_versions.into_iter().collect(), asked: true, kinds }
    }

    /// API versions and kinds: `apps/v1`, `apps/v1/Deployment`.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let kinds = self.resources.keys().map(|kind| format!("{}/{}", kind.api_version(), kind.kind));
        self.versions.iter().cloned().chain(kinds)
    }

    /// Whether the kind belongs to a stale API version.
    pub fn is_in_stale_api(&self, name: &str) -> bool {
        self.stale.iter().any(|stale| is_kind_of(name, stale))
    }

    pub fn has_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// API versions whose aggregated server does not answer.
    pub fn stale(&self) -> impl Iterator<Item = &str> {
        self.stale.iter().map(String::as_str)
    }

    /// Kinds that were unknown before because their API was stale.
    pub fn newly_visible_kinds<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a GroupVersionKind> {
        let was_hidden = |kind: &&GroupVersionKind| {
            let is_known = before.resources.contains_key(kind);
            !is_known && before.stale.contains(&kind.api_version())
        };
        self.preferred().filter(was_hidden)
    }

    /// The API version or kind was served a moment ago, and still counts as served.
    pub fn set_missing(&mut self, name: String) {
        self.missing.insert(name);
    }

    pub fn missing(&self) -> impl Iterator<Item = &String> {
        self.missing.iter()
    }

    /// Certainly not served in any version: the server answers without it, and has done so for a while.
    pub fn is_without(&self, kind: &GroupVersionKind) -> bool {
        let name = format!("{}/{}", kind.api_version(), kind.kind);
        let is_served = self.resources.keys().any(|known| known.is_same_group_kind(kind));
        !is_served && !self.missing.contains(&name) && !self.is_in_stale_api(&name)
    }

    /// Stale API versions without kinds from before.
    pub fn unknown_api_versions<'a>(&'a self, known: &'a Capabilities) -> impl Iterator<Item = &'a String> {
        self.stale.iter().filter(|stale| !known.api_versions.iter().any(|name| is_kind_of(name, stale)))
    }

    /// Whether the result of a definition (`menus.example.com`) or an API service (`v1.example.com`; `v1.` for the
    /// core group) is served.
    pub fn serves_definition(&self, name: &str) -> bool {
        let Some((first, group)) = name.split_once('.') else { return true };
        self.versions.contains(&GroupVersion::gv(group, first).api_version())
            || self.resources.values().any(|it| it.api.group == group && it.api.plural == first)
    }

    /// Inserts one version of a group. The versions of a group come in the order of preference.
    pub(super) fn insert(
        &mut self,
        group: &str,
        version: &str,
        resources: Vec<(ApiResource, ApiCapabilities)>,
        preferred: bool,
    ) {
        self.versions.insert(GroupVersion::gv(group, version).api_version());
        for (api, capabilities) in resources {
            let kind = kind_of(&api);
            let resource = resource(api, &capabilities);
            if resource.manageable {
                let name = (kind.group.to_string(), kind.kind.to_string());
                if preferred {
                    self.preferred.insert(name, kind.clone());
                } else {
                    self.preferred.entry(name).or_insert_with(|| kind.clone());
                }
            }
            self.resources.insert(kind, resource);
        }
    }

    /// Marks an API version whose aggregated server does not answer.
    pub(super) fn set_stale(&mut self, group: &str, version: &str) {
        self.stale.insert(GroupVersion::gv(group, version).api_version());
    }
}

/// `apps/v1/Deployment` is of `apps/v1`.
fn is_kind_of(name: &str, version: &str) -> bool {
    name.rsplit_once('/').is_some_and(|(of, _)| of == version)
}

fn kind_of(api: &ApiResource) -> GroupVersionKind {
    GroupVersionKind::new(&api.group, &api.version, &api.kind)
}

fn resource(api: ApiResource, capabilities: &ApiCapabilities) -> Resource {
    let manageable = [verbs::LIST, verbs::WATCH, verbs::PATCH, verbs::DELETE]
        .iter()
        .all(|verb| capabilities.supports_operation(verb));
    let has_status = capabilities.subresources.iter().any(|(subresource, _)| subresource.plural == "status");
    Resource { namespaced: capabilities.scope == Scope::Namespaced, manageable, has_status, api }
}

/// API version and plural.
pub(super) fn api_key(api: &ApiResource) -> (String, String) {
    (api.api_version.clone(), api.plural.clone())
}
