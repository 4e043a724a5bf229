//! Kind Policy: what may not be deployed, as rules over rendered objects and their changes.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::{LabelSelector, Location, TargetSelector, short_line};

/// Of a path in the place of a name.
const MOST_OF_A_NAME: usize = 253;

/// What becomes of an object that breaks a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyAction {
    /// It is not deployed.
    #[default]
    Deny,
    /// It is deployed, and a warning is shown.
    Warn,
    /// The same, as the API server does for `validationActions: [Audit]`.
    Audit,
}

impl fmt::Display for PolicyAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deny => "deny",
            Self::Warn => "warn",
            Self::Audit => "audit",
        })
    }
}

/// One rule set below `policies/`: of kind Policy, or a ValidatingAdmissionPolicy with one of its bindings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub name: String,
    pub action: PolicyAction,
    pub description: Option<String>,
    pub selector: TargetSelector,
    /// All of them must match; none matches every object.
    pub constraints: Vec<MatchConstraints>,
    pub conditions: Vec<NamedExpression>,
    /// Each may name those before it.
    pub variables: Vec<NamedExpression>,
    pub validations: Vec<Validation>,
    /// `None`: expressions cannot name `params`.
    pub params: Option<Value>,
    /// What cannot be evaluated is allowed: `failurePolicy: Ignore`.
    pub ignores_failures: bool,
    pub examples: Vec<PolicyExample>,
    /// Its manifest has a mistake: it denies all that it matches, as far as that could be read.
    pub has_mistake: bool,
    pub location: Location,
}

impl Policy {
    /// A policy in place of an unreadable one: it denies everything, because the intended rules are unknown.
    pub fn unreadable(name: &str, location: Location) -> Self {
        Self {
            name: short_line(name, MOST_OF_A_NAME),
            action: PolicyAction::Deny,
            description: None,
            selector: TargetSelector::default(),
            constraints: Vec::new(),
            conditions: Vec::new(),
            variables: Vec::new(),
            validations: Vec::new(),
            params: None,
            ignores_failures: false,
            examples: Vec::new(),
            has_mistake: true,
            location,
        }
    }
}

/// A text in CEL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CelExpression {
    pub text: String,
    /// Where it begins.
    pub location: Location,
    /// Of the field that holds it.
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedExpression {
    pub name: String,
    pub expression: CelExpression,
}

/// What must be true of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validation {
    pub expression: CelExpression,
    pub message: Option<String>,
    /// It wins over `message`.
    pub message_expression: Option<CelExpression>,
}

/// `matchConstraints`: the objects that a policy judges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchConstraints {
    /// One must match; none matches every object.
    pub rules: Vec<ResourceRule>,
    /// None may match.
    pub excluded: Vec<ResourceRule>,
    pub namespaces: Option<LabelSelector>,
    pub objects: Option<LabelSelector>,
    /// `matchPolicy: Exact`: other versions of a kind do not match.
    pub is_exact: bool,
}

/// In each list `*` stands for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    pub groups: Vec<String>,
    pub versions: Vec<String>,
    pub resources: Vec<String>,
    pub operations: Vec<String>,
    /// Of objects; none means any.
    pub names: Vec<String>,
    /// `None`: both.
    pub is_namespaced: Option<bool>,
}

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    /// As `request.operation` says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// An object that a policy allows or denies, for `tutti policy test`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyExample {
    pub name: String,
    /// After the change; `None`: it is deleted.
    pub object: Option<Value>,
    /// Before the change; `None`: it is created.
    pub old_object: Option<Value>,
    pub is_allowed: bool,
    /// What the app renders beside it.
    pub others: Vec<Value>,
    pub ring: Option<String>,
    pub cluster_labels: BTreeMap<String, String>,
    pub location: Location,
}

/// A ValidatingAdmissionPolicy: it does nothing without a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionPolicy {
    /// Without params, and with the action of no binding.
    pub policy: Policy,
    /// apiVersion and kind of its params.
    pub param_kind: Option<(String, String)>,
}

/// A ValidatingAdmissionPolicyBinding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionBinding {
    pub name: String,
    /// `None`: it cannot be read.
    pub policy: Option<String>,
    /// Where `policyName` is written.
    pub policy_location: Location,
    /// The hardest of its `validationActions`.
    pub action: PolicyAction,
    pub constraints: Option<MatchConstraints>,
    pub params: Option<ParamRef>,
    /// As of a [`Policy`].
    pub has_mistake: bool,
    pub location: Location,
}

/// By name: an object that stands below `policies/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamRef {
    pub name: String,
    pub namespace: Option<String>,
    /// Without the object nothing is allowed.
    pub is_required: bool,
    pub location: Location,
}

/// A Kubernetes object below `policies/`, which a binding may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamObject {
    pub api_version: String,
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
    pub value: Value,
    pub location: Location,
}
