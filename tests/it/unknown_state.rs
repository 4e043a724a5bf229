//! Unknown or outdated state causes no writes and no deletes.

use std::time::Duration;

use kube::api::{DeleteParams, PostParams};
use sandbox::{Fault, FaultPlan, FaultRule, RequestMatch, SandboxOptions};
use serde_json::json;
use tutti::controller::{RunEnding, RunUntil};
use tutti::plan::StepReason;
use tutti::report::TargetPhase;

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::live_objects;
use crate::support::manifests::{
    INSTANCE, cluster, config_map, definition, deployment, namespace, objects_app,
};

const SERVICE: &str =
    "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {ports: [{port: 80}]}\n";
const APP: &str = "apps/web/app.yaml";
const MAPS_FILE: &str = "apps/web/objects/maps.yaml";
const OTHERS_FILE: &str = "apps/web/objects/others.yaml";

fn config_maps(names: &[&str], value: &str) -> String {
    names.iter().map(|name| config_map("default", name, value)).collect::<Vec<_>>().join("---\n")
}

/// Caps count all managed objects, so nothing is deleted while one kind is unknown.
#[tokio::test(start_paused = true)]
async fn unlisted_kind_blocks_all_deletes() {
    let (app, all) = (objects_app("default", "web"), config_maps(&["one", "two"], "first"));
    let fleet = TestFleet::new(&["bj1"], &[(APP, &app), (MAPS_FILE, &all), (OTHERS_FILE, SERVICE)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.stop().await;
    let fewer = config_maps(&["one"], "first");
    fleet.repository.commit("Without two", &[(MAPS_FILE, Some(&fewer)), (OTHERS_FILE, None)]);
    let bj1 = fleet.cluster("bj1");
    let lists = RequestMatch::any().verb("list").resource("services");
    bj1.fail_next(lists.clone(), 30, Fault::internal_error());
    let running = fleet.start().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(bj1.count_requests(&lists) < 30, "it fails still");
    let deletes = RequestMatch::any().verb("delete");
    assert_eq!(bj1.count_requests(&deletes), 0);
    let now = running.overview.borrow().clone();
    assert!(now.clusters[0].detail.contains("v1/Service cannot be listed"), "{}", now.clusters[0].detail);

    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(bj1.count_requests(&deletes), 2, "both go as soon as it is known");
}

/// A missing permission or a failing conversion webhook: the kind does not become readable by itself.
#[tokio::test(start_paused = true)]
async fn cluster_that_hides_a_kind_keeps_its_objects() {
    let (app, all) = (objects_app("default", "web"), config_maps(&["one", "two"], "first"));
    // With health checks nothing is deleted anywhere before bj1 is healthy.
    let app = app.replace("spec: {", "spec: {prune: always, ");
    let fleet = TestFleet::new(&["bj1", "gz1"], &[(APP, &app), (MAPS_FILE, &all), (OTHERS_FILE, SERVICE)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.stop().await;
    let (bj1, gz1) = (fleet.cluster("bj1"), fleet.cluster("gz1"));
    bj1.fail_next(RequestMatch::any().resource("services"), usize::MAX, Fault::internal_error());
    let fewer = config_maps(&["one"], "first");
    let revision = fleet.repository.commit("Without two", &[(MAPS_FILE, Some(&fewer))]);
    let running = fleet.start().await;
    let deletes = RequestMatch::any().verb("delete");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let now = running.overview.borrow().clone();
    assert_eq!(now.revision, Some(revision));
    assert_eq!(gz1.count_requests(&deletes), 0, "it may be a server that starts");
    let of_gz1: Vec<_> = now.deletions.iter().filter(|it| it.cluster.as_str() == "gz1").collect();
    let [waiting] = of_gz1.as_slice() else { panic!("{of_gz1:?}") };
    let cause = StepReason::WaitsForReading { on: "bj1".into() };
    assert!(waiting.waits && waiting.cause == Some(cause), "{waiting:?}");

    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(gz1.count_requests(&deletes), 1);
    assert_eq!(bj1.count_requests(&deletes), 0, "what is there is not known");
}

/// A foreign definition is deleted while the run waits for pods. An API must stay missing for several seconds before it
/// counts as removed, so nothing is deleted until then. A run that ended earlier would leave the objects and exit with 0.
#[tokio::test(start_paused = true)]
async fn run_to_the_end_waits_for_missing_kind() {
    let slow = |name: &str| SandboxOptions {
        pod_start: (Duration::from_secs(1), Duration::from_secs(1)),
        ..SandboxOptions::instant(name)
    };
    let (app, all) = (objects_app("default", "web"), config_maps(&["one", "two"], "first"));
    let workload = |image: &str| deployment("default", "web", "web", image);
    let (first, second) = (workload("shop/web:1"), workload("shop/web:2"));
    let files: [(&str, &str); 3] = [(APP, &app), (MAPS_FILE, &all), (OTHERS_FILE, &first)];
    let fleet = TestFleet::with_options(&["bj1"], &files, slow);
    let bj1 = fleet.cluster("bj1");
    live_objects::apply_as(bj1, "admin", &definition("example.com", "v1", "Menu")).await;
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.stop().await;

    let fewer = config_maps(&["one"], "first");
    let revision =
        fleet.repository.commit("Without two", &[(MAPS_FILE, Some(&fewer)), (OTHERS_FILE, Some(&second))]);
    let timeout = Duration::from_secs(60);
    let running = fleet
        .start_with(&ProcessConnections::unlimited(), |it| it.until = RunUntil::Settled { timeout })
        .await;
    running.until("under way", |now| now.targets.iter().any(|it| it.phase == TargetPhase::Progressing)).await;
    let definitions = live_objects::api(bj1, "CustomResourceDefinition", None);
    definitions.delete("menus.example.com", &DeleteParams::default()).await.expect("it is there");
    let (ending, overview) = running.until_ended().await;
    assert!(matches!(ending, RunEnding::Settled), "{ending:?}");
    assert_eq!((overview.revision.as_ref(), overview.deletions.len()), (Some(&revision), 0));
    assert_eq!(live_objects::get(bj1, "ConfigMap", "default", "two").await, None);
}

/// A hanging webhook would have this effect.
#[tokio::test(start_paused = true)]
async fn slow_deletes_on_one_cluster_delay_no_other() {
    let names: Vec<String> = (0..40).map(|number| format!("map-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let instance = INSTANCE.replace("{}", "{caps: {deletes: 100, deletePercent: 100}}");
    let (app, all) = (objects_app("default", "web"), config_maps(&names, "first"));
    let fleet = TestFleet::new(&["bj1", "gz1"], &[("tutti.yaml", &instance), (APP, &app), (MAPS_FILE, &all)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let deletes = RequestMatch::any().verb("delete");
    let (bj1, gz1) = (fleet.cluster("bj1"), fleet.cluster("gz1"));
    bj1.fail_next(deletes.clone(), usize::MAX, Fault::Delay(Duration::from_secs(20)));
    let one = config_maps(&["map-0"], "first");
    fleet.push(&running, "One", &[(MAPS_FILE, Some(&one))]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((bj1.count_requests(&deletes), gz1.count_requests(&deletes)), (8, 39));
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(bj1.count_requests(&deletes), 39);
}

/// A commit that ends maintenance does not write the changes that were held back by it.
#[tokio::test(start_paused = true)]
async fn commit_that_ends_maintenance_writes_only_its_content() {
    let (app, first) = (objects_app("default", "web"), config_maps(&["one", "two"], "first"));
    let fleet = TestFleet::new(&["bj1"], &[(APP, &app), (MAPS_FILE, &first)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let (path, ready) = ("clusters/bj1.yaml", cluster("bj1"));
    let maintaining = ready.replace("spec: {", "spec: {state: Maintaining, ");
    let (second, third) = (config_maps(&["one", "two"], "second"), config_maps(&["one", "two"], "third"));
    fleet.push(&running, "Maintenance", &[(path, Some(&maintaining)), (MAPS_FILE, Some(&second))]).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let now = running.overview.borrow().clone();
    let held = target(&now, "bj1", "default/web");
    assert!(held.phase == TargetPhase::Waiting && held.plan.is_some(), "{:?} {}", held.phase, held.detail);
    fleet.clear_requests();
    let revision = fleet.push(&running, "Go on", &[(path, Some(&ready)), (MAPS_FILE, Some(&third))]).await;
    running.until_converged(&revision).await;
    assert_eq!(fleet.request_counts(), ["2 apply configmaps"], "the second version is never written");
}

/// The same object of another instance.
fn foreign_instance_map(value: &str) -> String {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "one", "namespace": "default",
            "labels": {"tutti.dev/managed-by": "other", "tutti.dev/app": "default.web"},
            "annotations": {"tutti.dev/app": "default/web", "tutti.dev/origin": "/ConfigMap/default/one",
                "tutti.dev/hash": "sha256:00", "tutti.dev/revision": "0123456"},
        },
        "data": {"value": value},
    });
    map.to_string()
}

/// The object is refused and not changed.
async fn check_foreign_map_untouched(
    fleet: &TestFleet,
    running: &RunningController,
    theirs: &serde_json::Value,
) {
    let seen =
        running.until("refused", |now| now.targets.iter().any(|it| it.phase == TargetPhase::Refused)).await;
    let detail = &target(&seen, "bj1", "default/web").detail;
    assert!(detail.contains("tutti-other") || detail.contains("instance other"), "{detail}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    let after = live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "one").await.expect("a map");
    assert_eq!(after["metadata"]["resourceVersion"], theirs["metadata"]["resourceVersion"], "untouched");
}

/// Another instance creates the object between our lookup and our apply.
async fn check_foreign_create_wins(app: &str) {
    let first = config_maps(&["one"], "first");
    let fleet = TestFleet::new(&["bj1"], &[(APP, app), (MAPS_FILE, &first)]);
    let bj1 = fleet.cluster("bj1");
    let applies = RequestMatch::writes().resource("configmaps");
    bj1.fail_next(applies.clone(), 1, Fault::Delay(Duration::from_secs(10)));
    let running = fleet.start().await;
    while bj1.count_requests(&applies) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let theirs = live_objects::apply_as(bj1, "tutti-other", &foreign_instance_map("first")).await;
    check_foreign_map_untouched(&fleet, &running, &theirs).await;
}

#[tokio::test(start_paused = true)]
async fn object_created_by_another_instance_is_not_adopted() {
    check_foreign_create_wins(&objects_app("default", "web")).await;
}

/// Force takes over fields, not objects.
#[tokio::test(start_paused = true)]
async fn force_does_not_take_newly_created_foreign_object() {
    check_foreign_create_wins(&objects_app("default", "web").replace("spec: {", "spec: {force: true, "))
        .await;
}

#[tokio::test(start_paused = true)]
async fn force_does_not_take_foreign_replacement_object() {
    let app = objects_app("default", "web").replace("spec: {", "spec: {force: true, ");
    let (first, second) = (config_maps(&["one"], "first"), config_maps(&["one"], "second"));
    let fleet = TestFleet::new(&["bj1"], &[(APP, &app), (MAPS_FILE, &first)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let bj1 = fleet.cluster("bj1");
    let applies = RequestMatch::writes().resource("configmaps");
    fleet.clear_requests();
    bj1.fail_next(applies.clone(), 1, Fault::Delay(Duration::from_secs(10)));
    fleet.push(&running, "Second", &[(MAPS_FILE, Some(&second))]).await;
    while bj1.count_requests(&applies) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    live_objects::delete(bj1, "ConfigMap", "one").await;
    let theirs = live_objects::apply_as(bj1, "tutti-other", &foreign_instance_map("theirs")).await;
    check_foreign_map_untouched(&fleet, &running, &theirs).await;
}

/// A namespace that is not rendered has no label of ours: no watch event reports its creation.
#[tokio::test(start_paused = true)]
async fn missing_namespace_is_retried_with_few_requests() {
    let map = config_map("later", "web", "first");
    let fleet = TestFleet::new(&["bj1"], &[(APP, &objects_app("default", "web")), (MAPS_FILE, &map)]);
    let bj1 = fleet.cluster("bj1");
    let running = fleet.start().await;
    let applies = RequestMatch::writes().resource("configmaps");
    tokio::time::sleep(Duration::from_secs(1200)).await;
    let tries = bj1.count_requests(&applies);
    assert!((3..=8).contains(&tries), "{tries} in 20 minutes");
    let now = running.overview.borrow().clone();
    let missing = target(&now, "bj1", "default/web");
    assert!(missing.detail.contains("later") && missing.detail.contains("not found"), "{}", missing.detail);

    let later: serde_json::Value = serde_yaml::from_str(&namespace("later")).expect("YAML");
    let later = serde_json::from_value(later).expect("a namespace");
    live_objects::api(bj1, "Namespace", None).create(&PostParams::default(), &later).await.expect("created");
    tokio::time::sleep(Duration::from_secs(360)).await;
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(bj1.count_requests(&applies), tries + 1, "the next try");
}

/// The delete event arrives late, and Git desires the object again meanwhile.
#[tokio::test(start_paused = true)]
async fn deleted_object_is_unhealthy_until_its_watch_event() {
    let (app, both, one) = (
        objects_app("default", "web"),
        config_maps(&["one", "two"], "first"),
        config_maps(&["one"], "first"),
    );
    let fleet = TestFleet::new(&["bj1"], &[(APP, &app), (MAPS_FILE, &both)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let bj1 = fleet.cluster("bj1");
    bj1.fail_next(RequestMatch::any().verb("watch").resource("configmaps"), 3, Fault::internal_error());
    bj1.cut_watches();
    fleet.push(&running, "Without two", &[(MAPS_FILE, Some(&one))]).await;
    let deletes = RequestMatch::any().verb("delete");
    while bj1.count_requests(&deletes) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let back = fleet.push(&running, "With two again", &[(MAPS_FILE, Some(&both))]).await;
    running.until("the commit", |now| now.revision.as_ref() == Some(&back)).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(live_objects::get(bj1, "ConfigMap", "default", "two").await.is_none(), "it is gone");
    let now = running.overview.borrow().clone();
    assert_ne!(target(&now, "bj1", "default/web").phase, TargetPhase::Running);

    running.until_converged(&back).await;
    assert!(live_objects::get(bj1, "ConfigMap", "default", "two").await.is_some(), "it is back");
}

/// The apply's response arrives after the delete event, which is not repeated.
#[tokio::test(start_paused = true)]
async fn object_deleted_during_its_apply_is_created_again() {
    let (app, map) = (objects_app("default", "web"), config_maps(&["one"], "first"));
    let fleet = TestFleet::new(&["bj1"], &[(APP, &app), (MAPS_FILE, &map), (OTHERS_FILE, SERVICE)]);
    let bj1 = fleet.cluster("bj1");
    let late = RequestMatch::writes().resource("services");
    bj1.fail_next(late.clone(), 1, Fault::Delay(Duration::from_secs(10)));
    let running = fleet.start().await;
    while bj1.count_requests(&late) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let maps = live_objects::api(bj1, "ConfigMap", Some("default"));
    maps.delete("one", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(20)).await;
    running.until_converged(&fleet.first_commit).await;
    assert!(live_objects::get(bj1, "ConfigMap", "default", "one").await.is_some(), "it is back");
    let applies = RequestMatch::any().verb("apply").resource("configmaps");
    assert_eq!(bj1.count_requests(&applies), 2, "once at first, once again");
}

/// A kind may depend on a hanging webhook or an aggregated API server.
#[tokio::test(start_paused = true)]
async fn unresponsive_kind_keeps_no_cluster_offline() {
    let (app, map) = (objects_app("default", "settings"), config_map("default", "one", "first"));
    let files = [("apps/settings/app.yaml", &*app), ("apps/settings/objects/one.yaml", &*map)];
    let fleet = TestFleet::new(&["bj1"], &files);
    let bj1 = fleet.cluster("bj1");
    let leases = RequestMatch::any().verb("list").resource("leases.coordination.k8s.io");
    let hangs = FaultRule::failing(leases, Fault::Delay(Duration::from_secs(3_600)));
    bj1.set_faults(&FaultPlan::new(1).rule(hangs));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let detail = running.overview.borrow().clusters[0].detail.clone();
    assert_eq!(detail, "coordination.k8s.io/v1/Lease cannot be listed: nothing is deleted");
    // The kind stays unavailable; other objects of the cluster are not affected.
    let map = config_map("default", "one", "second");
    let change = [("apps/settings/objects/one.yaml", Some(&*map))];
    let revision = fleet.push(&running, "A change", &change).await;
    running.until_converged(&revision).await;
    tokio::time::sleep(Duration::from_secs(1_200)).await;
    assert_eq!(running.overview.borrow().clusters[0].state, "Ready");
    bj1.set_faults(&FaultPlan::new(1));
    running.until("all is listed", |now| now.clusters[0].detail.is_empty()).await;
}
