//! Finds apps whose renders may differ between two revisions, without rendering them.

use std::collections::BTreeSet;

use super::FleetRenderer;
use super::app_inputs::AppInputs;
use crate::fleet::layers::TEMPLATES_FOLDER;
use crate::model::{AppId, Digest};

/// The apps to render for a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedApps {
    /// A shared input differs: the instance, a cluster, the rings, the shared layers.
    All,
    /// These apps, and apps of one side only.
    Apps(BTreeSet<AppId>),
}

/// Compares inputs. An app that is not listed renders equally on both sides, unless another app changes the served kinds.
pub fn changed_apps(base: &FleetRenderer<'_>, head: &FleetRenderer<'_>) -> ChangedApps {
    let layers =
        |renderer: &FleetRenderer<'_>| Digest::of_files(renderer.snapshot.files_in(TEMPLATES_FOLDER));
    let same_ground = base.fleet.instance == head.fleet.instance
        && base.fleet.clusters == head.fleet.clusters
        && base.fleet.rings == head.fleet.rings
        && base.discovered == head.discovered
        && layers(base) == layers(head);
    if !same_ground {
        return ChangedApps::All;
    }
    let ids = base.fleet.apps.keys().chain(head.fleet.apps.keys());
    let differs = |id: &&AppId| match (base.fleet.apps.get(*id), head.fleet.apps.get(*id)) {
        (Some(before), Some(after)) => {
            let inputs = AppInputs::of(head.fleet, head.snapshot, after);
            inputs.differ_from(&AppInputs::of(base.fleet, base.snapshot, before))
        }
        _ => true,
    };
    ChangedApps::Apps(ids.filter(differs).cloned().collect())
}
