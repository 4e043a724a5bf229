//! Paths of the API.

use std::sync::Arc;

use super::query::decode;
use crate::registry::{Registry, ResourceKind};

/// What a path names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Route {
    Version,
    /// `healthz`, `livez` or `readyz`.
    Health(&'static str),
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`
    Resources {
        group: String,
        version: String,
    },
    Resource(Target),
    /// `/openapi/v3`
    OpenApi,
    /// `/openapi/v3/apis/<group>/<version>`
    OpenApiDocument {
        group: String,
        version: String,
    },
    /// Served by real servers, not by this one.
    NotSimulated,
    /// A group and version that is served, without this resource.
    UnknownResource,
    Unknown,
}

/// A resource, one of its objects, or a subresource of that.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub(crate) kind: Arc<ResourceKind>,
    /// Empty for cluster-wide kinds, and for lists over all namespaces.
    pub(crate) namespace: String,
    /// Empty for the collection.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

impl Route {
    pub(crate) fn parse(path: &str, registry: &Registry) -> Self {
        let segments: Vec<String> =
            path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["version"] => Self::Version,
            ["healthz", ..] => Self::Health("healthz"),
            ["livez", ..] => Self::Health("livez"),
            ["readyz", ..] => Self::Health("readyz"),
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["openapi", "v3"] => Self::OpenApi,
            ["openapi", "v3", "api", version] => Self::openapi("", version),
            ["openapi", "v3", "apis", group, version] => Self::openapi(group, version),
            ["openapi", ..] | ["metrics", ..] | ["logs", ..] => Self::NotSimulated,
            ["api", version] => Self::resources(registry, "", version),
            ["apis", group] => match registry.groups().iter().any(|(one, _)| one == group) {
                true => Self::Group((*group).to_owned()),
                false => Self::Unknown,
            },
            ["apis", group, version] => Self::resources(registry, group, version),
            ["api", version, rest @ ..] => Self::target(registry, "", version, rest),
            ["apis", group, version, rest @ ..] => Self::target(registry, group, version, rest),
            _ => Self::Unknown,
        }
    }

    fn openapi(group: &str, version: &str) -> Self {
        Self::OpenApiDocument { group: group.to_owned(), version: version.to_owned() }
    }

    fn resources(registry: &Registry, group: &str, version: &str) -> Self {
        let served = registry.all().any(|kind| kind.group == group && kind.version == version);
        if !served {
            return Self::Unknown;
        }
        Self::Resources { group: group.to_owned(), version: version.to_owned() }
    }

    fn target(registry: &Registry, group: &str, version: &str, rest: &[&str]) -> Self {
        let (namespace, rest) = match rest {
            // subresources of the namespace itself
            ["namespaces", _, "status" | "finalize"] | ["namespaces"] | ["namespaces", _] => ("", rest),
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            rest => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, "", ""),
            [plural, name] => (*plural, *name, ""),
            [plural, name, subresource] => (*plural, *name, *subresource),
            _ => return Self::Unknown,
        };
        let Some(kind) = registry.find(group, version, plural) else {
            let is_custom = registry.all().any(|kind| kind.group == group && kind.is_custom());
            return match Self::resources(registry, group, version) {
                Self::Unknown => Self::Unknown,
                _ if is_custom => Self::Unknown,
                _ => Self::UnknownResource,
            };
        };
        let misplaced =
            if kind.namespaced { namespace.is_empty() && !name.is_empty() } else { !namespace.is_empty() };
        if misplaced {
            return Self::UnknownResource;
        }
        Self::Resource(Target {
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        })
    }
}
