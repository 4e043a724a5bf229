//! OpenKruise, in the shapes that its controllers write.

use serde_json::{Value, json};

use super::{check, condition, object};

/// A set of 3, observed at generation 2; all numbers are 3 except those in `status`.
fn set(kind: &str, strategy: Value, status: Value) -> Value {
    let mut whole = json!({
        "observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updatedReplicas": 3,
        "updatedReadyReplicas": 3, "currentRevision": "pay-a", "updateRevision": "pay-b",
    });
    for (key, value) in status.as_object().expect("a map") {
        whole[key] = value.clone();
    }
    object("apps.kruise.io/v1alpha1", kind, json!({"replicas": 3, "updateStrategy": strategy}), whole)
}

#[test]
fn unobserved_object_is_not_healthy() {
    for kind in ["CloneSet", "StatefulSet", "DaemonSet", "UnitedDeployment", "SidecarSet"] {
        for version in ["v1alpha1", "v1beta1"] {
            let new = object(&format!("apps.kruise.io/{version}"), kind, json!({}), Value::Null);
            check(new, "InProgress: generation 2 is not observed yet");
        }
    }
    check(
        object("apps.kruise.io/v1alpha1", "BroadcastJob", json!({}), Value::Null),
        "InProgress: no status yet",
    );
}

#[test]
fn clone_sets() {
    let check_set = |strategy: Value, status: Value, expected: &str| {
        check(set("CloneSet", strategy, status), expected);
    };
    let rolling = || json!({"type": "InPlaceIfPossible"});
    check_set(rolling(), json!({}), "Current: 3/3 pods available");
    check_set(
        rolling(),
        json!({"observedGeneration": 1}),
        "InProgress: generation 2 is not observed yet, the status is of 1",
    );
    check_set(rolling(), json!({"replicas": 0}), "InProgress: 0/3 pods created");
    check_set(
        rolling(),
        json!({"updatedReplicas": 1, "expectedUpdatedReplicas": 3}),
        "InProgress: 1/3 pods updated",
    );
    check_set(rolling(), json!({"replicas": 4}), "InProgress: 1 surplus pod pending termination");
    // The image cannot be pulled: all pods are new, and none is ready.
    check_set(rolling(), json!({"readyReplicas": 0, "availableReplicas": 0}), "InProgress: 0/3 pods ready");
    check_set(rolling(), json!({"availableReplicas": 2}), "InProgress: 2/3 pods available");
    let refused = condition("FailedScale", "True", "", "exceeded quota: pods");
    check_set(
        rolling(),
        json!({"replicas": 1, "conditions": [refused]}),
        "InProgress: 1/3 pods created: exceeded quota: pods",
    );
    let late = json!([condition("Progressing", "False", "ProgressDeadlineExceeded", "timed out")]);
    check_set(
        rolling(),
        json!({"readyReplicas": 1, "conditions": late}),
        "Failed: Progress deadline exceeded: 1/3 pods ready",
    );
    check_set(rolling(), json!({"conditions": late}), "Current: 3/3 pods available");
    // Some versions omit the number of updated pods when nothing is left to update.
    check_set(
        rolling(),
        json!({"updatedReplicas": 0, "updateRevision": "pay-a"}),
        "Current: 3/3 pods available",
    );
    // A rollout that is reverted half-way.
    let back = || json!({"updatedReplicas": 2, "updateRevision": "pay-a"});
    check_set(rolling(), back(), "InProgress: 2/3 pods updated");
    check_set(json!({"paused": true}), back(), "Suspended: rollout is paused: 2/3 pods updated");
    check(set("StatefulSet", json!({}), back()), "InProgress: 2/3 pods updated");
    let mut none = set("CloneSet", json!({}), json!({"replicas": 0, "readyReplicas": 0}));
    none["spec"]["replicas"] = json!(0);
    check(none, "Current: 0/0 pods available");
}

