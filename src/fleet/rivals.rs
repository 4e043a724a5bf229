//! Resolves manifests that claim the same identity: one keeps it, the others are refused.
//!
//! A live object names its app and not the file, so it cannot decide. First wins the file that held the identity at the
//! previous revision; at a start, the Git history decides which file is older. Then wins the file in the folder of its kind,
//! then the first by path.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{codes, projects};
use crate::manifest::{Manifests, is_below_apps};
use crate::model::{App, AppId, Cluster, Connection, Diagnostic, Location, Scope};

/// The file of each app and cluster, also of those with mistakes.
pub type Holders = BTreeMap<Scope, String>;

/// The order of claims; the least wins.
type Rank<'a> = (bool, u8, &'a Location);

/// Removes the losing manifests. Returns the new holders, and an error for each removed manifest.
pub fn settle(manifests: &mut Manifests, before: &Holders) -> (Holders, Vec<Diagnostic>) {
    let claims = claims(manifests, before);
    let mut holders = Holders::new();
    let (mut found, mut refused) = (Vec::new(), BTreeSet::new());
    for (scope, mut claims) in claims {
        claims.sort();
        let Some(((_, _, holder), others)) = claims.split_first() else { continue };
        holders.insert(scope.clone(), holder.file.clone());
        for (_, _, place) in others {
            found.push(same_identity(&scope, place, holder));
            refused.insert((scope.clone(), (*place).clone()));
        }
    }
    refuse(manifests, &holders, &refused);
    found.append(&mut one_project_each(manifests, before));
    (holders, found)
}

/// Identities claimed by several files without a known holder, with these files.
pub fn disputed(manifests: &Manifests, before: &Holders) -> Vec<(Scope, Vec<String>)> {
    let files = |(scope, claims): (Scope, Vec<Rank<'_>>)| {
        let files: BTreeSet<String> = claims.iter().map(|(_, _, place)| place.file.clone()).collect();
        let is_known = before.get(&scope).is_some_and(|file| files.contains(file));
        (files.len() > 1 && !is_known).then(|| (scope, files.into_iter().collect()))
    };
    claims(manifests, before).into_iter().filter_map(files).collect()
}

/// Every app; of two with one claim, the holder comes first.
pub fn by_seniority<'a>(apps: &'a [Arc<App>], before: &Holders) -> Vec<&'a App> {
    let mut apps: Vec<&App> = apps.iter().map(|app| &**app).collect();
    if !before.is_empty() {
        apps.sort_by_cached_key(|app| is_new(&Scope::App(app.id.clone()), &app.location, before));
    }
    apps
}

fn claims<'a>(manifests: &'a Manifests, before: &Holders) -> BTreeMap<Scope, Vec<Rank<'a>>> {
    let mut claims: BTreeMap<Scope, Vec<Rank<'a>>> = BTreeMap::new();
    let mut claim = |scope: Scope, place: &'a Location, standing: u8| {
        let rank = (is_new(&scope, place, before), standing, place);
        claims.entry(scope).or_default().push(rank);
    };
    for app in &manifests.apps {
        claim(Scope::App(app.id.clone()), &app.location, standing_of(&app.id, &app.location));
    }
    for cluster in &manifests.clusters {
        claim(Scope::Cluster(cluster.name.clone()), &cluster.location, standing_of_cluster(cluster));
    }
    for (scope, place) in &manifests.unread {
        let standing = match scope {
            Scope::App(id) => standing_of(id, place),
            _ => standing_below("clusters/", place),
        };
        claim(scope.clone(), place, standing);
    }
    claims
}

/// The location did not hold that identity at the previous revision.
fn is_new(scope: &Scope, place: &Location, before: &Holders) -> bool {
    before.get(scope) != Some(&place.file)
}

fn standing_of(app: &AppId, place: &Location) -> u8 {
    if app.is_project() { standing_below("projects/", place) } else { 0 }
}

fn standing_of_cluster(cluster: &Cluster) -> u8 {
    match cluster.connection {
        Connection::ConfigMap { .. } => 3,
        _ => standing_below("clusters/", &cluster.location),
    }
}

fn standing_below(folder: &str, place: &Location) -> u8 {
    match &*place.file {
        file if file.starts_with(folder) => 0,
        file if !is_below_apps(file) => 1,
        _ => 2,
    }
}

fn same_identity(scope: &Scope, place: &Location, holder: &Location) -> Diagnostic {
    let title = match scope {
        Scope::App(id) if id.is_project() => format!("the project {}", id.name),
        Scope::App(id) => format!("the app {id}"),
        Scope::Cluster(name) => format!("the cluster {name}"),
        _ => "this".to_owned(),
    };
    let message = format!("{title} has a manifest already, at {holder}");
    Diagnostic::error(codes::DUPLICATE, message, Scope::File(place.file.clone()))
        .at(place.clone())
        .help("this one is not used: rename it, or give it another namespace")
        .related(holder.clone(), "the one that is used")
}

/// Removes a newcomer with its routes and mistakes, which must not count for the holder.
fn refuse(manifests: &mut Manifests, holders: &Holders, refused: &BTreeSet<(Scope, Location)>) {
    if refused.is_empty() {
        return;
    }
    let is_refused = |scope: Scope, place: &Location| refused.contains(&(scope, place.clone()));
    manifests.apps.retain(|app| !is_refused(Scope::App(app.id.clone()), &app.location));
    manifests.clusters.retain(|it| !is_refused(Scope::Cluster(it.name.clone()), &it.location));
    manifests.unread_projects.retain(|(id, _, place)| !is_refused(Scope::App(id.clone()), place));
    let files: BTreeSet<(&Scope, &str)> =
        refused.iter().map(|(scope, place)| (scope, &*place.file)).collect();
    for mistake in &mut manifests.diagnostics {
        let Some(file) = mistake.location.as_ref().map(|place| &place.file) else { continue };
        let is_of_holder = holders.get(&mistake.scope) == Some(file);
        if !is_of_holder && files.contains(&(&mistake.scope, file)) {
            mistake.scope = Scope::File(file.clone());
        }
    }
}

fn one_project_each(manifests: &mut Manifests, before: &Holders) -> Vec<Diagnostic> {
    let mut claims: BTreeMap<&str, Vec<(Rank<'_>, &AppId)>> = BTreeMap::new();
    let read = manifests.apps.iter().filter_map(|app| projects::of(app));
    let read = read.map(|(app, project)| (&app.id, &project.namespace, &app.location));
    let unread = manifests.unread_projects.iter().map(|(id, namespace, place)| (id, namespace, place));
    for (id, namespace, place) in read.chain(unread) {
        let is_new = is_new(&Scope::App(id.clone()), place, before);
        let rank = (is_new, standing_of(id, place), place);
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
            let error = Diagnostic::error(codes::NAMESPACE_TWICE, message, Scope::App((*id).clone()))
                .at((*place).clone())
                .help("this one is not used: give it another namespace, or make one of the two")
                .related(rank.2.clone(), "the one that is used");
            found.push(error);
            refused.insert((*id).clone());
        }
    }
    manifests.apps.retain(|app| !refused.contains(&app.id));
    manifests.unread_projects.retain(|(id, ..)| !refused.contains(id));
    found
}
