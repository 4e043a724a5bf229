//! One snapshot of the config repository as one validated whole.
//!
//! `assemble` takes the manifests and their snapshot and returns the [`Fleet`]: which apps run on which clusters, with the
//! mistakes that only show across manifests ([`checks`]). An app with an error moves to [`Fleet::broken_apps`]; other apps stay.
//! While any error exists, [`Fleet::is_valid`] is false and nothing may be deleted.
//!
//! The module is pure: it does not render, read files or schedule replicas. `controller` and `cli` call it.

mod assemble;
pub mod charts;
mod checks;
pub mod codes;
mod health_rules;
mod identity_conflicts;
mod identity_owners;
pub mod layers;
mod manifest_folders;
mod pattern;
mod pins;
mod placement;
mod policies;
mod projects;
mod registry;
mod replicas;
mod ring_membership;
mod routes;
mod shipped_layers;
#[cfg(test)]
mod tests;
mod text_locations;
pub mod trigger_files;
pub mod waves;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

pub use assemble::{assemble, assemble_after};
pub use identity_conflicts::disputed_identities;
pub use identity_owners::IdentityOwners;
pub use manifest_folders::misplaced_manifests;
pub use placement::{files_of, placement, selector};
pub use replicas::{ReplicaDivision, divide_replicas};
pub use waves::{Wave, Waves};

use crate::health;
use crate::manifest::Manifests;
use crate::model::{
    Analysis, App, AppId, Approval, ApprovalRules, Cluster, ClusterName, ClusterState, Diagnostic,
    DiagnosticScope, Instance, InventoryServer, Location, Notification, Project, PruneMode, Ring,
    RolloutApproval, Route, Trigger, Window,
};
use crate::policy::Policies;

/// One app on one cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Target {
    pub app: AppId,
    pub cluster: ClusterName,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}", self.app, self.cluster)
    }
}

/// An app with errors. Its live objects stay as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenApp {
    /// `None` if its manifest could not be read.
    pub app: Option<Arc<App>>,
    pub errors: Vec<Diagnostic>,
}

/// The config repository at one revision, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    pub instance: Instance,
    pub clusters: BTreeMap<ClusterName, Cluster>,
    /// In order; empty without `rings.yaml`.
    pub rings: Vec<Ring>,
    pub rings_location: Option<Location>,
    pub apps: BTreeMap<AppId, Arc<App>>,
    pub broken_apps: BTreeMap<AppId, BrokenApp>,
    /// Approvals of deletes.
    pub approvals: Vec<Approval>,
    /// By the app whose waves they open.
    pub rollout_approvals: BTreeMap<AppId, Vec<RolloutApproval>>,
    /// By name.
    pub triggers: BTreeMap<String, Arc<Trigger>>,
    pub notifications: Vec<Arc<Notification>>,
    /// The inventory of machines.
    pub servers: Vec<Arc<InventoryServer>>,
    pub policies: Arc<Policies>,
    pub windows: Vec<Arc<Window>>,
    /// By name.
    pub analyses: BTreeMap<String, Arc<Analysis>>,
    pub approval_rules: Arc<ApprovalRules>,
    pub health: Arc<health::HealthRules>,
    /// From reading and from the checks here, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The file of each app and cluster. It keeps the identity at the next revision.
    pub identity_owners: Arc<IdentityOwners>,
    ring_of: BTreeMap<ClusterName, String>,
    /// By namespace.
    projects: BTreeMap<String, AppId>,
}

