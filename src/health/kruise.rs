//! Workloads of OpenKruise (`apps.kruise.io`).
//!
//! Unlike a paused Deployment, a held one still creates and replaces pods; only the update of old pods is held. So it
//! is Suspended if all its pods exist, and InProgress before.

use serde_json::Value;

use super::json_fields::{StatusCondition, count, integer, is_true, items, outdated_status, pluralize, text};
use super::workload::{desired_replicas, updated_pods};
use crate::model::{Health, HealthStatus};

struct KruisePods {
    wanted: i64,
    /// Of all revisions.
    total: i64,
    ready: i64,
    available: i64,
    updated: i64,
    /// How many pods the rollout updates for now.
    to_update: i64,
    /// Why the other pods keep their revision.
    hold: UpdateHold,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UpdateHold {
    /// Nothing, or updates by manual deletes.
    None,
    Partition,
    Paused,
}

impl KruisePods {
    fn in_progress(&self) -> Option<String> {
        let Self { wanted, total, ready, available, updated, to_update, hold } = *self;
        if total < wanted {
            return Some(format!("{total}/{wanted} pods created"));
        }
        if hold != UpdateHold::Paused && updated < to_update {
            return Some(format!("{updated}/{to_update} pods updated"));
        }
        if total > wanted {
            return Some(format!("{} pending termination", pluralize(total - wanted, "surplus pod")));
        }
        if ready < wanted {
            return Some(format!("{ready}/{wanted} pods ready"));
        }
        (available < wanted).then(|| format!("{available}/{wanted} pods available"))
    }

