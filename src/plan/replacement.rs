//! Replaces objects whose immutable fields change.
//!
//! Only a refusal by the cluster shows that a field is immutable. `Observation::immutable` keeps it for that content
//! and uid. The next plan deletes the object; the plan after the watch reported the delete creates it again.

use super::{Action, Reason};
use crate::model::{Live, ObjectId, Observation, RenderedObject};

/// Turns a write that the cluster refused as immutable into a delete or a refusal. It holds for this content and this
/// uid alone: another render or another object is tried again.
pub fn instead(
    observation: &Observation,
    object: &RenderedObject,
    live: Option<&Live>,
    may_replace: bool,
    decided: (Action, Reason),
) -> (Action, Reason) {
    let refused = observation.immutable.get(&object.id).filter(|it| it.hash == object.hash);
    let Some((refused, live)) = refused.zip(live).filter(|(refused, live)| refused.uid == live.uid) else {
        return decided;
    };
    if decided.0 != Action::Configure || !may_replace {
        return decided;
    }
    let fields = refused.fields.clone();
    match objection(&object.id, live.keep) {
        Some(why) => (Action::Refuse, Reason::CannotReplace { fields, why }),
        None => (Action::Delete, Reason::Replaced { fields }),
    }
}

/// Why the object is never replaced. `keep`: its annotation says keep.
pub fn objection(id: &ObjectId, keep: bool) -> Option<String> {
    if id.takes_others_along() {
        Some(format!("what is in a {} would be lost", id.kind))
    } else {
        keep.then(|| "its annotation says keep".to_owned())
    }
}
