//! The last log line of a crashed container, shown after its exit reason: on the commit, in commands, and with few requests.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use sandbox::{Fault, RequestMatch};
use serde_json::{Value, json};
use tutti::report::{Overview, TargetPhase};

use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::forge::GiteaStatusServer;
use crate::support::live_objects;
use crate::support::manifests::{config_map, objects_app};
use crate::support::program::CommandFixture;

const APP: &str = "apps/web/app.yaml";
const MANIFEST: &str = "apps/web/objects/all.yaml";

/// A Deployment whose containers write this line and crash.
fn crashing_deployment(replicas: u32, image: &str, line: &str) -> String {
    let annotations = json!({"sim.tutti.dev/fail": "crash-loop", "sim.tutti.dev/log": line});
    let template = json!({
        "metadata": {"labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": image}]},
    });
    let spec =
        json!({"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    let metadata = json!({"name": "web", "namespace": "default"});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}).to_string()
}

fn fleet(manifest: &str) -> TestFleet {
    TestFleet::new(&["bj1"], &[(APP, &objects_app("default", "web")), (MANIFEST, manifest)])
}

fn log_requests() -> RequestMatch {
    RequestMatch { subresource: Some("log".to_owned()), ..RequestMatch::any().resource("pods") }
}

fn is_degraded(now: &Overview) -> bool {
    now.targets.first().is_some_and(|it| it.phase == TargetPhase::Degraded)
}

/// The text after the pod's name, when the app is Degraded.
async fn wait_for_crash_detail(running: &RunningController) -> String {
    let now = running.until("a cause", is_degraded).await;
    let detail = &target(&now, "bj1", "default/web").detail;
    assert!(detail.starts_with("CrashLoopBackOff web-"), "{detail}");
    detail.split_once(" (").map_or_else(String::new, |(_, rest)| format!("({rest}"))
}

async fn check_crash_detail(line: &str, expected: &str) {
    let fleet = fleet(&crashing_deployment(1, "web:1", line));
    let running = fleet.start().await;
    assert_eq!(wait_for_crash_detail(&running).await, expected);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn commit_status_has_the_last_log_line() {
    let gitea = GiteaStatusServer::start().await;
    let manifest = crashing_deployment(1, "web:1", "\u{1b}[1;31mFATAL\u{1b}[0m:\tno such table");
    let files = [
        ("tutti.yaml", gitea.instance_manifest()),
        (APP, objects_app("default", "web")),
        (MANIFEST, manifest),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "failure").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let verdict = gitea.final_status(&fleet.first_commit);
    assert!(verdict.starts_with("failure bj1 default/web: CrashLoopBackOff web-"), "{verdict}");
    assert!(verdict.ends_with(" (exit 1: \"FATAL: no such table\"), 0/1 healthy"), "{verdict}");
    gitea.assert_no_repeated_status();
    assert_eq!(wait_for_crash_detail(&running).await, "(exit 1: \"FATAL: no such table\")");
    let asked: Vec<String> = fleet
        .requests()
        .into_iter()
        .filter(|(_, it)| log_requests().matches(it))
        .map(|it| it.1.query)
        .collect();
    assert_eq!(asked, ["&container=main&limitBytes=4096&previous=true&tailLines=1"]);
}

#[tokio::test(start_paused = true)]
async fn log_line_is_plain_text_and_bounded() {
    check_crash_detail("first\nsecond", "(exit 1: \"second\")").await;
    check_crash_detail(&"x".repeat(10_240), &format!("(exit 1: \"{}…\")", "x".repeat(200))).await;
    check_crash_detail(&"é".repeat(10_240), &format!("(exit 1: \"{}…\")", "é".repeat(200))).await;
    check_crash_detail("\u{1b}]0;title\u{7}\u{202e}abc\u{0}", "(exit 1: \"abc\")").await;
    check_crash_detail(" \u{1b}[0m ", "(exit 1)").await;
}

/// The log may be forbidden, gone, or on a node that does not answer: the cause stays, the cluster is Ready, and the
/// log is not requested again.
#[tokio::test(start_paused = true)]
async fn unreadable_log_is_not_requested_again() {
    let gone = Fault::Refusal {
        code: 400,
        reason: "BadRequest",
        message: "previous terminated container \"main\" in pod \"web\" not found".to_owned(),
    };
    let absent =
        Fault::Refusal { code: 404, reason: "NotFound", message: "pods \"web\" not found".to_owned() };
    let late = Fault::Delay(Duration::from_secs(60));
    let faults = [Fault::forbidden(), Fault::unauthorized(), gone, absent, Fault::internal_error()];
    for fault in faults.into_iter().chain([Fault::DropAfter, late]) {
        let fleet = fleet(&crashing_deployment(2, "web:1", "no such table"));
        fleet.cluster("bj1").fail_next(log_requests(), 1_000, fault.clone());
        let begin = tokio::time::Instant::now();
        let running = fleet.start().await;
        assert_eq!(wait_for_crash_detail(&running).await, "(exit 1)", "{fault:?}");
        assert_eq!(running.overview.borrow().clusters[0].state, "Ready", "{fault:?}");
        assert!(begin.elapsed() < Duration::from_secs(30), "{fault:?}: {:?}", begin.elapsed());
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(fleet.cluster("bj1").count_requests(&log_requests()), 1, "{fault:?}");
        assert_eq!(wait_for_crash_detail(&running).await, "(exit 1)", "{fault:?}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_crash_requests_its_log_once() {
    let fleet = fleet(&crashing_deployment(3, "web:1", "no such table"));
    let running = fleet.start().await;
    assert_eq!(wait_for_crash_detail(&running).await, "(exit 1: \"no such table\")");
    tokio::time::sleep(Duration::from_secs(1_800)).await;
    let pods = live_objects::names(fleet.cluster("bj1"), "Pod").await;
    assert_eq!(pods.len(), 3, "{pods:?}");
    let asked = fleet.cluster("bj1").count_requests(&log_requests());
    let lists = fleet.cluster("bj1").count_requests(&RequestMatch::any().verb("list").resource("pods"));
    assert!((1..=3).contains(&asked) && (25..=60).contains(&lists), "{asked} of {lists}");
    fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(1_800)).await;
    assert_eq!(fleet.cluster("bj1").count_requests(&log_requests()), 0);

    // A new release has a new crash, even with the same exit.
    let manifest = crashing_deployment(3, "web:2", "no such column");
    let revision = fleet.push(&running, "Another", &[(MANIFEST, Some(&manifest))]).await;
    let is_told = |now: &Overview| {
        now.revision.as_ref() == Some(&revision)
            && target(now, "bj1", "default/web").detail.contains("no such column")
    };
    running.until("another line", is_told).await;
    // A recreated pod has a new crash too.
    tokio::time::sleep(Duration::from_secs(60)).await;
    fleet.clear_requests();
    let pods = live_objects::api(fleet.cluster("bj1"), "Pod", Some("default"));
    for name in live_objects::names(fleet.cluster("bj1"), "Pod").await {
        pods.delete(&name, &DeleteParams::default()).await.expect("deleted");
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!((1..=3).contains(&fleet.cluster("bj1").count_requests(&log_requests())));
}

/// Ten minutes of changing exits: the first line stays, and no other log is requested.
#[tokio::test(start_paused = true)]
async fn container_with_changing_exits_requests_log_once() {
    let fleet = fleet(&crashing_deployment(1, "web:1", "no such table"));
    let running = fleet.start().await;
    wait_for_crash_detail(&running).await;
    let sandbox = fleet.cluster("bj1");
    let pods = live_objects::api(sandbox, "Pod", Some("default"));
    let name = live_objects::names(sandbox, "Pod").await.remove(0);
    let mut asked: Vec<u64> = Vec::new();
    for second in 0..600_u64 {
        let pod = serde_json::to_value(pods.get(&name).await.expect("the pod")).expect("JSON");
        let mut statuses: Value = pod["status"]["containerStatuses"].clone();
        if let Some(end) = statuses.pointer_mut("/0/lastState/terminated/exitCode") {
            *end = json!(1 + second % 200);
        }
        let status = Patch::Merge(json!({"status": {"containerStatuses": statuses}}));
        pods.patch_status(&name, &PatchParams::default(), &status).await.expect("a status");
        tokio::time::sleep(Duration::from_secs(1)).await;
        asked.extend(std::iter::repeat_n(second, sandbox.count_requests(&log_requests()) - asked.len()));
        assert_eq!(wait_for_crash_detail(&running).await, "(exit 1: \"no such table\")", "{second}");
    }
    assert_eq!(asked, [0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_show_the_last_log_line() {
    let (web, manifest) = (objects_app("default", "web"), crashing_deployment(1, "web:1", "no such table"));
    let stage = CommandFixture::new(&[(APP, &web), (MANIFEST, &manifest)]).await;
    for command in [
        &["run", "--once"][..],
        &["get", "-o", "json"],
        &["get", "targets"],
        &["get", "targets", "-o", "json"],
    ] {
        let (stdout, stderr, _) = stage.run(command).await;
        let said = format!("{stdout}{stderr}").replace("\\\"", "\"");
        // By then it may have restarted so often that restarts are counted.
        let has_line = said.contains("(exit 1") && said.contains(": \"no such table\")");
        assert!(has_line, "{command:?}: {said}");
    }
}

/// A Secret that the other app applied before may be mounted here; its values are unknown while that app does not render.
#[tokio::test(start_paused = true)]
async fn log_is_withheld_beside_unrendered_app() {
    let (web, other) = (crashing_deployment(1, "web:1", "password is swordfish"), "apps/other/app.yaml");
    let files = [
        (APP, objects_app("default", "web")),
        (MANIFEST, web),
        (other, objects_app("default", "other")),
        ("apps/other/objects/one.yaml", "apiVersion: v1\nkind: [\n".to_owned()),
    ];
    let fleet = TestFleet::new(&["bj1"], &files.each_ref().map(|(path, text)| (*path, text.as_str())));
    let running = fleet.start().await;
    let is_told = |now: &Overview| now.targets.iter().any(|it| it.phase == TargetPhase::Degraded);
    let now = running.until("a cause", is_told).await;
    let detail = &target(&now, "bj1", "default/web").detail;
    assert!(detail.ends_with("(exit 1)"), "{detail}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(fleet.cluster("bj1").count_requests(&log_requests()), 0);
    let (path, mended) = ("apps/other/objects/one.yaml", config_map("default", "one", "first"));
    fleet.push(&running, "Mend it", &[(path, Some(&mended))]).await;
    let has_line = |now: &Overview| target(now, "bj1", "default/web").detail.contains("swordfish");
    running.until("the line", has_line).await;
}