    /// `failures`: conditions that, if True, say why pods are missing.
    fn health(&self, object: &Value, failures: &[&str]) -> Health {
        let Self { wanted, updated, hold, .. } = *self;
        if let Some(progress) = self.in_progress() {
            if StatusCondition::of(object, "Progressing")
                .is_some_and(|c| c.has_reason("ProgressDeadlineExceeded"))
            {
                return Health::new(HealthStatus::Failed, format!("Progress deadline exceeded: {progress}"));
            }
            let failure = failures
                .iter()
                .find_map(|name| StatusCondition::of(object, name).filter(|c| c.has_status("True")));
            let words = failure.map(|failure| format!("{progress}: {}", failure.summary()));
            return Health::new(HealthStatus::InProgress, words.unwrap_or(progress));
        }
        match hold {
            UpdateHold::Paused => Health::new(
                HealthStatus::Suspended,
                format!("rollout is paused: {}/{wanted} pods updated", updated.min(wanted)),
            ),
            UpdateHold::Partition if updated < wanted => Health::new(
                HealthStatus::Suspended,
                format!("held by the partition: {updated}/{wanted} pods updated"),
            ),
            _ => Health::new(HealthStatus::Current, format!("{wanted}/{wanted} pods available")),
        }
    }
}

fn hold(is_paused: bool) -> UpdateHold {
    if is_paused { UpdateHold::Paused } else { UpdateHold::Partition }
}

/// How many of `wanted` pods a partition keeps at the old revision: a number, or a percentage that is rounded up and
/// leaves at least one pod to the rollout.
fn partitioned_pods(object: &Value, pointer: &str, wanted: i64) -> i64 {
    let share = text(object, pointer).and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    let held = match share {
        Some(share) if share >= 100 => wanted,
        Some(share) => share.max(0).saturating_mul(wanted).saturating_add(99) / 100,
        None => integer(object, pointer).or_else(|| text(object, pointer)?.parse().ok()).unwrap_or(0),
    };
    let most = if share.is_some_and(|share| share < 100) && wanted > 1 { wanted - 1 } else { wanted };
    held.clamp(0, most)
}

pub fn clone_set(object: &Value) -> Health {
    if let Some(old) = outdated_status(object, true) {
        return old;
    }
    let wanted = desired_replicas(object);
    let by_partition = wanted - partitioned_pods(object, "/spec/updateStrategy/partition", wanted);
    let pods = KruisePods {
        wanted,
        total: count(object, "/status/replicas"),
        ready: count(object, "/status/readyReplicas"),
        available: count(object, "/status/availableReplicas"),
        updated: updated_pods(object, wanted),
        // The controller's own number, which it omits if it is 0; older versions always omit it.
        to_update: integer(object, "/status/expectedUpdatedReplicas").unwrap_or(by_partition).max(0),
        hold: hold(is_true(object, "/spec/updateStrategy/paused")),
    };
    pods.health(object, &["FailedScale", "FailedUpdate"])
}

pub fn stateful_set(object: &Value) -> Health {
    if let Some(old) = outdated_status(object, true) {
        return old;
    }
    let wanted = desired_replicas(object);
    let on_delete = text(object, "/spec/updateStrategy/type") == Some("OnDelete");
    let ready = count(object, "/status/readyReplicas");
    let pods = KruisePods {
        wanted,
        total: count(object, "/status/replicas"),
        ready,
        // v1alpha1 has the field since a late version.
        available: integer(object, "/status/availableReplicas").unwrap_or(ready),
        updated: updated_pods(object, wanted),
        to_update: wanted - partitioned_pods(object, "/spec/updateStrategy/rollingUpdate/partition", wanted),
        hold: hold(is_true(object, "/spec/updateStrategy/rollingUpdate/paused")),
    };
    pods.by_hand(on_delete).health(object, &["FailedCreatePod", "FailedUpdatePod"])
}

fn nodes_to_update(object: &Value, nodes: i64) -> i64 {
    nodes - partitioned_pods(object, "/spec/updateStrategy/rollingUpdate/partition", nodes)
}

/// How many pods a DaemonSet wants: one a node. With partitioned scaling only on the nodes that the partition leaves
/// to the rollout.
pub fn daemon_set_pods(object: &Value) -> i64 {
    let nodes = count(object, "/status/desiredNumberScheduled");
    let is_partitioned = is_true(object, "/spec/scaleStrategy/partitionedScaling");
    if is_partitioned { nodes_to_update(object, nodes) } else { nodes }
}

pub fn daemon_set(object: &Value) -> Health {
    if let Some(old) = outdated_status(object, true) {
        return old;
    }
    let Some(nodes) = integer(object, "/status/desiredNumberScheduled") else {
        return Health::new(HealthStatus::InProgress, "no status yet");
    };
    let to_update = nodes_to_update(object, nodes.max(0));
    let wanted = daemon_set_pods(object);
    // The selected nodes depend on labels, which are unknown here.
    let chosen = object.pointer("/spec/updateStrategy/rollingUpdate/selector").is_some_and(Value::is_object);
    let on_delete = text(object, "/spec/updateStrategy/type") == Some("OnDelete");
    let pods = KruisePods {
        wanted,
        // One pod a node, so there is no surplus.
        total: count(object, "/status/currentNumberScheduled").min(wanted),
        ready: count(object, "/status/numberReady"),
        available: count(object, "/status/numberAvailable"),
        updated: count(object, "/status/updatedNumberScheduled"),
        to_update,
        hold: hold(is_true(object, "/spec/updateStrategy/rollingUpdate/paused")),
    };
    pods.by_hand(on_delete || chosen).health(object, &[])
}

impl KruisePods {
    /// People choose the pods to update, so no number of them is expected.
    fn by_hand(self, is_so: bool) -> Self {
        if is_so && self.hold != UpdateHold::Paused {
            return Self { to_update: 0, hold: UpdateHold::None, ..self };
        }
        self
    }
}

pub fn united_deployment(object: &Value) -> Health {
    if let Some(old) = outdated_status(object, true) {
        return old;
    }
    let wanted = desired_replicas(object);
    let partitions =
        object.pointer("/spec/updateStrategy/manualUpdate/partitions").and_then(Value::as_object);
    let held: i64 = partitions
        .into_iter()
        .flatten()
        .map(|(subset, partition)| {
            partition.as_i64().unwrap_or(0).clamp(0, most_held_back(object, subset).unwrap_or(0).max(0))
        })
        .fold(0, i64::saturating_add);
    let ready = count(object, "/status/readyReplicas");
    let pods = KruisePods {
        wanted,
        total: count(object, "/status/replicas"),
        ready,
        // It does not count available pods.
        available: ready,
        updated: count(object, "/status/updatedReplicas"),
        to_update: wanted.saturating_sub(held).max(0),
        hold: UpdateHold::Partition,
    };
    pods.health(object, &["SubsetFailure"])
}

/// How many pods of a subset a partition can hold back. v1alpha1 has a map of subsets. v1beta1 lists each with the
/// controller's own number, omitted if it is 0.
fn most_held_back(object: &Value, subset: &str) -> Option<i64> {
    let in_map = || object.pointer("/status/subsetReplicas")?.get(subset)?.as_i64();
    let in_list = || {
        let subsets = items(object, "/status/subsetStatuses");
        let status = subsets.iter().find(|status| text(status, "/name") == Some(subset))?;
        integer(status, "/partition").or_else(|| integer(status, "/replicas"))
    };
    in_map().or_else(in_list)
}

/// One pod a node; each runs to completion.
pub fn broadcast_job(object: &Value) -> Health {
    let holds = |name| StatusCondition::of(object, name).filter(|condition| condition.has_status("True"));
    if let Some(failed) = holds("Failed") {
        return Health::new(HealthStatus::Failed, failed.summary());
    }
    let [wanted, succeeded, failed] =
        ["desired", "succeeded", "failed"].map(|field| count(object, &format!("/status/{field}")));
    let progress = format!("{succeeded}/{wanted} pods succeeded");
    if text(object, "/status/phase") == Some("failed") {
        return Health::new(HealthStatus::Failed, format!("{progress}, {failed} failed"));
    }
    let is_over = holds("Complete").is_some() || text(object, "/status/phase") == Some("completed");
    if is_over && failed > 0 {
        return Health::new(HealthStatus::Failed, format!("{progress}, {failed} failed"));
    }
    // With the policy Never it waits for new nodes and does not end.
    let stays = text(object, "/spec/completionPolicy/type") == Some("Never");
    if is_over || (stays && wanted > 0 && succeeded >= wanted) {
        return Health::new(HealthStatus::Current, progress);
    }
    if is_true(object, "/spec/paused") {
        return Health::new(HealthStatus::Suspended, format!("paused: {progress}"));
    }
    if text(object, "/status/phase").is_none() {
        return Health::new(HealthStatus::InProgress, "no status yet");
    }
    match failed {
        0 => Health::new(HealthStatus::InProgress, progress),
        _ => Health::new(HealthStatus::InProgress, format!("{progress}, {failed} failed")),
    }
}

/// It reports when its last job began, not how it ended.
pub fn cron_job(object: &Value) -> Health {
    if is_true(object, "/spec/paused") {
        return Health::new(HealthStatus::Suspended, "paused");
    }
    Health::current()
}

/// New pods get the sidecars once the controller has observed the object. Existing pods may have to be recreated,
/// which is up to their owners.
pub fn sidecar_set(object: &Value) -> Health {
    if let Some(old) = outdated_status(object, true) {
        return old;
    }
    let [matched, updated] =
        ["matchedPods", "updatedPods"].map(|field| count(object, &format!("/status/{field}")));
    let words = format!("{updated}/{matched} pods have the newest sidecars");
    if is_true(object, "/spec/updateStrategy/paused") && updated < matched {
        return Health::new(HealthStatus::Suspended, format!("update is paused: {words}"));
    }
    Health::new(HealthStatus::Current, words)
}
