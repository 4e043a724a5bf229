//! Matches policies with changes, like Kubernetes' match constraints.

use super::object_change::{PolicyObjectChange, default_namespace_labels, labels_of};
use crate::model::{LabelSelector, MatchConstraints, Operation, Policy, ResourceRule};

/// A policy with more pairs is not indexed, and is matched with every object.
const MOST_PAIRS: usize = 1024;

/// The (group, resource) pairs of a policy; `None`: any, or too many.
pub fn matched_resources(policy: &Policy) -> Option<Vec<(&str, &str)>> {
    let rules = policy.constraints.iter().map(|it| &it.rules).find(|rules| !rules.is_empty())?;
    let mut pairs = Vec::new();
    let count: usize = rules.iter().map(|rule| rule.groups.len().saturating_mul(rule.resources.len())).sum();
    if count > MOST_PAIRS {
        return None;
    }
    for rule in rules {
        for group in &rule.groups {
            for resource in &rule.resources {
                let Some(resource) = without_subresources(resource) else { continue };
                if group == "*" || resource == "*" {
                    return None;
                }
                pairs.push((group.as_str(), resource));
            }
        }
    }
    Some(pairs)
}

/// `pods/*` includes pods. `None`: only subresources, which are never rendered.
fn without_subresources(resource: &str) -> Option<&str> {
    match resource.split_once('/') {
        None => Some(resource),
        Some((resource, "*")) => Some(resource),
        Some(_) => None,
    }
}

/// Whether some rule names the operation.
pub fn covers_operation(policy: &Policy, operation: Operation) -> bool {
    let is_of = |rule: &ResourceRule| rule.operations.iter().any(|it| it == "*" || it == operation.as_str());
    policy.constraints.iter().all(|it| it.rules.is_empty() || it.rules.iter().any(is_of))
}

/// Rules match any possible plural, but exclude only the likeliest one. If the cluster serves the kind, there is one plural.
pub fn constraints_match(
    constraints: &MatchConstraints,
    change: &PolicyObjectChange<'_>,
    resources: &[String],
) -> bool {
    let fits = |rule: &ResourceRule| rule_matches(rule, constraints.is_exact, change, resources);
    let likeliest = resources.get(..1).unwrap_or_default();
    let excludes = |rule: &ResourceRule| rule_matches(rule, constraints.is_exact, change, likeliest);
    (constraints.rules.is_empty() || constraints.rules.iter().any(fits))
        && !constraints.excluded.iter().any(excludes)
        && constraints.objects.as_ref().is_none_or(|it| change.labels().any(|labels| it.matches(&labels)))
        && constraints.namespaces.as_ref().is_none_or(|it| namespace_matches(it, change))
}

fn rule_matches(
    rule: &ResourceRule,
    is_exact: bool,
    change: &PolicyObjectChange<'_>,
    resources: &[String],
) -> bool {
    let has = |list: &[String], value: &str| list.iter().any(|it| it == "*" || it == value);
    let is_of = |named: &str| named == "*" || resources.iter().any(|it| it == named);
    let name = || change.name().unwrap_or_default();
    has(&rule.groups, &change.kind.group)
        // Versions of a group are forms of the same object.
        && (!is_exact || has(&rule.versions, &change.kind.version))
        && rule.resources.iter().filter_map(|it| without_subresources(it)).any(is_of)
        && has(&rule.operations, change.operation().as_str())
        && (rule.names.is_empty() || rule.names.iter().any(|it| it == name()))
        && rule.is_namespaced.is_none_or(|it| it == change.namespace().is_some())
}

/// A Namespace matches by its own labels; other objects without a namespace always match.
fn namespace_matches(selector: &LabelSelector, change: &PolicyObjectChange<'_>) -> bool {
    let is_namespace = (&*change.kind.group, &*change.kind.kind) == ("", "Namespace");
    if is_namespace {
        let own = change.object.or(change.old_object).and_then(|object| object.pointer("/metadata/labels"));
        return selector.matches(&labels_of(own));
    }
    match (change.namespace(), change.namespace_labels) {
        (None, _) => true,
        (Some(_), Some(labels)) => selector.matches(labels),
        // Unknown labels may match. Only the name label is known.
        (Some(namespace), None) => selector.may_match(&default_namespace_labels(namespace)),
    }
}
