//! The StatefulSet controller: creates and replaces pods in the order of their ordinals.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::controller_condition::set_counter;
use super::controller_context::{ControllerContext, key_of};
use super::event_component::EventComponent;
use super::stateful_pod::{self as pod_of, RevisionNames};
use super::{controller_revision, pods};
use crate::object;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs::WriteCaller;

/// One reconcile of a StatefulSet.
struct StatefulSetUpdate<'s> {
    value: &'s Value,
    first: i64,
    wanted: i64,
    in_order: bool,
    partition: i64,
    /// So many of the first pods get the old template when they have to be made again.
    pods_on_old_template: i64,
    min_ready: Duration,
    names: RevisionNames,
}

/// The counts in the status: the pods from before this reconcile.
#[derive(Default)]
struct StatefulSetCounts {
    replicas: i64,
    ready: i64,
    available: i64,
    current: i64,
    updated: i64,
}

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, value: &Value) {
    let update =
        controller_revision::ensure_current(context, value, "StatefulSet", "controller.kubernetes.io/hash");
    let update = object::name(&update).to_owned();
    let current = object::text(value, &["status", "currentRevision"])
        .filter(|name| controller_revision::template(context, object::namespace(value), name).is_some())
        .unwrap_or(&update)
        .to_owned();
    let partition = object::integer(value, &["spec", "updateStrategy", "rollingUpdate", "partition"]);
    let strategy = &value["spec"]["updateStrategy"];
    let set = StatefulSetUpdate {
        value,
        first: object::integer(value, &["spec", "ordinals", "start"]),
        wanted: object::integer(value, &["spec", "replicas"]).max(0),
        in_order: object::text(value, &["spec", "podManagementPolicy"]) != Some("Parallel"),
        partition,
        pods_on_old_template: match object::value_at(strategy, &["rollingUpdate"]) {
            None if strategy["type"] == "RollingUpdate" => {
                object::integer(value, &["status", "currentReplicas"])
            }
            _ => partition,
        },
        min_ready: object::seconds(value, &["spec", "minReadySeconds"]),
        names: RevisionNames { update, current },
    };
    let found = pods_by_ordinal(context, value);
    let mut counts = count_pods(context, key, &set, &found);
    if !object::is_deleting(value) {
        reconcile_pods(context, key, &set, &found, &mut counts);
    }
    write_status(context, key, &set, &counts);
    let used: Vec<String> = found.values().map(|pod| revision_of(pod).to_owned()).collect();
    let names = set.names;
    controller_revision::clean_up(context, value, |one| {
        let name = object::name(one);
        name == names.update || name == names.current || used.iter().any(|used| used == name)
    });
}

fn reconcile_pods(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    set: &StatefulSetUpdate<'_>,
    found: &BTreeMap<i64, ParsedObject>,
    counts: &mut StatefulSetCounts,
) {
    let last = set.first + set.wanted;
    if !create_missing(context, key, set, found) {
        return;
    }
    let condemned: Vec<&ParsedObject> =
        found.range(last..).rev().chain(found.range(..set.first).rev()).map(|(_, pod)| pod).collect();
    if !delete_surplus(context, set, found, &condemned) {
        return;
    }
    replace_outdated(context, set, found, counts);
}

fn pods_by_ordinal(context: &ControllerContext<'_>, set: &Value) -> BTreeMap<i64, ParsedObject> {
    let prefix = format!("{}-", object::name(set));
    context
        .owned(set, "pods")
        .into_iter()
        .filter_map(|pod| Some((object::name(&pod).strip_prefix(&prefix)?.parse().ok()?, pod)))
        .collect()
}

fn delete(context: &mut ControllerContext<'_>, set: &Value, pod: &ParsedObject) {
    context.delete(&key_of("pods", pod), &crate::verbs::RequestDeleteOptions::default());
    let message = format!("Delete Pod {} in StatefulSet {} successful", object::name(pod), object::name(set));
    context.event(set, EventComponent::StatefulSet, "Normal", "SuccessfulDelete", &message);
}

