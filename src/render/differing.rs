//! Finds apps whose renders may differ between two revisions, without rendering them.

use std::collections::BTreeSet;

use super::Renderer;
use super::inputs::Inputs;
use crate::fleet::layers::TEMPLATES;
use crate::model::{AppId, Digest};

/// The apps to render for a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Differing {
    /// A shared input differs: the instance, a cluster, the rings, the shared layers.
    All,
    /// These apps, and apps of one side only.
    Apps(BTreeSet<AppId>),
}

/// Compares inputs. An app that is not listed renders equally on both sides, unless another app changes the served kinds.
pub fn differing(base: &Renderer<'_>, head: &Renderer<'_>) -> Differing {
    let layers = |renderer: &Renderer<'_>| Digest::of_files(renderer.snapshot.files_in(TEMPLATES));
    let same_ground = base.fleet.instance == head.fleet.instance
        && base.fleet.clusters == head.fleet.clusters
        && base.fleet.rings == head.fleet.rings
        && base.discovered == head.discovered
        && layers(base) == layers(head);
    if !same_ground {
        return Differing::All;
    }
    let ids = base.fleet.apps.keys().chain(head.fleet.apps.keys());
    let differs = |id: &&AppId| match (base.fleet.apps.get(*id), head.fleet.apps.get(*id)) {
        (Some(before), Some(after)) => {
            let inputs = Inputs::of(head.fleet, head.snapshot, after);
            inputs.differ_from(&Inputs::of(base.fleet, base.snapshot, before))
        }
        _ => true,
    };
    Differing::Apps(ids.filter(differs).cloned().collect())
}
