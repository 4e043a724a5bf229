//! Causes of pod failures: from the cluster to the detail of the app in the overview of a running instance.
#![expect(clippy::needless_pass_by_value, reason = "cases are written with the values in place")]

use std::iter;
use std::time::Duration;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use sandbox::{Fault, RequestMatch};
use serde_json::{Value, json};
use tutti::report::{Overview, TargetPhase};

use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::live_objects;
use crate::support::manifests::objects_app;
use crate::support::program::CommandFixture;

const APP: &str = "apps/web/app.yaml";
const MANIFEST: &str = "apps/web/objects/all.yaml";
const IMAGE: &str = "registry.example.com/web:1";
/// A tag that the embedded registry lacks.
const MISSING_IMAGE: &str = "registry.example.com/web:broken";

/// A pod template whose annotations set how containers fail on the embedded clusters.
fn pod_template(image: &str, annotations: Value, restarts: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}, "annotations": annotations},
        "spec": {"restartPolicy": restarts, "containers": [{"name": "main", "image": image}]},
    })
}

fn workload(api_version: &str, kind: &str, spec: Value) -> String {
    named_workload("web", api_version, kind, spec)
}

fn named_workload(name: &str, api_version: &str, kind: &str, spec: Value) -> String {
    let metadata = json!({"name": name, "namespace": "default"});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}).to_string()
}

fn deployment(annotations: Value) -> String {
    // The selector has only an expression.
    let selector =
        json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "website"]}]});
    let template = pod_template(IMAGE, annotations, "Always");
    workload("apps/v1", "Deployment", json!({"replicas": 2, "selector": selector, "template": template}))
}

fn fleet(manifest: &str) -> TestFleet {
    TestFleet::new(&["bj1"], &[(APP, &objects_app("default", "web")), (MANIFEST, manifest)])
}

/// `Phase: detail` of the app; the random part of a pod's name is `*`.
fn phase_and_detail(now: &Overview) -> String {
    let Some(web) = now.targets.first() else { return String::new() };
    let words: Vec<&str> =
        web.detail.split(' ').map(|word| if word.starts_with("web-") { "web-*" } else { word }).collect();
    format!("{}: {}", web.phase.as_str(), words.join(" "))
}

/// Checks that the detail stays the same, except for pod names, for this many seconds.
async fn check_detail_stays(running: &RunningController, expected: &str, seconds: u64) {
    let (words, mut seen) = (target(&running.overview.borrow(), "bj1", "default/web").detail.clone(), None);
    assert!(words.contains(expected), "{words}");
    let others = running.until("others", |now| {
        seen = Some(target(now, "bj1", "default/web").detail.clone()).filter(|detail| *detail != words);
        seen.is_some()
    });
    let others = tokio::time::timeout(Duration::from_secs(seconds), others).await.is_ok();
    assert!(!others, "{words}, then {seen:?}");
}

fn is_degraded(now: &Overview) -> bool {
    now.targets.iter().any(|it| it.app.to_string() == "default/web" && it.phase == TargetPhase::Degraded)
}

async fn check_details(manifest: &str, expected: &[&str]) {
    let fleet = fleet(manifest);
    let running = fleet.start().await;
    for expected in expected {
        running.until(expected, |now| phase_and_detail(now) == *expected).await;
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn exited_container_is_reported_with_its_code() {
    let broken = deployment(json!({"sim.tutti.dev/fail": "crash-loop", "sim.tutti.dev/exit-code": "3"}));
    let fleet = fleet(&broken);
    let running = fleet.start().await;
    running
        .until("a cause", |now| {
            phase_and_detail(now) == "Degraded: CrashLoopBackOff web-* (exit 3: \"fatal: simulated crash\")"
        })
        .await;
    // The container runs between two attempts; the detail stays.
    let moved = running.until("others", |now| !phase_and_detail(now).starts_with("Degraded: "));
    assert!(tokio::time::timeout(Duration::from_secs(300), moved).await.is_err());
    let revision = fleet.push(&running, "Mended", &[(MANIFEST, Some(&deployment(json!({}))))]).await;
    let now = running.until_converged(&revision).await;
    assert_eq!(target(&now, "bj1", "default/web").detail, "");
}

/// The detail is the same while the container waits, while it runs, and after many crashes.
#[tokio::test(start_paused = true)]
async fn crash_loop_detail_is_stable() {
    let crashes = json!({"sim.tutti.dev/fail": "crash-loop"});
    let fleet = fleet(&deployment(crashes.clone()));
    let running = fleet.start().await;
    running.until("a cause", is_degraded).await;
    check_detail_stays(&running, "(exit 1: \"fatal: simulated crash\")", 600).await;
    // The reported pod is deleted, and its cause with it.
    let gone = target(&running.overview.borrow(), "bj1", "default/web").detail.clone();
    let pods = live_objects::api(fleet.cluster("bj1"), "Pod", Some("default"));
    let names = live_objects::names(fleet.cluster("bj1"), "Pod").await;
    let told = names.iter().find(|name| gone.contains(name.as_str())).expect("a pod");
    pods.delete(told, &DeleteParams::default()).await.expect("deleted");
    running
        .until("another pod", |now| !target(now, "bj1", "default/web").detail.contains(told.as_str()))
        .await;
    running.stop().await;

    let template = pod_template(IMAGE, crashes, "Always");
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]});
    pod["metadata"] =
        json!({"name": "web-1", "namespace": "default", "annotations": template["metadata"]["annotations"]});
    let fleet = self::fleet(&pod.to_string());
    let running = fleet.start().await;
    running.until("a line", |now| is_degraded(now) && phase_and_detail(now).contains("simulated")).await;
    check_detail_stays(&running, "web-1", 800).await;
    running.stop().await;
}

