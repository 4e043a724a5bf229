//! Replicas of a workload that an autoscaler in Git targets: the autoscaler's number is no drift.

use std::time::Duration;

use sandbox::{Fault, Release, RequestMatch, SandboxOptions};
use serde_json::{Value, json};

use crate::drift::{self, APP, MANIFESTS, wait_for_repairs, write_requests};
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

fn oldest_release(name: &str) -> SandboxOptions {
    SandboxOptions::instant(name).running(Release::new(20).expect("a release"))
}

fn manifests(autoscaler: &str, image: &str, replicas: u32) -> String {
    let web = deployment("default", "web", "web", image);
    let web = web.replace("replicas: 2", &format!("replicas: {replicas}"));
    if autoscaler.is_empty() { web } else { [web.as_str(), autoscaler].join("---\n") }
}

/// A Deployment and its autoscaler, both as in Git.
struct AutoscaledDeployment {
    fleet: TestFleet,
    running: RunningController,
    autoscaler: &'static str,
}

impl AutoscaledDeployment {
    async fn new(autoscaler: &'static str, options: fn(&str) -> SandboxOptions) -> Self {
        Self::with_app(autoscaler, options, &objects_app("default", "web")).await
    }

    async fn with_app(autoscaler: &'static str, options: fn(&str) -> SandboxOptions, app: &str) -> Self {
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
        wait_for_repairs().await;
        fleet.clear_requests();
        Self { fleet, running, autoscaler }
    }

    async fn deployment(&self) -> Value {
        live_objects::get(self.fleet.cluster("bj1"), "Deployment", "default", "web")
            .await
            .expect("it is there")
    }

    /// Whether our managed fields entry has the replicas.
    async fn owns_replicas(&self) -> bool {
        let web = self.deployment().await;
        let entries = web["metadata"]["managedFields"].as_array().expect("entries").iter();
        entries
            .filter(|entry| entry["manager"] == "tutti-main")
            .any(|entry| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some())
    }

    /// Whether the object has our label and our entry.
    async fn has_our_marks(&self) -> bool {
        let web = self.deployment().await;
        let entries = web["metadata"]["managedFields"].as_array().expect("entries");
        web["metadata"]["labels"]["tutti.dev/managed-by"] == "main"
            && entries.iter().any(|entry| entry["manager"] == "tutti-main")
    }

    /// Scales the Deployment; nothing reverts it.
    async fn scale_and_check(&self, manager: &str, replicas: i64) {
        self.fleet.clear_requests();
        scale_as(self.fleet.cluster("bj1"), manager, "web", replicas).await;
        wait_for_repairs().await;
        assert_eq!(self.fleet.request_counts(), ["1 patch deployments.apps"], "the own one of {manager}");
        assert_eq!(self.deployment().await["spec"]["replicas"], replicas, "{manager}");
    }

    /// A commit with another image and another number of replicas.
    async fn release_and_check(&self, image: &str, replicas: u32) {
        self.fleet.clear_requests();
        let newer = manifests(self.autoscaler, image, replicas);
        let revision = self.fleet.push(&self.running, image, &[(MANIFESTS, Some(&newer))]).await;
        self.running.until_converged(&revision).await;
        wait_for_repairs().await;
        assert_eq!(self.fleet.request_counts(), ["1 apply deployments.apps"], "{image}");
        let web = self.deployment().await;
        assert_eq!(web.pointer("/spec/template/spec/containers/0/image"), Some(&json!(image)));
    }

    /// A new process does not revert the number either.
    async fn restart_and_check(self) -> Self {
        let Self { fleet, running, autoscaler } = self;
        running.stop().await;
        fleet.clear_requests();
        let running = fleet.start().await;
        running.until("what is there", |now| now.targets.iter().any(|it| it.phase.is_done())).await;
        wait_for_repairs().await;
        assert_eq!(write_requests(&fleet), Vec::<String>::new());
        Self { fleet, running, autoscaler }
    }
}

