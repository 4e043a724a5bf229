//! A deployment's counters and conditions.

use std::time::Duration;

use serde_json::{Value, json};

use super::condition::{Condition, count};
use super::context::Context;
use super::rolling::Limits;
use crate::object;
use crate::store::{Key, Object};
use crate::verbs::Caller;

/// The ReplicaSet of the present template, and the others.
#[derive(Debug, Default)]
pub(super) struct ReplicaSets {
    pub(super) new: Option<Object>,
    pub(super) old: Vec<Object>,
}

impl ReplicaSets {
    fn sum(&self, path: &[&str]) -> i64 {
        self.new.iter().chain(&self.old).map(|set| object::integer(set, path)).sum()
    }
}

pub(super) fn note_created(context: &mut Context<'_>, key: &Key, set: &str) {
    let now = context.state.clock.timestamp();
    if let Some(deployment) = context.state.store.at(key) {
        let uid = object::uid(deployment).to_owned();
        context.memory.progress.insert(uid, context.now);
    }
    let message = format!("Created new replica set \"{set}\"");
    context.change_status(key, &Caller::controller(), |status| {
        Condition { kind: "Progressing", is_true: true, reason: "NewReplicaSetCreated", message: &message }
            .write(status, &now, true);
    });
}

pub(super) fn write(context: &mut Context<'_>, key: &Key, deployment: &Value, sets: &ReplicaSets) {
    let Some(live) = context.state.store.at(key).cloned() else { return };
    let old = live["status"].clone();
    let desired = object::integer(deployment, &["spec", "replicas"]);
    let updated = sets.new.as_ref().map_or(0, |set| object::integer(set, &["status", "replicas"]));
    let total = sets.sum(&["status", "replicas"]);
    let ready = sets.sum(&["status", "readyReplicas"]);
    let available = sets.sum(&["status", "availableReplicas"]);
    let unavailable = (sets.sum(&["spec", "replicas"]) - available).max(0);

    let mut status = old.clone();
    status["observedGeneration"] = json!(object::generation(deployment));
    count(&mut status, "replicas", total);
    count(&mut status, "updatedReplicas", updated);
    count(&mut status, "readyReplicas", ready);
    count(&mut status, "availableReplicas", available);
    count(&mut status, "unavailableReplicas", unavailable);

    let now = context.state.clock.timestamp();
    available_condition(available >= desired - Limits::of(deployment).unavailable).ensure(
        &mut status,
        &now,
        true,
    );
    let complete = updated == desired && total == desired && available == desired;
    let moved = {
        let before = |field: &str| object::integer(&old, &[field]);
        updated > before("updatedReplicas")
            || total - updated < before("replicas") - before("updatedReplicas")
            || ready > before("readyReplicas")
            || available > before("availableReplicas")
    };
    let name = sets.new.as_ref().map_or("", |set| object::name(set));
    progress(context, key, &mut status, &Progress { complete, moved, name, deployment });
    context.change_status(key, &Caller::controller(), |live| *live = status);
}

fn available_condition(enough: bool) -> Condition<'static> {
    if enough {
        return Condition {
            kind: "Available",
            is_true: true,
            reason: "MinimumReplicasAvailable",
            message: "Deployment has minimum availability.",
        };
    }
    Condition {
        kind: "Available",
        is_true: false,
        reason: "MinimumReplicasUnavailable",
        message: "Deployment does not have minimum availability.",
    }
}

struct Progress<'p> {
    complete: bool,
    moved: bool,
    name: &'p str,
    deployment: &'p Value,
}

fn progress(context: &mut Context<'_>, key: &Key, status: &mut Value, seen: &Progress<'_>) {
    let now = context.state.clock.timestamp();
    let uid = object::uid(seen.deployment).to_owned();
    let reason = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|one| one["type"] == "Progressing")
        .and_then(|one| one["reason"].as_str())
        .unwrap_or("")
        .to_owned();
    if seen.complete {
        let message = format!("ReplicaSet \"{}\" has successfully progressed.", seen.name);
        return Condition {
            kind: "Progressing",
            is_true: true,
            reason: "NewReplicaSetAvailable",
            message: &message,
        }
        .ensure(status, &now, true);
    }
    // a finished rollout that loses a pod is not a rollout again
    if reason == "NewReplicaSetAvailable"
        && object::generation(seen.deployment) == observed(context, key)
        && !seen.moved
    {
        return;
    }
    if seen.moved {
        context.memory.progress.insert(uid.clone(), context.now);
        let message = format!("ReplicaSet \"{}\" is progressing.", seen.name);
        Condition { kind: "Progressing", is_true: true, reason: "ReplicaSetUpdated", message: &message }
            .write(status, &now, true);
    }
    let last = *context.memory.progress.entry(uid).or_insert(context.now);
    let seconds = object::integer(seen.deployment, &["spec", "progressDeadlineSeconds"]).max(0) as u64;
    let deadline = last + Duration::from_secs(seconds);
    if context.now < deadline {
        return context.again_at(key, deadline);
    }
    let message = format!("ReplicaSet \"{}\" has timed out progressing.", seen.name);
    Condition { kind: "Progressing", is_true: false, reason: "ProgressDeadlineExceeded", message: &message }
        .ensure(status, &now, true);
}

fn observed(context: &Context<'_>, key: &Key) -> i64 {
    context.state.store.at(key).map_or(0, |live| object::integer(live, &["status", "observedGeneration"]))
}
