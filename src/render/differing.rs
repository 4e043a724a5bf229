//! Which apps may render otherwise in one revision than in another, without rendering them.

use std::collections::BTreeSet;

use super::Renderer;
use super::inputs::Inputs;
use crate::fleet::layers::TEMPLATES;
use crate::model::{AppId, Digest};

/// The apps to render to know what a revision changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Differing {
    /// What all of them stand on differs: the instance, a cluster, the rings, the shared layers.
    All,
    /// These, and those that only one side has.
    Apps(BTreeSet<AppId>),
}

/// By what their renders are made from. An app that is not named renders to the same on both sides, unless another one changes which
/// kinds there are.
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
