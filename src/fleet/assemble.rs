//! Builds the fleet from manifests. Called once for each revision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::checks::{CHECKS, CheckInput, kustomize_error_filter};
use super::ring_membership::rings_of;
use super::{
    BrokenApp, Fleet, IdentityOwners, health_rules, identity_conflicts, pins, policies, projects, registry,
    routes,
};
use crate::manifest::Manifests;
use crate::model::{
    App, AppId, ApprovalRules, ApproverRoles, Cluster, ClusterName, Diagnostic, DiagnosticScope, Location,
    Ring, RolloutApproval, Snapshot,
};

/// Combines the manifests, runs every check, and moves apps with errors to `broken`.
pub fn assemble(manifests: Manifests, snapshot: &Snapshot) -> Fleet {
    assemble_after(manifests, snapshot, &IdentityOwners::default())
}

/// The same, with the holders of identities from the previous revision.
pub fn assemble_after(mut manifests: Manifests, snapshot: &Snapshot, before: &IdentityOwners) -> Fleet {
    let mut unregistered = registry::add_registered_clusters(&mut manifests, snapshot);
    let (holders, mut newcomers) = identity_conflicts::resolve_conflicts(&mut manifests, before);
    manifests.diagnostics.append(&mut newcomers);
    projects::inherit_placement(&mut manifests.apps);
    let mut lost_routes = routes::attach_routes(&mut manifests);
    let of_namespace = projects::by_namespace(&manifests.apps);
    let clusters: BTreeMap<ClusterName, Cluster> =
        manifests.clusters.iter().map(|cluster| (cluster.name.clone(), cluster.clone())).collect();
    let rings: &[Ring] = manifests.rings.as_ref().map_or(&[], |rings| &rings.rings);
    let ring_of = rings_of(rings, &clusters);
    let facts = CheckInput {
        manifests: &manifests,
        snapshot,
        clusters: &clusters,
        rings,
        ring_of: &ring_of,
        previous_owners: before,
        has_unknown_clusters: registry::is_registry_unread(&manifests, snapshot),
    };
    let mut found: Vec<Diagnostic> = CHECKS.iter().flat_map(|(_, check)| check(&facts)).collect();
    found.append(&mut lost_routes);
    found.append(&mut unregistered);
    let (health, mut mistakes) = health_rules::load_health_rules(snapshot);
    found.append(&mut mistakes);
    let (policies, mut mistakes) = policies::compile_policies(&manifests, snapshot);
    found.append(&mut mistakes);
    found.append(&mut projects::waiting_app_errors(&manifests, &found, before));

    let hidden = kustomize_error_filter(&manifests);
    let mut diagnostics: Vec<Diagnostic> =
        manifests.diagnostics.iter().filter(|mistake| !hidden(mistake)).cloned().collect();
    drop(hidden);
    diagnostics.append(&mut found);
    diagnostics.sort_by(|one, other| (&one.location, one.code).cmp(&(&other.location, other.code)));
    diagnostics.dedup();

    // Without a valid instance the namespaces of apps are unknown.
    let is_usable = !diagnostics.iter().any(|it| it.is_error() && it.scope == DiagnosticScope::Instance);
    let holders = if is_usable || before.is_empty() { holders } else { before.clone() };
    let of_folders = pins::by_folder(&manifests.pins);
    for app in &mut manifests.apps {
        pins::attach_pins(app, &of_folders, &ring_of);
    }
    let (apps, broken) = split_broken_apps(manifests.apps, &diagnostics);
    let mut rollout_approvals: BTreeMap<AppId, Vec<RolloutApproval>> = BTreeMap::new();
    for approval in manifests.rollout_approvals {
        rollout_approvals.entry(approval.app.clone()).or_default().push(approval);
    }
    let wrong: BTreeSet<&DiagnosticScope> =
        diagnostics.iter().filter(|it| it.is_error()).map(|it| &it.scope).collect();
    // Other documents of a broken file may be what this one depends on.
    let is_whole = |place: &Location| !wrong.contains(&DiagnosticScope::File(place.file.clone()));
    manifests.triggers.retain(|trigger| is_whole(&trigger.location));
    manifests.notifications.retain(|route| is_whole(&route.location));
    manifests.servers.retain(|server| is_whole(&server.location));
    let triggers = manifests.triggers.into_iter().map(|trigger| (trigger.name.clone(), trigger)).collect();
    Fleet {
        instance: manifests.instance.unwrap_or_default(),
        clusters,
        rings_location: manifests.rings.as_ref().map(|rings| rings.location.clone()),
        rings: manifests.rings.map(|rings| rings.rings).unwrap_or_default(),
        apps,
        broken_apps: broken,
        approvals: manifests.approvals,
        rollout_approvals,
        triggers,
        notifications: manifests.notifications,
        servers: manifests.servers,
        policies: Arc::new(policies),
        windows: manifests.windows,
        analyses: manifests.analyses.into_iter().map(|it| (it.name.clone(), it)).collect(),
        approval_rules: Arc::new(ApprovalRules {
            rules: manifests.approval_rules,
            roles: ApproverRoles::of(&manifests.approvers, manifests.may_lack_approvers),
        }),
        health: Arc::new(health),
        diagnostics,
        identity_owners: Arc::new(holders),
        ring_of,
        projects: of_namespace,
    }
}

fn split_broken_apps(
    apps: Vec<Arc<App>>,
    diagnostics: &[Diagnostic],
) -> (BTreeMap<AppId, Arc<App>>, BTreeMap<AppId, BrokenApp>) {
    let mut broken: BTreeMap<AppId, BrokenApp> = BTreeMap::new();
    for error in diagnostics.iter().filter(|diagnostic| diagnostic.is_error()) {
        if let DiagnosticScope::App(id) = &error.scope {
            let entry = broken.entry(id.clone()).or_insert(BrokenApp { app: None, errors: Vec::new() });
            entry.errors.push(error.clone());
        }
    }
    let mut whole = BTreeMap::new();
    for app in apps {
        match broken.get_mut(&app.id) {
            Some(broken) => {
                broken.app.get_or_insert(app);
            }
            None => {
                whole.insert(app.id.clone(), app);
            }
        }
    }
    (whole, broken)
}
