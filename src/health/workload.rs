//! Deployment, StatefulSet, DaemonSet, ReplicaSet: replicas are counted, conditions only explain.

use serde_json::Value;

use super::json_fields::{StatusCondition, count, integer, is_true, outdated_status, pluralize, text};
use crate::model::{Health, HealthStatus};

struct ReplicaCounts {
    noun: &'static str,
    wanted: i64,
    updated: i64,
    ready: i64,
    available: i64,
    /// Of all revisions.
    total: i64,
}

impl ReplicaCounts {
    fn in_progress(&self) -> Option<String> {
        let Self { noun, wanted, updated, ready, available, total } = *self;
        if updated < wanted {
            return Some(format!("{updated}/{wanted} {noun}s updated"));
        }
        if total > updated {
            return Some(format!(
                "{} pending termination",
                pluralize(total - updated, &format!("old {noun}"))
            ));
        }
        if total > wanted {
            return Some(format!(
                "{} pending termination",
                pluralize(total - wanted, &format!("surplus {noun}"))
            ));
        }
        if ready < wanted {
            return Some(format!("{ready}/{wanted} {noun}s ready"));
        }
        (available < wanted).then(|| format!("{available}/{wanted} {noun}s available"))
    }

    fn current(&self) -> Health {
        Health::new(HealthStatus::Current, format!("{0}/{0} {1}s available", self.wanted, self.noun))
    }
}

/// `spec.replicas`; 1 if missing, as in the API server.
pub fn desired_replicas(object: &Value) -> i64 {
    integer(object, "/spec/replicas").unwrap_or(1).max(0)
}

pub fn deployment(object: &Value) -> Health {
    let replicas = ReplicaCounts {
        noun: "replica",
        wanted: desired_replicas(object),
        updated: count(object, "/status/updatedReplicas"),
        ready: count(object, "/status/readyReplicas"),
        available: count(object, "/status/availableReplicas"),
        total: count(object, "/status/replicas"),
    };
    if is_true(object, "/spec/paused") {
        let progress = replicas.in_progress().map(|words| format!(": {words}")).unwrap_or_default();
        return Health::new(HealthStatus::Suspended, format!("rollout is paused{progress}"));
    }
    if let Some(old) = outdated_status(object, true) {
        return old;
    }
    let Some(progress) = replicas.in_progress() else {
        return match StatusCondition::of(object, "Available") {
            Some(available) if available.has_status("False") => {
                Health::new(HealthStatus::InProgress, available.summary())
            }
            _ => replicas.current(),
        };
    };
    // Available would still be True here: old pods serve while new ones fail. A quota or admission failure is retried
    // until the deadline, so it has not failed before.
    let failure = StatusCondition::of(object, "ReplicaFailure").filter(|c| c.has_status("True"));
    let progress = match failure {
        Some(failure) => format!("{progress}: {}", failure.summary()),
        None => progress,
    };
    if StatusCondition::of(object, "Progressing").is_some_and(|c| c.has_reason("ProgressDeadlineExceeded")) {
        return Health::new(HealthStatus::Failed, format!("Progress deadline exceeded: {progress}"));
    }
    Health::new(HealthStatus::InProgress, progress)
}

pub fn stateful_set(object: &Value) -> Health {
    if let Some(old) = outdated_status(object, true) {
        return old;
    }
    let wanted = desired_replicas(object);
    let on_delete = text(object, "/spec/updateStrategy/type") == Some("OnDelete");
    // Pods with a lower ordinal keep the old revision on purpose.
    let partition = integer(object, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0).max(0);
    let to_update = if on_delete { 0 } else { wanted.saturating_sub(partition).max(0) };
    let updated = updated_pods(object, wanted);
    let ready = count(object, "/status/readyReplicas");
    let replicas = ReplicaCounts {
        noun: "replica",
        wanted,
        updated: wanted,
        ready,
        // Served since 1.22. Before, ready pods count (there was no minReadySeconds).
        available: integer(object, "/status/availableReplicas").unwrap_or(ready),
        total: count(object, "/status/replicas"),
    };
    if replicas.total < wanted {
        return Health::new(
            HealthStatus::InProgress,
            format!("{}/{wanted} replicas created", replicas.total),
        );
    }
    if replicas.total > wanted {
        let surplus = pluralize(replicas.total - wanted, "surplus replica");
        return Health::new(HealthStatus::InProgress, format!("{surplus} pending termination"));
    }
    if updated < to_update {
        return Health::new(HealthStatus::InProgress, format!("{updated}/{to_update} replicas updated"));
    }
    match replicas.in_progress() {
        Some(progress) => Health::new(HealthStatus::InProgress, progress),
        None if partition > 0 && !on_delete => Health::new(
            HealthStatus::Current,
            format!("{wanted}/{wanted} replicas available, {to_update} updated up to the partition"),
        ),
        None => replicas.current(),
    }
}

/// Pods of the newest revision. If both revisions are equal, nothing is left to update (some controllers then omit
/// `updatedReplicas`, or set it to 0), or a rollout was reverted half-way and its pods still exist.
pub fn updated_pods(object: &Value, wanted: i64) -> i64 {
    let current = text(object, "/status/currentRevision");
    let Some(update) = text(object, "/status/updateRevision") else { return wanted };
    match count(object, "/status/updatedReplicas") {
        0 if current == Some(update) => wanted,
        updated => updated,
    }
}

pub fn daemon_set(object: &Value) -> Health {
    if let Some(old) = outdated_status(object, true) {
        return old;
    }
    let Some(wanted) = integer(object, "/status/desiredNumberScheduled") else {
        return Health::new(HealthStatus::InProgress, "no status yet");
    };
    let wanted = wanted.max(0);
    let created = count(object, "/status/currentNumberScheduled");
    if created < wanted {
        return Health::new(HealthStatus::InProgress, format!("{created}/{wanted} pods created"));
    }
    let on_delete = text(object, "/spec/updateStrategy/type") == Some("OnDelete");
    let replicas = ReplicaCounts {
        noun: "pod",
        wanted,
        updated: if on_delete { wanted } else { count(object, "/status/updatedNumberScheduled") },
        ready: count(object, "/status/numberReady"),
        available: count(object, "/status/numberAvailable"),
        // One pod a node, so there is no surplus.
        total: wanted,
    };
    match replicas.in_progress() {
        Some(progress) => Health::new(HealthStatus::InProgress, progress),
        None => replicas.current(),
    }
}

pub fn replica_set(object: &Value) -> Health {
    if let Some(old) = outdated_status(object, true) {
        return old;
    }
    let wanted = desired_replicas(object);
    let total = count(object, "/status/replicas");
    let failure = StatusCondition::of(object, "ReplicaFailure").filter(|c| c.has_status("True"));
    // Unlike a Deployment it has no deadline that ends the wait.
    if let Some(failure) = failure {
        return Health::new(
            HealthStatus::Failed,
            format!("{total}/{wanted} replicas: {}", failure.summary()),
        );
    }
    let replicas = ReplicaCounts {
        noun: "replica",
        wanted,
        updated: total,
        ready: count(object, "/status/readyReplicas"),
        available: count(object, "/status/availableReplicas"),
        total,
    };
    if total < wanted {
        return Health::new(HealthStatus::InProgress, format!("{total}/{wanted} replicas created"));
    }
    match replicas.in_progress() {
        Some(progress) => Health::new(HealthStatus::InProgress, progress),
        None => replicas.current(),
    }
}
