//! What may be deployed: the policies of a repository, and what they say of one change of one object.
//!
//! [`Policies::of`] compiles all once. [`Policies::chosen`] takes those that select an app on a cluster, and [`Chosen::judge`]
//! evaluates of these the ones that look at the resource: what a selector or a resource rule excludes costs nothing.
//! The rules are those of Kubernetes' ValidatingAdmissionPolicy, with `app`, `cluster`, `ring` and `objects`
//! beside its variables.
//!
//! Each policy has a limit of steps and of memory for an object ([`Meter`]). What cannot be evaluated is denied, with the reason.
//!
//! Never renders, never asks a cluster, never panics, whatever policies and objects hold.
//!
//! Used in three places: `render::verdicts` for what Git renders (`lint`, `why`), `compare` for both sides of a pull request, and
//! `reconcile/admission.rs` with `controller/admission.rs` for writes and deletes at deploy time. A policy with a mistake stays among the
//! others and denies what it selects. The cases of `tests/fixtures/admission` have the verdicts of a real API server.

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

/// Why there is a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A validation is false.
    Untrue,
    /// A condition or validation cannot be evaluated on this object.
    NotEvaluated,
    /// The policy has a mistake, which is an error of its file.
    Broken,
}

/// What a policy says of an object that breaks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub policy: Arc<Policy>,
    pub action: PolicyAction,
    pub cause: Cause,
    pub message: String,
    /// Of the expression that is not true.
    pub place: Location,
    /// The field of the object that it looks at, as far as it names one: `spec.replicas`.
    pub field: Option<String>,
}

/// All that is said of an object, and what it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    pub verdicts: Vec<Verdict>,
    /// Policies whose expressions were evaluated.
    pub evaluated: usize,
    pub steps: u64,
    /// The policy that took most of them.
    pub dearest: Option<Arc<Policy>>,
}

/// Of all policies together on one object: those that come after that deny it.
const MOST_STEPS: u64 = 4_000_000;

/// Denials of one object after which no further policy is evaluated, and warnings after which no further one is kept: as many as one
/// policy has validations.
const MOST_VERDICTS: usize = 64;

/// The policies of a repository, compiled.
#[derive(Debug, Default)]
pub struct Policies {
    compiled: Vec<Compiled>,
    /// By API group and resource, those that look at nothing else.
    by_resource: HashMap<String, HashMap<String, Vec<usize>>>,
    everywhere: Vec<usize>,
}

/// Policies are what they are written as.
impl PartialEq for Policies {
    fn eq(&self, other: &Self) -> bool {
        self.all().eq(other.all())
    }
}

impl Policies {
    /// One with a mistake stays, and denies what it selects.
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

    /// As they were given.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.compiled.iter().map(|compiled| &compiled.policy)
    }

    pub fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// Whether labels of namespaces decide, which any app may set.
    pub fn look_at_namespaces(&self) -> bool {
        self.compiled.iter().any(Compiled::looks_at_namespaces)
    }

    /// Whether any sees the other objects of an app.
    pub fn look_at_objects(&self) -> bool {
        self.compiled.iter().any(Compiled::looks_at_objects)
    }

    /// Whether any could deny the delete of an object of this kind. Of a custom kind any resource of its group counts: what its
    /// cluster calls it may not be known yet.
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

    /// Those that select an app on a cluster.
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

    /// Which of the policies they are.
    pub fn which(&self) -> &[bool] {
        &self.is_chosen
    }

    /// Whether another cluster of the same ring could be judged otherwise.
    pub fn look_at_cluster(&self) -> bool {
        let chosen = self.policies.compiled.iter().zip(&self.is_chosen).filter(|(_, is_chosen)| **is_chosen);
        chosen.into_iter().any(|(it, _)| it.names_root(compiled::CLUSTER) || it.looks_at_namespaces())
    }

    /// Whether the verdict on an update of this kind may depend on the object before it. Selectors are not asked: the object before
    /// it may be what they select.
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

/// Labels of a namespace of which Git says nothing: the one that every namespace has.
pub fn usual_namespace_labels(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), name.to_owned())])
}
