//! Changes by others to applied fields: detected without requests, and reverted by one apply. Other changes are no drift.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use sandbox::{Fault, RequestMatch, Sandbox};
use serde_json::{Value, json};
use tutti::report::TargetPhase;

use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::live_objects::{self, edit_as, scale_as};
use crate::support::manifests::{cluster, config_map, deployment, objects_app};

pub const APP: &str = "apps/web/app.yaml";
pub const MANIFESTS: &str = "apps/web/objects/all.yaml";
const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: web, namespace: default}\nstringData: {password: \"one\"}\n";
const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {selector: {app: web}, \
                       ports: [{port: 80}]}\n";

pub fn manifests() -> String {
    let (web, map) = (deployment("default", "web", "web", "web:1"), config_map("default", "web", "one"));
    [&web, &map, SECRET, SERVICE].join("---\n")
}

/// One cluster that matches Git.
pub struct SingleCluster {
    pub fleet: TestFleet,
    pub running: RunningController,
}

/// The manifest of the app with additional fields.
pub fn app_with_fields(fields: &str) -> String {
    objects_app("default", "web").replace("spec: {", &format!("spec: {{{fields}, "))
}

impl SingleCluster {
    async fn with_drift(drift: &str) -> Self {
        Self::with_app_fields(&format!("drift: {drift}")).await
    }

    pub async fn with_app_fields(fields: &str) -> Self {
        let app = app_with_fields(fields);
        let fleet = TestFleet::new(&["bj1"], &[(APP, &app), (MANIFESTS, &manifests())]);
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        wait_for_repairs().await;
        fleet.clear_requests();
        Self { fleet, running }
    }

    pub fn cluster(&self) -> &Sandbox {
        self.fleet.cluster("bj1")
    }

    pub async fn live_object(&self, kind: &str) -> Value {
        live_objects::get(self.cluster(), kind, "default", "web").await.expect("it is there")
    }

    /// Requests of tutti after some time. Reads by the test are not counted, its writes are.
    pub async fn settled_request_counts(&self) -> Vec<String> {
        wait_for_repairs().await;
        self.fleet.request_counts()
    }
}

pub fn write_requests(fleet: &TestFleet) -> Vec<String> {
    let is_write = |what: &String| ![" get ", " list ", " stream "].iter().any(|verb| what.contains(verb));
    fleet.request_counts().into_iter().filter(is_write).collect()
}

pub async fn wait_for_repairs() {
    tokio::time::sleep(Duration::from_secs(20)).await;
}

/// An edit is detected and reverted by one apply, and nothing else happens.
async fn check_repaired(kind: &str, field: &str, edit: Value) {
    let scene = SingleCluster::with_drift("repair").await;
    let before = scene.live_object(kind).await;
    scene.fleet.clear_requests();
    edit_as(scene.cluster(), "kubectl-edit", (kind, "web"), &edit).await;
    let group = if kind == "Deployment" { ".apps" } else { "" };
    let resource = format!("{}s{group}", kind.to_lowercase());
    assert_eq!(
        scene.settled_request_counts().await,
        [format!("1 apply {resource}"), format!("1 patch {resource}")],
        "{edit}"
    );
    let after = scene.live_object(kind).await;
    assert_eq!(after.pointer(field), before.pointer(field), "{edit}");
    let entries = after["metadata"]["managedFields"].as_array().expect("entries");
    let ours = entries.iter().find(|entry| entry["manager"] == "tutti-main").expect("ours");
    let known = before["metadata"]["managedFields"].as_array().expect("entries");
    let known = known.iter().find(|entry| entry["manager"] == "tutti-main").expect("ours");
    assert_eq!(ours["fieldsV1"], known["fieldsV1"], "{edit}");
}

#[tokio::test(start_paused = true)]
async fn manual_edits_are_reverted() {
    check_repaired("ConfigMap", "/data", json!({"data": {"value": "two"}})).await;
    check_repaired("ConfigMap", "/data", json!({"data": {"value": null}})).await;
    check_repaired("Secret", "/data", json!({"data": {"password": "dHdv"}})).await;
    check_repaired("Service", "/spec/selector", json!({"spec": {"selector": {"app": "other"}}})).await;
    check_repaired("Deployment", "/spec/replicas", json!({"spec": {"replicas": 7}})).await;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}});
    check_repaired("Deployment", "/spec/template/spec/containers", image).await;
}

