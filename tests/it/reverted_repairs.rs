//! Repairs that another client reverts each time: the client is reported, and other changes of the app stay visible.

use std::time::Duration;

use sandbox::{FaultPlan, MutatingWebhook, RequestMatch, Sandbox, WebhookMutation};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tutti::report::{TargetPhase, TargetReport};

use crate::drift::{APP, MANIFESTS, SingleCluster, app_with_fields, manifests};
use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::forge::GiteaStatusServer;
use crate::support::live_objects::{self, edit_as};
use crate::support::log::CapturedLog;
use crate::support::manifests::deployment;

/// A client that sets a field of ours to its own value twice a second, until it is dropped.
struct RepeatedEditor(JoinHandle<()>);

impl Drop for RepeatedEditor {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl RepeatedEditor {
    fn start(cluster: &Sandbox, kind: &'static str, field: &'static str, edit: Value) -> Self {
        let cluster = cluster.clone();
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(500)).await;
                let Some(object) = live_objects::get(&cluster, kind, "default", "web").await else {
                    continue;
                };
                if object.pointer(field) != edit.pointer(field) {
                    edit_as(&cluster, "operator", (kind, "web"), &edit).await;
                }
            }
        }))
    }
}

fn target_report(running: &RunningController) -> TargetReport {
    target(&running.overview.borrow(), "bj1", "default/web").clone()
}

async fn wait_minutes(number: u64) {
    tokio::time::sleep(Duration::from_secs(number * 60)).await;
}

#[tokio::test(start_paused = true)]
async fn repeated_foreign_edits_are_reverted_with_backoff() {
    let log = CapturedLog::capture();
    let scene = SingleCluster::with_app_fields("drift: repair").await;
    let (cluster, warning) = (scene.cluster(), "another field manager changes the object");
    let applies = || cluster.count_requests(&RequestMatch::any().verb("apply").resource("configmaps"));
    let somebody =
        RepeatedEditor::start(cluster, "ConfigMap", "/data/value", json!({"data": {"value": "theirs"}}));
    wait_minutes(1).await;
    // At once, then after 1, 2, 4, 8, 16 and 32 s.
    assert!((6..=7).contains(&applies()), "{}", applies());
    assert_eq!(log.count(warning), 1);
    assert!(log.text().contains("object=ConfigMap default/web"), "{}", log.text());
    wait_minutes(59).await;
    assert!((18..=21).contains(&applies()), "{}", applies());
    assert_eq!(log.count(warning), 1);
    let now = target_report(&scene.running);
    let expected = "ConfigMap default/web: put back more than 10 times, and changed again each time; retried \
                    after delays of up to 5 minutes";
    assert_eq!((now.phase, now.detail.as_str()), (TargetPhase::Pending, expected));

    drop(somebody);
    wait_minutes(6).await;
    assert_eq!(target_report(&scene.running).phase, TargetPhase::Running);
    assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "one");
    // A change much later starts with no delay.
    wait_minutes(11).await;
    scene.fleet.clear_requests();
    let _somebody =
        RepeatedEditor::start(cluster, "ConfigMap", "/data/value", json!({"data": {"value": "theirs"}}));
    wait_minutes(1).await;
    assert!((6..=7).contains(&applies()), "{}", applies());
    assert_eq!(log.count(warning), 2);
}

/// Other writes to the object are not delayed.
#[tokio::test(start_paused = true)]
async fn other_edits_of_the_object_are_reverted_immediately() {
    let scene = SingleCluster::with_app_fields("drift: repair").await;
    let cluster = scene.cluster();
    let theirs = json!({"spec": {"selector": {"app": "theirs"}}});
    let _somebody = RepeatedEditor::start(cluster, "Service", "/spec/selector/app", theirs);
    wait_minutes(30).await;
    edit_as(cluster, "kubectl-edit", ("ConfigMap", "web"), &json!({"data": {"value": "two"}})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "one");
    wait_minutes(2).await;
    live_objects::delete(cluster, "ConfigMap", "web").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "one");
}

