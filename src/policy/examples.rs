//! Evaluates the examples in the manifest of a policy.

use std::sync::Arc;

use super::{Cause, Change, Policies, PolicyTarget, Verdict, usual_namespace_labels};
use crate::model::{AppId, ClusterFacts, Kind, Policy, PolicyExample};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<'p> {
    pub example: &'p PolicyExample,
    pub verdicts: Vec<Verdict>,
    /// Whether the policy matched the object.
    pub is_looked_at: bool,
}

impl Outcome<'_> {
    /// A policy with a mistake denies every example, so no result counts.
    pub fn is_expected(&self) -> bool {
        let is_broken = self.verdicts.iter().any(|it| it.cause == Cause::Broken);
        !is_broken && self.verdicts.is_empty() == self.example.is_allowed
    }
}

/// Uses an app and a cluster named `example`, and ignores the selector of the policy.
pub fn outcomes(policy: &Policy) -> Vec<Outcome<'_>> {
    let everywhere = Policy { selector: Default::default(), examples: Vec::new(), ..policy.clone() };
    let (policies, _) = Policies::of(&[Arc::new(everywhere)]);
    policy.examples.iter().map(|example| outcome(&policies, example)).collect()
}

fn outcome<'p>(policies: &Policies, example: &'p PolicyExample) -> Outcome<'p> {
    let object = example.object.as_ref().or(example.old_object.as_ref());
    let namespace = object.and_then(|it| it.pointer("/metadata/namespace")?.as_str()).unwrap_or_default();
    let (app, labels) =
        (AppId::new(if namespace.is_empty() { "example" } else { namespace }, "example"), Default::default());
    let cluster =
        ClusterFacts { name: "example", labels: &example.cluster_labels, ring: example.ring.as_deref() };
    let objects: Vec<_> = example.object.iter().chain(&example.others).cloned().collect();
    let target = PolicyTarget { app: &app, app_labels: &labels, version: None, cluster, objects: &objects };
    let change = Change {
        kind: &object.and_then(Kind::of).unwrap_or_else(|| Kind::new("", "", "")),
        plurals: &[],
        object: example.object.as_ref(),
        old_object: example.old_object.as_ref(),
        namespace_labels: Some(&usual_namespace_labels(namespace)),
        hides_values: false,
    };
    let judgement = policies.chosen(&target).judge(&change);
    Outcome { example, verdicts: judgement.verdicts, is_looked_at: judgement.evaluated > 0 }
}
