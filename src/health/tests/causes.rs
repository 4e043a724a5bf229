use serde_json::{Value, json};

use crate::health::{ContainerCrash, find_pod_cause};

/// A pod with one container `app`; `age` orders creation, larger is younger.
fn pod(name: &str, hash: &str, age: u32, status: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"pod-template-hash": hash},
                     "creationTimestamp": format!("2026-11-01T00:00:{age:02}Z")},
        "spec": {"restartPolicy": "Always", "containers":
            [{"name": "app", "image": format!("pay:{hash}"), "readinessProbe": {}, "startupProbe": {}}]},
        "status": status,
    })
}

fn waiting(reason: &str, message: &str, exit: Option<i32>) -> Value {
    json!({"phase": "Pending", "containerStatuses": [{"name": "app", "image": "pay:broken", "restartCount": 4,
        "state": {"waiting": {"reason": reason, "message": message}},
        "lastState": exit.map(|code| json!({"terminated": {"exitCode": code, "reason": "Error"}}))}]})
}

fn running(ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": status}],
           "containerStatuses": [{"name": "app", "ready": ready, "started": true, "restartCount": 0, "state": {"running": {}}}]})
}

#[track_caller]
fn check(workload: Option<Value>, pods: &[Value], expected: Option<(&str, bool)>) {
    let cause = find_pod_cause(workload.as_ref(), pods, &[]);
    let shown = cause.map(|cause| (cause.to_string(), cause.is_decisive));
    assert_eq!(shown, expected.map(|(text, decisive)| (text.to_owned(), decisive)));
}

#[test]
fn reasons_that_only_a_new_revision_mends() {
    let one = |status: Value| [pod("pay-7c9f", "b", 1, status)];
    check(
        None,
        &one(waiting("ImagePullBackOff", "Back-off", None)),
        Some(("ImagePullBackOff pay-7c9f (pay:broken)", true)),
    );
    check(
        None,
        &one(waiting("ErrImagePull", "timeout", None)),
        Some(("ErrImagePull pay-7c9f (pay:broken)", false)),
    );
    check(
        None,
        &one(waiting("InvalidImageName", "", None)),
        Some(("InvalidImageName pay-7c9f (pay:broken)", true)),
    );
    check(
        None,
        &one(waiting("CrashLoopBackOff", "back-off 40s", Some(1))),
        Some(("CrashLoopBackOff pay-7c9f (exit 1)", true)),
    );
    check(
        None,
        &one(waiting("CreateContainerConfigError", "configmap \"pay\" not found", None)),
        Some(("CreateContainerConfigError pay-7c9f (configmap \"pay\" not found)", true)),
    );
}

/// A pod that is unready since 00:00:30, with a container that ran from `started` to `finished` and runs again.
fn restarted(restarts: u32, code: i32, reason: &str, [started, finished]: [&str; 2]) -> Value {
    let mut status = running(false);
    status["conditions"][0]["lastTransitionTime"] = json!("2026-11-20T00:00:30Z");
    status["containerStatuses"][0]["restartCount"] = json!(restarts);
    status["containerStatuses"][0]["lastState"] = json!({"terminated": {"exitCode": code, "reason": reason,
        "startedAt": started, "finishedAt": finished}});
    status
}

const A_MOMENT_AGO: [&str; 2] = ["2026-11-20T00:00:10Z", "2026-11-20T00:00:29Z"];

