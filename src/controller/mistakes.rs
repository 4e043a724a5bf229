//! Targets that errors in the repository hide: their desired state is unknown, so they are shown and not changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::state::ControllerState;
use crate::fleet::{Fleet, Target};
use crate::model::{App, ClusterName, Diagnostic, Revision};
use crate::render::{Renders, TargetRender};

/// Errors of one commit that are logged.
const MAX_LOGGED: usize = 20;

/// Logs errors that are new.
pub(super) fn log_mistakes(fleet: &Fleet, before: Option<&Fleet>) {
    let known: BTreeSet<(&str, &str)> =
        before.iter().flat_map(|fleet| errors(fleet)).map(diagnostic_key).collect();
    let mut new = errors(fleet).filter(|error| !known.contains(&diagnostic_key(error)));
    for error in new.by_ref().take(MAX_LOGGED) {
        tracing::error!(%error, "an error in the config repository");
    }
    let more = new.count();
    if more > 0 {
        tracing::error!(more, "more errors in the config repository");
    }
}

fn errors(fleet: &Fleet) -> impl Iterator<Item = &Diagnostic> {
    fleet.diagnostics.iter().filter(|it| it.is_error())
}

/// An error that only moved to another line is the same error.
fn diagnostic_key(error: &Diagnostic) -> (&str, &str) {
    (error.code, &error.message)
}

impl ControllerState {
    /// Apps whose manifest has errors, on the clusters where they run or would run.
    pub(super) fn broken_targets(&self, fleet: &Fleet) -> BTreeMap<Target, (Arc<App>, TargetRender)> {
        let mut targets = BTreeMap::new();
        for (app_id, broken) in &fleet.broken_apps {
            let known = self.targets.of_app(app_id);
            let mut places: BTreeMap<ClusterName, Arc<App>> =
                known.map(|(id, entry)| (id.cluster.clone(), Arc::clone(&entry.app))).collect();
            if let Some(app) = &broken.app {
                places.extend(fleet.clusters_of(app).into_iter().map(|cluster| (cluster, Arc::clone(app))));
            }
            for (cluster, app) in places {
                let Some(revision) = self.newest_responsible_commit(&app, &broken.errors, None) else {
                    continue;
                };
                let render = (revision, Err(broken.errors.clone()));
                targets.insert(Target { app: app_id.clone(), cluster }, (app, render));
            }
        }
        targets
    }

    /// Targets on clusters whose file has errors. Their desired state is unknown, so a commit that changes one of these apps is
    /// not finished.
    pub(super) fn hidden_targets(
        &self,
        fleet: &Fleet,
        renders: &Renders,
    ) -> BTreeMap<Target, (Arc<App>, TargetRender)> {
        let mut targets = BTreeMap::new();
        let hidden = self.clusters.iter().filter(|(name, _)| !fleet.clusters.contains_key(*name));
        for (name, entry) in hidden {
            let file = &entry.cluster.location.file;
            let is_of_it =
                |it: &&Diagnostic| it.is_error() && it.location.as_ref().is_some_and(|at| at.file == *file);
            let mistakes: Vec<Diagnostic> = fleet.diagnostics.iter().filter(is_of_it).cloned().collect();
            for id in self.targets.targets_on(name) {
                let Some(app) = fleet.apps.get(&id.app).filter(|_| !mistakes.is_empty()) else { continue };
                if let Some(revision) = self.newest_responsible_commit(app, &mistakes, Some(renders)) {
                    targets.insert(id, (Arc::clone(app), (revision, Err(mistakes.clone()))));
                }
            }
        }
        targets
    }

    /// The newest commit that changed a hidden app or the errors. It comes from the app's own files, and from the inputs of its
    /// renders on other clusters.
    fn newest_responsible_commit(
        &self,
        app: &App,
        mistakes: &[Diagnostic],
        renders: Option<&Renders>,
    ) -> Option<Revision> {
        let snapshot = self.snapshot.as_ref()?;
        let manifest = app.location.file.as_str();
        let folder = manifest.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_its_own = folder.rsplit('/').next() == Some(&*app.id.name);
        let own = if is_its_own { format!("{folder}/") } else { format!("{folder}/layer/") };
        let places = mistakes.iter().filter_map(|it| Some(it.location.as_ref()?.file.as_str()));
        let of_files = snapshot.history.newest(places.chain([manifest, &own]));
        let elsewhere = renders.into_iter().flat_map(|renders| renders.of_app(&app.id));
        let commits = &snapshot.history.commits;
        let of_renders = elsewhere.filter_map(|(revision, _)| commits.iter().position(|it| it == revision));
        let newest = of_files.into_iter().chain(of_renders).min();
        Some(snapshot.revision_at(newest).clone())
    }
}
