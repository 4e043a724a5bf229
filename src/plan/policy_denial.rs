//! Refuses writes that a policy denies.
//!
//! `reconcile/admission.rs` evaluates the policies and stores the verdicts in `Observation::verdicts`. A new head, a
//! changed object or another applied state drops them. A denied write does not fail a rollout.

use super::{PlanAction, StepReason};
use crate::model::{Observation, RenderedObject};

/// Replaces the decision by a refusal if a policy denies the write. Policies do not judge objects that are already as
/// rendered.
pub fn refuse_if_denied(
    observation: &Observation,
    object: &RenderedObject,
    decided: (PlanAction, StepReason),
) -> (PlanAction, StepReason) {
    let judged = decided.0.operation().and_then(|operation| observation.verdict(object, operation));
    match judged.and_then(|judged| judged.denial.as_ref()) {
        Some(denial) => (PlanAction::Refuse, StepReason::of_denial(denial)),
        None => decided,
    }
}