#[test]
fn briefly_running_container_is_in_a_crash_loop() {
    let one = |status: Value| [pod("pay-7c9f", "b", 1, status)];
    let crashed = |restarts: u32, times| one(restarted(restarts, 1, "Error", times));
    check(None, &crashed(2, A_MOMENT_AGO), Some(("Restarted pay-7c9f (exit 1, 2 restarts)", false)));
    check(None, &crashed(3, A_MOMENT_AGO), Some(("Restarted pay-7c9f (exit 1, 3 restarts)", true)));
    let killed = |restarts: u32| one(restarted(restarts, 137, "OOMKilled", A_MOMENT_AGO));
    check(None, &killed(1), Some(("OOMKilled pay-7c9f (OOMKilled, exit 137, 1 restart)", false)));
    check(None, &killed(2), Some(("OOMKilled pay-7c9f (OOMKilled, exit 137, 2 restarts)", true)));
    // It ran for a day: at most the first crash of a series.
    let after_a_day = ["2026-11-19T00:00:29Z", "2026-11-20T00:00:29Z"];
    check(None, &crashed(7, after_a_day), Some(("Restarted pay-7c9f (exit 1, more than 3 restarts)", false)));
    // A successful end is no failure.
    let ended = one(restarted(7, 0, "Completed", A_MOMENT_AGO));
    check(None, &ended, Some(("Restarted pay-7c9f (exit 0, more than 3 restarts)", false)));
    // A Job counts its failures itself.
    let mut task = one(restarted(7, 1, "Error", A_MOMENT_AGO));
    task[0]["spec"]["restartPolicy"] = json!("OnFailure");
    check(None, &task, Some(("Restarted pay-7c9f (exit 1, more than 3 restarts)", false)));
    let mut waits = one(waiting("CrashLoopBackOff", "back-off 40s", Some(1)));
    waits[0]["spec"]["restartPolicy"] = json!("OnFailure");
    check(None, &waits, Some(("CrashLoopBackOff pay-7c9f (exit 1)", false)));
}

