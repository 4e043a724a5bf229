//! The outcome for objects that are no longer rendered, as far as it is decided without a cluster.

use super::comparison::{Action, AppChange, Fate};
use crate::fleet::Fleet;
use crate::model::mark::kept_by;
use crate::model::{App, Caps, ObjectId, PruneMode, RenderedObject};

/// The settings that apply to all removed objects of an app.
#[derive(Clone, Debug)]
pub(super) struct Removal {
    /// The reason why all of them stay.
    kept: Option<&'static str>,
    /// The app exists, and is placed on no cluster.
    placed_nowhere: bool,
}

impl Removal {
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
        Self { kept, placed_nowhere: after.is_some_and(|app| head.clusters_of(app).is_empty()) }
    }

    pub fn fate(&self, object: &RenderedObject) -> Fate {
        let body = object.body.fields();
        let kept = self.kept.map(ToOwned::to_owned).or_else(|| kept_by(&body));
        if let Some(why) = kept {
            return Fate::Kept(why);
        }
        let waits = |why: &str| Fate::WaitsForApproval(why.to_owned());
        match () {
            () if object.id.takes_others_along() => {
                waits(&format!("what is in a {} goes with it", object.id.kind))
            }
            () if ObjectId::claims_go_along(&body) => waits("its volume claims go with it"),
            () if self.placed_nowhere => waits("the app is on no cluster any more"),
            () => Fate::Deleted,
        }
    }
}

/// Marks all deletes as waiting when there are more than a commit may do without an approval. Fewer may still exceed the percentage,
/// which depends on the live objects.
pub(super) fn over_cap(apps: &mut [AppChange], caps: Caps) {
    let cap = caps.deletes.max(Caps::FLOOR) as usize;
    let objects = apps.iter().flat_map(|app| &app.objects).filter(|it| it.action == Action::Delete);
    let deletes: usize = objects.map(|it| it.clusters.len()).sum();
    if deletes <= cap {
        return;
    }
    let objects = apps.iter_mut().flat_map(|app| &mut app.objects);
    for object in objects.filter(|it| it.fate == Some(Fate::Deleted)) {
        object.fate = Some(Fate::WaitsForApproval(format!("{deletes} deletes, more than the cap of {cap}")));
    }
}