/// Both Deployments use a missing tag. One of them is reported, and stays reported.
#[tokio::test(start_paused = true)]
async fn one_of_two_failing_workloads_is_reported() {
    let broken = |name: &str| {
        let labels = json!({"app": name});
        let mut template = pod_template(MISSING_IMAGE, json!({}), "Always");
        template["metadata"]["labels"] = labels.clone();
        let spec = json!({"replicas": 2, "selector": {"matchLabels": labels}, "template": template});
        named_workload(name, "apps/v1", "Deployment", spec)
    };
    let fleet = fleet(&["api", "shop", "web"].map(broken).join("\n---\n"));
    let running = fleet.start().await;
    running.until("a cause", is_degraded).await;
    check_detail_stays(&running, &format!("({MISSING_IMAGE})"), 300).await;
    running.stop().await;
}

const ROUTE_API_VERSION: &str = "gateway.networking.k8s.io/v1";

fn route_definition() -> String {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "httproutes.gateway.networking.k8s.io",
                     "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api"}},
        "spec": {
            "group": "gateway.networking.k8s.io", "scope": "Namespaced",
            "names": {"kind": "HTTPRoute", "plural": "httproutes", "singular": "httproute"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
    .to_string()
}

/// Starting pods of a Deployment are no cause for a refused route; nor are pods of another workload.
#[tokio::test(start_paused = true)]
async fn pod_failures_are_reported_for_their_workload_only() {
    let starts = deployment(json!({"sim.tutti.dev/fail": "readiness"}));
    let route =
        named_workload("web", ROUTE_API_VERSION, "HTTPRoute", json!({"hostnames": ["shop.example.com"]}));
    let both = format!("{starts}\n---\n{route}");
    let (web, kinds) = (objects_app("default", "web"), objects_app("default", "kinds"));
    let files = [
        (APP, web.as_str()),
        (MANIFEST, &both),
        ("apps/kinds/app.yaml", &kinds),
        ("apps/kinds/objects/routes.yaml", &route_definition()),
    ];
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    let told = |now: &Overview| {
        let web = now.targets.iter().find(|it| it.app.to_string() == "default/web")?;
        Some(format!("{} {}", web.phase.as_str(), web.detail))
    };
    running.until("a cause", |now| told(now).is_some_and(|it| it.contains("NotReady web-"))).await;
    let accepted = |status: &str| {
        let condition = json!({"type": "Accepted", "status": status, "reason": "NotAllowedByListeners"});
        Patch::Merge(
            json!({"status": {"parents": [{"parentRef": {"name": "front"}, "conditions": [condition]}]}}),
        )
    };
    let resource =
        ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "HTTPRoute"));
    let client = kube::Client::new(fleet.cluster("bj1").service(), "default");
    let routes: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    routes.patch("web", &PatchParams::default(), &accepted("False")).await.expect("a status");
    running.until("a refused route", is_degraded).await;
    check_detail_stays(&running, "HTTPRoute default/web: parent front: NotAllowedByListeners", 60).await;
    // The route is accepted: only the pods remain.
    routes.patch("web", &PatchParams::default(), &accepted("True")).await.expect("a status");
    running
        .until("pods", |now| told(now).is_some_and(|it| it.starts_with("Progressing NotReady web-")))
        .await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn scheduler_message_fails_nothing_before_the_deadline() {
    let fleet = fleet(&deployment(json!({"sim.tutti.dev/fail": "unschedulable"})));
    let running = fleet.start().await;
    let words = "Unschedulable web-* (0/3 nodes are available: 3 Insufficient cpu.";
    let says = |now: &Overview, phase: &str| phase_and_detail(now).starts_with(&format!("{phase}: {words}"));
    running.until("a cause", |now| says(now, "Progressing")).await;
    let failed =
        running.until("a failure", |now| now.targets.iter().any(|it| it.phase == TargetPhase::Degraded));
    let long = Duration::from_secs(500);
    assert!(tokio::time::timeout(long, failed).await.is_err(), "a node may come");
    running.until("the deadline", |now| says(now, "Degraded")).await;
}

