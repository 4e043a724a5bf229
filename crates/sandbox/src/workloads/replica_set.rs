//! ReplicaSets: as many pods as wanted.

use std::time::Duration;

use serde_json::{Value, json};

use super::condition::count;
use super::context::{Context, key_of};
use super::pods;
use crate::object;
use crate::store::{Key, Object};
use crate::verbs::{Caller, DeleteOptions};

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, set: &Value) {
    let active = active_pods(context, set);
    let wanted = object::integer(set, &["spec", "replicas"]).max(0) as usize;
    for _ in active.len()..wanted {
        let pod = pods::from_template(set, "apps/v1", "ReplicaSet");
        context.create("pods", object::namespace(set), pod);
    }
    for pod in dispensable(&active, wanted) {
        context.delete(&key_of("pods", &pod), &DeleteOptions::default());
    }
    write_status(context, key, set);
}

fn active_pods(context: &Context<'_>, set: &Value) -> Vec<Object> {
    context.owned(set, "pods").into_iter().filter(|pod| pods::is_active(pod)).collect()
}

/// Pods that are too many: those that are not ready go first, then the youngest.
fn dispensable(active: &[Object], wanted: usize) -> Vec<Object> {
    let mut order = active.to_vec();
    order.sort_by_key(|pod| (pods::is_ready(pod), std::cmp::Reverse(object::revision(pod))));
    order.truncate(active.len().saturating_sub(wanted));
    order
}

fn write_status(context: &mut Context<'_>, key: &Key, set: &Value) {
    let active = active_pods(context, set);
    let min_ready = Duration::from_secs(object::integer(set, &["spec", "minReadySeconds"]).max(0) as u64);
    let ready = active.iter().filter(|pod| pods::is_ready(pod)).count();
    let mut available = 0;
    for pod in &active {
        match pods::available_at(context, pod, min_ready) {
            Some(at) if at <= context.now => available += 1,
            Some(at) => context.again_at(key, at),
            None => {}
        }
    }
    let generation = object::generation(set);
    context.change_status(key, &Caller::controller(), |status| {
        status["replicas"] = json!(active.len());
        count(status, "fullyLabeledReplicas", active.len() as i64);
        count(status, "readyReplicas", ready as i64);
        count(status, "availableReplicas", available);
        status["observedGeneration"] = json!(generation);
    });
}
