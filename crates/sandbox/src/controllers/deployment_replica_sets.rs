//! The ReplicaSets of a deployment: found, built, annotated.

use serde_json::{Map, Value, json};

use super::controller_context::ControllerContext;
use super::rolling_limits::RollingLimits;
use crate::object;
use crate::store::ParsedObject;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
const HASH: &str = "pod-template-hash";
const NOT_COPIED: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    HISTORY,
    DESIRED,
    MAX_REPLICAS,
];
/// How long the list of former revisions may become.
const MAX_HISTORY_LENGTH: usize = 2000;

/// The set of the present template, and the others, oldest first.
pub(super) fn new_and_old_sets(
    context: &ControllerContext<'_>,
    deployment: &Value,
) -> (Option<ParsedObject>, Vec<ParsedObject>) {
    let mut sets = context.owned(deployment, "replicasets.apps");
    sets.sort_by_cached_key(|set| creation_order(set));
    let new = sets.iter().position(|set| is_of_template(set, deployment)).map(|at| sets.remove(at));
    (new, sets)
}

/// When it was made, and its name to tell apart those of one second.
pub(super) fn creation_order(set: &Value) -> (String, String) {
    let made = object::text(set, &["metadata", "creationTimestamp"]).unwrap_or("");
    (made.to_owned(), object::name(set).to_owned())
}

/// Is the template equal, apart from the `pod-template-hash` label?
fn is_of_template(set: &Value, deployment: &Value) -> bool {
    let (of_set, wanted) = (&set["spec"]["template"], &deployment["spec"]["template"]);
    equal_except(of_set, wanted, "metadata", |of_set, wanted| {
        equal_except(of_set, wanted, "labels", |of_set, wanted| {
            equal_except(of_set, wanted, HASH, |_, _| true)
        })
    })
}

/// Are two maps the same, with one field seen as `is_same` sees it? It sees null for a field that is not there.
fn equal_except(left: &Value, right: &Value, field: &str, is_same: impl Fn(&Value, &Value) -> bool) -> bool {
    let (Value::Object(left), Value::Object(right)) = (left, right) else { return left == right };
    let others = |fields: &Map<String, Value>| fields.len() - usize::from(fields.contains_key(field));
    others(left) == others(right)
        && left.iter().all(|(name, value)| name == field || right.get(name) == Some(value))
        && is_same(left.get(field).unwrap_or(&Value::Null), right.get(field).unwrap_or(&Value::Null))
}

/// The template without the `pod-template-hash` label.
fn plain_template(owner: &Value) -> Value {
    let mut template = owner["spec"]["template"].clone();
    object::take(&mut template, &["metadata", "labels", HASH]);
    template
}

pub(super) fn revision_of(set: &Value) -> i64 {
    object::annotation(set, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// How many replicas the deployment wanted when it last resized this set.
pub(super) fn annotated_desired(set: &Value) -> Option<i64> {
    annotated_number(set, DESIRED)
}

pub(super) fn annotated_max(set: &Value) -> Option<i64> {
    annotated_number(set, MAX_REPLICAS)
}

fn annotated_number(set: &Value, annotation: &str) -> Option<i64> {
    object::annotation(set, annotation)?.parse::<i32>().ok().map(i64::from)
}

pub(super) fn has_size_annotations(set: &Value, desired: i64, most: i64) -> bool {
    annotated_desired(set) == Some(desired) && annotated_max(set) == Some(most)
}

pub(super) fn set_size_annotations(set: &mut Value, desired: i64, most: i64) {
    object::set(set, &["metadata", "annotations", DESIRED], desired.to_string());
    object::set(set, &["metadata", "annotations", MAX_REPLICAS], most.to_string());
}

pub(super) fn new_set(deployment: &Value, hash: &str, replicas: i64, revision: i64) -> Value {
    let mut template = plain_template(deployment);
    let mut labels =
        object::value_at(&template, &["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    labels[HASH] = json!(hash);
    object::set(&mut template, &["metadata", "labels"], labels.clone());
    let mut selector = deployment["spec"]["selector"].clone();
    object::set(&mut selector, &["matchLabels", HASH], hash);
    let mut spec = json!({"replicas": replicas, "selector": selector, "template": template});
    if let Some(seconds) = object::value_at(deployment, &["spec", "minReadySeconds"]) {
        spec["minReadySeconds"] = seconds.clone();
    }
    let longest = 253 - 1 - hash.len();
    let base: String = object::name(deployment).chars().take(longest).collect();
    let mut set = json!({
        "metadata": {
            "name": format!("{base}-{hash}"), "labels": labels,
            "ownerReferences": [object::controller_reference(deployment, "apps/v1", "Deployment")],
        },
        "spec": spec,
    });
    annotate(deployment, &mut set, revision, false);
    set
}

/// The deployment's annotations that its newest set is to have.
fn copied_annotations(deployment: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let annotations = object::value_at(deployment, &["metadata", "annotations"]).and_then(Value::as_object);
    annotations.into_iter().flatten().filter(|(name, _)| !NOT_COPIED.contains(&name.as_str()))
}

/// Would [`annotate`] leave the set as it is?
pub(super) fn is_annotated(deployment: &Value, set: &Value, revision: i64) -> bool {
    let known = &set["metadata"]["annotations"];
    revision_of(set) >= revision
        && copied_annotations(deployment).all(|(name, value)| known.get(name) == Some(value))
}

/// The deployment's annotations and the revision, on its newest set.
pub(super) fn annotate(deployment: &Value, set: &mut Value, revision: i64, exists: bool) {
    for (name, value) in copied_annotations(deployment) {
        if set["metadata"]["annotations"].get(name) != Some(value) {
            object::set(set, &["metadata", "annotations", name], value.clone());
        }
    }
    let before = object::annotation(set, REVISION).map(str::to_owned);
    if revision_of(set) < revision {
        object::set(set, &["metadata", "annotations", REVISION], revision.to_string());
        if let Some(before) = before {
            let history = history_with(object::annotation(set, HISTORY).unwrap_or(""), &before);
            object::set(set, &["metadata", "annotations", HISTORY], history);
        }
    }
    if !exists {
        let desired = object::integer(deployment, &["spec", "replicas"]);
        set_size_annotations(set, desired, desired + RollingLimits::of(deployment).surge);
    }
}

/// The list of former revisions with one more; the oldest fall off when it becomes too long.
fn history_with(history: &str, revision: &str) -> String {
    let mut revisions: Vec<&str> = history.split(',').filter(|one| !one.is_empty()).collect();
    revisions.push(revision);
    while revisions.len() > 1 && revisions.join(",").len() > MAX_HISTORY_LENGTH {
        revisions.remove(0);
    }
    revisions.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_grows_and_forgets() {
        assert_eq!(history_with("", "1"), "1");
        assert_eq!(history_with("1,3", "5"), "1,3,5");
        let long = vec!["1000"; 400].join(",");
        assert!(history_with(&long, "2000").len() <= MAX_HISTORY_LENGTH);
        assert!(history_with(&long, "2000").ends_with(",2000"));
    }
}
