//! Replicas of a workload that an autoscaler in Git targets: the autoscaler's number is no drift.

use std::time::Duration;

use sandbox::{Fault, Release, RequestMatch, SandboxOptions};
use serde_json::{Value, json};

use crate::drift::{self, APP, MANIFESTS, settle, writes};
use crate::support::fleet::{RunningController, TestFleet};
use crate::support::live_objects::{self, scale_as};
use crate::support::manifests::{definition, deployment, objects_app};

/// Without metrics the autoscaler keeps the number of replicas.
const AUTOSCALER: &str = "\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 10
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
";

/// KEDA creates an autoscaler for it.
const SCALED_OBJECT: &str = "\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: default}
spec:
  scaleTargetRef: {name: web}
  triggers: [{type: cpu, metricType: Utilization, metadata: {value: '50'}}]
";

fn oldest(name: &str) -> SandboxOptions {
    SandboxOptions::instant(name).running(Release::new(20).expect("a release"))
}

fn manifests(autoscaler: &str, image: &str, replicas: u32) -> String {
    let web = deployment("default", "web", "web", image);
    let web = web.replace("replicas: 2", &format!("replicas: {replicas}"));
    if autoscaler.is_empty() { web } else { [web.as_str(), autoscaler].join("---\n") }
}

/// A Deployment and its autoscaler, both as in Git.
struct Scene {
    fleet: TestFleet,
    running: RunningController,
    autoscaler: &'static str,
}

impl Scene {
    async fn new(autoscaler: &'static str, options: fn(&str) -> SandboxOptions) -> Self {
        Self::with(autoscaler, options, &objects_app("default", "web")).await
    }

    async fn with(autoscaler: &'static str, options: fn(&str) -> SandboxOptions, app: &str) -> Self {
        let all = manifests(autoscaler, "web:1", 2);
        let fleet = TestFleet::with_options(&["bj1"], &[(APP, app), (MANIFESTS, &all)], options);
        live_objects::apply_as(
            fleet.cluster("bj1"),
            "admin",
            &definition("keda.sh", "v1alpha1", "ScaledObject"),
        )
        .await;
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        settle().await;
        fleet.clear_requests();
        Self { fleet, running, autoscaler }
    }

    async fn web(&self) -> Value {
        live_objects::get(self.fleet.cluster("bj1"), "Deployment", "default", "web")
            .await
            .expect("it is there")
    }

    /// Whether our managed fields entry has the replicas.
    async fn is_ours(&self) -> bool {
        let web = self.web().await;
        let entries = web["metadata"]["managedFields"].as_array().expect("entries").iter();
        entries
            .filter(|entry| entry["manager"] == "tutti-main")
            .any(|entry| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some())
    }

    /// Whether the object has our label and our entry.
    async fn is_marked(&self) -> bool {
        let web = self.web().await;
        let entries = web["metadata"]["managedFields"].as_array().expect("entries");
        web["metadata"]["labels"]["tutti.dev/managed-by"] == "main"
            && entries.iter().any(|entry| entry["manager"] == "tutti-main")
    }

    /// Scales the Deployment; nothing reverts it.
    async fn scaled(&self, manager: &str, replicas: i64) {
        self.fleet.clear_requests();
        scale_as(self.fleet.cluster("bj1"), manager, "web", replicas).await;
        settle().await;
        assert_eq!(self.fleet.request_counts(), ["1 patch deployments.apps"], "the own one of {manager}");
        assert_eq!(self.web().await["spec"]["replicas"], replicas, "{manager}");
    }

    /// A commit with another image and another number of replicas.
    async fn released(&self, image: &str, replicas: u32) {
        self.fleet.clear_requests();
        let newer = manifests(self.autoscaler, image, replicas);
        let revision = self.fleet.push(&self.running, image, &[(MANIFESTS, Some(&newer))]).await;
        self.running.until_converged(&revision).await;
        settle().await;
        assert_eq!(self.fleet.request_counts(), ["1 apply deployments.apps"], "{image}");
        let web = self.web().await;
        assert_eq!(web.pointer("/spec/template/spec/containers/0/image"), Some(&json!(image)));
    }

