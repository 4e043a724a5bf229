//! Evaluates the policies of a repository on one change of one object.
//!
//! [`Policies::of`] compiles all policies once. [`Policies::select`] selects those of a target, and [`SelectedPolicies::evaluate`]
//! evaluates those that match the resource, so excluded policies cost nothing. The rules are those of Kubernetes'
//! ValidatingAdmissionPolicy, with `app`, `cluster`, `ring` and `objects` as further variables.
//!
//! Each policy has a limit of steps and memory for an object ([`CelMeter`](crate::cel::CelMeter)). A failed evaluation denies, with the reason.
//!
//! This module never renders, never reads a cluster, and never panics, whatever policies and objects contain.
//!
//! Three callers use it: `render::policy_verdicts` for renders of Git (`lint`, `why`), `compare` for both sides of a pull request,
//! and `reconcile/admission.rs` with `controller/delete_policies.rs` for writes and deletes. A policy with a mistake denies every
//! object that it selects. The cases of `tests/fixtures/admission` have the verdicts of a real API server.

mod compiled_policy;
mod examples;
mod matching;
mod object_change;
mod policy_set;
#[cfg(test)]
mod tests;
mod verdict;

pub use compiled_policy::PolicyMistake;
pub use examples::{ExampleOutcome, example_outcomes};
pub use object_change::{PolicyObjectChange, PolicyTarget, default_namespace_labels};
pub use policy_set::{Policies, SelectedPolicies};
pub use verdict::{PolicyEvaluation, PolicyVerdict, VerdictCause};
