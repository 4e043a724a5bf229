//! Deployments: one ReplicaSet for each template, the newest grown while the others shrink.

use serde_json::{Value, json};

use super::context::{Context, key_of};
use super::deployment_status::{self, ReplicaSets};
use super::rolling;
use crate::object;
use crate::seed::short_hash;
use crate::store::{Key, Object};
use crate::verbs::DeleteOptions;

const REVISION: &str = "deployment.kubernetes.io/revision";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MOST: &str = "deployment.kubernetes.io/max-replicas";
const HASH: &str = "pod-template-hash";

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, deployment: &Value) {
    let mut sets = find_sets(context, deployment);
    if deployment["spec"]["paused"] != true {
        if sets.new.is_none() {
            sets.new = create_set(context, key, deployment, &sets.old);
        }
        keep_revision(context, key, &sets);
        for (set, replicas) in rolling::steps(deployment, &sets) {
            scale(context, deployment, &set, replicas);
        }
    }
    let sets = find_sets(context, deployment);
    deployment_status::write(context, key, deployment, &sets);
    clean_up(context, deployment, &sets);
}

fn find_sets(context: &Context<'_>, deployment: &Value) -> ReplicaSets {
    let wanted = plain_template(deployment);
    let mut sets = ReplicaSets::default();
    for set in context.owned(deployment, "replicasets.apps") {
        if sets.new.is_none() && plain_template(&set) == wanted {
            sets.new = Some(set);
        } else {
            sets.old.push(set);
        }
    }
    sets
}

/// The template without the label that tells its ReplicaSet.
fn plain_template(owner: &Value) -> Value {
    let mut template = owner["spec"]["template"].clone();
    object::take(&mut template, &["metadata", "labels", HASH]);
    template
}

pub(super) fn revision_of(set: &Value) -> i64 {
    object::annotation(set, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn create_set(context: &mut Context<'_>, key: &Key, deployment: &Value, old: &[Object]) -> Option<Object> {
    let template = plain_template(deployment);
    let hash = short_hash(&template.to_string());
    let revision = old.iter().map(|set| revision_of(set)).max().unwrap_or(0) + 1;
    let name = format!("{}-{hash}", object::name(deployment));
    let mut labels = object::at(&template, &["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    labels[HASH] = json!(hash);
    let mut template = template;
    object::set(&mut template, &["metadata", "labels"], labels.clone());
    let mut selector = deployment["spec"]["selector"].clone();
    object::set(&mut selector, &["matchLabels", HASH], hash);
    let sets = ReplicaSets { new: None, old: old.to_vec() };
    let replicas = rolling::first_replicas(deployment, &sets);
    let mut spec = json!({"replicas": replicas, "selector": selector, "template": template});
    if let Some(seconds) = object::at(deployment, &["spec", "minReadySeconds"]) {
        spec["minReadySeconds"] = seconds.clone();
    }
    let set = json!({
        "metadata": {
            "name": name, "labels": labels,
            "annotations": annotations(deployment, revision),
            "ownerReferences": [object::controller_reference(deployment, "apps/v1", "Deployment")],
        },
        "spec": spec,
    });
    let made = context.create("replicasets.apps", object::namespace(deployment), set)?;
    deployment_status::note_created(context, key, object::name(&made));
    Some(made)
}

fn annotations(deployment: &Value, revision: i64) -> Value {
    let desired = object::integer(deployment, &["spec", "replicas"]);
    let most = desired + rolling::Limits::of(deployment).surge;
    json!({DESIRED: desired.to_string(), MOST: most.to_string(), REVISION: revision.to_string()})
}

/// The newest template has the highest revision, also after going back to an old one.
fn keep_revision(context: &mut Context<'_>, key: &Key, sets: &ReplicaSets) {
    let Some(new) = &sets.new else { return };
    let highest = sets.old.iter().map(|set| revision_of(set)).max().unwrap_or(0);
    let mut revision = revision_of(new);
    if revision <= highest {
        revision = highest + 1;
        context.change(&key_of("replicasets.apps", new), |set| {
            object::set(set, &["metadata", "annotations", REVISION], revision.to_string());
        });
    }
    context.change(key, |deployment| {
        object::set(deployment, &["metadata", "annotations", REVISION], revision.to_string());
    });
}

fn scale(context: &mut Context<'_>, deployment: &Value, set: &Value, replicas: i64) {
    let wanted = annotations(deployment, 0);
    context.change(&key_of("replicasets.apps", set), |set| {
        set["spec"]["replicas"] = json!(replicas);
        for annotation in [DESIRED, MOST] {
            object::set(set, &["metadata", "annotations", annotation], wanted[annotation].clone());
        }
    });
}

/// Old ReplicaSets stay at zero for a rollback, up to the history limit.
fn clean_up(context: &mut Context<'_>, deployment: &Value, sets: &ReplicaSets) {
    let limit = object::integer(deployment, &["spec", "revisionHistoryLimit"]).max(0) as usize;
    let mut idle: Vec<&Object> = sets
        .old
        .iter()
        .filter(|set| object::integer(set, &["spec", "replicas"]) == 0)
        .filter(|set| object::integer(set, &["status", "replicas"]) == 0)
        .collect();
    idle.sort_by_key(|set| revision_of(set));
    let excess = idle.len().saturating_sub(limit);
    for set in &idle[..excess] {
        context.delete(&key_of("replicasets.apps", set), &DeleteOptions::default());
    }
}
