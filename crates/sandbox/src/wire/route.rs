//! Parses the paths of the API.

use std::sync::Arc;

use super::query::decode;
use crate::registry::{KindRegistry, ResourceKind};

/// The target of a path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ApiRoute {
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
    Resource(RequestTarget),
    /// The deprecated paths under `/watch/`: a list, or one object, to be watched.
    Watch(RequestTarget),
    /// A list over all namespaces, where nothing is made.
    AllNamespaces(RequestTarget),
    /// `/openapi/v3`
    OpenApi,
    /// `/openapi/v3/apis/<group>/<version>`
    OpenApiDocument {
        group: String,
        version: String,
    },
    /// Served by real servers, not by this one.
    NotSimulated,
    /// A group that is served, without this version or resource.
    UnknownResource,
    /// `.` and `..`, with why they are no names.
    BadName(String),
    /// An OpenAPI document of nothing.
    NoDocument,
    /// A watch of nothing.
    NoTarget,
    /// Percent signs without digits: the connection's own reader refuses them.
    Malformed,
    Unknown,
}

/// A resource, one of its objects, or a subresource of that.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestTarget {
    pub(crate) kind: Arc<ResourceKind>,
    /// Empty for cluster-wide kinds, and for lists over all namespaces.
    pub(crate) namespace: String,
    /// Empty for the collection.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

impl ApiRoute {
    pub(crate) fn parse(path: &str, registry: &KindRegistry) -> Self {
        let Some(path) = decode(path) else { return Self::Malformed };
        let inner = path.strip_prefix('/').unwrap_or(&path);
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let segments: Vec<&str> = inner.split('/').collect();
        match segments.as_slice() {
            ["version"] => Self::Version,
            ["healthz"] | ["healthz", "ping"] => Self::Health("healthz"),
            ["livez"] | ["livez", "ping"] => Self::Health("livez"),
            ["readyz"] | ["readyz", "ping"] => Self::Health("readyz"),
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["openapi", "v3"] => Self::OpenApi,
            ["openapi", "v3", "api", version] => Self::openapi(registry, "", version),
            ["openapi", "v3", "apis", group, version] => Self::openapi(registry, group, version),
            ["openapi", "v3", ..] => Self::NoDocument,
            ["openapi", "v2", ..] | ["metrics", ..] | ["logs", ..] => Self::NotSimulated,
            ["api", version] => Self::resources(registry, "", version),
            ["apis", group] => match Self::has_group(registry, group) {
                true => Self::Group((*group).to_owned()),
                false => Self::Unknown,
            },
            ["apis", group, version] => Self::resources(registry, group, version),
            ["api", version, rest @ ..] => Self::group_route(registry, "", version, rest),
            ["apis", group, version, rest @ ..] => Self::group_route(registry, group, version, rest),
            _ => Self::Unknown,
        }
    }

    fn has_group(registry: &KindRegistry, group: &str) -> bool {
        registry.all().any(|kind| kind.group == group)
    }

    fn group_route(registry: &KindRegistry, group: &str, version: &str, rest: &[&str]) -> Self {
        if !Self::has_group(registry, group) {
            return Self::Unknown;
        }
        match rest {
            ["watch"] => Self::NoTarget,
            ["watch", rest @ ..] => match Self::target(registry, group, version, rest) {
                Self::Resource(target) | Self::AllNamespaces(target) if target.subresource.is_empty() => {
                    Self::Watch(target)
                }
                Self::Resource(_) | Self::AllNamespaces(_) => Self::UnknownResource,
                other => other,
            },
            rest => Self::target(registry, group, version, rest),
        }
    }

    fn openapi(registry: &KindRegistry, group: &str, version: &str) -> Self {
        match Self::resources(registry, group, version) {
            Self::Resources { group, version } => Self::OpenApiDocument { group, version },
            _ => Self::NoDocument,
        }
    }

    fn resources(registry: &KindRegistry, group: &str, version: &str) -> Self {
        if registry.all().any(|kind| kind.group == group && kind.version == version) {
            return Self::Resources { group: group.to_owned(), version: version.to_owned() };
        }
        if Self::has_group(registry, group) { Self::UnknownResource } else { Self::Unknown }
    }

    fn target(registry: &KindRegistry, group: &str, version: &str, rest: &[&str]) -> Self {
        let (namespace, rest) = match rest {
            // subresources of the namespace itself
            ["namespaces", _, "status" | "finalize"] | ["namespaces"] | ["namespaces", _] => (None, rest),
            ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, None, ""),
            [plural, name] => (*plural, Some(*name), ""),
            [plural, name, subresource] => (*plural, Some(*name), *subresource),
            _ => return Self::UnknownResource,
        };
        let Some(kind) = registry.find(group, version, plural) else {
            let is_custom = registry.all().any(|kind| kind.group == group && kind.is_custom());
            return if is_custom { Self::Unknown } else { Self::UnknownResource };
        };
        let everywhere = kind.namespaced && namespace.is_none();
        if (everywhere && name.is_some()) || (!kind.namespaced && namespace.is_some()) || name == Some("") {
            return Self::UnknownResource;
        }
        if let Some(name) = name
            && let Some(why) = wrong_name(name)
        {
            return Self::BadName(format!("Name parameter invalid: {name:?}: {why}"));
        }
        let target = RequestTarget {
            kind: kind.clone(),
            namespace: namespace.unwrap_or("").to_owned(),
            name: name.unwrap_or("").to_owned(),
            subresource: subresource.to_owned(),
        };
        if everywhere { Self::AllNamespaces(target) } else { Self::Resource(target) }
    }
}

/// Why a path segment is not a valid name.
fn wrong_name(name: &str) -> Option<&'static str> {
    match name {
        "." => Some("may not be '.'"),
        ".." => Some("may not be '..'"),
        _ if name.contains('%') => Some("may not contain '%'"),
        _ => None,
    }
}