/// A client that deletes the object or removes our label gets growing delays too.
#[tokio::test(start_paused = true)]
async fn repeated_deletes_are_repaired_with_backoff() {
    for by_delete in [true, false] {
        let scene = SingleCluster::with_app_fields("drift: repair").await;
        let cluster = scene.cluster().clone();
        scene.fleet.clear_requests();
        let somebody = tokio::spawn(async move {
            let label = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}});
            loop {
                tokio::time::sleep(Duration::from_millis(500)).await;
                let Some(object) = live_objects::get(&cluster, "ConfigMap", "default", "web").await else {
                    continue;
                };
                if by_delete {
                    live_objects::delete(&cluster, "ConfigMap", "web").await;
                } else if object.pointer("/metadata/labels/tutti.dev~1managed-by").is_some() {
                    edit_as(&cluster, "operator", ("ConfigMap", "web"), &label).await;
                }
            }
        });
        let _somebody = RepeatedEditor(somebody);
        wait_minutes(60).await;
        let applies = RequestMatch::any().verb("apply").resource("configmaps");
        let applies = scene.cluster().count_requests(&applies);
        assert!((15..=21).contains(&applies), "{by_delete} {applies}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_rollout_is_reported_despite_foreign_edits() {
    let gitea = GiteaStatusServer::start().await;
    let manifest = |image: &str| {
        let web = deployment("default", "web", "web", image);
        web.replace("  replicas: 2\n", "  replicas: 2\n  revisionHistoryLimit: 5\n")
    };
    let files = [
        ("tutti.yaml", gitea.instance_manifest()),
        (APP, app_with_fields("drift: repair")),
        (MANIFESTS, manifest("registry.example.com/web:1")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let edit = json!({"spec": {"revisionHistoryLimit": 7}});
    let _somebody =
        RepeatedEditor::start(fleet.cluster("bj1"), "Deployment", "/spec/revisionHistoryLimit", edit);
    wait_minutes(10).await;
    assert_eq!(target_report(&running).phase, TargetPhase::Pending);
    let broken = manifest("registry.example.com/web:broken-1");
    let broken = fleet.push(&running, "A bad image", &[(MANIFESTS, Some(&broken))]).await;
    gitea.until_status(&broken, "failure").await;
    wait_minutes(20).await;
    let now = target_report(&running);
    assert!(
        now.phase == TargetPhase::Degraded && now.detail.contains("ImagePullBackOff"),
        "{:?} {}",
        now.phase,
        now.detail
    );
    assert!(
        gitea.last_status(&broken).starts_with("failure bj1 default/web: ImagePullBackOff"),
        "{}",
        gitea.last_status(&broken)
    );
    let posts = gitea.posts().len();
    wait_minutes(60).await;
    assert_eq!(gitea.posts().len(), posts, "it is said once");
}

/// A mutating webhook for images, added after the app: each write of the Deployment gets its image.
fn image_webhook(image: &str) -> FaultPlan {
    let containers = json!([{"name": "main", "image": image}]);
    let path = ["spec", "template", "spec", "containers"].map(str::to_owned).to_vec();
    let webhook = MutatingWebhook {
        resource: "deployments.apps".to_owned(),
        mutation: WebhookMutation::Set { path, value: containers },
    };
    FaultPlan::default().webhook(webhook)
}

const OVERRULED_DETAIL: &str = "Deployment default/web: the cluster keeps other values than the applied ones: a \
                         webhook or controller changes them";

/// A mutating webhook was added after the app and has changed its image.
async fn cluster_with_overruled_image() -> SingleCluster {
    let scene = SingleCluster::with_app_fields("drift: repair").await;
    let cluster = scene.cluster();
    cluster.set_faults(&image_webhook("mirror/web:1"));
    let note = json!({"metadata": {"annotations": {"example.com/note": "seen"}}});
    edit_as(cluster, "operator", ("Deployment", "web"), &note).await;
    assert_eq!(
        scene.settled_request_counts().await,
        ["1 apply deployments.apps", "1 patch deployments.apps"]
    );
    assert_eq!(target_report(&scene.running).detail, OVERRULED_DETAIL);
    scene
}

#[tokio::test(start_paused = true)]
async fn field_changed_by_admission_is_applied_once() {
    let log = CapturedLog::capture();
    let scene = SingleCluster::with_app_fields("drift: repair").await;
    let (cluster, warning) = (scene.cluster(), "applied again, but the cluster keeps other values");
    let note = |text: &str| json!({"metadata": {"annotations": {"example.com/note": text}}});
    cluster.set_faults(&image_webhook("mirror/web:1"));
    edit_as(cluster, "operator", ("Deployment", "web"), &note("one")).await;
    assert_eq!(
        scene.settled_request_counts().await,
        ["1 apply deployments.apps", "1 patch deployments.apps"]
    );
    let now = target_report(&scene.running);
    assert_eq!((now.phase, now.detail.as_str()), (TargetPhase::OutOfSync, OVERRULED_DETAIL));
    assert_eq!(log.count(warning), 1);

    // Neither time nor a write to foreign fields causes a retry.
    scene.fleet.clear_requests();
    edit_as(cluster, "operator", ("Deployment", "web"), &note("two")).await;
    wait_minutes(30).await;
    assert_eq!(scene.fleet.request_counts(), ["1 patch deployments.apps"]);
    assert_eq!(target_report(&scene.running).detail, OVERRULED_DETAIL);

    // Another value does.
    scene.fleet.clear_requests();
    cluster.set_faults(&image_webhook("mirror/web:2"));
    edit_as(cluster, "operator", ("Deployment", "web"), &note("three")).await;
    assert_eq!(
        scene.settled_request_counts().await,
        ["1 apply deployments.apps", "1 patch deployments.apps"]
    );
    assert_eq!(target_report(&scene.running).detail, OVERRULED_DETAIL);
    assert_eq!(log.count(warning), 2);

    // The webhook sets the value of Git: the next write makes the object equal.
    scene.fleet.clear_requests();
    cluster.set_faults(&image_webhook("web:1"));
    edit_as(cluster, "operator", ("Deployment", "web"), &note("four")).await;
    assert_eq!(scene.settled_request_counts().await, ["1 patch deployments.apps"]);
    assert_eq!(target_report(&scene.running).phase, TargetPhase::Running);
}

#[tokio::test(start_paused = true)]
async fn new_commit_clears_the_admission_report() {
    let scene = cluster_with_overruled_image().await;
    // A commit for another object does not.
    let other = manifests().replace("{value: \"one\"}", "{value: \"two\"}");
    scene.fleet.push(&scene.running, "Another value", &[(MANIFESTS, Some(&other))]).await;
    wait_minutes(1).await;
    assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "two");
    assert_eq!(target_report(&scene.running).detail, OVERRULED_DETAIL);
    // From then on the values that admission sets for this commit are accepted.
    let newer = other.replace("web:1", "web:3");
    let revision = scene.fleet.push(&scene.running, "Another image", &[(MANIFESTS, Some(&newer))]).await;
    scene.running.until_converged(&revision).await;
}

/// Values that the cluster keeps hide no other change of the object.
#[tokio::test(start_paused = true)]
async fn manual_scaling_beside_admission_changes_is_reverted() {
    let scene = cluster_with_overruled_image().await;
    live_objects::scale_as(scene.cluster(), "kubectl", "web", 0).await;
    wait_minutes(1).await;
    assert_eq!(scene.live_object("Deployment").await["spec"]["replicas"], 2);
}