    /// A new process does not revert the number either.
    async fn restarted(self) -> Self {
        let Self { fleet, running, autoscaler } = self;
        running.stop().await;
        fleet.clear_requests();
        let running = fleet.start().await;
        running.until("what is there", |now| now.targets.iter().any(|it| it.phase.is_done())).await;
        settle().await;
        assert_eq!(writes(&fleet), Vec::<String>::new());
        Self { fleet, running, autoscaler }
    }
}

async fn check(autoscaler: &'static str, options: fn(&str) -> SandboxOptions, says_who: bool) {
    let scene = Scene::new(autoscaler, options).await;
    assert!(scene.is_ours().await);
    // Before the first scale our entry has the replicas, and each apply sends the live number.
    scene.released("web:2", 3).await;
    assert_eq!(scene.web().await["spec"]["replicas"], 2);
    assert!(scene.is_ours().await);

    scene.scaled("kube-controller-manager", 5).await;
    // If no manager is recorded for the scale, our entry keeps the replicas.
    assert_eq!(scene.is_ours().await, !says_who);
    let scene = scene.restarted().await;
    scene.released("web:3", 3).await;
    assert_eq!(scene.web().await["spec"]["replicas"], 5);
    assert_eq!(scene.is_ours().await, !says_who);

    // Manual scaling is corrected by the autoscaler, not by tutti.
    scene.scaled("kubectl", 7).await;
    let scene = scene.restarted().await;
    scene.released("web:4", 4).await;
    assert_eq!(scene.web().await["spec"]["replicas"], 7);
    assert_eq!(scene.is_ours().await, !says_who);
}

#[tokio::test(start_paused = true)]
async fn autoscaler_in_git_keeps_its_replicas() {
    check(AUTOSCALER, |name| SandboxOptions::instant(name), true).await;
}

#[tokio::test(start_paused = true)]
async fn replicas_are_left_to_a_custom_autoscaler() {
    check(SCALED_OBJECT, |name| SandboxOptions::instant(name), true).await;
}

/// Before 1.22 the API server does not record writes of subresources: the live number is sent.
#[tokio::test(start_paused = true)]
async fn oldest_release_leaves_replicas_to_an_autoscaler() {
    check(SCALED_OBJECT, oldest, false).await;
}

/// An object can lose our label or all of `managedFields`; its replicas stay.
async fn check_unmarked(autoscaler: &'static str, options: fn(&str) -> SandboxOptions, drift: &str) {
    for marks in [
        json!({"labels": {"tutti.dev/managed-by": null}}),
        json!({"labels": {"tutti.dev/managed-by": null}, "annotations": {"tutti.dev/hash": null}}),
        json!({"managedFields": [{}]}),
    ] {
        let what = format!("{drift} {marks}");
        let scene = Scene::with(autoscaler, options, &drift::app(&format!("drift: {drift}"))).await;
        scene.scaled("kube-controller-manager", 10).await;
        let off = json!({"metadata": marks});
        live_objects::edit_as(scene.fleet.cluster("bj1"), "kubectl-label", ("Deployment", "web"), &off).await;
        settle().await;
        assert_eq!(scene.web().await["spec"]["replicas"], 10, "{what}");
        assert!(drift != "repair" || scene.is_marked().await, "{what}");
        let scene = scene.restarted().await;
        let newer = manifests(autoscaler, "web:2", 2);
        let revision = scene.fleet.push(&scene.running, "web:2", &[(MANIFESTS, Some(&newer))]).await;
        scene.running.until_converged(&revision).await;
        settle().await;
        assert_eq!(scene.web().await["spec"]["replicas"], 10, "{what}");
        assert!(scene.is_marked().await, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn unmarked_object_keeps_replicas_of_git_autoscaler() {
    check_unmarked(AUTOSCALER, |name| SandboxOptions::instant(name), "repair").await;
    check_unmarked(SCALED_OBJECT, |name| SandboxOptions::instant(name), "repair").await;
}

#[tokio::test(start_paused = true)]
async fn unmarked_object_keeps_autoscaler_replicas_on_oldest_release() {
    check_unmarked(SCALED_OBJECT, oldest, "repair").await;
}

#[tokio::test(start_paused = true)]
async fn unmarked_object_keeps_replicas_of_foreign_autoscaler() {
    check_unmarked("", |name| SandboxOptions::instant(name), "repair").await;
}

/// Manual scaling is reverted.
#[tokio::test(start_paused = true)]
async fn unlabelled_object_does_not_keep_manual_replicas() {
    let scene = Scene::with("", |name| SandboxOptions::instant(name), &drift::app("drift: ignore")).await;
    scene.scaled("kubectl", 7).await;
    let off = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}});
    live_objects::edit_as(scene.fleet.cluster("bj1"), "kubectl-label", ("Deployment", "web"), &off).await;
    settle().await;
    assert_eq!(scene.web().await["spec"]["replicas"], 2);
}

