//! One app on one cluster: what a chain explains.

use super::WhyContext;
use super::writers::folder_of;
use crate::model::{App, AppId, ClusterName, Location};
use crate::report::{RolloutReport, TargetReport};

pub struct ChainSubject<'a> {
    pub context: &'a WhyContext<'a>,
    pub app: &'a AppId,
    pub manifest: Option<&'a App>,
    /// `None`: the app is not placed there.
    pub target: Option<&'a TargetReport>,
    pub cluster: Option<&'a ClusterName>,
}

impl<'a> ChainSubject<'a> {
    pub fn new(
        look: &'a WhyContext<'a>,
        app: &'a AppId,
        target: Option<&'a TargetReport>,
        cluster: Option<&'a ClusterName>,
    ) -> Self {
        let fleet = look.fleet;
        let broken = || fleet.broken_apps.get(app)?.app.as_ref();
        let manifest = fleet.apps.get(app).or_else(broken).map(|app| &**app);
        Self { context: look, app, manifest, target, cluster }
    }

    pub fn rollout_report(&self) -> Option<&'a RolloutReport> {
        self.context.overview.rollout_of(self.app)
    }

    pub fn manifest_place(&self) -> Option<Location> {
        self.manifest.map(|app| app.location.clone())
    }

    /// The folder of its manifest.
    pub fn folder(&self) -> String {
        self.manifest.map_or_else(String::new, |app| self.folder_of(&app.location))
    }

    pub fn folder_of(&self, place: &Location) -> String {
        folder_of(&place.file, self.manifest.map(App::folder))
    }
}
