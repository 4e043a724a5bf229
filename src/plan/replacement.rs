//! Objects that the cluster refused to change, because what is to change never does.
//!
//! Only the refusal of the cluster says that a field never changes. It is kept with the content and the uid that it was about
//! (`Observation::immutable`). The next plan deletes; the one after the watch reported the object gone creates it.

use super::{Action, Reason};
use crate::model::{Live, ObjectId, Observation, RenderedObject};

/// What is done instead of a write that the cluster has refused before. It is refused for this content and this object alone:
/// who renders something else, or finds another object, tries again.
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

/// Why it stays as it is, whatever Git says. `keep`: its annotation says so.
pub fn objection(id: &ObjectId, keep: bool) -> Option<String> {
    if id.takes_others_along() {
        Some(format!("what is in a {} would be lost", id.kind))
    } else {
        keep.then(|| "its annotation says keep".to_owned())
    }
}
