use serde_json::{Value, json};

use super::{check, condition, object};

fn pod(policy: &str, phase: &str, containers: Value, conditions: Value) -> Value {
    object(
        "v1",
        "Pod",
        json!({"restartPolicy": policy}),
        json!({"phase": phase, "containerStatuses": containers, "conditions": conditions}),
    )
}

fn waiting(reason: &str, message: &str) -> Value {
    json!([{"name": "app", "image": "registry.example.com/pay:1",
            "state": {"waiting": {"reason": reason, "message": message}}}])
}

#[test]
fn pods_that_run() {
    let ready = json!([condition("Ready", "True", "", "")]);
    let unready =
        json!([condition("Ready", "False", "ContainersNotReady", "containers with unready status: [app]")]);
    check(pod("Always", "Running", json!([]), ready.clone()), "Current");
    check(
        pod("Always", "Running", json!([]), unready.clone()),
        "InProgress: ContainersNotReady: containers with unready status: [app]",
    );
    check(pod("Always", "Running", json!([]), json!([])), "InProgress: not ready");
    // A pod that runs to completion is done when it has ended.
    check(pod("Never", "Running", json!([]), ready.clone()), "InProgress: running until it completes");
    check(pod("OnFailure", "Succeeded", json!([]), json!([])), "Current: completed");
    let crashed = json!([{"name": "app", "restartCount": 2, "state": {"running": {}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-20T00:00:00Z"}}}]);
    let mut since = unready;
    since[0]["lastTransitionTime"] = json!("2026-11-20T00:00:01Z");
    check(
        pod("Always", "Running", crashed.clone(), since.clone()),
        "Failed: restarted 2 times, not ready: exit 1",
    );
    check(pod("Always", "Running", crashed.clone(), ready), "Current");
    let mut often = crashed.clone();
    often[0]["restartCount"] = json!(41);
    check(
        pod("Always", "Running", often, since.clone()),
        "Failed: restarted more than 3 times, not ready: exit 1",
    );
    // A day before it became unready.
    since[0]["lastTransitionTime"] = json!("2026-11-21T00:00:01Z");
    check(
        pod("Always", "Running", crashed, since),
        "InProgress: ContainersNotReady: containers with unready status: [app]",
    );
}

#[test]
fn pod_with_unobserved_spec_is_in_progress() {
    let ready = json!([condition("Ready", "True", "", "")]);
    let seen = |mut pod: Value, generation: u32| {
        pod["status"]["observedGeneration"] = json!(generation);
        pod
    };
    let runs = || pod("Always", "Running", json!([]), ready.clone());
    let old = "InProgress: generation 2 is not observed yet, the status is of 1";
    check(seen(runs(), 1), old);
    check(seen(runs(), 2), "Current");
    check(seen(pod("Always", "Pending", waiting("ImagePullBackOff", "Back-off"), json!([])), 1), old);
    // It will not run again.
    check(seen(pod("Never", "Succeeded", json!([]), json!([])), 1), "Current: completed");
    check(seen(pod("Never", "Failed", json!([]), json!([])), 1), "Failed: failed");
}

#[test]
fn pods_that_cannot_start() {
    let none = || json!([]);
    check(
        pod("Always", "Pending", waiting("ImagePullBackOff", "Back-off pulling image"), none()),
        "Failed: ImagePullBackOff (registry.example.com/pay:1)",
    );
    check(
        pod("Always", "Pending", waiting("ErrImagePull", "not found"), none()),
        "Failed: ErrImagePull (registry.example.com/pay:1)",
    );
    check(
        pod("Always", "Pending", waiting("InvalidImageName", "couldn't parse"), none()),
        "Failed: InvalidImageName (registry.example.com/pay:1)",
    );
    check(
        pod("Never", "Pending", waiting("CreateContainerConfigError", "secret \"pay\" not found"), none()),
        "Failed: CreateContainerConfigError (secret \"pay\" not found)",
    );
    let mut loops = waiting("CrashLoopBackOff", "back-off 20s restarting");
    loops[0]["lastState"] = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    check(pod("Always", "Running", loops, none()), "Failed: CrashLoopBackOff (OOMKilled, exit 137)");
    let mut init = pod("Always", "Pending", waiting("PodInitializing", ""), none());
    init["status"]["initContainerStatuses"] = json!([{"name": "migrate",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 3}}}]);
    check(init, "Failed: CrashLoopBackOff (exit 3)");
}

#[test]
fn pods_that_wait() {
    check(
        pod("Always", "Pending", waiting("ContainerCreating", ""), json!([])),
        "InProgress: ContainerCreating",
    );
    let no_node = json!([condition(
        "PodScheduled",
        "False",
        "Unschedulable",
        "0/3 nodes are available: 3 Insufficient cpu."
    )]);
    check(
        pod("Always", "Pending", json!([]), no_node),
        "InProgress: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.",
    );
    check(pod("Always", "Pending", json!([]), json!([])), "InProgress: pending");
    check(object("v1", "Pod", json!({}), json!({})), "InProgress: no status yet");
    check(
        object("v1", "Pod", json!({"schedulingGates": [{"name": "quota"}]}), json!({"phase": "Pending"})),
        "Suspended: held by scheduling gate quota",
    );
}

#[test]
fn pods_that_failed() {
    let ended = json!([{"name": "app", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]);
    check(pod("Never", "Failed", ended, json!([])), "Failed: exit 2");
    check(pod("Never", "Failed", json!([]), json!([])), "Failed: failed");
    let mut evicted = pod("Always", "Failed", json!([]), json!([]));
    evicted["status"]["reason"] = json!("Evicted");
    check(evicted.clone(), "Failed: Evicted");
    evicted["status"]["message"] = json!("The node was low on resource: memory.");
    check(evicted, "Failed: The node was low on resource: memory.");
    check(pod("Always", "Unknown", json!([]), json!([])), "Unknown: its node does not answer");
}