async fn check_replicas_left(autoscaler: &'static str, options: fn(&str) -> SandboxOptions, says_who: bool) {
    let scene = AutoscaledDeployment::new(autoscaler, options).await;
    assert!(scene.owns_replicas().await);
    // Before the first scale our entry has the replicas, and each apply sends the live number.
    scene.release_and_check("web:2", 3).await;
    assert_eq!(scene.deployment().await["spec"]["replicas"], 2);
    assert!(scene.owns_replicas().await);

    scene.scale_and_check("kube-controller-manager", 5).await;
    // If no manager is recorded for the scale, our entry keeps the replicas.
    assert_eq!(scene.owns_replicas().await, !says_who);
    let scene = scene.restart_and_check().await;
    scene.release_and_check("web:3", 3).await;
    assert_eq!(scene.deployment().await["spec"]["replicas"], 5);
    assert_eq!(scene.owns_replicas().await, !says_who);

    // Manual scaling is corrected by the autoscaler, not by tutti.
    scene.scale_and_check("kubectl", 7).await;
    let scene = scene.restart_and_check().await;
    scene.release_and_check("web:4", 4).await;
    assert_eq!(scene.deployment().await["spec"]["replicas"], 7);
    assert_eq!(scene.owns_replicas().await, !says_who);
}

#[tokio::test(start_paused = true)]
async fn autoscaler_in_git_keeps_its_replicas() {
    check_replicas_left(AUTOSCALER, |name| SandboxOptions::instant(name), true).await;
}

#[tokio::test(start_paused = true)]
async fn replicas_are_left_to_a_custom_autoscaler() {
    check_replicas_left(SCALED_OBJECT, |name| SandboxOptions::instant(name), true).await;
}

/// Before 1.22 the API server does not record writes of subresources: the live number is sent.
#[tokio::test(start_paused = true)]
async fn oldest_release_leaves_replicas_to_an_autoscaler() {
    check_replicas_left(SCALED_OBJECT, oldest_release, false).await;
}

/// An object can lose our label or all of `managedFields`; its replicas stay.
async fn check_unmarked_object(autoscaler: &'static str, options: fn(&str) -> SandboxOptions, drift: &str) {
    for marks in [
        json!({"labels": {"tutti.dev/managed-by": null}}),
        json!({"labels": {"tutti.dev/managed-by": null}, "annotations": {"tutti.dev/hash": null}}),
        json!({"managedFields": [{}]}),
    ] {
        let what = format!("{drift} {marks}");
        let scene = AutoscaledDeployment::with_app(
            autoscaler,
            options,
            &drift::app_with_fields(&format!("drift: {drift}")),
        )
        .await;
        scene.scale_and_check("kube-controller-manager", 10).await;
        let off = json!({"metadata": marks});
        live_objects::edit_as(scene.fleet.cluster("bj1"), "kubectl-label", ("Deployment", "web"), &off).await;
        wait_for_repairs().await;
        assert_eq!(scene.deployment().await["spec"]["replicas"], 10, "{what}");
        assert!(drift != "repair" || scene.has_our_marks().await, "{what}");
        let scene = scene.restart_and_check().await;
        let newer = manifests(autoscaler, "web:2", 2);
        let revision = scene.fleet.push(&scene.running, "web:2", &[(MANIFESTS, Some(&newer))]).await;
        scene.running.until_converged(&revision).await;
        wait_for_repairs().await;
        assert_eq!(scene.deployment().await["spec"]["replicas"], 10, "{what}");
        assert!(scene.has_our_marks().await, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn unmarked_object_keeps_replicas_of_git_autoscaler() {
    check_unmarked_object(AUTOSCALER, |name| SandboxOptions::instant(name), "repair").await;
    check_unmarked_object(SCALED_OBJECT, |name| SandboxOptions::instant(name), "repair").await;
}

#[tokio::test(start_paused = true)]
async fn unmarked_object_keeps_autoscaler_replicas_on_oldest_release() {
    check_unmarked_object(SCALED_OBJECT, oldest_release, "repair").await;
}

#[tokio::test(start_paused = true)]
async fn unmarked_object_keeps_replicas_of_foreign_autoscaler() {
    check_unmarked_object("", |name| SandboxOptions::instant(name), "repair").await;
}

/// Manual scaling is reverted.
#[tokio::test(start_paused = true)]
async fn unlabelled_object_does_not_keep_manual_replicas() {
    let scene = AutoscaledDeployment::with_app(
        "",
        |name| SandboxOptions::instant(name),
        &drift::app_with_fields("drift: ignore"),
    )
    .await;
    scene.scale_and_check("kubectl", 7).await;
    let off = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}});
    live_objects::edit_as(scene.fleet.cluster("bj1"), "kubectl-label", ("Deployment", "web"), &off).await;
    wait_for_repairs().await;
    assert_eq!(scene.deployment().await["spec"]["replicas"], 2);
}

