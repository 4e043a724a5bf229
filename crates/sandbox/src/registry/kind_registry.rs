//! The kinds that one cluster serves.

use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Value;

use super::{ResourceKind, built_in_kinds};
use crate::custom;
use crate::release::Release;

static BUILT_IN: LazyLock<Vec<Arc<ResourceKind>>> =
    LazyLock::new(|| built_in_kinds::built_in().into_iter().map(Arc::new).collect());

/// The kinds of one cluster.
#[derive(Debug, Clone)]
pub(crate) struct KindRegistry {
    kinds: Vec<Arc<ResourceKind>>,
    /// Cached aggregated discovery of the core group and of all others: every client requests both, and they are long.
    discovery: [OnceLock<String>; 2],
}

impl KindRegistry {
    #[cfg(test)]
    pub(crate) fn built_in() -> Self {
        Self::for_release(Release::default())
    }

    /// The built-in kinds of a release.
    pub(crate) fn for_release(release: Release) -> Self {
        let served = BUILT_IN.iter().filter(|kind| kind.releases.contains(&release.minor()));
        Self { kinds: served.cloned().collect(), discovery: Default::default() }
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<ResourceKind>> {
        self.kinds.iter().find(|kind| kind.plural == plural && kind.group == group && kind.version == version)
    }

    pub(crate) fn serves(&self, kind: &ResourceKind) -> bool {
        !kind.is_custom() || self.find(&kind.group, &kind.version, &kind.plural).is_some()
    }

    /// By the name that messages and the store use: `deployments.apps`.
    pub(crate) fn resource(&self, resource: &str) -> Option<&Arc<ResourceKind>> {
        self.kinds.iter().find(|kind| kind.has_resource_name(resource))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ResourceKind>> {
        self.kinds.iter()
    }

    /// Groups in their order of registration, each with its versions.
    pub(crate) fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for kind in &self.kinds {
            match groups.iter_mut().find(|(group, _)| *group == kind.group) {
                Some((_, versions)) if versions.contains(&kind.version.as_str()) => {}
                Some((_, versions)) => versions.push(&kind.version),
                None => groups.push((&kind.group, vec![&kind.version])),
            }
        }
        groups
    }

    /// Of the core group or of all others, as it was made since what is served changed last.
    pub(crate) fn discovery(&self, core: bool, make: impl FnOnce() -> String) -> &str {
        self.discovery[usize::from(core)].get_or_init(make)
    }

    /// Serves the versions of a CustomResourceDefinition, in place of what it declared before.
    pub(crate) fn define(&mut self, definition: &Value) {
        self.undefine(definition);
        self.kinds.extend(custom::kinds_of(definition).into_iter().map(Arc::new));
        // custom groups stand behind the built-in ones, in order, each with the best version first
        let order = |kind: &Arc<ResourceKind>| {
            let version = std::cmp::Reverse(custom::priority(&kind.version));
            kind.is_custom().then(|| (kind.group.clone(), version, kind.plural.clone()))
        };
        self.kinds.sort_by_cached_key(order);
    }

    /// Stops serving a CustomResourceDefinition.
    pub(crate) fn undefine(&mut self, definition: &Value) {
        let (group, plural) = custom::names_of(definition);
        self.kinds.retain(|kind| !(kind.is_custom() && kind.group == group && kind.plural == plural));
        self.discovery = Default::default();
    }
}
