//! The inputs of an app that do not depend on the cluster. The cache of renders compares them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::app_layer_names::AppLayerNames;
use super::object_files;
use crate::fleet::charts::folder_of;
use crate::fleet::{Fleet, Waves, selector, selects_by_ring};
use crate::manifest;
use crate::model::{App, AppSpec, DerivedFact, Digest, Location, Revision, Snapshot, SnapshotFile};

#[derive(Debug)]
pub struct AppInputs<'a> {
    pub app: &'a Arc<App>,
    /// Set if the project of its namespace restricts the app.
    project: Option<&'a Arc<App>>,
    /// Files of an Objects app, charts of the repository.
    files: Option<Digest>,
    pub layer_names: AppLayerNames,
    pub waves: Waves,
    /// The folder of its own layer, with a final `/`.
    pub own_layer: Option<String>,
    /// The index of the last commit that changed an input.
    pub newest_commit: Option<usize>,
    /// The render depends on the ring, layers aside.
    pub uses_ring: bool,
    layer_files: Option<Digest>,
    /// The last commit that changed an input, a pin or a chart.
    last_change: &'a Revision,
}

/// The inputs as the cache keeps them.
#[derive(Clone, Debug)]
pub struct CachedAppInputs {
    app: Arc<App>,
    project: Option<Arc<App>>,
    files: Option<Digest>,
    layer_files: Option<Digest>,
    last_change: Option<Revision>,
}

impl CachedAppInputs {
    pub fn of_app_alone(app: &Arc<App>) -> Self {
        Self { app: Arc::clone(app), project: None, files: None, layer_files: None, last_change: None }
    }
}

impl<'a> AppInputs<'a> {
    pub fn of(fleet: &'a Fleet, snapshot: &'a Snapshot, app: &'a Arc<App>) -> Self {
        let project = fleet.project_of(app);
        let own = format!("{}layer/", app.folder());
        let table = &fleet.instance.labels;
        let mut by_ring = selects_by_ring(app)
            || table.labels.values().chain(table.env.values()).any(|fact| *fact == DerivedFact::Ring);
        let mut paths: Vec<&str> = vec![&app.location.file, &own, manifest::CONVERSIONS];
        paths.extend(fleet.instance.location.as_ref().map(|location: &Location| location.file.as_str()));
        paths.extend(app.routes.iter().map(|route| route.location.file.as_str()));
        if let Some((project, of_project)) = project {
            let placed_by_it = selector(app).is_some_and(|placement| placement.location.is_none());
            if placed_by_it || of_project.allow.is_some() {
                paths.push(&project.location.file);
            }
        }
        let mut files: Vec<(&str, &SnapshotFile)> = Vec::new();
        if let AppSpec::Objects(of_app) = &app.spec {
            by_ring |= object_files::templates_use_ring(of_app, snapshot);
            let listed = object_files::listed_files(of_app, snapshot);
            files.extend(listed.iter().filter_map(|path| Some((*path, snapshot.files.get(*path)?))));
            paths.extend(listed);
        }
        let charts = chart_folders(app, fleet);
        files.extend(charts.iter().flat_map(|folder| snapshot.files_in(folder)));
        let of_layer: Vec<(&str, &SnapshotFile)> = snapshot.files_in(&own).collect();
        let newest = snapshot.history.newest(paths);
        let pins = app.pins.values().map(|pin| pin.location.file.as_str());
        let of_some = snapshot.history.newest(pins.chain(charts.iter().map(String::as_str)));
        let changed = snapshot.revision_at([newest, of_some].into_iter().flatten().min());
        Self {
            app,
            project: project.map(|(project, _)| project),
            files: digest_of_files(files),
            layer_names: AppLayerNames::of(&app.spec),
            waves: Waves::of(fleet, app),
            own_layer: (!of_layer.is_empty()).then_some(own),
            newest_commit: newest,
            uses_ring: by_ring,
            layer_files: digest_of_files(of_layer),
            last_change: changed,
        }
    }

    pub fn to_cached(&self) -> CachedAppInputs {
        CachedAppInputs {
            app: Arc::clone(self.app),
            project: self.project.cloned(),
            files: self.files,
            layer_files: self.layer_files,
            last_change: Some(self.last_change.clone()),
        }
    }

    /// Neither the inputs nor their commit have changed.
    pub fn is_untouched(&self, kept: &CachedAppInputs) -> bool {
        kept.last_change.as_ref() == Some(self.last_change)
            && kept.layer_files == self.layer_files
            && kept.app.pins == self.app.pins
            && self.is_same_as(kept)
    }

    /// Whether renders may differ, given equal clusters and shared layers.
    pub fn differ_from(&self, other: &AppInputs<'_>) -> bool {
        self.layer_files != other.layer_files
            || self.app.pins != other.app.pins
            || !self.is_same_as(&other.to_cached())
    }

    pub fn is_same_as(&self, kept: &CachedAppInputs) -> bool {
        let same = |one: &Arc<App>, other: &Arc<App>| {
            Arc::ptr_eq(one, other) || without_pins(one) == without_pins(other)
        };
        let same_project = match (self.project, &kept.project) {
            (None, None) => true,
            (Some(one), Some(other)) => same(one, other),
            _ => false,
        };
        same_project && self.files == kept.files && same(self.app, &kept.app)
    }
}

/// A pin changes podSets, which are compared separately.
fn without_pins(app: &Arc<App>) -> Cow<'_, App> {
    if app.pins.is_empty() {
        return Cow::Borrowed(app);
    }
    Cow::Owned(App { pins: BTreeMap::new(), ..App::clone(app) })
}

fn digest_of_files(files: Vec<(&str, &SnapshotFile)>) -> Option<Digest> {
    (!files.is_empty()).then(|| Digest::of_files(files.into_iter()))
}

fn chart_folders(app: &App, fleet: &Fleet) -> Vec<String> {
    let AppSpec::AppSet(app_set) = &app.spec else { return Vec::new() };
    app_set.charts().filter_map(|chart| folder_of(chart, &fleet.instance.charts)).collect()
}
