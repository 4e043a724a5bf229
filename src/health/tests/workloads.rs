use serde_json::{Value, json};

use super::{check, condition, object};

/// A Deployment of 3: updated, ready, available and all replicas, observed at generation 2.
fn deployment(numbers: [u32; 4], conditions: Value) -> Value {
    let [updated, ready, available, total] = numbers;
    object(
        "apps/v1",
        "Deployment",
        json!({"replicas": 3}),
        json!({"observedGeneration": 2, "updatedReplicas": updated, "readyReplicas": ready,
               "availableReplicas": available, "replicas": total, "conditions": conditions}),
    )
}

#[test]
fn deployments_count_replicas() {
    let available = json!([condition("Available", "True", "MinimumReplicasAvailable", "ok")]);
    check(deployment([3, 3, 3, 3], available.clone()), "Current: 3/3 replicas available");
    // Old replicas keep it Available while new ones are missing.
    check(deployment([1, 3, 3, 4], available.clone()), "InProgress: 1/3 replicas updated");
    check(deployment([3, 3, 3, 4], available.clone()), "InProgress: 1 old replica pending termination");
    check(deployment([3, 3, 3, 5], json!([])), "InProgress: 2 old replicas pending termination");
    check(deployment([4, 4, 4, 4], json!([])), "InProgress: 1 surplus replica pending termination");
    check(deployment([3, 2, 2, 3], available.clone()), "InProgress: 2/3 replicas ready");
    check(deployment([3, 3, 1, 3], available), "InProgress: 1/3 replicas available");
    let unavailable = json!([condition("Available", "False", "MinimumReplicasUnavailable", "not enough")]);
    check(deployment([3, 3, 3, 3], unavailable), "InProgress: MinimumReplicasUnavailable: not enough");
}

#[test]
fn deployments_fail_at_their_deadline() {
    let late = json!([
        condition("Available", "True", "MinimumReplicasAvailable", "ok"),
        condition("Progressing", "False", "ProgressDeadlineExceeded", "has timed out progressing"),
    ]);
    check(deployment([1, 3, 3, 4], late.clone()), "Failed: Progress deadline exceeded: 1/3 replicas updated");
    // It succeeded late; the condition follows.
    check(deployment([3, 3, 3, 3], late), "Current: 3/3 replicas available");
    let quota = json!([condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota: pods")]);
    check(
        deployment([0, 0, 0, 0], quota),
        "InProgress: 0/3 replicas updated: FailedCreate: exceeded quota: pods",
    );
}

#[test]
fn outdated_status_is_in_progress() {
    let mut old = deployment([3, 3, 3, 3], json!([]));
    old["status"]["observedGeneration"] = json!(1);
    check(old.clone(), "InProgress: generation 2 is not observed yet, the status is of 1");
    old["spec"]["paused"] = json!(true);
    check(old, "Suspended: rollout is paused");
    check(
        object("apps/v1", "Deployment", json!({}), Value::Null),
        "InProgress: generation 2 is not observed yet",
    );
    // A server or dump without generations: the counts decide.
    let mut plain = deployment([3, 3, 3, 3], json!([]));
    plain["metadata"] = json!({"name": "pay"});
    check(plain.clone(), "Current: 3/3 replicas available");
    plain["status"] = json!({});
    check(plain, "InProgress: 0/3 replicas updated");
}

#[test]
fn deployments_pause_and_scale_to_nothing() {
    let mut paused = deployment([1, 3, 3, 4], json!([]));
    paused["spec"]["paused"] = json!(true);
    check(paused, "Suspended: rollout is paused: 1/3 replicas updated");
    let mut none = deployment([0, 0, 0, 0], json!([]));
    none["spec"]["replicas"] = json!(0);
    check(none, "Current: 0/0 replicas available");
    let mut one = deployment([0, 0, 0, 0], json!([]));
    one["spec"] = json!({});
    check(one, "InProgress: 0/1 replicas updated");
}

fn stateful_set(strategy: Value, status: Value) -> Value {
    let mut whole = json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "currentRevision": "a", "updateRevision": "a", "updatedReplicas": 3});
    for (key, value) in status.as_object().expect("a map") {
        whole[key] = value.clone();
    }
    object("apps/v1", "StatefulSet", json!({"replicas": 3, "updateStrategy": strategy}), whole)
}

#[test]
fn stateful_sets() {
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
    check(stateful_set(rolling.clone(), json!({})), "Current: 3/3 replicas available");
    check(stateful_set(rolling.clone(), json!({"updatedReplicas": 0})), "Current: 3/3 replicas available");
    // A canary or reverted rollout: one of its pods still exists.
    let back = json!({"currentReplicas": 2, "updatedReplicas": 2});
    check(stateful_set(rolling.clone(), back.clone()), "InProgress: 2/3 replicas updated");
    check(stateful_set(json!({"type": "OnDelete"}), back), "Current: 3/3 replicas available");
    let mut left_out = stateful_set(rolling.clone(), json!({}));
    left_out["status"].as_object_mut().expect("a map").remove("updatedReplicas");
    check(left_out, "Current: 3/3 replicas available");
    let update = |updated: u32| json!({"updateRevision": "b", "updatedReplicas": updated});
    check(stateful_set(rolling.clone(), update(1)), "InProgress: 1/3 replicas updated");
    check(stateful_set(rolling.clone(), json!({"replicas": 1})), "InProgress: 1/3 replicas created");
    check(
        stateful_set(rolling.clone(), json!({"replicas": 5})),
        "InProgress: 2 surplus replicas pending termination",
    );
    check(stateful_set(rolling.clone(), json!({"readyReplicas": 2})), "InProgress: 2/3 replicas ready");
    check(
        stateful_set(rolling.clone(), json!({"availableReplicas": 0})),
        "InProgress: 0/3 replicas available",
    );
    check(
        stateful_set(rolling, json!({"observedGeneration": 1})),
        "InProgress: generation 2 is not observed yet, the status is of 1",
    );
    let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    check(stateful_set(partition.clone(), update(0)), "InProgress: 0/1 replicas updated");
    check(
        stateful_set(partition, update(1)),
        "Current: 3/3 replicas available, 1 updated up to the partition",
    );
    let by_hand = json!({"type": "OnDelete"});
    check(stateful_set(by_hand.clone(), update(0)), "Current: 3/3 replicas available");
    check(
        stateful_set(by_hand, json!({"readyReplicas": 1, "availableReplicas": 1})),
        "InProgress: 1/3 replicas ready",
    );
}

