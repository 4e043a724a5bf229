//! The StatefulSet controller: creates and replaces pods in the order of their ordinals.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::condition::count;
use super::context::{Context, key_of};
use super::event::Component;
use super::stateful_pod::{self as pod_of, Names};
use super::{pods, revision};
use crate::object;
use crate::store::{Key, Object};
use crate::verbs::Caller;

/// One reconcile of a StatefulSet.
struct Set<'s> {
    value: &'s Value,
    first: i64,
    wanted: i64,
    in_order: bool,
    partition: i64,
    /// So many of the first pods get the old template when they have to be made again.
    remade_as_old: i64,
    min_ready: Duration,
    names: Names,
}

/// The counts in the status: the pods from before this reconcile.
#[derive(Default)]
struct Counts {
    replicas: i64,
    ready: i64,
    available: i64,
    current: i64,
    updated: i64,
}

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, value: &Value) {
    let update = revision::settle(context, value, "StatefulSet", "controller.kubernetes.io/hash");
    let update = object::name(&update).to_owned();
    let current = object::text(value, &["status", "currentRevision"])
        .filter(|name| revision::template(context, object::namespace(value), name).is_some())
        .unwrap_or(&update)
        .to_owned();
    let partition = object::integer(value, &["spec", "updateStrategy", "rollingUpdate", "partition"]);
    let strategy = &value["spec"]["updateStrategy"];
    let set = Set {
        value,
        first: object::integer(value, &["spec", "ordinals", "start"]),
        wanted: object::integer(value, &["spec", "replicas"]).max(0),
        in_order: object::text(value, &["spec", "podManagementPolicy"]) != Some("Parallel"),
        partition,
        remade_as_old: match object::at(strategy, &["rollingUpdate"]) {
            None if strategy["type"] == "RollingUpdate" => {
                object::integer(value, &["status", "currentReplicas"])
            }
            _ => partition,
        },
        min_ready: object::seconds(value, &["spec", "minReadySeconds"]),
        names: Names { update, current },
    };
    let found = numbered(context, value);
    let mut counts = counted(context, key, &set, &found);
    if !object::is_deleting(value) {
        act(context, key, &set, &found, &mut counts);
    }
    write_status(context, key, &set, &counts);
    let used: Vec<String> = found.values().map(|pod| revision_of(pod).to_owned()).collect();
    let names = set.names;
    revision::clean_up(context, value, |one| {
        let name = object::name(one);
        name == names.update || name == names.current || used.iter().any(|used| used == name)
    });
}

fn act(
    context: &mut Context<'_>,
    key: &Key,
    set: &Set<'_>,
    found: &BTreeMap<i64, Object>,
    counts: &mut Counts,
) {
    let last = set.first + set.wanted;
    if !grow(context, key, set, found) {
        return;
    }
    let condemned: Vec<&Object> =
        found.range(last..).rev().chain(found.range(..set.first).rev()).map(|(_, pod)| pod).collect();
    if !shrink(context, set, found, &condemned) {
        return;
    }
    replace_old(context, set, found, counts);
}

fn numbered(context: &Context<'_>, set: &Value) -> BTreeMap<i64, Object> {
    let prefix = format!("{}-", object::name(set));
    context
        .owned(set, "pods")
        .into_iter()
        .filter_map(|pod| Some((object::name(&pod).strip_prefix(&prefix)?.parse().ok()?, pod)))
        .collect()
}

fn delete(context: &mut Context<'_>, set: &Value, pod: &Object) {
    context.delete(&key_of("pods", pod), &crate::verbs::DeleteOptions::default());
    let message = format!("Delete Pod {} in StatefulSet {} successful", object::name(pod), object::name(set));
    context.event(set, Component::StatefulSet, "Normal", "SuccessfulDelete", &message);
}

/// Makes missing pods. In order, each waits for the one before; true when nothing is waited for.
fn grow(context: &mut Context<'_>, key: &Key, set: &Set<'_>, found: &BTreeMap<i64, Object>) -> bool {
    for number in set.first..set.first + set.wanted {
        match found.get(&number) {
            None => {
                let old = number < set.first + set.remade_as_old;
                let made = pod_of::create(context, set.value, &set.names, number, old);
                if !made {
                    context.retry_failed(key);
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
fn shrink(
    context: &mut Context<'_>,
    set: &Set<'_>,
    found: &BTreeMap<i64, Object>,
    condemned: &[&Object],
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
fn replace_old(context: &mut Context<'_>, set: &Set<'_>, found: &BTreeMap<i64, Object>, counts: &mut Counts) {
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
    object::text(pod, &["metadata", "labels", revision::LABEL]).unwrap_or("")
}

fn counted(context: &mut Context<'_>, key: &Key, set: &Set<'_>, found: &BTreeMap<i64, Object>) -> Counts {
    let mut counts = Counts::default();
    let all: Vec<Object> = found.values().cloned().collect();
    counts.available = pods::available(context, key, &all, set.min_ready);
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

fn write_status(context: &mut Context<'_>, key: &Key, set: &Set<'_>, counts: &Counts) {
    let rolls = object::text(set.value, &["spec", "updateStrategy", "type"]) != Some("OnDelete");
    let complete =
        rolls && [counts.updated, counts.ready, counts.replicas].iter().all(|one| *one == set.wanted);
    let (current, current_count) =
        if complete { (&set.names.update, counts.updated) } else { (&set.names.current, counts.current) };
    let generation = object::generation(set.value);
    let collisions = object::integer(set.value, &["status", "collisionCount"]);
    context.change_status(key, &Caller::controller(), |status| {
        status["observedGeneration"] = json!(generation);
        status["replicas"] = json!(counts.replicas);
        count(status, "readyReplicas", counts.ready);
        status["availableReplicas"] = json!(counts.available);
        count(status, "currentReplicas", current_count);
        count(status, "updatedReplicas", counts.updated);
        status["currentRevision"] = json!(current);
        status["updateRevision"] = json!(set.names.update);
        status["collisionCount"] = json!(collisions);
    });
}
