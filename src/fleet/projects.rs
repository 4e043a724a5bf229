//! Projects: which apps belong to them, and what the apps inherit. Called by `assemble`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{IdentityOwners, codes};
use crate::manifest::{self, ManifestKind, Manifests, is_below_apps};
use crate::model::{App, AppId, AppSpec, Diagnostic, DiagnosticScope, Placement, Project};

pub fn by_namespace(apps: &[Arc<App>]) -> BTreeMap<String, AppId> {
    let mut projects = BTreeMap::new();
    for (app, project) in apps.iter().filter_map(|app| project_of(app)) {
        projects.entry(project.namespace.clone()).or_insert_with(|| app.id.clone());
    }
    projects
}

pub fn project_of(app: &App) -> Option<(&App, &Project)> {
    match &app.spec {
        AppSpec::Project(project) => Some((app, project)),
        AppSpec::AppSet(_) | AppSpec::Component(_) | AppSpec::Objects(_) => None,
    }
}

/// An app without a placement gets the placement of its project.
pub fn inherit_placement(apps: &mut [Arc<App>]) {
    let mut places: BTreeMap<String, Placement> = BTreeMap::new();
    for (_, project) in apps.iter().filter_map(|app| project_of(app)) {
        places.entry(project.namespace.clone()).or_insert_with(|| project.placement.clone());
    }
    for app in apps {
        let placed = super::selector(app).is_none_or(|own| own.location.is_some());
        let place = places.get(&*app.id.namespace).filter(|_| !placed && project_of(app).is_none());
        let Some(place) = place else { continue };
        match &mut Arc::make_mut(app).spec {
            AppSpec::Component(component) => component.placement.clusters = place.clusters.clone(),
            AppSpec::Objects(objects) => objects.placement.clusters = place.clusters.clone(),
            AppSpec::AppSet(_) | AppSpec::Project(_) => {}
        }
    }
}

/// Errors for apps that must wait because their project is unknown.
///
/// A broken project below `apps/` that was no project before only affects apps in its folder.
pub fn waiting_app_errors(
    manifests: &Manifests,
    found: &[Diagnostic],
    before: &IdentityOwners,
) -> Vec<Diagnostic> {
    let errors = || manifests.diagnostics.iter().chain(found).filter(|diagnostic| diagnostic.is_error());
    let mut namespaces: BTreeMap<&AppId, Vec<&str>> = BTreeMap::new();
    let is_known =
        |id: &AppId, file: &str| before.get(&DiagnosticScope::App(id.clone())).is_some_and(|it| it == file);
    let unread = manifests.invalid_projects.iter();
    let unread = unread.filter(|(id, _, place)| !is_below_apps(&place.file) || is_known(id, &place.file));
    let unread = unread.map(|(id, namespace, _)| (id, namespace));
    let read =
        manifests.apps.iter().filter_map(|app| project_of(app)).map(|(app, it)| (&app.id, &it.namespace));
    for (project, namespace) in unread.chain(read) {
        namespaces.entry(project).or_default().push(namespace);
    }
    let mut wrong: BTreeMap<&str, &Diagnostic> = BTreeMap::new();
    for error in errors() {
        let DiagnosticScope::App(id) = &error.scope else { continue };
        for namespace in namespaces.get(id).into_iter().flatten() {
            wrong.entry(namespace).or_insert(error);
        }
    }
    // The namespace of the stray document is unknown, so it may be the project of any app.
    let is_stray = |error: &&Diagnostic| error.code == codes::STRAY_DOCUMENT;
    let stray = errors().filter(is_stray).filter_map(|error| error.location.as_ref());
    let is_of_one =
        |file: &str| manifests.apps.iter().any(|app| app.id.is_project() && app.location.file == file);
    let may_be_one =
        |file: &str| manifest::usual_kind_at(file) == Some(ManifestKind::Project) && !is_of_one(file);
    let stray = stray.filter(|place| may_be_one(&place.file)).min();
    let known: BTreeSet<&str> = manifests
        .apps
        .iter()
        .filter_map(|app| project_of(app))
        .map(|(_, project)| project.namespace.as_str())
        .collect();
    let hold = |app: &App| {
        let namespace = &*app.id.namespace;
        let lost = manifests.unreadable_project_of(&app.location.file).or(stray);
        let (place, why) = match (wrong.get(namespace), lost) {
            _ if project_of(app).is_some() => return None,
            (Some(error), _) => {
                (error.location.as_ref(), format!("the project of its namespace {namespace} has errors"))
            }
            (None, Some(place)) if !known.contains(namespace) => {
                let why =
                    format!("a file that cannot be read may be the project of its namespace {namespace}");
                (Some(place), why)
            }
            _ => return None,
        };
        let message = format!("{} waits: {why}", app.title());
        let held = Diagnostic::error(codes::PROJECT_BROKEN, message, DiagnosticScope::App(app.id.clone()))
            .at(app.location.clone())
            .help("fix the project: until then its placement and its limits are not known");
        Some(match place {
            Some(place) => held.related(place.clone(), "the error"),
            None => held,
        })
    };
    manifests.apps.iter().filter_map(|app| hold(app)).collect()
}