impl Fleet {
    /// No error exists. Only then may anything be deleted.
    pub fn is_valid(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// An error in a Cluster manifest or an unreadable file: clusters may be missing here.
    pub fn may_lack_clusters(&self) -> bool {
        let hides =
            |it: &Diagnostic| matches!(it.scope, DiagnosticScope::Cluster(_) | DiagnosticScope::File(_));
        self.diagnostics.iter().any(|it| it.is_error() && hides(it))
    }

    /// The instance has no errors. Otherwise nothing is applied anywhere.
    pub fn is_usable(&self) -> bool {
        !self.has_errors(&DiagnosticScope::Instance)
    }

    pub fn ring_of(&self, cluster: &ClusterName) -> Option<&str> {
        self.ring_of.get(cluster).map(String::as_str)
    }

    /// The ring that selects a cluster which is not (or no longer) registered.
    pub fn matching_ring(&self, cluster: &Cluster) -> Option<String> {
        ring_membership::matching_ring(&self.rings, cluster).map(|ring| ring.name.clone())
    }

    /// The fleet with this cluster in state Ready instead of Removed: apps are placed there.
    pub fn before_removal(&self, cluster: &ClusterName) -> Self {
        let mut before = self.clone();
        if let Some(cluster) = before.clusters.get_mut(cluster) {
            cluster.state = ClusterState::Ready;
        }
        before
    }

    /// The project of the app's namespace, if it has no errors.
    pub fn project_of(&self, app: &App) -> Option<(&Arc<App>, &Project)> {
        if app.id.is_project() {
            return None;
        }
        let project = self.apps.get(self.projects.get(&*app.id.namespace)?)?;
        Some((project, projects::project_of(project)?.1))
    }

    /// Every target that can be rendered and applied, sorted. Empty if the instance is broken.
    pub fn targets(&self) -> Vec<Target> {
        let of_app = |(app, clusters): (&Arc<App>, Vec<ClusterName>)| {
            let id = app.id.clone();
            clusters.into_iter().map(move |cluster| Target { app: id.clone(), cluster })
        };
        self.placements().flat_map(of_app).collect()
    }

    /// The same, grouped by app.
    pub fn placements(&self) -> impl Iterator<Item = (&Arc<App>, Vec<ClusterName>)> {
        let errors = self.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        let wrong: BTreeSet<&DiagnosticScope> = errors.map(|error| &error.scope).collect();
        let usable = !wrong.contains(&DiagnosticScope::Instance);
        self.apps.values().filter(move |_| usable).map(move |app| {
            let mut clusters = self.clusters_of(app);
            if !wrong.is_empty() {
                clusters.retain(|cluster| {
                    !wrong.contains(&DiagnosticScope::Cluster(cluster.clone()))
                        && !wrong.contains(&DiagnosticScope::Target(app.id.clone(), cluster.clone()))
                });
            }
            (app, clusters)
        })
    }

    /// The registered clusters that an app is placed on, also for a broken app.
    pub fn clusters_of(&self, app: &App) -> Vec<ClusterName> {
        placement(app, &self.clusters, &self.ring_of)
    }

    /// The targets of an earlier revision (also of its broken apps) that this revision removes.
    pub fn removed_targets(&self, before: &Self) -> BTreeSet<Target> {
        let broken = before.broken_apps.values().filter_map(|broken| broken.app.as_ref());
        let apps = before.apps.values().chain(broken);
        apps.flat_map(|app| self.removed_targets_of(app, before.clusters_of(app))).collect()
    }

    /// From which of these clusters this revision removes the app. The app must no longer be placed there, no error may hide
    /// it, and `prune` must allow the removal.
    pub fn removed_targets_of(&self, before: &App, clusters: Vec<ClusterName>) -> Vec<Target> {
        let default = self.instance.defaults.prune;
        let goes = |app: &App| app.prune.unwrap_or(default) != PruneMode::Never;
        let now = self.apps.get(&before.id);
        let is_to_go = match now {
            Some(app) => goes(app) && !app.unmanaged,
            None => default != PruneMode::Never && !self.has_errors_in(&before.location.file),
        };
        if !(is_to_go && goes(before) && self.is_usable()) {
            return Vec::new();
        }
        let places: BTreeSet<ClusterName> = now.iter().flat_map(|app| self.clusters_of(app)).collect();
        let away = clusters.into_iter().filter(|it| self.clusters.contains_key(it) && !places.contains(it));
        away.map(|cluster| Target { app: before.id.clone(), cluster }).collect()
    }

    fn has_errors_in(&self, file: &str) -> bool {
        let is_there = |it: &Diagnostic| it.location.as_ref().is_some_and(|location| location.file == *file);
        self.diagnostics.iter().any(|it| it.is_error() && is_there(it))
    }

    /// The fleet of one app on one cluster, with the instance and rings of these manifests if they have some. Runs no checks.
    pub fn for_single_target(&self, mut app: Arc<App>, cluster: Cluster, manifests: Manifests) -> Self {
        let rings = manifests.rings.map_or_else(|| self.rings.clone(), |rings| rings.rings);
        let clusters = BTreeMap::from([(cluster.name.clone(), cluster)]);
        let ring_of = ring_membership::rings_of(&rings, &clusters);
        pins::attach_pins(&mut app, &pins::by_folder(&manifests.pins), &ring_of);
        Self {
            instance: manifests.instance.unwrap_or_else(|| self.instance.clone()),
            ring_of,
            rings,
            rings_location: self.rings_location.clone(),
            clusters,
            apps: BTreeMap::from([(app.id.clone(), app)]),
            broken_apps: BTreeMap::new(),
            approvals: Vec::new(),
            rollout_approvals: BTreeMap::new(),
            triggers: BTreeMap::new(),
            notifications: Vec::new(),
            servers: Vec::new(),
            policies: Arc::clone(&self.policies),
            windows: Vec::new(),
            analyses: BTreeMap::new(),
            approval_rules: Arc::default(),
            health: Arc::clone(&self.health),
            diagnostics: Vec::new(),
            identity_owners: Arc::default(),
            projects: BTreeMap::new(),
        }
    }

    fn has_errors(&self, scope: &DiagnosticScope) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.is_error() && diagnostic.scope == *scope)
    }
}

/// Whether the render of an app depends on the ring of the cluster.
pub fn selects_by_ring(app: &App) -> bool {
    selector(app).is_some_and(|placement| placement.clusters.ring.is_some())
        || app.routes.iter().any(Route::depends_on_ring)
}