/// Scaled from 2 to 5 while an old pod with many restarts misses a probe: the commit does not fail.
#[tokio::test(start_paused = true)]
async fn old_restarts_fail_no_commit() {
    let plain = deployment(json!({}));
    let fleet = fleet(&plain);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let cluster = fleet.cluster("bj1");
    let pods = live_objects::api(cluster, "Pod", Some("default"));
    let name = live_objects::names(cluster, "Pod").await.remove(0);
    let long_ago = json!({"terminated": {"exitCode": 1, "reason": "Error",
        "startedAt": "2020-01-01T00:00:00Z", "finishedAt": "2020-01-01T00:00:05Z"}});
    let mut pod = serde_json::to_value(pods.get(&name).await.expect("a pod")).expect("JSON");
    pod["status"]["containerStatuses"][0]["restartCount"] = json!(4);
    pod["status"]["containerStatuses"][0]["lastState"] = long_ago;
    let status = Patch::Merge(json!({"status": {"containerStatuses": pod["status"]["containerStatuses"]}}));
    pods.patch_status(&name, &PatchParams::default(), &status).await.expect("a status");
    let probe =
        |value: Value| Patch::Merge(json!({"metadata": {"annotations": {"sim.tutti.dev/fail": value}}}));
    pods.patch(&name, &PatchParams::default(), &probe(json!("readiness"))).await.expect("a probe");

    let more = plain.replace("\"replicas\":2", "\"replicas\":5");
    assert_ne!(more, plain);
    let revision = fleet.push(&running, "More of them", &[(MANIFEST, Some(&more))]).await;
    let told = |now: &Overview| {
        now.revision.as_ref() == Some(&revision)
            && phase_and_detail(now).starts_with("Progressing: NotReady web-*")
    };
    running.until("a cause", told).await;
    let failed =
        running.until("a failure", |now| now.targets.iter().any(|it| it.phase == TargetPhase::Degraded));
    assert!(tokio::time::timeout(Duration::from_secs(120), failed).await.is_err());
    let seen = live_objects::get(cluster, "Pod", "default", &name).await.expect("the pod");
    assert_eq!(seen["status"]["containerStatuses"][0]["restartCount"], 4, "{seen:#}");
    pods.patch(&name, &PatchParams::default(), &probe(Value::Null)).await.expect("no probe");
    running.until_converged(&revision).await;
}

#[tokio::test(start_paused = true)]
async fn jobs_replica_sets_and_pods_have_causes_too() {
    let job = |image: &str, annotations: Value| {
        let template = pod_template(image, annotations, "Never");
        workload("batch/v1", "Job", json!({"backoffLimit": 1, "template": template}))
    };
    check_details(
        &job(MISSING_IMAGE, json!({})),
        &[&format!("Degraded: ImagePullBackOff web-* ({MISSING_IMAGE})")],
    )
    .await;
    let crashes = json!({"sim.tutti.dev/fail": "crash-loop"});
    check_details(&job(IMAGE, crashes), &["Degraded: Failed web-* (exit 1: \"fatal: simulated crash\")"])
        .await;

    let pods = pod_template(MISSING_IMAGE, json!({}), "Always");
    let selector = json!({"matchLabels": {"app": "web"}});
    let set =
        workload("apps/v1", "ReplicaSet", json!({"replicas": 1, "selector": selector, "template": pods}));
    check_details(&set, &[&format!("Degraded: ImagePullBackOff web-* ({MISSING_IMAGE})")]).await;

    let pod = workload("v1", "Pod", json!({"containers": [{"name": "main", "image": MISSING_IMAGE}]}));
    check_details(&pod, &[&format!("Degraded: ImagePullBackOff web ({MISSING_IMAGE})")]).await;
}

