//! Replaces objects whose immutable fields change.
//!
//! Only a refusal by the cluster shows that a field is immutable. `Observation::immutable_changes` keeps it for that content
//! and uid. The next plan deletes the object; the plan after the watch reported the delete creates it again.

use super::{PlanAction, StepReason};
use crate::model::{LiveObject, ObjectId, Observation, RenderedObject};

/// Turns a write that the cluster refused as immutable into a delete or a refusal. It holds for this content and this
/// uid alone: another render or another object is tried again.
pub fn replace_if_immutable(
    observation: &Observation,
    object: &RenderedObject,
    live: Option<&LiveObject>,
    may_replace: bool,
    decided: (PlanAction, StepReason),
) -> (PlanAction, StepReason) {
    let refused = observation.immutable_changes.get(&object.id).filter(|it| it.hash == object.hash);
    let Some((refused, live)) = refused.zip(live).filter(|(refused, live)| refused.uid == live.uid) else {
        return decided;
    };
    if decided.0 != PlanAction::Configure || !may_replace {
        return decided;
    }
    let fields = refused.fields.clone();
    match replacement_objection(&object.id, live.keep) {
        Some(why) => (PlanAction::Refuse, StepReason::CannotReplace { fields, why }),
        None => (PlanAction::Delete, StepReason::Replaced { fields }),
    }
}

/// Why the object is never replaced. `keep`: kept by an annotation.
pub fn replacement_objection(id: &ObjectId, keep: bool) -> Option<String> {
    if id.deletes_contents() {
        Some("its contents would be deleted with it".to_owned())
    } else {
        keep.then(|| "kept by an annotation".to_owned())
    }
}
