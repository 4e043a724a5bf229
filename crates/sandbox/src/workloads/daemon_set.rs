//! DaemonSets: one pod on every node.

use serde_json::{Value, json};

use super::condition::count;
use super::context::{Context, key_of};
use super::{pods, revision};
use crate::object;
use crate::store::{Key, Object};
use crate::verbs::{Caller, DeleteOptions};

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, set: &Value) {
    let nodes: Vec<String> =
        context.state.store.list("nodes", None).map(|node| object::name(node).to_owned()).collect();
    let update = revision::of(context, set, "DaemonSet");
    let hash = update.rsplit('-').next().unwrap_or(&update).to_owned();
    let found = context.owned(set, "pods");
    let on = |node: &str| found.iter().find(|pod| object::text(pod, &["spec", "nodeName"]) == Some(node));
    for node in nodes.iter().filter(|node| on(node).is_none()) {
        let mut pod = pods::from_template(set, "apps/v1", "DaemonSet");
        object::set(&mut pod, &["metadata", "labels", revision::LABEL], hash.as_str());
        object::set(&mut pod, &["spec", "nodeName"], node.as_str());
        context.create("pods", object::namespace(set), pod);
    }
    replace_old(context, set, &found, nodes.len() as i64, &hash);
    write_status(context, key, set, nodes.len() as i64, &hash);
}

fn is_updated(pod: &Value, hash: &str) -> bool {
    object::text(pod, &["metadata", "labels", revision::LABEL]) == Some(hash)
}

fn is_well(pod: &Value) -> bool {
    pods::is_ready(pod) && !object::is_deleting(pod)
}

/// Replaces pods of an old template, as many at once as may be unavailable; broken ones first.
fn replace_old(context: &mut Context<'_>, set: &Value, found: &[Object], nodes: i64, hash: &str) {
    if object::text(set, &["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return;
    }
    let most = object::at(set, &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"])
        .map_or(1, |value| super::rolling::resolve(value, nodes, true))
        .max(1);
    let well = found.iter().filter(|pod| is_well(pod)).count() as i64;
    let mut room = most - (nodes - well);
    let mut old: Vec<&Object> =
        found.iter().filter(|pod| !object::is_deleting(pod) && !is_updated(pod, hash)).collect();
    old.sort_by_key(|pod| is_well(pod));
    for pod in old {
        if is_well(pod) {
            if room <= 0 {
                return;
            }
            room -= 1;
        }
        context.delete(&key_of("pods", pod), &DeleteOptions::default());
    }
}

fn write_status(context: &mut Context<'_>, key: &Key, set: &Value, nodes: i64, hash: &str) {
    let found = context.owned(set, "pods");
    let ready = found.iter().filter(|pod| is_well(pod)).count() as i64;
    let updated =
        found.iter().filter(|pod| !object::is_deleting(pod) && is_updated(pod, hash)).count() as i64;
    let generation = object::generation(set);
    context.change_status(key, &Caller::controller(), |status| {
        status["currentNumberScheduled"] = json!(found.len());
        status["desiredNumberScheduled"] = json!(nodes);
        status["numberMisscheduled"] = json!(0);
        status["numberReady"] = json!(ready);
        count(status, "numberAvailable", ready);
        count(status, "numberUnavailable", nodes - ready);
        count(status, "updatedNumberScheduled", updated);
        status["observedGeneration"] = json!(generation);
    });
}
