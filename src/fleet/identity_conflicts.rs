//! Resolves manifests that claim the same identity: one keeps it, the others are refused.
//!
//! A live object names its app and not the file, so it cannot decide. First wins the file that held the identity at the
//! previous revision; at a start, the Git history decides which file is older. Then wins the file in the folder of its kind,
//! then the first by path.

use std::collections::{BTreeMap, BTreeSet};

use super::identity_owners::{IdentityOwners, is_new};
use super::{codes, projects};
use crate::manifest::{Manifests, is_below_apps};
use crate::model::{AppId, Cluster, Connection, Diagnostic, DiagnosticScope, Location};

/// The order of claims; the least wins.
type IdentityClaimRank<'a> = (bool, u8, &'a Location);

/// Removes the losing manifests. Returns the new holders, and an error for each removed manifest.
pub fn resolve_conflicts(
    manifests: &mut Manifests,
    before: &IdentityOwners,
) -> (IdentityOwners, Vec<Diagnostic>) {
    let claims = identity_claims(manifests, before);
    let mut holders = IdentityOwners::new();
    let (mut found, mut refused) = (Vec::new(), BTreeSet::new());
    for (scope, mut claims) in claims {
        claims.sort();
        let Some(((_, _, holder), others)) = claims.split_first() else { continue };
        holders.insert(scope.clone(), holder.file.clone());
        for (_, _, place) in others {
            found.push(duplicate_error(&scope, place, holder));
            refused.insert((scope.clone(), (*place).clone()));
        }
    }
    remove_newcomers(manifests, &holders, &refused);
    found.append(&mut reject_duplicate_projects(manifests, before));
    (holders, found)
}

/// Identities claimed by several files without a known holder, with these files.
pub fn disputed_identities(
    manifests: &Manifests,
    before: &IdentityOwners,
) -> Vec<(DiagnosticScope, Vec<String>)> {
    let files = |(scope, claims): (DiagnosticScope, Vec<IdentityClaimRank<'_>>)| {
        let files: BTreeSet<String> = claims.iter().map(|(_, _, place)| place.file.clone()).collect();
        let is_known = before.get(&scope).is_some_and(|file| files.contains(file));
        (files.len() > 1 && !is_known).then(|| (scope, files.into_iter().collect()))
    };
    identity_claims(manifests, before).into_iter().filter_map(files).collect()
}

fn identity_claims<'a>(
    manifests: &'a Manifests,
    before: &IdentityOwners,
) -> BTreeMap<DiagnosticScope, Vec<IdentityClaimRank<'a>>> {
    let mut claims: BTreeMap<DiagnosticScope, Vec<IdentityClaimRank<'a>>> = BTreeMap::new();
    let mut claim = |scope: DiagnosticScope, place: &'a Location, standing: u8| {
        let rank = (is_new(&scope, place, before), standing, place);
        claims.entry(scope).or_default().push(rank);
    };
    for app in &manifests.apps {
        claim(DiagnosticScope::App(app.id.clone()), &app.location, folder_rank(&app.id, &app.location));
    }
    for cluster in &manifests.clusters {
        claim(
            DiagnosticScope::Cluster(cluster.name.clone()),
            &cluster.location,
            cluster_folder_rank(cluster),
        );
    }
    for (scope, place) in &manifests.invalid {
        let standing = match scope {
            DiagnosticScope::App(id) => folder_rank(id, place),
            _ => folder_rank_below("clusters/", place),
        };
        claim(scope.clone(), place, standing);
    }
    claims
}

fn folder_rank(app: &AppId, place: &Location) -> u8 {
    if app.is_project() { folder_rank_below("projects/", place) } else { 0 }
}

fn cluster_folder_rank(cluster: &Cluster) -> u8 {
    match cluster.connection {
        Connection::ConfigMap { .. } => 3,
        _ => folder_rank_below("clusters/", &cluster.location),
    }
}