/// The autoscaler scales between the lookup of the object and its apply.
#[tokio::test(start_paused = true)]
async fn autoscaler_write_before_apply_is_kept() {
    let scene = Scene::with("", |name| SandboxOptions::instant(name), &drift::app("drift: repair")).await;
    let bj1 = scene.fleet.cluster("bj1");
    let applies = RequestMatch::any().verb("apply");
    bj1.fail_next(applies.clone(), 1, Fault::Delay(Duration::from_secs(20)));
    let newer = manifests("", "web:2", 2);
    let revision = scene.fleet.push(&scene.running, "web:2", &[(MANIFESTS, Some(&newer))]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(bj1.count_requests(&applies), 1);
    scale_as(bj1, "kube-controller-manager", "web", 10).await;
    scene.running.until_converged(&revision).await;
    settle().await;
    let web = scene.web().await;
    assert_eq!(web["spec"]["replicas"], 10);
    assert_eq!(web.pointer("/spec/template/spec/containers/0/image"), Some(&json!("web:2")));
}

/// The autoscaler scales before a repair of another field.
async fn check_quicker_than_a_repair(autoscaler: &'static str, options: fn(&str) -> SandboxOptions) {
    let scene = Scene::with(autoscaler, options, &drift::app("drift: repair")).await;
    assert!(scene.is_ours().await);
    scene.fleet.clear_requests();
    let bj1 = scene.fleet.cluster("bj1");
    let applies = RequestMatch::any().verb("apply");
    bj1.fail_next(applies.clone(), 1, Fault::Delay(Duration::from_secs(20)));
    let label = json!({"metadata": {"labels": {"tutti.dev/app": "another"}}});
    live_objects::edit_as(bj1, "kubectl-edit", ("Deployment", "web"), &label).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(bj1.count_requests(&applies), 1);
    scale_as(bj1, "kube-controller-manager", "web", 10).await;
    settle().await;
    settle().await;
    let expected = ["2 apply deployments.apps", "1 get deployments.apps", "2 patch deployments.apps"];
    assert_eq!(scene.fleet.request_counts(), expected, "a look, and then all that is not its");
    let web = scene.web().await;
    assert_eq!(web["spec"]["replicas"], 10);
    assert_eq!(web["metadata"]["labels"]["tutti.dev/app"], "default.web");
}

#[tokio::test(start_paused = true)]
async fn autoscaler_write_before_repair_is_kept() {
    check_quicker_than_a_repair("", |name| SandboxOptions::instant(name)).await;
    check_quicker_than_a_repair(AUTOSCALER, |name| SandboxOptions::instant(name)).await;
}

/// If no manager is recorded for the scale, the live number is sent.
#[tokio::test(start_paused = true)]
async fn oldest_release_keeps_autoscaler_write_before_repair() {
    check_quicker_than_a_repair(SCALED_OBJECT, oldest).await;
}

/// The embedded cluster's own autoscaler runs.
#[tokio::test(start_paused = true)]
async fn autoscaling_causes_no_repairs() {
    let scene = Scene::new(AUTOSCALER, |name| SandboxOptions::instant(name)).await;
    for (load, image) in [("6", "web:2"), ("3", "web:3")] {
        let wish = json!({"metadata": {"annotations": {"sim.tutti.dev/replicas": load}}});
        live_objects::edit_as(
            scene.fleet.cluster("bj1"),
            "metrics",
            ("HorizontalPodAutoscaler", "web"),
            &wish,
        )
        .await;
        settle().await;
        let expected: i64 = load.parse().expect("a number");
        assert_eq!(scene.web().await["spec"]["replicas"], expected);
        scene.released(image, 2).await;
        assert_eq!(scene.web().await["spec"]["replicas"], expected);
    }
}
