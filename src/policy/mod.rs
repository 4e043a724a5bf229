//! Evaluates the policies of a repository on one change of one object.
//!
//! [`Policies::of`] compiles all policies once. [`Policies::chosen`] selects those of a target, and [`Chosen::judge`]
//! evaluates those that match the resource, so excluded policies cost nothing. The rules are those of Kubernetes'
//! ValidatingAdmissionPolicy, with `app`, `cluster`, `ring` and `objects` as further variables.
//!
//! Each policy has a limit of steps and memory for an object ([`Meter`]). A failed evaluation denies, with the reason.
//!
//! This module never renders, never reads a cluster, and never panics, whatever policies and objects contain.
//!
//! Three callers use it: `render::verdicts` for renders of Git (`lint`, `why`), `compare` for both sides of a pull request,
//! and `reconcile/admission.rs` with `controller/admission.rs` for writes and deletes. A policy with a mistake denies every
//! object that it selects. The cases of `tests/fixtures/admission` have the verdicts of a real API server.

mod change;
mod compiled;
mod examples;
mod matching;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value as Json, json};

pub use change::{Change, PolicyTarget};
pub use compiled::PolicyMistake;
use compiled::{Budget, Compiled};
pub use examples::{Outcome, outcomes};

use crate::cel::{Meter, Value};
use crate::model::{Kind, Location, Operation, Policy, PolicyAction};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A validation is false.
    Untrue,
    /// A condition or validation cannot be evaluated on this object.
    NotEvaluated,
    /// The policy has a mistake, which its file reports.
    Broken,
}

/// The result of a policy that an object violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub policy: Arc<Policy>,
    pub action: PolicyAction,
    pub cause: Cause,
    pub message: String,
    /// The position of the false expression.
    pub place: Location,
    /// The field that the expression reads, if it names one: `spec.replicas`.
    pub field: Option<String>,
}

/// All verdicts on an object, with the cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    pub verdicts: Vec<Verdict>,
    /// Policies whose expressions were evaluated.
    pub evaluated: usize,
    pub steps: u64,
    /// The policy with the most steps.
    pub dearest: Option<Arc<Policy>>,
}

/// Steps of all policies on one object. Policies after the limit deny it.
const MOST_STEPS: u64 = 4_000_000;

/// Evaluation of an object stops after this many denials, and keeps this many warnings: as many as one policy has
/// validations.
const MOST_VERDICTS: usize = 64;

/// The policies of a repository, compiled.
#[derive(Debug, Default)]
pub struct Policies {
    compiled: Vec<Compiled>,
    /// Policies with fixed resources, by API group and resource.
    by_resource: HashMap<String, HashMap<String, Vec<usize>>>,
    everywhere: Vec<usize>,
}

/// Equal manifests are equal policies.
impl PartialEq for Policies {
    fn eq(&self, other: &Self) -> bool {
        self.all().eq(other.all())
    }
}

impl Policies {
    /// A policy with a mistake stays, and denies what it selects.
    pub fn of(policies: &[Arc<Policy>]) -> (Self, Vec<PolicyMistake>) {
        let (mut all, mut mistakes, mut budget) = (Self::default(), Vec::new(), Budget::default());
        for (index, policy) in policies.iter().enumerate() {
            let (compiled, mut found) = Compiled::of(policy, &mut budget);
            mistakes.append(&mut found);
            all.compiled.push(compiled);
            match matching::resources(policy) {
                Some(resources) => {
                    for (group, resource) in resources {
                        let of_group = all.by_resource.entry(group.to_owned()).or_default();
                        let listed = of_group.entry(resource.to_owned()).or_default();
                        if listed.last() != Some(&index) {
                            listed.push(index);
                        }
                    }
                }
                None => all.everywhere.push(index),
            }
        }
        (all, mistakes)
    }

    /// In the given order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.compiled.iter().map(|compiled| &compiled.policy)
    }

    pub fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// Whether a policy reads labels of namespaces, which any app may set.
    pub fn look_at_namespaces(&self) -> bool {
        self.compiled.iter().any(Compiled::looks_at_namespaces)
    }

    /// Whether a policy reads the other objects of an app.
    pub fn look_at_objects(&self) -> bool {
        self.compiled.iter().any(Compiled::looks_at_objects)
    }

    /// Whether a policy could deny the delete of this kind. For a custom kind any resource of its group counts, because its
    /// plural may be unknown.
    pub fn look_at_deletes(&self, kind: &Kind, plurals: &[String]) -> bool {
        let looks = |index: usize| {
            let compiled = self.compiled.get(index);
            compiled.is_some_and(|it| matching::looks_at(&it.policy, Operation::Delete))
        };
        let of_group =
            || self.by_resource.get(&*kind.group).into_iter().flat_map(|all| all.values().flatten());
        self.of_resources(&kind.group, plurals).any(looks)
            || !kind.is_built_in() && of_group().copied().any(looks)
    }

    fn of_resources(&self, group: &str, resources: &[String]) -> impl Iterator<Item = usize> {
        let of_group = self.by_resource.get(group);
        let listed = resources.iter().filter_map(move |resource| of_group?.get(resource));
        listed.flatten().chain(&self.everywhere).copied()
    }

    pub fn chosen<'p>(&'p self, target: &PolicyTarget<'p>) -> Chosen<'p> {
        let wants = |compiled: &Compiled| {
            compiled.policy.selector.selects(target.app, target.app_labels, target.cluster)
        };
        Chosen {
            policies: self,
            is_chosen: self.compiled.iter().map(wants).collect(),
            app: json!({
                "namespace": &*target.app.namespace,
                "name": &*target.app.name,
                "labels": target.app_labels,
                "version": target.version,
            }),
            cluster: json!({
                "name": target.cluster.name,
                "labels": target.cluster.labels,
                "ring": target.cluster.ring,
            }),
            ring: json!(target.cluster.ring.unwrap_or_default()),
            objects: target.objects,
        }
    }
}

