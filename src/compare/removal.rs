//! The outcome for objects that are no longer rendered, as far as it is decided without a cluster.

use super::comparison::{AppChange, ObjectChangeAction, RemovalOutcome};
use crate::fleet::Fleet;
use crate::model::foreign_annotation::keep_reason;
use crate::model::{App, DeleteCaps, ObjectId, PruneMode, RenderedObject};

/// The settings that apply to all removed objects of an app.
#[derive(Clone, Debug)]
pub(super) struct AppRemoval {
    /// The reason why all of them stay.
    keep_reason: Option<&'static str>,
    /// The app exists, and is placed on no cluster.
    is_placed_nowhere: bool,
}

impl AppRemoval {
    /// `after`: as the head has it.
    pub fn of(head: &Fleet, before: Option<&App>, after: Option<&App>) -> Self {
        let default = head.instance.defaults.prune;
        let never = |app: &App| app.prune.unwrap_or(default) == PruneMode::Never;
        let kept = match (before, after) {
            (_, Some(app)) if app.unmanaged => Some("the app is unmanaged"),
            (_, Some(app)) if never(app) => Some("prune: never"),
            (Some(app), None) if never(app) => Some("prune: never"),
            _ => None,
        };
        Self {
            keep_reason: kept,
            is_placed_nowhere: after.is_some_and(|app| head.clusters_of(app).is_empty()),
        }
    }

    pub fn outcome(&self, object: &RenderedObject) -> RemovalOutcome {
        let body = object.body.fields();
        let kept = self.keep_reason.map(ToOwned::to_owned).or_else(|| keep_reason(&body));
        if let Some(why) = kept {
            return RemovalOutcome::Kept(why);
        }
        let waits = |why: &str| RemovalOutcome::WaitsForApproval(why.to_owned());
        match () {
            () if object.id.deletes_contents() => waits("its contents would be deleted with it"),
            () if ObjectId::deletes_volume_claims(&body) => {
                waits("its volume claims would be deleted with it")
            }
            () if self.is_placed_nowhere => waits("the app is placed on no cluster"),
            () => RemovalOutcome::Deleted,
        }
    }
}

/// Marks all deletes as waiting when there are more than a commit may do without an approval. Fewer may still exceed the percentage,
/// which depends on the live objects.
pub(super) fn apply_delete_cap(apps: &mut [AppChange], caps: DeleteCaps) {
    let cap = caps.deletes.max(DeleteCaps::FLOOR) as usize;
    let objects =
        apps.iter().flat_map(|app| &app.objects).filter(|it| it.action == ObjectChangeAction::Delete);
    let deletes: usize = objects.map(|it| it.clusters.len()).sum();
    if deletes <= cap {
        return;
    }
    let objects = apps.iter_mut().flat_map(|app| &mut app.objects);
    for object in objects.filter(|it| it.fate == Some(RemovalOutcome::Deleted)) {
        object.fate =
            Some(RemovalOutcome::WaitsForApproval(format!("{deletes} deletes, more than the cap of {cap}")));
    }
}