/// The autoscaler scales between the lookup of the object and its apply.
#[tokio::test(start_paused = true)]
async fn autoscaler_write_before_apply_is_kept() {
    let scene = AutoscaledDeployment::with_app(
        "",
        |name| SandboxOptions::instant(name),
        &drift::app_with_fields("drift: repair"),
    )
    .await;
    let bj1 = scene.fleet.cluster("bj1");
    let applies = RequestMatch::any().verb("apply");
    bj1.fail_next(applies.clone(), 1, Fault::Delay(Duration::from_secs(20)));
    let newer = manifests("", "web:2", 2);
    let revision = scene.fleet.push(&scene.running, "web:2", &[(MANIFESTS, Some(&newer))]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(bj1.count_requests(&applies), 1);
    scale_as(bj1, "kube-controller-manager", "web", 10).await;
    scene.running.until_converged(&revision).await;
    wait_for_repairs().await;
    let web = scene.deployment().await;
    assert_eq!(web["spec"]["replicas"], 10);
    assert_eq!(web.pointer("/spec/template/spec/containers/0/image"), Some(&json!("web:2")));
}

/// The autoscaler scales before a repair of another field.
async fn check_write_before_repair(autoscaler: &'static str, options: fn(&str) -> SandboxOptions) {
    let scene =
        AutoscaledDeployment::with_app(autoscaler, options, &drift::app_with_fields("drift: repair")).await;
    assert!(scene.owns_replicas().await);
    scene.fleet.clear_requests();
    let bj1 = scene.fleet.cluster("bj1");
    let applies = RequestMatch::any().verb("apply");
    bj1.fail_next(applies.clone(), 1, Fault::Delay(Duration::from_secs(20)));
    let label = json!({"metadata": {"labels": {"tutti.dev/app": "another"}}});
    live_objects::edit_as(bj1, "kubectl-edit", ("Deployment", "web"), &label).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(bj1.count_requests(&applies), 1);
    scale_as(bj1, "kube-controller-manager", "web", 10).await;
    wait_for_repairs().await;
    wait_for_repairs().await;
    let expected = ["2 apply deployments.apps", "1 get deployments.apps", "2 patch deployments.apps"];
    assert_eq!(scene.fleet.request_counts(), expected, "a look, and then all that is not its");
    let web = scene.deployment().await;
    assert_eq!(web["spec"]["replicas"], 10);
    assert_eq!(web["metadata"]["labels"]["tutti.dev/app"], "default.web");
}

#[tokio::test(start_paused = true)]
async fn autoscaler_write_before_repair_is_kept() {
    check_write_before_repair("", |name| SandboxOptions::instant(name)).await;
    check_write_before_repair(AUTOSCALER, |name| SandboxOptions::instant(name)).await;
}

/// If no manager is recorded for the scale, the live number is sent.
#[tokio::test(start_paused = true)]
async fn oldest_release_keeps_autoscaler_write_before_repair() {
    check_write_before_repair(SCALED_OBJECT, oldest_release).await;
}

/// The embedded cluster's own autoscaler runs.
#[tokio::test(start_paused = true)]
async fn autoscaling_causes_no_repairs() {
    let scene = AutoscaledDeployment::new(AUTOSCALER, |name| SandboxOptions::instant(name)).await;
    for (load, image) in [("6", "web:2"), ("3", "web:3")] {
        let wish = json!({"metadata": {"annotations": {"sim.tutti.dev/replicas": load}}});
        live_objects::edit_as(
            scene.fleet.cluster("bj1"),
            "metrics",
            ("HorizontalPodAutoscaler", "web"),
            &wish,
        )
        .await;
        wait_for_repairs().await;
        let expected: i64 = load.parse().expect("a number");
        assert_eq!(scene.deployment().await["spec"]["replicas"], expected);
        scene.release_and_check(image, 2).await;
        assert_eq!(scene.deployment().await["spec"]["replicas"], expected);
    }
}