#[tokio::test(start_paused = true)]
async fn reverted_edit_returns_ownership_to_us() {
    let scene = SingleCluster::with_drift("repair").await;
    for value in ["two", "one"] {
        edit_as(scene.cluster(), "kubectl-edit", ("ConfigMap", "web"), &json!({"data": {"value": value}}))
            .await;
    }
    wait_for_repairs().await;
    let map = scene.live_object("ConfigMap").await;
    let entries = map["metadata"]["managedFields"].as_array().expect("entries");
    let ours = entries.iter().find(|entry| entry["manager"] == "tutti-main").expect("ours");
    assert_eq!(ours["fieldsV1"]["f:data"], json!({"f:value": {}}));
}

#[tokio::test(start_paused = true)]
async fn forced_apply_of_another_manager_is_reverted() {
    let scene = SingleCluster::with_drift("repair").await;
    live_objects::apply_as(scene.cluster(), "helm", &config_map("default", "web", "two")).await;
    assert_eq!(scene.settled_request_counts().await, ["2 apply configmaps"], "theirs and ours");
    assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "one");
}

#[tokio::test(start_paused = true)]
async fn manual_scaling_while_stopped_is_reverted() {
    let scene = SingleCluster::with_drift("repair").await;
    scene.running.stop().await;
    scale_as(scene.fleet.cluster("bj1"), "kubectl", "web", 7).await;
    let running = scene.fleet.start().await;
    running.until_converged(&scene.fleet.first_commit).await;
    wait_for_repairs().await;
    let web = live_objects::get(scene.fleet.cluster("bj1"), "Deployment", "default", "web")
        .await
        .expect("it is there");
    assert_eq!(web["spec"]["replicas"], 2);
}

/// Nothing may be written, so ownership is unknown: the app is not reported as matching its render.
#[tokio::test(start_paused = true)]
async fn edit_during_maintenance_is_not_reported_healthy() {
    let scene = SingleCluster::with_drift("repair").await;
    scene.running.stop().await;
    let edit = json!({"data": {"value": "two"}});
    edit_as(scene.fleet.cluster("bj1"), "kubectl-edit", ("ConfigMap", "web"), &edit).await;
    let maintaining = cluster("bj1").replace("spec: {", "spec: {state: Maintaining, ");
    scene.fleet.repository.commit("Maintenance", &[("clusters/bj1.yaml", Some(&maintaining))]);
    let running = scene.fleet.start().await;
    wait_for_repairs().await;
    let now = running.overview.borrow().clone();
    assert_eq!(target(&now, "bj1", "default/web").phase, TargetPhase::Waiting);
}