fn folder_rank_below(folder: &str, place: &Location) -> u8 {
    match &*place.file {
        file if file.starts_with(folder) => 0,
        file if !is_below_apps(file) => 1,
        _ => 2,
    }
}

fn duplicate_error(scope: &DiagnosticScope, place: &Location, holder: &Location) -> Diagnostic {
    let title = match scope {
        DiagnosticScope::App(id) if id.is_project() => format!("the project {}", id.name),
        DiagnosticScope::App(id) => format!("the app {id}"),
        DiagnosticScope::Cluster(name) => format!("the cluster {name}"),
        _ => "this".to_owned(),
    };
    let message = format!("{title} has a manifest already, at {holder}");
    Diagnostic::error(codes::DUPLICATE, message, DiagnosticScope::File(place.file.clone()))
        .at(place.clone())
        .help("this one is not used: rename it, or give it another namespace")
        .related(holder.clone(), "the one that is used")
}

/// Removes a newcomer with its routes and mistakes, which must not count for the holder.
fn remove_newcomers(
    manifests: &mut Manifests,
    holders: &IdentityOwners,
    refused: &BTreeSet<(DiagnosticScope, Location)>,
) {
    if refused.is_empty() {
        return;
    }
    let is_refused = |scope: DiagnosticScope, place: &Location| refused.contains(&(scope, place.clone()));
    manifests.apps.retain(|app| !is_refused(DiagnosticScope::App(app.id.clone()), &app.location));
    manifests.clusters.retain(|it| !is_refused(DiagnosticScope::Cluster(it.name.clone()), &it.location));
    manifests.invalid_projects.retain(|(id, _, place)| !is_refused(DiagnosticScope::App(id.clone()), place));
    let files: BTreeSet<(&DiagnosticScope, &str)> =
        refused.iter().map(|(scope, place)| (scope, &*place.file)).collect();
    for mistake in &mut manifests.diagnostics {
        let Some(file) = mistake.location.as_ref().map(|place| &place.file) else { continue };
        let is_of_holder = holders.get(&mistake.scope) == Some(file);
        if !is_of_holder && files.contains(&(&mistake.scope, file)) {
            mistake.scope = DiagnosticScope::File(file.clone());
        }
    }
}

fn reject_duplicate_projects(manifests: &mut Manifests, before: &IdentityOwners) -> Vec<Diagnostic> {
    let mut claims: BTreeMap<&str, Vec<(IdentityClaimRank<'_>, &AppId)>> = BTreeMap::new();
    let read = manifests.apps.iter().filter_map(|app| projects::project_of(app));
    let read = read.map(|(app, project)| (&app.id, &project.namespace, &app.location));
    let unread = manifests.invalid_projects.iter().map(|(id, namespace, place)| (id, namespace, place));
    for (id, namespace, place) in read.chain(unread) {
        let is_new = is_new(&DiagnosticScope::App(id.clone()), place, before);
        let rank = (is_new, folder_rank(id, place), place);
        claims.entry(namespace).or_default().push((rank, id));
    }
    let mut found = Vec::new();
    let mut refused = BTreeSet::new();
    for (namespace, mut claims) in claims {
        claims.sort();
        let Some(((rank, holder), others)) = claims.split_first() else { continue };
        for ((.., place), id) in others {
            let message = format!(
                "Project {} has the namespace {namespace} of Project {}, at {}",
                id.name, holder.name, rank.2
            );
            let error =
                Diagnostic::error(codes::NAMESPACE_TWICE, message, DiagnosticScope::App((*id).clone()))
                    .at((*place).clone())
                    .help("this one is not used: give it another namespace, or merge the two")
                    .related(rank.2.clone(), "the one that is used");
            found.push(error);
            refused.insert((*id).clone());
        }
    }
    manifests.apps.retain(|app| !refused.contains(&app.id));
    manifests.invalid_projects.retain(|(id, ..)| !refused.contains(id));
    found
}