/// From 2 to 5 replicas: an old pod, whose node restarted four times before, misses a probe meanwhile.
#[test]
fn earlier_restarts_of_a_pod_are_no_cause() {
    let months_ago = ["2026-08-01T00:00:00Z", "2026-08-01T00:00:05Z"];
    let probe = Some(("NotReady pay-7c9f (readiness probe failing)", false));
    let old = |code: i32, reason: &str| [pod("pay-7c9f", "b", 1, restarted(4, code, reason, months_ago))];
    check(None, &old(1, "Error"), probe);
    check(None, &old(137, "OOMKilled"), probe);
    check(None, &old(255, "Unknown"), probe);
    // Without times, as after a node returned without its containers.
    let mut lost = old(137, "ContainerStatusUnknown");
    lost[0]["status"]["containerStatuses"][0]["lastState"] = json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": null, "finishedAt": null}});
    check(None, &lost, probe);
    // An init container that ran again each time, and completed.
    let mut done = [pod("pay-7c9f", "b", 1, running(false))];
    done[0]["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-11-20T00:00:00Z");
    done[0]["status"]["initContainerStatuses"] = json!([{"name": "migrate", "restartCount": 3, "ready": true,
        "state": {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": A_MOMENT_AGO[0], "finishedAt": A_MOMENT_AGO[1]}}}]);
    check(None, &done, probe);
    // One that does not.
    done[0]["status"]["initContainerStatuses"][0]["state"] = json!({"running": {}});
    done[0]["status"]["initContainerStatuses"][0]["lastState"] = json!({"terminated": {"exitCode": 3,
        "startedAt": A_MOMENT_AGO[0], "finishedAt": A_MOMENT_AGO[1]}});
    check(None, &done, Some(("Restarted pay-7c9f (exit 3, 3 restarts)", true)));
}

/// OpenKruise restarts containers to update them, and the old status stays for a moment.
#[test]
fn state_before_in_place_update_is_no_cause() {
    let set = json!({"kind": "CloneSet", "status": {"updateRevision": "b"}});
    let updated = |is_over: bool, mut status: Value| {
        let over = if is_over { "True" } else { "False" };
        let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        conditions.push(json!({"type": "InPlaceUpdateReady", "status": over}));
        status["conditions"] = json!(conditions);
        let mut pod = pod("pay-x2k9p", "b", 1, status);
        pod["metadata"]["labels"] = json!({"controller-revision-hash": "b"});
        pod["metadata"]["annotations"] =
            json!({"apps.kruise.io/inplace-update-state": "{\"revision\":\"b\"}"});
        [pod]
    };
    let check_pod = |pod: [Value; 1], expected| check(Some(set.clone()), &pod, expected);
    check_pod(
        updated(false, restarted(5, 137, "Error", A_MOMENT_AGO)),
        Some(("Restarted pay-x2k9p (exit 137, more than 3 restarts)", false)),
    );
    let looping = || waiting("CrashLoopBackOff", "back-off 40s", Some(1));
    check_pod(updated(false, looping()), Some(("CrashLoopBackOff pay-x2k9p (exit 1)", false)));
    check_pod(updated(true, looping()), Some(("CrashLoopBackOff pay-x2k9p (exit 1)", true)));
    let missing =
        |image: &str| waiting("ImagePullBackOff", &format!("Back-off pulling image \"{image}\""), None);
    check_pod(updated(false, missing("pay:a")), Some(("ImagePullBackOff pay-x2k9p (pay:b)", false)));
    check_pod(updated(false, missing("pay:b")), Some(("ImagePullBackOff pay-x2k9p (pay:b)", true)));
}

/// A bare Pod whose image was just fixed.
#[test]
fn state_before_spec_change_is_no_cause() {
    let mut mended = pod("pay", "b", 1, waiting("ImagePullBackOff", "Back-off", None));
    mended["metadata"]["generation"] = json!(2);
    for (observed, expected) in
        [(json!(1), None), (json!(2), Some(("ImagePullBackOff pay (pay:broken)", true)))]
    {
        mended["status"]["observedGeneration"] = observed;
        check(None, std::slice::from_ref(&mended), expected);
    }
}

#[test]
fn reasons_that_may_pass() {
    let full = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu."}]});
    check(
        None,
        &[pod("pay-1", "b", 1, full.clone())],
        Some(("Unschedulable pay-1 (0/3 nodes are available: 3 Insufficient cpu.)", false)),
    );
    check(
        None,
        &[pod("pay-1", "b", 1, running(false))],
        Some(("NotReady pay-1 (readiness probe failing)", false)),
    );
    let mut starting = running(false);
    starting["containerStatuses"][0]["started"] = json!(false);
    check(None, &[pod("pay-1", "b", 1, starting)], Some(("NotReady pay-1 (startup probe failing)", false)));
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"});
    check(None, &[pod("pay-1", "b", 1, evicted.clone())], Some(("Evicted pay-1 (low on memory)", false)));
    check(None, &[pod("pay-1", "b", 1, waiting("ContainerCreating", "", None))], None);
    check(None, &[pod("pay-1", "b", 1, running(true))], None);
    check(None, &[], None);
    // The most informative of several, then the younger one.
    check(
        None,
        &[
            pod("pay-1", "b", 1, running(false)),
            pod("pay-2", "b", 2, full),
            pod("pay-3", "b", 3, waiting("CrashLoopBackOff", "", Some(2))),
            pod("pay-4", "b", 4, waiting("CrashLoopBackOff", "", Some(3))),
            pod("pay-5", "b", 5, evicted),
        ],
        Some(("CrashLoopBackOff pay-4 (exit 3)", true)),
    );
}

#[test]
fn only_the_newest_template_counts() {
    let broken = || pod("pay-a", "a", 1, waiting("CrashLoopBackOff", "", Some(1)));
    check(
        None,
        &[broken(), pod("pay-b", "b", 2, running(false))],
        Some(("NotReady pay-b (readiness probe failing)", false)),
    );
    check(None, &[broken(), pod("pay-b", "b", 2, running(true))], None);
    // Reverted: the youngest pod is of the abandoned revision, and is terminating or does not match.
    let workload = |image: &str| json!({"kind": "Deployment", "status": {"updatedReplicas": 1}, "spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}});
    let mut left = pod("pay-b", "b", 2, waiting("ImagePullBackOff", "", None));
    check(Some(workload("pay:a")), &[pod("pay-a", "a", 1, running(true)), left.clone()], None);
    // Images rewritten by admission match nothing: then the youngest counts.
    check(
        Some(workload("mirror/pay:b")),
        &[pod("pay-a", "a", 1, running(true)), left.clone()],
        Some(("ImagePullBackOff pay-b (pay:broken)", true)),
    );
    // The fix is stored and has no pod yet: the broken pods are of the old revision.
    let mut fixed = workload("mirror/pay:c");
    fixed["status"] = json!({});
    check(Some(fixed), std::slice::from_ref(&left), None);
    let mut unseen = workload("mirror/pay:c");
    unseen["metadata"] = json!({"generation": 3});
    unseen["status"]["observedGeneration"] = json!(2);
    check(Some(unseen), std::slice::from_ref(&left), None);
    left["metadata"]["deletionTimestamp"] = json!("2026-11-01T00:01:00Z");
    check(None, &[pod("pay-a", "a", 1, running(true)), left], None);
    // A StatefulSet names its newest revision.
    let set = json!({"kind": "StatefulSet", "status": {"updateRevision": "web-2"}});
    let ordinal = |name: &str, revision: &str, status: Value| json!({"metadata": {"name": name, "labels": {"controller-revision-hash": revision}}, "status": status});
    check(
        Some(set),
        &[
            ordinal("web-0", "web-1", waiting("CrashLoopBackOff", "", Some(1))),
            ordinal("web-2", "web-2", waiting("ImagePullBackOff", "", None)),
        ],
        Some(("ImagePullBackOff web-2 (pay:broken)", true)),
    );
}

/// Its controller may be many seconds behind: pods that were created since the write, with its containers, are new.
#[test]
fn new_deployment_pods_count_before_its_status() {
    let workload = |image: &str, written: u32, more: Value| {
        let entries = json!([
            {"manager": "tutti-main", "operation": "Apply", "time": format!("2026-11-01T00:00:{written:02}Z")},
            {"manager": "kube-controller-manager", "subresource": "status", "time": "2026-11-01T00:00:59Z"},
        ]);
        let container = json!({"name": "app", "image": image, "readinessProbe": {}, "startupProbe": {}});
        let mut spec = json!({"template": {"metadata": {"labels": {}}, "spec": {"containers": [container]}}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"kind": "Deployment", "metadata": {"generation": 3, "managedFields": entries}, "spec": spec,
            "status": {"observedGeneration": 2, "updatedReplicas": 1}})
    };
    let broken = pod("pay-b", "b", 5, waiting("CrashLoopBackOff", "", Some(1)));
    let old = pod("pay-a", "a", 1, waiting("CrashLoopBackOff", "", Some(2)));
    let told = Some(("CrashLoopBackOff pay-b (exit 1)", true));
    let pods = [old, broken];
    let image = pods[1]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
    check(Some(workload(&image, 4, json!({}))), &pods, told);
    check(Some(workload(&image, 5, json!({}))), &pods, told);
    check(Some(workload(&image, 6, json!({}))), &pods, None);
    check(Some(workload("pay:c", 4, json!({}))), &pods, None);
    // Of the template before, created late: the new one has other variables.
    let variables = json!({"template": {"spec": {"containers": [{"name": "app", "image": image, "env": [{"name": "A", "value": "b"}]}]}}});
    check(Some(workload(&image, 4, variables)), &pods, None);
    check(Some(workload(&image, 4, json!({"paused": true}))), &pods, None);
}

/// OpenKruise: the label may have the last part of the revision, and pods updated in place are as old as the others.
#[test]
fn sets_of_kruise_name_their_newest_revision() {
    let set = json!({"kind": "CloneSet", "status": {"updateRevision": "pay-64fdf9"}});
    let of = |label: &str, name: &str, revision: &str, status: Value| {
        json!({"metadata": {"name": name, "labels": {label: revision}, "creationTimestamp": "2026-11-01T00:00:00Z"},
               "status": status})
    };
    let broken = || waiting("ImagePullBackOff", "", None);
    let old =
        || of("controller-revision-hash", "pay-1", "pay-5d4c4f", waiting("CrashLoopBackOff", "", Some(1)));
    for revision in ["pay-64fdf9", "64fdf9"] {
        let new = of("controller-revision-hash", "pay-2", revision, broken());
        check(Some(set.clone()), &[old(), new], Some(("ImagePullBackOff pay-2 (pay:broken)", true)));
    }
    check(Some(set.clone()), &[old()], None);
    let other = of("controller-revision-hash", "pay-2", "web-64fdf9", broken());
    check(Some(set), &[other], None);
    let label = "apps.kruise.io/controller-revision-hash";
    for status in
        [json!({"updateStatus": {"updatedRevision": "pay-7c"}}), json!({"updatedRevision": "pay-7c"})]
    {
        // The youngest pod is of the old revision, which is scaled up.
        let mut old = of(label, "pay-a-1", "pay-7b", waiting("CrashLoopBackOff", "", Some(1)));
        old["metadata"]["creationTimestamp"] = json!("2031-01-01T00:00:00Z");
        check(
            Some(json!({"kind": "UnitedDeployment", "status": status})),
            &[old, of(label, "pay-b-1", "pay-7c", broken())],
            Some(("ImagePullBackOff pay-b-1 (pay:broken)", true)),
        );
    }
}

/// A pod whose log was read stays the reported one while others crash alike.
#[test]
fn known_pod_is_preferred_among_equal_crashes() {
    let crashed =
        |name: &str, age: u32, code: i32| pod(name, "b", age, waiting("CrashLoopBackOff", "", Some(code)));
    let told = |pods: &[Value], known: &[ContainerCrash]| find_pod_cause(None, pods, known).expect("a cause");
    let first = told(&[crashed("pay-1", 1, 1)], &[]).crash.expect("a crash");
    let known = [first.clone()];
    let younger = crashed("pay-2", 2, 1);
    let all = [crashed("pay-1", 1, 1), younger.clone()];
    assert_eq!(told(&all, &[]).pod, "pay-2");
    assert_eq!(told(&all, &known).pod, "pay-1");
    assert!(told(&all, &known).crash.is_some_and(|crash| crash.is_same(&first)));
    // It is gone, healthier, or crashes in another way.
    assert_eq!(told(std::slice::from_ref(&younger), &known).pod, "pay-2");
    assert_eq!(told(&[pod("pay-1", "b", 1, running(false)), younger.clone()], &known).pod, "pay-2");
    assert_eq!(told(&[crashed("pay-1", 1, 2), younger.clone()], &known).pod, "pay-2");
    // Another pod with its name.
    let mut anew = crashed("pay-1", 1, 1);
    anew["metadata"]["uid"] = json!("another");
    assert_eq!(told(&[anew, younger], &known).pod, "pay-2");
}

#[test]
fn crash_needs_an_end_and_its_run() {
    let crash = |pod: Value| {
        let crash = find_pod_cause(None, &[pod], &[]).expect("a cause").crash?;
        Some((crash.container, crash.has_restarted))
    };
    let of = |status: Value| pod("pay-7c9f", "b", 1, status);
    let app = |ended_before: bool| Some(("app".to_owned(), ended_before));
    assert_eq!(crash(of(waiting("CrashLoopBackOff", "back-off 40s", Some(1)))), app(true));
    assert_eq!(crash(of(restarted(3, 1, "Error", A_MOMENT_AGO))), app(true));
    assert_eq!(crash(of(waiting("ImagePullBackOff", "Back-off", Some(1)))), None);
    assert_eq!(crash(of(waiting("CrashLoopBackOff", "back-off 40s", None))), None);
    assert_eq!(crash(of(running(false))), None);
    let ended = |status: Value| crash(pod("pay-7c9f", "b", 1, status));
    let terminated = json!({"name": "app", "state": {"terminated": {"exitCode": 3}}});
    assert_eq!(ended(json!({"phase": "Failed", "containerStatuses": [terminated]})), app(false));
    assert_eq!(
        ended(
            json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory", "containerStatuses": [terminated]})
        ),
        None
    );
    // A completed container has not failed.
    let done = json!({"name": "migrate", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
    let failed =
        json!({"phase": "Failed", "initContainerStatuses": [done], "containerStatuses": [terminated]});
    assert_eq!(ended(failed.clone()), app(false));
    check(None, &[pod("pay-7c9f", "b", 1, failed)], Some(("Failed pay-7c9f (exit 3)", false)));
}

#[test]
fn last_log_line_is_quoted_after_the_exit() {
    let pods = [pod("pay-7c9f", "b", 1, waiting("CrashLoopBackOff", "", Some(1)))];
    let mut cause = find_pod_cause(None, &pods, &[]).expect("a cause");
    cause.log_line = Some("no such table".into());
    assert_eq!(cause.to_string(), "CrashLoopBackOff pay-7c9f (exit 1: \"no such table\")");
}
