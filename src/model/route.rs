//! Routes: which host and paths lead to an app from outside of its cluster.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ClusterSelector, Location};

/// Belongs to an app, and is rendered with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Of the Ingress or HTTPRoute.
    pub name: String,
    /// `None`: the app's own, by its name.
    pub service: Option<String>,
    /// Of those that the app is on.
    pub clusters: ClusterSelector,
    pub settings: RouteSettings,
    /// What is otherwise in a ring.
    pub rings: BTreeMap<String, RouteSettings>,
    #[serde(skip)]
    pub location: Location,
}

/// What a ring may have otherwise; `None`: as the route says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteSettings {
    pub host: Option<String>,
    pub paths: Option<Vec<RoutePath>>,
    pub tls: Option<RouteTls>,
    pub entry: Option<RouteEntryPoint>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutePath {
    pub path: String,
    pub exact: bool,
    /// `None`: the first port of the Service.
    pub port: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RouteTls {
    /// A Secret beside the app.
    Secret(String),
    /// A ClusterIssuer of cert-manager, which makes the Secret.
    Issuer(String),
}

/// Who takes the connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RouteEntryPoint {
    /// An IngressClass: the route is an Ingress.
    Class(String),
    /// A Gateway: the route is an HTTPRoute.
    Gateway { namespace: Option<String>, name: String },
}

impl Route {
    pub fn settings_in_ring(&self, ring: Option<&str>) -> RouteSettings {
        let base = self.settings.clone();
        match ring.and_then(|ring| self.rings.get(ring)).cloned() {
            None => base,
            Some(own) => RouteSettings {
                host: own.host.or(base.host),
                paths: own.paths.or(base.paths),
                tls: own.tls.or(base.tls),
                entry: own.entry.or(base.entry),
            },
        }
    }

    pub fn depends_on_ring(&self) -> bool {
        self.clusters.ring.is_some() || !self.rings.is_empty()
    }
}

impl RouteSettings {
    /// All of the host, when no path is named.
    pub fn paths(&self) -> Vec<RoutePath> {
        let all = || vec![RoutePath { path: "/".to_owned(), exact: false, port: None }];
        self.paths.clone().unwrap_or_else(all)
    }
}
