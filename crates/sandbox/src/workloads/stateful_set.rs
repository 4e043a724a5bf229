//! StatefulSets: pods with numbers, made and replaced in order.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::condition::count;
use super::context::{Context, key_of};
use super::{pods, revision};
use crate::object;
use crate::store::{Key, Object, ObjectName};
use crate::verbs::{Caller, DeleteOptions};

/// One look at a set, with what it wants.
struct Set<'s> {
    value: &'s Value,
    wanted: i64,
    in_order: bool,
    partition: i64,
    update: String,
    current: String,
}

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, value: &Value) {
    let update = revision::of(context, value, "StatefulSet");
    let current = object::text(value, &["status", "currentRevision"]).unwrap_or(&update).to_owned();
    let set = Set {
        value,
        wanted: object::integer(value, &["spec", "replicas"]).max(0),
        in_order: object::text(value, &["spec", "podManagementPolicy"]) != Some("Parallel"),
        partition: object::integer(value, &["spec", "updateStrategy", "rollingUpdate", "partition"]),
        update,
        current,
    };
    let found = numbered(context, value);
    let whole = grow(context, &set, &found);
    if whole && shrink(context, &set, &found) {
        replace_old(context, &set, &found);
    }
    write_status(context, key, &set);
}

fn numbered(context: &Context<'_>, set: &Value) -> BTreeMap<i64, Object> {
    let prefix = format!("{}-", object::name(set));
    context
        .owned(set, "pods")
        .into_iter()
        .filter_map(|pod| Some((object::name(&pod).strip_prefix(&prefix)?.parse().ok()?, pod)))
        .collect()
}

fn is_healthy(pod: &Value) -> bool {
    pods::is_ready(pod) && !object::is_deleting(pod)
}

/// Makes missing pods. In order, each waits for the one before; true when nothing is waited for.
fn grow(context: &mut Context<'_>, set: &Set<'_>, found: &BTreeMap<i64, Object>) -> bool {
    for number in 0..set.wanted {
        match found.get(&number) {
            None => {
                create(context, set, number);
                if set.in_order {
                    return false;
                }
            }
            Some(pod) if set.in_order && !is_healthy(pod) => return false,
            Some(_) => {}
        }
    }
    true
}

fn create(context: &mut Context<'_>, set: &Set<'_>, number: i64) {
    let namespace = object::namespace(set.value).to_owned();
    let name = format!("{}-{number}", object::name(set.value));
    let wanted = if number < set.partition { &set.current } else { &set.update };
    let mut pod = pods::from_template(set.value, "apps/v1", "StatefulSet");
    if let Some(template) = revision::template(context, &namespace, wanted) {
        pod["spec"] = template["spec"].clone();
    }
    object::take(&mut pod, &["metadata", "generateName"]);
    object::set(&mut pod, &["metadata", "name"], name.as_str());
    object::set(&mut pod, &["metadata", "labels", revision::LABEL], wanted.as_str());
    object::set(&mut pod, &["metadata", "labels", "statefulset.kubernetes.io/pod-name"], name.as_str());
    object::set(&mut pod, &["metadata", "labels", "apps.kubernetes.io/pod-index"], number.to_string());
    pod["spec"]["hostname"] = json!(name);
    if let Some(service) = object::at(set.value, &["spec", "serviceName"]) {
        pod["spec"]["subdomain"] = service.clone();
    }
    for claim in object::list(set.value, &["spec", "volumeClaimTemplates"]) {
        mount_claim(context, &mut pod, claim, &namespace);
    }
    context.create("pods", &namespace, pod);
}

/// The claim of one pod, made once and kept when the pod goes.
fn mount_claim(context: &mut Context<'_>, pod: &mut Value, template: &Value, namespace: &str) {
    let volume = object::name(template).to_owned();
    let name = format!("{volume}-{}", object::name(pod));
    let key = Key { resource: "persistentvolumeclaims".to_owned(), name: ObjectName::new(namespace, &name) };
    if context.state.store.at(&key).is_none() {
        let claim = json!({"metadata": {"name": name, "labels": template["metadata"]["labels"]},
            "spec": template["spec"]});
        context.create("persistentvolumeclaims", namespace, claim);
    }
    let volumes = object::place(pod, &["spec", "volumes"]);
    if !volumes.is_array() {
        *volumes = json!([]);
    }
    if let Some(volumes) = volumes.as_array_mut() {
        volumes.retain(|one| one["name"] != volume.as_str());
        volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": name}}));
    }
}

/// Ends pods that are too many, the highest first; true when there are none.
fn shrink(context: &mut Context<'_>, set: &Set<'_>, found: &BTreeMap<i64, Object>) -> bool {
    let mut done = true;
    for (_, pod) in found.range(set.wanted..).rev() {
        done = false;
        if !object::is_deleting(pod) {
            context.delete(&key_of("pods", pod), &DeleteOptions::default());
        }
        if set.in_order {
            break;
        }
    }
    done
}

/// Deletes one pod of an old template, the highest first, when those above it are well.
fn replace_old(context: &mut Context<'_>, set: &Set<'_>, found: &BTreeMap<i64, Object>) {
    if object::text(set.value, &["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return;
    }
    for (_, pod) in found.range(set.partition..set.wanted.max(set.partition)).rev() {
        if object::is_deleting(pod) {
            return;
        }
        if revision_of(pod) != set.update {
            return context.delete(&key_of("pods", pod), &DeleteOptions::default());
        }
        if !is_healthy(pod) {
            return;
        }
    }
}

fn revision_of(pod: &Value) -> &str {
    object::text(pod, &["metadata", "labels", revision::LABEL]).unwrap_or("")
}

fn write_status(context: &mut Context<'_>, key: &Key, set: &Set<'_>) {
    let found = numbered(context, set.value);
    let live: Vec<&Object> = found.values().filter(|pod| !object::is_deleting(pod)).collect();
    let ready = live.iter().filter(|pod| pods::is_ready(pod)).count() as i64;
    let updated = live.iter().filter(|pod| revision_of(pod) == set.update).count() as i64;
    let min_ready =
        Duration::from_secs(object::integer(set.value, &["spec", "minReadySeconds"]).max(0) as u64);
    let mut available = 0;
    for pod in &live {
        match pods::available_at(context, pod, min_ready) {
            Some(at) if at <= context.now => available += 1,
            Some(at) => context.again_at(key, at),
            None => {}
        }
    }
    let complete = updated == set.wanted && ready == set.wanted && live.len() as i64 == set.wanted;
    let current = if complete { set.update.clone() } else { set.current.clone() };
    let current_count = live.iter().filter(|pod| revision_of(pod) == current).count() as i64;
    let generation = object::generation(set.value);
    context.change_status(key, &Caller::controller(), |status| {
        status["observedGeneration"] = json!(generation);
        status["replicas"] = json!(live.len());
        count(status, "readyReplicas", ready);
        status["availableReplicas"] = json!(available);
        count(status, "currentReplicas", current_count);
        count(status, "updatedReplicas", updated);
        status["currentRevision"] = json!(current);
        status["updateRevision"] = json!(set.update);
        status["collisionCount"] = json!(0);
    });
}
