//! The policies of a repository, and those of them that select a target.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::compiled_policy::{self, CompileBudget, CompiledPolicy, PolicyMistake};
use super::matching;
use super::object_change::{PolicyObjectChange, PolicyTarget};
use super::verdict::PolicyEvaluation;
use crate::cel::{CelMeter, CelValue};
use crate::model::{GroupVersionKind, Operation, Policy, PolicyAction};

/// Steps of all policies on one object. Policies after the limit deny it.
pub(super) const MOST_STEPS: u64 = 4_000_000;

/// Evaluation of an object stops after this many denials, and keeps this many warnings: as many as one policy has
/// validations.
const MOST_VERDICTS: usize = 64;

/// The policies of a repository, compiled.
#[derive(Debug, Default)]
pub struct Policies {
    compiled: Vec<CompiledPolicy>,
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
        let (mut all, mut mistakes, mut budget) = (Self::default(), Vec::new(), CompileBudget::default());
        for (index, policy) in policies.iter().enumerate() {
            let (compiled, mut found) = CompiledPolicy::of(policy, &mut budget);
            mistakes.append(&mut found);
            all.compiled.push(compiled);
            match matching::matched_resources(policy) {
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
    pub fn use_namespaces(&self) -> bool {
        self.compiled.iter().any(CompiledPolicy::uses_namespace)
    }

    /// Whether a policy reads the other objects of an app.
    pub fn use_app_objects(&self) -> bool {
        self.compiled.iter().any(CompiledPolicy::uses_app_objects)
    }

    /// Whether a policy could deny the delete of this kind. For a custom kind any resource of its group counts, because its
    /// plural may be unknown.
    pub fn may_deny_deletes(&self, kind: &GroupVersionKind, plurals: &[String]) -> bool {
        let looks = |index: usize| {
            let compiled = self.compiled.get(index);
            compiled.is_some_and(|it| matching::covers_operation(&it.policy, Operation::Delete))
        };
        let of_group =
            || self.by_resource.get(&*kind.group).into_iter().flat_map(|all| all.values().flatten());
        self.indices_of_resources(&kind.group, plurals).any(looks)
            || !kind.is_built_in() && of_group().copied().any(looks)
    }

    fn indices_of_resources(&self, group: &str, resources: &[String]) -> impl Iterator<Item = usize> {
        let of_group = self.by_resource.get(group);
        let listed = resources.iter().filter_map(move |resource| of_group?.get(resource));
        listed.flatten().chain(&self.everywhere).copied()
    }

    pub fn select<'p>(&'p self, target: &PolicyTarget<'p>) -> SelectedPolicies<'p> {
        let wants = |compiled: &CompiledPolicy| {
            compiled.policy.selector.selects(target.app, target.app_labels, target.cluster)
        };
        SelectedPolicies {
            policies: self,
            is_selected: self.compiled.iter().map(wants).collect(),
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
pub struct SelectedPolicies<'p> {
    policies: &'p Policies,
    is_selected: Vec<bool>,
    app: Json,
    cluster: Json,
    ring: Json,
    objects: &'p [Json],
}

impl SelectedPolicies<'_> {
    pub fn is_empty(&self) -> bool {
        !self.is_selected.contains(&true)
    }

    /// For each policy, whether it is selected.
    pub fn selected_flags(&self) -> &[bool] {
        &self.is_selected
    }

    /// Whether the result may differ on another cluster of the ring.
    pub fn depend_on_cluster(&self) -> bool {
        let chosen =
            self.policies.compiled.iter().zip(&self.is_selected).filter(|(_, is_chosen)| **is_chosen);
        chosen.into_iter().any(|(it, _)| it.uses_root(compiled_policy::CLUSTER) || it.uses_namespace())
    }

    /// Whether the verdict on an update of this kind may depend on the old object. Object selectors are ignored, because the
    /// old object may match them.
    pub fn need_old_object(&self, kind: &GroupVersionKind, plurals: &[String]) -> bool {
        let of_resources = self.policies.indices_of_resources(&kind.group, plurals);
        let chosen = of_resources.filter(|index| self.is_selected.get(*index) == Some(&true));
        let compiled = chosen.filter_map(|index| self.policies.compiled.get(index));
        compiled
            .into_iter()
            .any(|it| it.needs_old_object() && matching::covers_operation(&it.policy, Operation::Update))
    }

    fn matching(&self, change: &PolicyObjectChange<'_>, resources: &[String]) -> Vec<&CompiledPolicy> {
        let is_chosen = |index: &usize| self.is_selected.get(*index) == Some(&true);
        let mut indices: Vec<usize> =
            self.policies.indices_of_resources(&change.kind.group, resources).filter(is_chosen).collect();
        indices.sort_unstable();
        indices.dedup();
        let matches = |compiled: &&CompiledPolicy| {
            compiled.policy.constraints.iter().all(|it| matching::constraints_match(it, change, resources))
        };
        indices.iter().filter_map(|index| self.policies.compiled.get(*index)).filter(matches).collect()
    }

    pub fn evaluate(&self, change: &PolicyObjectChange<'_>) -> PolicyEvaluation {
        let resources = change.resources();
        let compiled = self.matching(change, &resources);
        let mut judgement = PolicyEvaluation::default();
        if compiled.is_empty() {
            return judgement;
        }
        let is_used = |root: usize| compiled.iter().any(|it| it.uses_root(root));
        let request = if is_used(compiled_policy::REQUEST) {
            change.request(resources.first().map_or("", String::as_str))
        } else {
            Json::Null
        };
        let namespace =
            if is_used(compiled_policy::NAMESPACE) { change.namespace_object() } else { Json::Null };
        let mut dearest: Option<(u64, &Arc<Policy>)> = None;
        let (mut denials, mut warnings) = (0, 0);
        for compiled in compiled {
            let mut meter = CelMeter::with_steps(MOST_STEPS.saturating_sub(judgement.steps));
            let roots = [
                change.object.map_or(CelValue::Null, CelValue::of),
                change.old_object.map_or(CelValue::Null, CelValue::of),
                CelValue::of(&request),
                compiled.policy.params.as_ref().map_or(CelValue::Null, CelValue::of),
                CelValue::of(&namespace),
                CelValue::of(&self.app),
                CelValue::of(&self.cluster),
                CelValue::of(&self.ring),
                CelValue::list(self.objects),
            ];
            let known = judgement.verdicts.len();
            compiled.evaluate(roots, change.hides_values, &mut meter, &mut judgement.verdicts);
            judgement.evaluated += 1;
            judgement.steps += meter.used_steps();
            if dearest.is_none_or(|(steps, _)| steps < meter.used_steps()) {
                dearest = Some((meter.used_steps(), &compiled.policy));
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
        judgement.costliest = dearest.map(|(_, policy)| Arc::clone(policy));
        judgement
    }
}