#[test]
fn daemon_sets() {
    let set = |numbers: [u32; 4], strategy: &str| {
        let [current, updated, ready, available] = numbers;
        object(
            "apps/v1",
            "DaemonSet",
            json!({"updateStrategy": {"type": strategy}}),
            json!({"observedGeneration": 2, "desiredNumberScheduled": 4, "currentNumberScheduled": current,
                   "updatedNumberScheduled": updated, "numberReady": ready, "numberAvailable": available}),
        )
    };
    check(set([4, 4, 4, 4], "RollingUpdate"), "Current: 4/4 pods available");
    check(set([3, 3, 3, 3], "RollingUpdate"), "InProgress: 3/4 pods created");
    check(set([4, 1, 4, 4], "RollingUpdate"), "InProgress: 1/4 pods updated");
    check(set([4, 4, 3, 3], "RollingUpdate"), "InProgress: 3/4 pods ready");
    check(set([4, 4, 4, 3], "RollingUpdate"), "InProgress: 3/4 pods available");
    check(set([4, 0, 4, 4], "OnDelete"), "Current: 4/4 pods available");
    check(set([4, 0, 4, 2], "OnDelete"), "InProgress: 2/4 pods available");
    check(
        object("apps/v1", "DaemonSet", json!({}), json!({"observedGeneration": 2})),
        "InProgress: no status yet",
    );
    // No node matches its selector.
    check(
        object(
            "apps/v1",
            "DaemonSet",
            json!({}),
            json!({"observedGeneration": 2, "desiredNumberScheduled": 0}),
        ),
        "Current: 0/0 pods available",
    );
}

#[test]
fn replica_sets() {
    let set = |status: Value| object("apps/v1", "ReplicaSet", json!({"replicas": 2}), status);
    check(
        set(json!({"observedGeneration": 2, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2})),
        "Current: 2/2 replicas available",
    );
    check(set(json!({"observedGeneration": 2, "replicas": 1})), "InProgress: 1/2 replicas created");
    check(set(json!({"observedGeneration": 2, "replicas": 2})), "InProgress: 0/2 replicas ready");
    check(
        set(json!({"observedGeneration": 2, "replicas": 1,
            "conditions": [condition("ReplicaFailure", "True", "FailedCreate", "no quota")]})),
        "Failed: 1/2 replicas: FailedCreate: no quota",
    );
}

#[test]
fn jobs() {
    let job = |spec: Value, status: Value| object("batch/v1", "Job", spec, status);
    check(job(json!({"completions": 3}), json!({})), "InProgress: 0/3 completions");
    check(
        job(json!({"completions": 3}), json!({"active": 1, "succeeded": 1, "failed": 2})),
        "InProgress: 1/3 completions, 1 active, 2 failed",
    );
    check(
        job(json!({}), json!({"conditions": [condition("Complete", "True", "", "")]})),
        "Current: completed",
    );
    check(
        job(
            json!({}),
            json!({"conditions": [condition("Failed", "True", "BackoffLimitExceeded", "reached the limit")]}),
        ),
        "Failed: BackoffLimitExceeded: reached the limit",
    );
    check(job(json!({"suspend": true}), json!({})), "Suspended: suspended");
    // Resumed: the condition stays, with status False, while it runs.
    check(
        job(
            json!({"suspend": false, "completions": 1}),
            json!({"active": 1, "conditions": [condition("Suspended", "False", "JobResumed", "Job resumed")]}),
        ),
        "InProgress: 0/1 completions, 1 active",
    );
}

#[test]
fn cron_jobs() {
    let job = |status: Value| object("batch/v1", "CronJob", json!({}), status);
    check(object("batch/v1", "CronJob", json!({"suspend": true}), json!({})), "Suspended: suspended");
    check(job(json!({})), "Current: not scheduled yet");
    check(job(json!({"lastScheduleTime": "2026-11-01T02:00:00Z"})), "Current: no run has succeeded yet");
    let times = |succeeded: &str| json!({"lastScheduleTime": "2026-11-01T02:00:00Z", "lastSuccessfulTime": succeeded});
    check(job(times("2026-11-01T02:00:09Z")), "Current");
    check(job(times("2026-10-31T02:00:09Z")), "Failed: the run of 2026-11-01T02:00:00Z did not succeed");
    let mut running = times("2026-10-31T02:00:09Z");
    running["active"] = json!([{"name": "nightly-1"}]);
    check(job(running), "Current: 1 active");
}
