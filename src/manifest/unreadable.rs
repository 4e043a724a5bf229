//! Decides what must wait for an unreadable document. A typo in an Instance, Rings or Project must not count as its absence: an
//! observing instance would begin to write, and apps would run without rings or without project limits.

use std::sync::Arc;

use super::codes;
use super::find::{is_below_apps, usual_kind_at};
use super::ignored_files::IgnoredFiles;
use super::kinds::{self, ManifestKind};
use super::manifests::Manifests;
use super::possible_kinds::SHARED_KINDS;
use crate::model::{Diagnostic, DiagnosticScope, Location, Policy, Snapshot, outside_path};

impl Manifests {
    /// Records that an unreadable location may hold each of these kinds. Below `apps/` it blocks only its own folder.
    pub(super) fn record_unreadable(
        &mut self,
        place: &Location,
        meant: impl IntoIterator<Item = ManifestKind>,
    ) {
        for native in meant {
            if native != ManifestKind::Instance && is_below_apps(&place.file) {
                let folder = place.file.rsplit_once('/').map(|(folder, _)| folder);
                // A link may hide a folder; a file blocks only itself.
                let own = folder.filter(|folder| *folder != "apps").unwrap_or(&place.file);
                if native == ManifestKind::Project {
                    self.unreadable_below_apps.entry(format!("{own}/")).or_insert_with(|| place.clone());
                }
                continue;
            }
            let known = self.unreadable.entry(native).or_insert_with(|| place.clone());
            let rank = |place: &Location| usual_kind_at(&place.file) != Some(native);
            if (rank(place), place) < (rank(known), known) {
                known.clone_from(place);
            }
        }
    }

    /// Adds a policy that denies everything for an unreadable document below `policies/`.
    pub(super) fn record_unreadable_policy(&mut self, place: &Location) {
        if place.file.starts_with(kinds::policy::FOLDER) {
            self.policies.push(Arc::new(Policy::unreadable(&place.file, place.clone())));
        }
    }

    /// The unreadable location that may hold the project of an app, by the app's file.
    pub fn unreadable_project_of(&self, file: &str) -> Option<&Location> {
        let mut folders = file.match_indices('/').map(|(slash, _)| &file[..=slash]);
        let in_file = || self.unreadable_below_apps.get(&format!("{file}/"));
        let of_folder = || folders.find_map(|folder| self.unreadable_below_apps.get(folder));
        self.unreadable.get(&ManifestKind::Project).or_else(of_folder).or_else(in_file)
    }

    /// Records links, because the files and folders behind them are unknown.
    pub(super) fn record_links(&mut self, snapshot: &Snapshot, ignored: &IgnoredFiles) {
        let links = snapshot.files.iter().filter(|(path, file)| file.is_link() && !ignored.fits(path));
        for path in links.map(|(path, _)| path) {
            let place = Location::new(path, 1, 1);
            let is_file = path.ends_with(".yaml") || path.ends_with(".yml") || path.ends_with(".j2");
            let shared = ["templates", "health", "plugins"];
            let is_shared = shared.contains(&path.split('/').next().unwrap_or_default());
            // A hidden folder of shared kinds may affect every app.
            let scope = if is_shared && !is_file {
                DiagnosticScope::Instance
            } else {
                DiagnosticScope::File(path.clone())
            };
            let message = format!("{path} {}", snapshot.why_unreadable(path));
            let error = Diagnostic::error(codes::UNREADABLE, message, scope).at(place.clone());
            self.diagnostics.push(error.help("replace the link by the file or folder that it names"));
            let folder = kinds::policy::FOLDER;
            if path.starts_with(folder) || path == folder.trim_end_matches('/') {
                self.policies.push(Arc::new(Policy::unreadable(path, place.clone())));
            }
            if !is_shared && !path.starts_with("charts/") && !outside_path::is_outside(path) {
                self.record_unreadable(&place, SHARED_KINDS);
            }
        }
    }

    /// Records a file with a mistake at the usual path of a shared kind, when the file does not contain that kind.
    pub(super) fn record_unreadable_file(&mut self, path: &str) {
        let usual = usual_kind_at(path).filter(|native| !self.has_kind(*native));
        if let (Some(usual), Some(place)) = (usual, first_error(&self.diagnostics)) {
            self.record_unreadable(&place, [usual]);
        }
    }

    /// Blocks everything while an unreadable document may be the Instance or the Rings, unless those were read. An unreadable project blocks
    /// only its apps, in the fleet.
    pub(super) fn block_on_unreadable(&mut self) {
        for native in SHARED_KINDS {
            let Some(place) = self.unreadable.get(&native).filter(|_| self.blocks_everything(native)) else {
                continue;
            };
            let there = |it: &&mut Diagnostic| it.is_error() && it.location.as_ref() == Some(place);
            self.diagnostics.iter_mut().filter(there).for_each(|it| it.scope = DiagnosticScope::Instance);
        }
    }

    /// Whether an unreadable document of this kind blocks everything.
    pub fn blocks_everything(&self, native: ManifestKind) -> bool {
        // A readable document elsewhere does not replace an unreadable one at the usual path.
        let is_usual = |place: &Location| usual_kind_at(&place.file) == Some(native);
        let is_lost = || self.unreadable.get(&native).is_some_and(is_usual);
        match native {
            ManifestKind::Instance => {
                let place = self.instance.as_ref().and_then(|instance| instance.location.as_ref());
                self.instance.is_none() || is_lost() && !place.is_some_and(is_usual)
            }
            ManifestKind::Rings => {
                let place = self.rings.as_ref().map(|rings| &rings.location);
                place.is_none_or(|place| is_lost() && !is_usual(place))
            }
            _ => false,
        }
    }

    /// Whether a document of a shared kind is known, valid or not.
    fn has_kind(&self, native: ManifestKind) -> bool {
        match native {
            ManifestKind::Instance => self.instance.is_some(),
            ManifestKind::Rings => self.rings.is_some(),
            ManifestKind::Project => {
                !self.invalid_projects.is_empty() || self.apps.iter().any(|app| app.id.is_project())
            }
            ManifestKind::Cluster
            | ManifestKind::AppSet
            | ManifestKind::Component
            | ManifestKind::Objects
            | ManifestKind::Route
            | ManifestKind::Approval
            | ManifestKind::Trigger
            | ManifestKind::Notification
            | ManifestKind::Server
            | ManifestKind::Policy
            | ManifestKind::Window
            | ManifestKind::Analysis
            | ManifestKind::ApprovalRule
            | ManifestKind::Approvers => false,
        }
    }
}

pub fn first_error<'d>(mistakes: impl IntoIterator<Item = &'d Diagnostic>) -> Option<Location> {
    let errors = mistakes.into_iter().filter(|it| it.is_error());
    errors.filter_map(|it| it.location.as_ref()).min().cloned()
}
