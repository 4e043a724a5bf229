//! Attaches Route manifests to their apps. Called by `assemble`.

use std::sync::Arc;

use super::codes;
use crate::manifest::Manifests;
use crate::model::{App, AppSpec, Diagnostic, DiagnosticScope, Location};

/// Attaches each Route to the app that it names, or to the only app of its folder.
pub fn attach_routes(manifests: &mut Manifests) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    for manifest in std::mem::take(&mut manifests.routes) {
        let location = manifest.route.location.clone();
        let beside = |app: &App| app.folder() == folder(&location);
        let fits = |app: &App| match (&manifest.app, &manifest.namespace) {
            _ if matches!(app.spec, AppSpec::Project(_)) => false,
            (Some(name), Some(namespace)) => *app.id.name == **name && *app.id.namespace == **namespace,
            (Some(name), None) => *app.id.name == **name && beside(app),
            (None, Some(namespace)) => *app.id.namespace == **namespace && beside(app),
            (None, None) => beside(app),
        };
        let mut apps = manifests.apps.iter_mut().filter(|app| fits(app));
        match (apps.next(), apps.next()) {
            (Some(app), None) => Arc::make_mut(app).routes.push(manifest.route),
            (first, _) => {
                let which = if first.is_some() { "several apps" } else { "no app" };
                let message = format!("Route {} belongs to {which}", manifest.route.name);
                let error = Diagnostic::error(
                    codes::ROUTE_WITHOUT_APP,
                    message,
                    DiagnosticScope::File(location.file.clone()),
                );
                wrong.push(error.at(location).help(
                    "put it into the folder of its app, or name that with spec.app and metadata.namespace",
                ));
            }
        }
    }
    wrong
}

fn folder(location: &Location) -> &str {
    location.file.rfind('/').map_or("", |slash| &location.file[..=slash])
}