#[tokio::test(start_paused = true)]
async fn manual_scaling_is_reverted_autoscaling_is_kept() {
    let scene = SingleCluster::with_drift("repair").await;
    scale_as(scene.cluster(), "kubectl", "web", 7).await;
    wait_for_repairs().await;
    assert_eq!(scene.live_object("Deployment").await["spec"]["replicas"], 2);

    scene.fleet.clear_requests();
    scale_as(scene.cluster(), "kube-controller-manager", "web", 5).await;
    assert_eq!(scene.settled_request_counts().await, ["1 patch deployments.apps"], "the test's own");
    assert_eq!(scene.live_object("Deployment").await["spec"]["replicas"], 5);

    // A new version keeps the autoscaler's number too.
    let newer = manifests().replace("web:1", "web:2");
    let revision = scene.fleet.push(&scene.running, "Release 2", &[(MANIFESTS, Some(&newer))]).await;
    scene.running.until_converged(&revision).await;
    wait_for_repairs().await;
    let live = scene.live_object("Deployment").await;
    assert_eq!(live["spec"]["replicas"], 5);
    assert_eq!(live.pointer("/spec/template/spec/containers/0/image"), Some(&json!("web:2")));

    // Manual scaling is reverted also after an apply or a new process saw an autoscaler's number.
    scale_as(scene.cluster(), "kubectl", "web", 0).await;
    wait_for_repairs().await;
    assert_eq!(scene.live_object("Deployment").await["spec"]["replicas"], 2);
    scale_as(scene.cluster(), "kube-controller-manager", "web", 5).await;
    wait_for_repairs().await;
    let SingleCluster { fleet, running } = scene;
    running.stop().await;
    let running = fleet.start().await;
    running.until_converged(&revision).await;
    wait_for_repairs().await;
    let scene = SingleCluster { fleet, running };
    assert_eq!(scene.live_object("Deployment").await["spec"]["replicas"], 5);
    scale_as(scene.cluster(), "kubectl", "web", 0).await;
    wait_for_repairs().await;
    assert_eq!(scene.live_object("Deployment").await["spec"]["replicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn manual_scaling_after_an_autoscaler_is_reported() {
    let scene = SingleCluster::with_drift("report").await;
    scale_as(scene.cluster(), "kube-controller-manager", "web", 5).await;
    let newer = manifests().replace("web:1", "web:2");
    let revision = scene.fleet.push(&scene.running, "Release 2", &[(MANIFESTS, Some(&newer))]).await;
    scene.running.until_converged(&revision).await;
    scale_as(scene.cluster(), "kubectl", "web", 0).await;
    wait_for_repairs().await;
    let now = scene.running.overview.borrow().clone();
    let target = target(&now, "bj1", "default/web");
    assert_eq!(target.phase, TargetPhase::OutOfSync);
    assert_eq!(
        target.detail,
        "Deployment default/web: it was scaled by another client; the app only reports drift"
    );
}

/// Replicas that Git omits are not reverted.
#[tokio::test(start_paused = true)]
async fn replicas_that_git_omits_are_no_drift() {
    let scene = SingleCluster::with_drift("repair").await;
    let without = manifests().replace("replicas: 2, ", "").replace("  replicas: 2\n", "");
    assert!(!without.contains("replicas"));
    let revision = scene.fleet.push(&scene.running, "No number", &[(MANIFESTS, Some(&without))]).await;
    scene.running.until_converged(&revision).await;
    scale_as(scene.cluster(), "kube-controller-manager", "web", 5).await;
    let newer = without.replace("web:1", "web:2");
    let revision = scene.fleet.push(&scene.running, "Release 2", &[(MANIFESTS, Some(&newer))]).await;
    scene.running.until_converged(&revision).await;
    wait_for_repairs().await;
    scene.fleet.clear_requests();
    scale_as(scene.cluster(), "kubectl", "web", 7).await;
    assert_eq!(scene.settled_request_counts().await, ["1 patch deployments.apps"], "the test's own");
    assert_eq!(scene.live_object("Deployment").await["spec"]["replicas"], 7);
}

#[tokio::test(start_paused = true)]
async fn cleared_managed_fields_are_restored() {
    let scene = SingleCluster::with_drift("repair").await;
    let cleared = json!({"metadata": {"managedFields": [{}]}});
    edit_as(scene.cluster(), "anybody", ("ConfigMap", "web"), &cleared).await;
    assert_eq!(scene.settled_request_counts().await, ["1 apply configmaps", "1 patch configmaps"]);
    let map = scene.live_object("ConfigMap").await;
    assert!(map["metadata"]["managedFields"].to_string().contains("tutti-main"), "{map}");
}

#[tokio::test(start_paused = true)]
async fn removed_label_costs_one_read_and_one_apply() {
    let scene = SingleCluster::with_drift("repair").await;
    let off = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}});
    edit_as(scene.cluster(), "kubectl-label", ("ConfigMap", "web"), &off).await;
    assert_eq!(
        scene.settled_request_counts().await,
        ["1 apply configmaps", "1 get configmaps", "1 patch configmaps"]
    );
}

