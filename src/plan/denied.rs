//! Writes that a policy denies.
//!
//! Verdicts are in `Observation::judged`; `reconcile/admission.rs` evaluates them. They are dropped with the head, with the object, and
//! with what was applied before. A denial is no failure of a rollout.

use super::{Action, Reason};
use crate::model::{Observation, RenderedObject};

/// What is done instead of a write that was denied. What is as rendered is not written, so no policy is asked about it.
pub fn instead(
    observation: &Observation,
    object: &RenderedObject,
    decided: (Action, Reason),
) -> (Action, Reason) {
    let judged = decided.0.operation().and_then(|operation| observation.verdict(object, operation));
    match judged.and_then(|judged| judged.denial.as_ref()) {
        Some(denial) => (Action::Refuse, Reason::of_denial(denial)),
        None => decided,
    }
}
