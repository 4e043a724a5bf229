//! Writes that a policy denies.

use super::{Action, Reason};
use crate::model::{Observation, RenderedObject};

/// What is done instead of a write that was denied. What is as rendered is not written, so no policy is asked about it.
pub fn instead(
    observation: &Observation,
    object: &RenderedObject,
    decided: (Action, Reason),
) -> (Action, Reason) {
    let denial = observation.verdict(object).and_then(|judged| judged.denial.as_ref());
    match denial.filter(|_| decided.0.is_write()) {
        Some(denial) => (Action::Refuse, Reason::of_denial(denial)),
        None => decided,
    }
}