#[tokio::test(start_paused = true)]
async fn manually_deleted_object_is_recreated() {
    let scene = SingleCluster::with_drift("repair").await;
    let api = live_objects::api(scene.cluster(), "ConfigMap", Some("default"));
    api.delete("web", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(
        scene.settled_request_counts().await,
        ["1 apply configmaps", "1 delete configmaps", "1 get configmaps"]
    );
}

#[tokio::test(start_paused = true)]
async fn foreign_fields_are_no_drift() {
    let scene = SingleCluster::with_drift("repair").await;
    let note = json!({"metadata": {"annotations": {"example.com/note": "seen"}}});
    for kind in ["Deployment", "Service"] {
        edit_as(scene.cluster(), "operator", (kind, "web"), &note).await;
    }
    let status = json!({"status": {"conditions": [{"type": "Odd", "status": "True"}]}});
    let api = live_objects::api(scene.cluster(), "Deployment", Some("default"));
    api.patch_status("web", &PatchParams::default(), &Patch::Merge(&status)).await.expect("a status");
    assert_eq!(scene.settled_request_counts().await, ["2 patch deployments.apps", "1 patch services"]);
    // For kinds that are watched by metadata, only an apply shows the values.
    scene.fleet.clear_requests();
    edit_as(scene.cluster(), "operator", ("ConfigMap", "web"), &note).await;
    assert_eq!(scene.settled_request_counts().await, ["1 apply configmaps", "1 patch configmaps"]);
    assert_eq!(scene.live_object("ConfigMap").await["metadata"]["annotations"]["example.com/note"], "seen");
}

/// As a leader election by annotation does: ownership of the ConfigMap is checked once a minute.
#[tokio::test(start_paused = true)]
async fn constant_foreign_writes_cost_one_apply_a_minute() {
    let scene = SingleCluster::with_drift("repair").await;
    let seconds = 600;
    for turn in 0..seconds / 2 {
        let renewed = json!({"metadata": {"annotations": {"control-plane.alpha.kubernetes.io/leader": turn.to_string()}}});
        edit_as(scene.cluster(), "operator", ("ConfigMap", "web"), &renewed).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let counted = scene.fleet.request_counts();
    let applies = counted.iter().find_map(|it| it.strip_suffix(" apply configmaps")).expect("some");
    let applies: u64 = applies.parse().expect("a number");
    assert!((5..=seconds / 60 + 1).contains(&applies), "{counted:?}");
    assert_eq!(counted.len(), 2, "nothing else is asked: {counted:?}");
    // An edit of a field is found by the next check.
    edit_as(scene.cluster(), "kubectl-edit", ("ConfigMap", "web"), &json!({"data": {"value": "two"}})).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "one");
}

/// Constant writes to one object delay no other object of the app, and are part of no commit.
#[tokio::test(start_paused = true)]
async fn drift_checks_of_two_objects_are_independent() {
    let scene = SingleCluster::with_drift("repair").await;
    let note = json!({"metadata": {"annotations": {"example.com/note": "seen"}}});
    edit_as(scene.cluster(), "operator", ("ConfigMap", "web"), &note).await;
    assert_eq!(scene.settled_request_counts().await, ["1 apply configmaps", "1 patch configmaps"]);
    // The second check waits for its minute.
    scene.fleet.clear_requests();
    let again = json!({"metadata": {"annotations": {"example.com/note": "again"}}});
    edit_as(scene.cluster(), "operator", ("ConfigMap", "web"), &again).await;
    assert_eq!(scene.settled_request_counts().await, ["1 patch configmaps"]);
    scene.fleet.clear_requests();
    edit_as(scene.cluster(), "operator", ("Secret", "web"), &note).await;
    assert_eq!(scene.settled_request_counts().await, ["1 apply secrets", "1 patch secrets"]);
    scene.fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(write_requests(&scene.fleet), ["1 apply configmaps"]);
}

/// A check that a new commit interrupted is repeated at once.
#[tokio::test(start_paused = true)]
async fn drift_check_after_stopped_apply_is_immediate() {
    let maps: String =
        (0..9).map(|it| config_map("default", &format!("m{it}"), "one")).collect::<Vec<_>>().join("---\n");
    let fleet = TestFleet::new(&["bj1"], &[(APP, &app_with_fields("drift: ignore")), (MANIFESTS, &maps)]);
    let (running, bj1) = (fleet.start().await, fleet.cluster("bj1"));
    running.until_converged(&fleet.first_commit).await;
    let note = json!({"metadata": {"annotations": {"example.com/note": "seen"}}});
    for number in 0..9 {
        edit_as(bj1, "operator", ("ConfigMap", &format!("m{number}")), &note).await;
    }
    wait_for_repairs().await;
    fleet.clear_requests();
    // Eight checks run in parallel; the ninth has not started when it is stopped.
    let applies = RequestMatch::any().verb("apply");
    bj1.fail_next(applies.clone(), 8, Fault::Delay(Duration::from_secs(20)));
    fleet.push(&running, "Repair", &[(APP, Some(&app_with_fields("drift: repair")))]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(bj1.count_requests(&applies), 8);
    let labelled = cluster("bj1").replace("environment: prod", "environment: prod, tier: front");
    fleet.push(&running, "A label", &[("clusters/bj1.yaml", Some(&labelled))]).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(bj1.count_requests(&applies), 9);
}

#[tokio::test(start_paused = true)]
async fn reported_or_ignored_drift_stays() {
    for (drift, phase) in [("report", TargetPhase::OutOfSync), ("ignore", TargetPhase::Running)] {
        let scene = SingleCluster::with_drift(drift).await;
        edit_as(scene.cluster(), "kubectl-edit", ("ConfigMap", "web"), &json!({"data": {"value": "two"}}))
            .await;
        assert_eq!(scene.settled_request_counts().await, ["1 patch configmaps"], "{drift}");
        let now = scene.running.overview.borrow().clone();
        let target = target(&now, "bj1", "default/web");
        assert_eq!(target.phase, phase, "{drift}: {}", target.detail);
        if drift == "report" {
            assert_eq!(
                target.detail,
                "ConfigMap default/web: kubectl-edit set .data.value; the app only reports drift"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn changes_while_stopped_are_reverted_and_nothing_else() {
    let SingleCluster { fleet, running } = SingleCluster::with_drift("repair").await;
    running.stop().await;
    edit_as(fleet.cluster("bj1"), "kubectl-edit", ("ConfigMap", "web"), &json!({"data": {"value": "two"}}))
        .await;
    fleet.clear_requests();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    wait_for_repairs().await;
    assert_eq!(write_requests(&fleet), ["1 apply configmaps"]);
    let map = live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "web").await.expect("a map");
    assert_eq!(map["data"]["value"], "one");
    running.stop().await;
    fleet.clear_requests();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    wait_for_repairs().await;
    assert_eq!(write_requests(&fleet), Vec::<String>::new());
}

/// After a restart the last apply of an object without our label is unknown, and so is the manager of its replicas:
/// the object is read whole, once for each check while nothing may be reverted.
#[tokio::test(start_paused = true)]
async fn label_lost_before_start_costs_one_read_each() {
    let SingleCluster { fleet, running } = SingleCluster::with_drift("repair").await;
    // A foreign object causes the repeated checks.
    live_objects::create_as(fleet.cluster("bj1"), "kubectl", &config_map("default", "theirs", "one")).await;
    let more = manifests() + "---\n" + &config_map("default", "theirs", "one");
    let paused = app_with_fields("drift: repair, paused: true");
    fleet.push(&running, "Pause", &[(APP, Some(&paused)), (MANIFESTS, Some(&more))]).await;
    running.until("it is paused", |now| target(now, "bj1", "default/web").phase == TargetPhase::Paused).await;
    running.stop().await;
    let off = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}});
    edit_as(fleet.cluster("bj1"), "kubectl-label", ("Deployment", "web"), &off).await;
    let running = fleet.start().await;
    // By then the checks are five minutes apart.
    tokio::time::sleep(Duration::from_secs(1_200)).await;
    fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let counted = fleet.request_counts();
    let looks = counted.iter().find_map(|it| it.strip_suffix(" get configmaps"));
    let looks = looks.expect("somebody else's is looked for");
    assert_eq!(counted, [format!("{looks} get configmaps"), format!("{looks} get deployments.apps")]);
    let changes = [(APP, app_with_fields("drift: repair")), (MANIFESTS, manifests())];
    let changes = changes.each_ref().map(|(path, text)| (*path, Some(text.as_str())));
    let revision = fleet.push(&running, "Go on", &changes).await;
    running.until_converged(&revision).await;
    let web =
        live_objects::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("it is there");
    assert_eq!(web["metadata"]["labels"]["tutti.dev/managed-by"], "main");
}