/// Makes missing pods. In order, each waits for the one before; true when nothing is waited for.
fn create_missing(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    set: &StatefulSetUpdate<'_>,
    found: &BTreeMap<i64, ParsedObject>,
) -> bool {
    for number in set.first..set.first + set.wanted {
        match found.get(&number) {
            None => {
                let old = number < set.first + set.pods_on_old_template;
                let made = pod_of::create(context, set.value, &set.names, number, old);
                if !made {
                    context.retry_with_backoff(key);
                    return false;
                }
                if set.in_order {
                    return false;
                }
            }
            Some(pod) if pods::is_finished(pod) => {
                if !object::is_deleting(pod) {
                    delete(context, set.value, pod);
                }
                if set.in_order {
                    return false;
                }
            }
            Some(pod)
                if set.in_order
                    && (object::is_deleting(pod) || !pods::is_available(context, pod, set.min_ready)) =>
            {
                return false;
            }
            Some(_) => {}
        }
    }
    context.memory.failures.remove(key);
    true
}

/// Ends pods that are too many, the highest first; true when there are none. In order, each waits
/// for the one before and for the others to be well, unless it is itself what is not.
fn delete_surplus(
    context: &mut ControllerContext<'_>,
    set: &StatefulSetUpdate<'_>,
    found: &BTreeMap<i64, ParsedObject>,
    condemned: &[&ParsedObject],
) -> bool {
    let first_ill = found
        .values()
        .find(|pod| object::is_deleting(pod) || !pods::is_available(context, pod, set.min_ready))
        .map(|pod| object::uid(pod).to_owned());
    for pod in condemned {
        if object::is_deleting(pod) {
            if set.in_order {
                return false;
            }
            continue;
        }
        let waits = !pods::is_available(context, pod, set.min_ready)
            && first_ill.as_deref() != Some(object::uid(pod));
        if set.in_order && waits {
            return false;
        }
        delete(context, set.value, pod);
        if set.in_order {
            return false;
        }
    }
    true
}

/// Deletes one pod of an old template, the highest first, when those above it are well.
fn replace_outdated(
    context: &mut ControllerContext<'_>,
    set: &StatefulSetUpdate<'_>,
    found: &BTreeMap<i64, ParsedObject>,
    counts: &mut StatefulSetCounts,
) {
    if object::text(set.value, &["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return;
    }
    let last = set.first + set.wanted;
    let lowest = (set.first + set.partition).min(last);
    for number in (lowest..last).rev() {
        let Some(pod) = found.get(&number) else { return };
        if revision_of(pod) != set.names.update && !object::is_deleting(pod) {
            delete(context, set.value, pod);
            counts.current -= 1;
            return;
        }
        if object::is_deleting(pod) || !pods::is_available(context, pod, set.min_ready) {
            return;
        }
    }
}

fn revision_of(pod: &Value) -> &str {
    object::text(pod, &["metadata", "labels", controller_revision::LABEL]).unwrap_or("")
}

fn count_pods(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    set: &StatefulSetUpdate<'_>,
    found: &BTreeMap<i64, ParsedObject>,
) -> StatefulSetCounts {
    let mut counts = StatefulSetCounts::default();
    let all: Vec<ParsedObject> = found.values().cloned().collect();
    counts.available = pods::count_available(context, key, &all, set.min_ready);
    for pod in &all {
        counts.replicas += 1;
        counts.ready += i64::from(pods::is_ready(pod));
        if !object::is_deleting(pod) {
            counts.current += i64::from(revision_of(pod) == set.names.current);
            counts.updated += i64::from(revision_of(pod) == set.names.update);
        }
    }
    counts
}

fn write_status(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    set: &StatefulSetUpdate<'_>,
    counts: &StatefulSetCounts,
) {
    let rolls = object::text(set.value, &["spec", "updateStrategy", "type"]) != Some("OnDelete");
    let complete =
        rolls && [counts.updated, counts.ready, counts.replicas].iter().all(|one| *one == set.wanted);
    let (current, current_count) =
        if complete { (&set.names.update, counts.updated) } else { (&set.names.current, counts.current) };
    let generation = object::generation(set.value);
    let collisions = object::integer(set.value, &["status", "collisionCount"]);
    context.change_status(key, &WriteCaller::controller(), |status| {
        status["observedGeneration"] = json!(generation);
        status["replicas"] = json!(counts.replicas);
        set_counter(status, "readyReplicas", counts.ready);
        status["availableReplicas"] = json!(counts.available);
        set_counter(status, "currentReplicas", current_count);
        set_counter(status, "updatedReplicas", counts.updated);
        status["currentRevision"] = json!(current);
        status["updateRevision"] = json!(set.names.update);
        status["collisionCount"] = json!(collisions);
    });
}
