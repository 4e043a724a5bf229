//! The input of every check.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::identity_owners::{self, IdentityOwners};
use crate::manifest::Manifests;
use crate::model::{App, AppId, Cluster, ClusterName, DiagnosticScope, Ring, Snapshot};

/// The input of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckInput<'a> {
    pub manifests: &'a Manifests,
    pub snapshot: &'a Snapshot,
    pub clusters: &'a BTreeMap<ClusterName, Cluster>,
    pub rings: &'a [Ring],
    pub ring_of: &'a BTreeMap<ClusterName, String>,
    /// Which file held each identity at the previous revision.
    pub previous_owners: &'a IdentityOwners,
    /// The registry of clusters was not read, so there may be more clusters.
    pub has_unknown_clusters: bool,
}

impl<'a> CheckInput<'a> {
    /// Of two apps with the same claim, the earlier one comes first.
    pub(super) fn by_seniority(&self) -> Vec<&'a App> {
        identity_owners::by_seniority(&self.manifests.apps, self.previous_owners)
    }

    /// The names of all apps in Git, also of those with mistakes.
    pub(super) fn app_names(&self) -> BTreeSet<&AppId> {
        let broken = self.manifests.diagnostics.iter().filter_map(|diagnostic| match &diagnostic.scope {
            DiagnosticScope::App(id) => Some(id),
            DiagnosticScope::Cluster(_)
            | DiagnosticScope::Target(..)
            | DiagnosticScope::File(_)
            | DiagnosticScope::Instance => None,
        });
        self.manifests.apps.iter().map(|app| &app.id).chain(broken).collect()
    }

    /// Registered clusters, also those whose manifests have mistakes.
    pub(super) fn cluster_names(&self) -> Vec<&str> {
        let broken = self.manifests.diagnostics.iter().filter_map(|diagnostic| match &diagnostic.scope {
            DiagnosticScope::Cluster(name) => Some(name.as_str()),
            DiagnosticScope::App(_)
            | DiagnosticScope::Target(..)
            | DiagnosticScope::File(_)
            | DiagnosticScope::Instance => None,
        });
        self.clusters.keys().map(ClusterName::as_str).chain(broken).collect()
    }
}
