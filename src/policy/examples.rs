//! Evaluates the examples in the manifest of a policy.

use std::sync::Arc;

use super::{
    Policies, PolicyObjectChange, PolicyTarget, PolicyVerdict, VerdictCause, default_namespace_labels,
};
use crate::model::{AppId, ClusterFacts, GroupVersionKind, Policy, PolicyExample};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleOutcome<'p> {
    pub example: &'p PolicyExample,
    pub verdicts: Vec<PolicyVerdict>,
    /// Whether the policy matched the object.
    pub is_evaluated: bool,
}

impl ExampleOutcome<'_> {
    /// A policy with a mistake denies every example, so no result counts.
    pub fn is_expected(&self) -> bool {
        let is_broken = self.verdicts.iter().any(|it| it.cause == VerdictCause::Broken);
        !is_broken && self.verdicts.is_empty() == self.example.is_allowed
    }
}

/// Uses an app and a cluster named `example`, and ignores the selector of the policy.
pub fn example_outcomes(policy: &Policy) -> Vec<ExampleOutcome<'_>> {
    let everywhere = Policy { selector: Default::default(), examples: Vec::new(), ..policy.clone() };
    let (policies, _) = Policies::of(&[Arc::new(everywhere)]);
    policy.examples.iter().map(|example| evaluate_example(&policies, example)).collect()
}

fn evaluate_example<'p>(policies: &Policies, example: &'p PolicyExample) -> ExampleOutcome<'p> {
    let object = example.object.as_ref().or(example.old_object.as_ref());
    let namespace = object.and_then(|it| it.pointer("/metadata/namespace")?.as_str()).unwrap_or_default();
    let (app, labels) =
        (AppId::new(if namespace.is_empty() { "example" } else { namespace }, "example"), Default::default());
    let cluster =
        ClusterFacts { name: "example", labels: &example.cluster_labels, ring: example.ring.as_deref() };
    let objects: Vec<_> = example.object.iter().chain(&example.others).cloned().collect();
    let target = PolicyTarget { app: &app, app_labels: &labels, version: None, cluster, objects: &objects };
    let change = PolicyObjectChange {
        kind: &object.and_then(GroupVersionKind::of).unwrap_or_else(|| GroupVersionKind::new("", "", "")),
        plurals: &[],
        object: example.object.as_ref(),
        old_object: example.old_object.as_ref(),
        namespace_labels: Some(&default_namespace_labels(namespace)),
        hides_values: false,
    };
    let judgement = policies.select(&target).evaluate(&change);
    ExampleOutcome { example, verdicts: judgement.verdicts, is_evaluated: judgement.evaluated > 0 }
}