#[test]
fn held_update_is_suspended_when_pods_exist() {
    let part = |partition: Value| json!({"partition": partition});
    let updated = |updated: u32| json!({"updatedReplicas": updated});
    for (partition, status, expected) in [
        (json!(1), updated(2), "Suspended: held by the partition: 2/3 pods updated"),
        (json!(1), updated(1), "InProgress: 1/2 pods updated"),
        (json!(1), updated(3), "Current: 3/3 pods available"),
        (json!("1"), updated(2), "Suspended: held by the partition: 2/3 pods updated"),
        (json!(9), updated(0), "Suspended: held by the partition: 0/3 pods updated"),
        // A percentage is rounded up, but below 100 % one pod is updated.
        (json!("30%"), updated(2), "Suspended: held by the partition: 2/3 pods updated"),
        (json!("99%"), updated(0), "InProgress: 0/1 pods updated"),
        (json!("100%"), updated(0), "Suspended: held by the partition: 0/3 pods updated"),
        (json!("0%"), updated(2), "InProgress: 2/3 pods updated"),
        (json!("many"), updated(2), "InProgress: 2/3 pods updated"),
        (json!(-4), updated(2), "InProgress: 2/3 pods updated"),
        // The controller's own number takes precedence.
        (
            json!("50%"),
            json!({"updatedReplicas": 2, "expectedUpdatedReplicas": 2}),
            "Suspended: held by the partition: 2/3 pods updated",
        ),
        (
            json!(1),
            json!({"updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}),
            "InProgress: 2/3 pods ready",
        ),
    ] {
        check(set("CloneSet", part(partition), status), expected);
    }
    let paused = || json!({"paused": true});
    check(set("CloneSet", paused(), updated(1)), "Suspended: rollout is paused: 1/3 pods updated");
    check(set("CloneSet", paused(), updated(3)), "Suspended: rollout is paused: 3/3 pods updated");
    // A pause does not hold back missing pods.
    check(set("CloneSet", paused(), json!({"replicas": 0})), "InProgress: 0/3 pods created");
}

#[test]
fn stateful_sets_of_kruise() {
    let rolling = |fields: Value| json!({"type": "RollingUpdate", "rollingUpdate": fields});
    let updated = |updated: u32| json!({"updatedReplicas": updated});
    for (strategy, status, expected) in [
        (rolling(json!({})), json!({}), "Current: 3/3 pods available"),
        (rolling(json!({})), updated(1), "InProgress: 1/3 pods updated"),
        (rolling(json!({"partition": 2})), updated(1), "Suspended: held by the partition: 1/3 pods updated"),
        (rolling(json!({"paused": true})), updated(1), "Suspended: rollout is paused: 1/3 pods updated"),
        (rolling(json!({"paused": true})), json!({"readyReplicas": 2}), "InProgress: 2/3 pods ready"),
        (json!({"type": "OnDelete"}), updated(1), "Current: 3/3 pods available"),
        (
            rolling(json!({})),
            json!({"replicas": 1, "conditions": [condition("FailedCreatePod", "True", "", "no quota")]}),
            "InProgress: 1/3 pods created: no quota",
        ),
    ] {
        check(set("StatefulSet", strategy, status), expected);
    }
    let mut old = set("StatefulSet", json!({}), json!({}));
    old["status"].as_object_mut().expect("a map").remove("availableReplicas");
    check(old, "Current: 3/3 pods available");
}

#[test]
fn daemon_sets_of_kruise() {
    let set = |numbers: [u32; 4], rolling: Value, spec: Value| {
        let [current, updated, ready, available] = numbers;
        let mut set = object(
            "apps.kruise.io/v1beta1",
            "DaemonSet",
            spec,
            json!({"observedGeneration": 2, "desiredNumberScheduled": 4, "currentNumberScheduled": current,
                   "updatedNumberScheduled": updated, "numberReady": ready, "numberAvailable": available}),
        );
        set["spec"]["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        set
    };
    let plain = || json!({});
    check(set([4, 4, 4, 4], plain(), plain()), "Current: 4/4 pods available");
    check(set([3, 3, 3, 3], plain(), plain()), "InProgress: 3/4 pods created");
    check(set([4, 1, 4, 4], plain(), plain()), "InProgress: 1/4 pods updated");
    check(set([4, 4, 3, 3], plain(), plain()), "InProgress: 3/4 pods ready");
    check(set([4, 4, 4, 3], plain(), plain()), "InProgress: 3/4 pods available");
    check(
        set([4, 2, 4, 4], json!({"partition": "50%"}), plain()),
        "Suspended: held by the partition: 2/4 pods updated",
    );
    check(set([4, 1, 4, 4], json!({"partition": 2}), plain()), "InProgress: 1/2 pods updated");
    check(
        set([4, 1, 4, 4], json!({"paused": true}), plain()),
        "Suspended: rollout is paused: 1/4 pods updated",
    );
    check(
        set([4, 1, 4, 4], json!({"selector": {"matchLabels": {"zone": "a"}}}), plain()),
        "Current: 4/4 pods available",
    );
    let partitioned = json!({"scaleStrategy": {"partitionedScaling": true}});
    check(set([1, 1, 1, 1], json!({"partition": 3}), partitioned.clone()), "Current: 1/1 pods available");
    check(set([0, 0, 0, 0], json!({"partition": 3}), partitioned), "InProgress: 0/1 pods created");
    check(
        object("apps.kruise.io/v1alpha1", "DaemonSet", json!({}), json!({"observedGeneration": 2})),
        "InProgress: no status yet",
    );
}

#[test]
fn united_deployments() {
    let partitions =
        |partitions: Value| json!({"type": "Manual", "manualUpdate": {"partitions": partitions}});
    let subsets = |updated: u32| json!({"updatedReplicas": updated, "subsetReplicas": {"a": 1, "b": 2}});
    check(set("UnitedDeployment", json!({}), json!({})), "Current: 3/3 pods available");
    check(set("UnitedDeployment", json!({}), json!({"readyReplicas": 0})), "InProgress: 0/3 pods ready");
    check(
        set("UnitedDeployment", partitions(json!({"a": 5})), subsets(2)),
        "Suspended: held by the partition: 2/3 pods updated",
    );
    check(
        set("UnitedDeployment", partitions(json!({"a": 5, "b": 1})), subsets(0)),
        "InProgress: 0/1 pods updated",
    );
    let failure = json!([condition("SubsetFailure", "True", "Error", "no such node")]);
    check(
        set("UnitedDeployment", json!({}), json!({"replicas": 1, "conditions": failure})),
        "InProgress: 1/3 pods created: Error: no such node",
    );
}

#[test]
fn united_deployments_of_v1beta1() {
    // The subset `c` has no pods: its numbers are omitted.
    let united = |held: [u32; 2], replicas: [u32; 2], updated: u32| {
        let [(held_a, held_b), (a, b)] = [held, replicas].map(|[a, b]| (a, b));
        let mut subsets = json!([
            {"name": "a", "replicas": a, "readyReplicas": a, "partition": held_a.min(a)},
            {"name": "b", "replicas": b, "readyReplicas": b, "partition": held_b.min(b)},
            {"name": "c"},
        ]);
        for subset in subsets.as_array_mut().expect("a list") {
            subset.as_object_mut().expect("a map").retain(|_, value| *value != json!(0));
        }
        let partitions = json!({"a": held_a, "b": held_b, "c": 1});
        object(
            "apps.kruise.io/v1beta1",
            "UnitedDeployment",
            json!({"replicas": 3, "updateStrategy": {"type": "Manual", "manualUpdate": {"partitions": partitions}}}),
            json!({"observedGeneration": 2, "replicas": a + b, "readyReplicas": a + b, "updatedReplicas": updated,
                   "updatedReadyReplicas": updated, "currentRevision": "pay-a", "updatedRevision": "pay-b",
                   "subsetStatuses": subsets}),
        )
    };
    for (held, replicas, updated, expected) in [
        ([5, 1], [1, 2], 1, "Suspended: held by the partition: 1/3 pods updated"),
        ([5, 5], [1, 2], 0, "Suspended: held by the partition: 0/3 pods updated"),
        ([5, 1], [1, 2], 0, "InProgress: 0/1 pods updated"),
        ([0, 1], [1, 2], 1, "InProgress: 1/2 pods updated"),
        ([0, 0], [1, 2], 2, "InProgress: 2/3 pods updated"),
        ([5, 1], [1, 1], 1, "InProgress: 2/3 pods created"),
        ([5, 1], [1, 2], 3, "Current: 3/3 pods available"),
        ([0, 0], [1, 2], 3, "Current: 3/3 pods available"),
    ] {
        check(united(held, replicas, updated), expected);
    }
    // Pods move between subsets: the controller reports how many the partition holds.
    let mut moving = united([3, 0], [3, 0], 1);
    moving["status"]["subsetStatuses"][0]["partition"] = json!(1);
    check(moving, "InProgress: 1/2 pods updated");
}

#[test]
fn jobs_of_kruise() {
    let job = |spec: Value, status: Value| object("apps.kruise.io/v1alpha1", "BroadcastJob", spec, status);
    let numbers = |phase: &str, succeeded: u32, failed: u32| json!({"desired": 3, "succeeded": succeeded, "failed": failed, "phase": phase});
    check(job(json!({}), numbers("running", 1, 0)), "InProgress: 1/3 pods succeeded");
    check(job(json!({}), numbers("running", 1, 1)), "InProgress: 1/3 pods succeeded, 1 failed");
    check(job(json!({}), numbers("completed", 3, 0)), "Current: 3/3 pods succeeded");
    check(job(json!({}), numbers("completed", 2, 1)), "Failed: 2/3 pods succeeded, 1 failed");
    check(job(json!({}), numbers("failed", 2, 1)), "Failed: 2/3 pods succeeded, 1 failed");
    let mut late = numbers("failed", 0, 0);
    late["conditions"] = json!([condition("Failed", "True", "DeadlineExceeded", "was active too long")]);
    check(job(json!({}), late), "Failed: DeadlineExceeded: was active too long");
    check(job(json!({"paused": true}), numbers("paused", 1, 0)), "Suspended: paused: 1/3 pods succeeded");
    let never = json!({"completionPolicy": {"type": "Never"}});
    check(job(never.clone(), numbers("running", 3, 0)), "Current: 3/3 pods succeeded");
    check(job(never, numbers("running", 2, 0)), "InProgress: 2/3 pods succeeded");
    let cron = |paused: bool| {
        object("apps.kruise.io/v1alpha1", "AdvancedCronJob", json!({"paused": paused}), json!({}))
    };
    check(cron(false), "Current");
    check(cron(true), "Suspended: paused");
}

#[test]
fn sidecar_sets_are_taken_by_their_controller() {
    let sidecars = |strategy: Value| {
        let status = json!({"observedGeneration": 2, "matchedPods": 5, "updatedPods": 2});
        object("apps.kruise.io/v1alpha1", "SidecarSet", json!({"updateStrategy": strategy}), status)
    };
    check(sidecars(json!({})), "Current: 2/5 pods have the newest sidecars");
    check(
        sidecars(json!({"paused": true})),
        "Suspended: update is paused: 2/5 pods have the newest sidecars",
    );
}