/// The policies that select one app on one cluster.
#[derive(Debug)]
pub struct Chosen<'p> {
    policies: &'p Policies,
    is_chosen: Vec<bool>,
    app: Json,
    cluster: Json,
    ring: Json,
    objects: &'p [Json],
}

impl Chosen<'_> {
    pub fn is_empty(&self) -> bool {
        !self.is_chosen.contains(&true)
    }

    /// For each policy, whether it is selected.
    pub fn which(&self) -> &[bool] {
        &self.is_chosen
    }

    /// Whether the result may differ on another cluster of the ring.
    pub fn look_at_cluster(&self) -> bool {
        let chosen = self.policies.compiled.iter().zip(&self.is_chosen).filter(|(_, is_chosen)| **is_chosen);
        chosen.into_iter().any(|(it, _)| it.names_root(compiled::CLUSTER) || it.looks_at_namespaces())
    }

    /// Whether the verdict on an update of this kind may depend on the old object. Object selectors are ignored, because the
    /// old object may match them.
    pub fn look_at_old(&self, kind: &Kind, plurals: &[String]) -> bool {
        let of_resources = self.policies.of_resources(&kind.group, plurals);
        let chosen = of_resources.filter(|index| self.is_chosen.get(*index) == Some(&true));
        let compiled = chosen.filter_map(|index| self.policies.compiled.get(index));
        compiled.into_iter().any(|it| it.looks_at_old() && matching::looks_at(&it.policy, Operation::Update))
    }

    fn matching(&self, change: &Change<'_>, resources: &[String]) -> Vec<&Compiled> {
        let is_chosen = |index: &usize| self.is_chosen.get(*index) == Some(&true);
        let mut indices: Vec<usize> =
            self.policies.of_resources(&change.kind.group, resources).filter(is_chosen).collect();
        indices.sort_unstable();
        indices.dedup();
        let matches = |compiled: &&Compiled| {
            compiled.policy.constraints.iter().all(|it| matching::matches(it, change, resources))
        };
        indices.iter().filter_map(|index| self.policies.compiled.get(*index)).filter(matches).collect()
    }

    pub fn judge(&self, change: &Change<'_>) -> Judgement {
        let resources = change.resources();
        let compiled = self.matching(change, &resources);
        let mut judgement = Judgement::default();
        if compiled.is_empty() {
            return judgement;
        }
        let is_used = |root: usize| compiled.iter().any(|it| it.names_root(root));
        let request = if is_used(compiled::REQUEST) {
            change.request(resources.first().map_or("", String::as_str))
        } else {
            Json::Null
        };
        let namespace = if is_used(compiled::NAMESPACE) { change.namespace_object() } else { Json::Null };
        let mut dearest: Option<(u64, &Arc<Policy>)> = None;
        let (mut denials, mut warnings) = (0, 0);
        for compiled in compiled {
            let mut meter = Meter::within(MOST_STEPS.saturating_sub(judgement.steps));
            let roots = [
                change.object.map_or(Value::Null, Value::of),
                change.old_object.map_or(Value::Null, Value::of),
                Value::of(&request),
                compiled.policy.params.as_ref().map_or(Value::Null, Value::of),
                Value::of(&namespace),
                Value::of(&self.app),
                Value::of(&self.cluster),
                Value::of(&self.ring),
                Value::list(self.objects),
            ];
            let known = judgement.verdicts.len();
            compiled.judge(roots, change.hides_values, &mut meter, &mut judgement.verdicts);
            judgement.evaluated += 1;
            judgement.steps += meter.used();
            if dearest.is_none_or(|(steps, _)| steps < meter.used()) {
                dearest = Some((meter.used(), &compiled.policy));
            }
            let count = judgement.verdicts.get(known..).map_or(0, <[_]>::len);
            match compiled.policy.action {
                PolicyAction::Deny => denials += count,
                _ if warnings >= MOST_VERDICTS => judgement.verdicts.truncate(known),
                _ => warnings += count,
            }
            if denials >= MOST_VERDICTS {
                break;
            }
        }
        judgement.dearest = dearest.map(|(_, policy)| Arc::clone(policy));
        judgement
    }
}

/// The labels of a namespace that is not in Git: the one that every namespace has.
pub fn usual_namespace_labels(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), name.to_owned())])
}