/// Times of pod lists within ten minutes, in tenths of a second. `hands` runs every second.
async fn pod_list_times(fleet: &TestFleet, hands: impl AsyncFn(u64)) -> Vec<u64> {
    let cluster = fleet.cluster("bj1");
    let listed = || cluster.count_requests(&RequestMatch::any().verb("list").resource("pods"));
    fleet.clear_requests();
    let mut lists = Vec::new();
    for tenth in 0..6_000 {
        if tenth % 10 == 0 {
            hands(tenth / 10).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        lists.extend(iter::repeat_n(tenth, listed() - lists.len()));
    }
    lists
}

fn assert_lists_are_spaced(lists: &[u64]) {
    let closest = lists.windows(2).map(|pair| pair[1] - pair[0]).min();
    assert!(closest.is_none_or(|tenths| tenths >= 50), "{closest:?} tenths of a second: {lists:?}");
}

#[tokio::test(start_paused = true)]
async fn crash_loop_pods_are_listed_with_backoff() {
    let fleet = fleet(&deployment(json!({"sim.tutti.dev/fail": "crash-loop"})));
    let running = fleet.start().await;
    running.until("a cause", |now| phase_and_detail(now).starts_with("Degraded: CrashLoopBackOff")).await;
    let lists = pod_list_times(&fleet, async |_| {}).await;
    assert_lists_are_spaced(&lists);
    assert!((10..=15).contains(&lists.len()), "{lists:?}");
    assert!(lists.windows(2).all(|pair| pair[1] - pair[0] <= 605), "{lists:?}");
}

/// A new commit every three seconds keeps the rollout moving.
#[tokio::test(start_paused = true)]
async fn pods_of_progressing_rollout_are_not_listed() {
    let fleet = fleet(&deployment(json!({"sim.tutti.dev/fail": "crash-loop"})));
    let running = fleet.start().await;
    let lists = pod_list_times(&fleet, async |second| {
        if second % 3 == 0 {
            let broken = deployment(json!({"sim.tutti.dev/fail": "crash-loop"}));
            let image = format!("registry.example.com/web:{}", second + 2);
            fleet.push(&running, "Another", &[(MANIFEST, Some(&broken.replace(IMAGE, &image)))]).await;
        }
    })
    .await;
    assert_lists_are_spaced(&lists);
    assert!(lists.len() <= 5, "{lists:?}");
}

/// Healthy for two seconds of four: searched as if it were never healthy.
#[tokio::test(start_paused = true)]
async fn pods_of_flapping_workload_are_listed() {
    let fleet = fleet(&deployment(json!({})));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let pods = live_objects::api(fleet.cluster("bj1"), "Pod", Some("default"));
    let names = live_objects::names(fleet.cluster("bj1"), "Pod").await;
    let lists = pod_list_times(&fleet, async |second| {
        let fails = match second % 4 {
            0 => json!("readiness"),
            2 => Value::Null,
            _ => return,
        };
        let probe = Patch::Merge(json!({"metadata": {"annotations": {"sim.tutti.dev/fail": fails}}}));
        for name in &names {
            pods.patch(name, &PatchParams::default(), &probe).await.expect("a probe");
        }
    })
    .await;
    assert_lists_are_spaced(&lists);
    assert!((10..=120).contains(&lists.len()), "{lists:?}");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_healthy_workload_are_never_listed() {
    let fleet = fleet(&deployment(json!({})));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(pod_list_times(&fleet, async |_| {}).await, Vec::<u64>::new());
}

/// A quota prevents pods, as a missing account or an admission webhook would: no pod can show the cause.
#[tokio::test(start_paused = true)]
async fn uncreated_pods_are_reported_by_their_event() {
    let quota = named_workload("none", "v1", "ResourceQuota", json!({"hard": {"pods": "0"}}));
    let labels = json!({"matchLabels": {"app": "web"}});
    let template = |restarts: &str| pod_template(IMAGE, json!({}), restarts);
    let job = workload("batch/v1", "Job", json!({"template": template("Never")}));
    let set = |kind: &str, more: Value| {
        let mut spec = json!({"selector": labels, "template": template("Always")});
        spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        workload("apps/v1", kind, spec)
    };
    let stateful = set("StatefulSet", json!({"replicas": 2, "serviceName": "web"}));
    for (kind, manifest) in
        [("Job", job), ("StatefulSet", stateful), ("DaemonSet", set("DaemonSet", json!({})))]
    {
        let fleet = fleet(&manifest);
        let cluster = fleet.cluster("bj1");
        live_objects::apply_as(cluster, "admin", &quota).await;
        let running = fleet.start().await;
        let says = |now: &Overview| {
            let words = phase_and_detail(now);
            words.starts_with("Progressing: FailedCreate web (pods") && words.contains("exceeded quota: none")
        };
        running.until("a cause", says).await;
        let events = || cluster.count_requests(&RequestMatch::any().verb("list").resource("events"));
        let before = events();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!((1..=13).contains(&(events() - before)), "{kind}: {} lists in a minute", events() - before);

        live_objects::api(cluster, "ResourceQuota", Some("default"))
            .delete("none", &DeleteParams::default())
            .await
            .expect("deleted");
        let now = running.until_converged(&fleet.first_commit).await;
        assert_eq!(target(&now, "bj1", "default/web").detail, "", "{kind}");
        // Events of workloads that have their pods are not read.
        let before = events();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(events(), before, "{kind}");
        running.stop().await;
    }
}

/// A known cause stays while events cannot be listed.
#[tokio::test(start_paused = true)]
async fn refusal_stays_reported_while_events_are_unavailable() {
    let quota = named_workload("none", "v1", "ResourceQuota", json!({"hard": {"pods": "0"}}));
    let job = workload("batch/v1", "Job", json!({"template": pod_template(IMAGE, json!({}), "Never")}));
    let fleet = fleet(&job);
    let cluster = fleet.cluster("bj1");
    live_objects::apply_as(cluster, "admin", &quota).await;
    let running = fleet.start().await;
    running.until("a cause", |now| phase_and_detail(now).contains("FailedCreate web (pods")).await;
    let events = || RequestMatch::any().verb("list").resource("events");
    for fault in [Fault::forbidden(), Fault::Delay(Duration::from_secs(20))] {
        cluster.fail_next(events(), 2, fault);
        let before = cluster.count_requests(&events());
        let other =
            running.until("another cause", |now| !phase_and_detail(now).contains("FailedCreate web (pods"));
        assert!(tokio::time::timeout(Duration::from_secs(200), other).await.is_err());
        assert!(cluster.count_requests(&events()) >= before + 2);
    }
    running.stop().await;
}

/// A Job fails immediately and the server lists pods slowly: the cause exists but is not known yet.
#[tokio::test(start_paused = true)]
async fn pending_search_for_a_cause_is_shown() {
    let template = pod_template(IMAGE, json!({"sim.tutti.dev/fail": "crash-loop"}), "Never");
    let fleet = fleet(&workload("batch/v1", "Job", json!({"backoffLimit": 0, "template": template})));
    let namespace = Some("default".to_owned());
    let pods =
        || RequestMatch { namespace: namespace.clone(), ..RequestMatch::any().verb("list").resource("pods") };
    fleet.cluster("bj1").fail_next(pods(), 1, Fault::Delay(Duration::from_secs(20)));
    let running = fleet.start().await;
    let announced =
        |now: &Overview| is_degraded(now) && phase_and_detail(now).ends_with("; its cause is not read yet");
    running.until("a search", announced).await;
    running.until("a cause", |now| phase_and_detail(now).starts_with("Degraded: Failed web-* (exit 1")).await;
    assert_eq!(fleet.cluster("bj1").count_requests(&pods()), 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ending_run_waits_for_the_failure_cause() {
    let template = pod_template(IMAGE, json!({"sim.tutti.dev/fail": "crash-loop"}), "Never");
    let job = workload("batch/v1", "Job", json!({"backoffLimit": 0, "template": template}));
    let stage = CommandFixture::new(&[(APP, &objects_app("default", "web")), (MANIFEST, &job)]).await;
    let (stdout, stderr, _) = stage.run(&["run", "--once"]).await;
    assert!(stdout.contains("Failed web-") && !stdout.contains("not read yet"), "{stdout}");
    let end = stderr.lines().last().unwrap_or_default();
    assert!(end.starts_with("ends with 3: bj1 default/web is Degraded: Failed web-"), "{stderr}");
}

// ---- many at once ----

const APP_COUNT: usize = 200;

/// A Deployment with one pod, in its own app.
fn single_pod_app(name: &str, image: &str, annotations: Value) -> String {
    let labels = json!({"app": name});
    let mut template = pod_template(image, annotations, "Always");
    template["metadata"]["labels"] = labels.clone();
    let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
    named_workload(name, "apps/v1", "Deployment", spec)
}

/// Files of `APP_COUNT` apps; the app of the given number crashes.
fn many_apps(image: &str, crashes: Option<usize>) -> Vec<(String, String)> {
    let files = (0..APP_COUNT).flat_map(|number| {
        let name = format!("web-{number:03}");
        let fails = (crashes == Some(number)).then(|| json!({"sim.tutti.dev/fail": "crash-loop"}));
        let manifest = single_pod_app(&name, image, fails.unwrap_or_else(|| json!({})));
        let path = format!("apps/{name}");
        [
            (format!("{path}/app.yaml"), objects_app("default", &name)),
            (format!("{path}/objects/all.yaml"), manifest),
        ]
    });
    files.collect()
}

/// All images change: few more reads than writes, and the crash is reported soon.
#[tokio::test(start_paused = true)]
async fn large_rollout_reads_little_more_than_it_writes() {
    let files = many_apps(IMAGE, None);
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let changed = many_apps("registry.example.com/web:2", Some(77));
    let changed: Vec<(&str, Option<&str>)> =
        changed.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    let begin = tokio::time::Instant::now();
    fleet.push(&running, "Another image", &changed).await;
    let told = |now: &Overview| {
        let web = now.targets.iter().find(|it| it.app.to_string() == "default/web-077");
        web.is_some_and(|it| {
            it.phase == TargetPhase::Degraded && it.detail.contains("(exit 1: \"fatal: simulated crash\")")
        })
    };
    running.until("a cause", told).await;
    let seconds = begin.elapsed().as_secs_f64();
    let all = fleet.requests();
    let count = |verb: &str| all.iter().filter(|(_, it)| it.verb == verb).count();
    let (patches, asked) = (count("apply"), all.len());
    assert_eq!(patches, APP_COUNT);
    assert!(asked * 10 <= patches * 11, "{asked} requests for {patches} patches");
    assert!(seconds <= 15.0, "{seconds} s");
    running.stop().await;
}

/// All apps of one namespace fail: one list serves them all.
#[tokio::test(start_paused = true)]
async fn failures_in_one_namespace_need_few_lists() {
    let files: Vec<(String, String)> = (0..40)
        .flat_map(|number| {
            let name = format!("web-{number:03}");
            let manifest = single_pod_app(&name, MISSING_IMAGE, json!({}));
            let path = format!("apps/{name}");
            [
                (format!("{path}/app.yaml"), objects_app("default", &name)),
                (format!("{path}/objects/all.yaml"), manifest),
            ]
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    running
        .until("all causes", |now| {
            now.targets.len() == 40
                && now.targets.iter().all(|it| {
                    it.phase == TargetPhase::Degraded
                        && it.detail.contains(&format!("ImagePullBackOff {}", it.app.name))
                })
        })
        .await;
    let lists = fleet.cluster("bj1").count_requests(&RequestMatch::any().verb("list").resource("pods"));
    assert!((1..=8).contains(&lists), "{lists} lists");
    running.stop().await;
}

/// A quota prevents all pods of a namespace: one list of events serves them all.
#[tokio::test(start_paused = true)]
async fn events_of_many_objects_need_few_lists() {
    let quota = named_workload("none", "v1", "ResourceQuota", json!({"hard": {"pods": "0"}}));
    let files: Vec<(String, String)> = (0..40)
        .flat_map(|number| {
            let name = format!("web-{number:03}");
            let job = json!({"template": pod_template(IMAGE, json!({}), "Never")});
            let path = format!("apps/{name}");
            [
                (format!("{path}/app.yaml"), objects_app("default", &name)),
                (format!("{path}/objects/all.yaml"), named_workload(&name, "batch/v1", "Job", job)),
            ]
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let fleet = TestFleet::new(&["bj1"], &files);
    let cluster = fleet.cluster("bj1");
    live_objects::apply_as(cluster, "admin", &quota).await;
    let running = fleet.start().await;
    let is_told = |now: &Overview| {
        now.targets.len() == 40
            && now.targets.iter().all(|it| it.detail.contains(&format!("FailedCreate {} (pods", it.app.name)))
    };
    running.until("all causes", is_told).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let lists = |resource: &str| cluster.count_requests(&RequestMatch::any().verb("list").resource(resource));
    let (pods, events) = (lists("pods"), lists("events"));
    assert!((1..=pods).contains(&events) && events <= 20, "{events} lists of events, {pods} of pods");
    assert!(is_told(&running.overview.borrow()));
    running.stop().await;
}
