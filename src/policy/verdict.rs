//! The verdicts of policies on one object.

use std::sync::Arc;

use crate::model::{Location, Policy, PolicyAction};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictCause {
    /// A validation is false.
    Untrue,
    /// A condition or validation cannot be evaluated on this object.
    NotEvaluated,
    /// The policy has a mistake, which its file reports.
    Broken,
}

/// The result of a policy that an object violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyVerdict {
    pub policy: Arc<Policy>,
    pub action: PolicyAction,
    pub cause: VerdictCause,
    pub message: String,
    /// The position of the false expression.
    pub place: Location,
    /// The field that the expression reads, if it names one: `spec.replicas`.
    pub field: Option<String>,
}

/// All verdicts on an object, with the cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyEvaluation {
    pub verdicts: Vec<PolicyVerdict>,
    /// Policies whose expressions were evaluated.
    pub evaluated: usize,
    pub steps: u64,
    /// The policy with the most steps.
    pub costliest: Option<Arc<Policy>>,
}
