//! Deletes: only objects that Git no longer has, and only from a complete and valid view.

use std::time::Duration;

use sandbox::{Fault, RequestMatch};
use serde_json::json;

use crate::support::fleet::{RunningController, TestFleet, deletion_causes, target, wait_for_effects};
use crate::support::live_objects::{self, delete_count, managed_names};
use crate::support::manifests::{config_map, deployment, objects_app};

pub(super) const MAP_COUNT: usize = 12;

pub(super) fn config_maps(names: impl IntoIterator<Item = String>) -> String {
    names.into_iter().map(|name| config_map("default", &name, "first")).collect::<Vec<_>>().join("---\n")
}

pub(super) fn numbered_maps(numbers: std::ops::Range<usize>) -> String {
    config_maps(numbers.map(|number| format!("map-{number}")))
}

pub(super) fn settings_fleet(files: &[(&str, &str)]) -> TestFleet {
    let app = objects_app("default", "settings");
    let mut all = vec![("apps/settings/app.yaml", app.as_str())];
    all.extend(files.iter().copied());
    TestFleet::new(&["bj1"], &all)
}

#[tokio::test(start_paused = true)]
async fn repository_errors_block_all_deletes() {
    let fleet = settings_fleet(&[("apps/settings/objects/maps.yaml", &numbered_maps(0..3))]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;

    let broken =
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: other}\nspec: {file: [x]}\n";
    let revision = fleet
        .push(
            &running,
            "One map less, and an error elsewhere",
            &[
                ("apps/settings/objects/maps.yaml", Some(&numbered_maps(0..2))),
                ("apps/other/app.yaml", Some(broken)),
            ],
        )
        .await;
    let now = running.until("a delete that waits", |now| now.deletions.len() == 1).await;
    assert_eq!(deletion_causes(&now)[0]["code"], "fleetInvalid");
    assert!(now.deletions[0].waits);
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 0, "at {}", revision.short());

    let revision = fleet.push(&running, "Without the error", &[("apps/other/app.yaml", None)]).await;
    running.until_converged(&revision).await;
    assert_eq!(
        managed_names(fleet.cluster("bj1")).await,
        ["ConfigMap default/map-0", "ConfigMap default/map-1"]
    );
}

#[tokio::test(start_paused = true)]
async fn template_errors_block_all_deletes() {
    let fleet = settings_fleet(&[("apps/settings/objects/maps.yaml", &numbered_maps(0..3))]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let app =
        objects_app("default", "settings").replace("[objects/*.yaml]", "[objects/*.yaml, objects/*.j2]");
    fleet
        .push(
            &running,
            "A template of its own",
            &[
                ("apps/settings/app.yaml", Some(&app)),
                ("apps/settings/objects/maps.yaml", Some(&numbered_maps(0..1))),
                ("apps/settings/objects/more.yaml.j2", Some("value: {{ nobody_knows }}\n")),
            ],
        )
        .await;
    running.until("an error", |now| now.has_errors()).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 0);
    assert_eq!(managed_names(fleet.cluster("bj1")).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn returning_cluster_gets_its_deletes() {
    let app = objects_app("default", "settings");
    let fleet = TestFleet::new(
        &["bj1", "gz1"],
        &[("apps/settings/app.yaml", &app), ("apps/settings/objects/maps.yaml", &numbered_maps(0..3))],
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.cluster("gz1").set_down(true);
    running.until("gz1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;

    let revision = fleet
        .push(&running, "One less", &[("apps/settings/objects/maps.yaml", Some(&numbered_maps(0..2)))])
        .await;
    wait_for_effects().await;
    fleet.cluster("gz1").set_down(false);
    running.until_converged(&revision).await;
    for sandbox in fleet.clusters.values() {
        assert_eq!(managed_names(sandbox).await, ["ConfigMap default/map-0", "ConfigMap default/map-1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn moved_manifest_keeps_its_object() {
    let other = objects_app("default", "other");
    let fleet = settings_fleet(&[
        ("apps/settings/objects/maps.yaml", &numbered_maps(0..2)),
        ("apps/other/app.yaml", &other),
        ("apps/other/objects/own.yaml", &config_maps(["own".to_owned()])),
    ]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let before =
        live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "map-1").await.expect("map-1");
    fleet.clear_requests();

    // Moved to another file of the same app: nothing happens.
    let revision = fleet
        .push(
            &running,
            "To a file of its own",
            &[
                ("apps/settings/objects/maps.yaml", Some(&numbered_maps(0..1))),
                ("apps/settings/objects/second.yaml", Some(&numbered_maps(1..2))),
            ],
        )
        .await;
    running.until_converged(&revision).await;
    assert_eq!(fleet.request_counts(), Vec::<String>::new());

    // Moved to another app: its annotations change, and the object stays the same.
    let revision = fleet
        .push(
            &running,
            "To another app",
            &[
                ("apps/settings/objects/second.yaml", None),
                ("apps/other/objects/second.yaml", Some(&numbered_maps(1..2))),
            ],
        )
        .await;
    running.until_converged(&revision).await;
    wait_for_effects().await;
    assert_eq!(fleet.request_counts(), ["1 apply configmaps"]);
    let after =
        live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "map-1").await.expect("map-1");
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["metadata"]["annotations"]["tutti.dev/app"], "default/other");
}

#[tokio::test(start_paused = true)]
async fn old_object_is_deleted_after_new_is_healthy() {
    let blue = deployment("default", "web-blue", "web-blue", "registry.example.com/web:1");
    let fleet = settings_fleet(&[("apps/settings/objects/web.yaml", &blue)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;

    let green = deployment("default", "web-green", "web-green", "registry.example.com/web:broken-2");
    fleet.push(&running, "Green for blue", &[("apps/settings/objects/web.yaml", Some(&green))]).await;
    let now = running
        .until("a broken green", |now| {
            now.targets.iter().all(|it| it.phase == tutti::report::TargetPhase::Degraded)
        })
        .await;
    let cause = &deletion_causes(&now)[0];
    assert!(cause["code"] == "waitsForHealth" && cause["because"].is_string(), "{now:?}");
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 0);

    let green = deployment("default", "web-green", "web-green", "registry.example.com/web:2");
    let revision =
        fleet.push(&running, "A green that runs", &[("apps/settings/objects/web.yaml", Some(&green))]).await;
    let now = running.until_converged(&revision).await;
    assert_eq!(target(&now, "bj1", "default/settings").pods.available, 2);
    assert_eq!(managed_names(fleet.cluster("bj1")).await, ["Deployment default/web-green"]);
}

#[tokio::test(start_paused = true)]
async fn removed_app_deletes_its_objects() {
    let fleet = settings_fleet(&[("apps/settings/objects/maps.yaml", &numbered_maps(0..3))]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet
        .push(
            &running,
            "No longer needed",
            &[("apps/settings/app.yaml", None), ("apps/settings/objects/maps.yaml", None)],
        )
        .await;
    wait_for_effects().await;
    assert_eq!(managed_names(fleet.cluster("bj1")).await, Vec::<String>::new());
    assert_eq!(delete_count(fleet.cluster("bj1")), 3);
}

#[tokio::test(start_paused = true)]
async fn object_with_keep_annotation_stays() {
    let kept = config_map("default", "kept", "first")
        .replace("name: kept,", "name: kept, annotations: {tutti.dev/prune: keep},");
    let fleet = settings_fleet(&[
        ("apps/settings/objects/kept.yaml", &kept),
        ("apps/settings/objects/maps.yaml", &numbered_maps(0..1)),
    ]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.push(&running, "Without it", &[("apps/settings/objects/kept.yaml", None)]).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 0);
    assert_eq!(managed_names(fleet.cluster("bj1")).await.len(), 2);
}

/// Lists of a kind fail while the process starts: its removed objects are deleted once it can be listed.
#[tokio::test(start_paused = true)]
async fn kind_unlisted_at_start_is_listed_again() {
    let errors = [(Fault::internal_error(), 3), (Fault::unauthorized(), 1)];
    for (fault, times) in errors {
        let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {ports: [{port: 80}]}\n";
        let fleet = settings_fleet(&[
            ("apps/settings/objects/maps.yaml", &numbered_maps(0..1)),
            ("apps/settings/objects/service.yaml", service),
        ]);
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        running.stop().await;
        fleet.repository.commit("Without the Service", &[("apps/settings/objects/service.yaml", None)]);
        let lists = RequestMatch::any().verb("list").resource("services");
        fleet.cluster("bj1").fail_next(lists, times, fault.clone());
        let _running = fleet.start().await;
        wait_for_effects().await;
        assert_eq!(managed_names(fleet.cluster("bj1")).await, ["ConfigMap default/map-0"], "{fault:?}");
    }
}

/// Removes one map from Git, and edits it in the cluster during its delete.
async fn change_during_delete(change: serde_json::Value) -> (TestFleet, RunningController) {
    let fleet = settings_fleet(&[("apps/settings/objects/maps.yaml", &numbered_maps(0..2))]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let bj1 = fleet.cluster("bj1");
    let delete = RequestMatch::any().verb("delete");
    bj1.fail_next(delete.clone(), 1, Fault::Delay(Duration::from_secs(5)));
    fleet
        .push(&running, "One less", &[("apps/settings/objects/maps.yaml", Some(&numbered_maps(0..1)))])
        .await;
    while bj1.count_requests(&delete) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    live_objects::edit_as(bj1, "kubectl-edit", ("ConfigMap", "map-1"), &change).await;
    wait_for_effects().await;
    (fleet, running)
}

#[tokio::test(start_paused = true)]
async fn object_changed_during_delete_is_read_again() {
    let (fleet, running) = change_during_delete(json!({"data": {"value": "second"}})).await;
    // One delete gets 409. The object that is then read is still ours, and is deleted with its new version.
    let expected = ["2 delete configmaps", "1 get configmaps", "1 patch configmaps"];
    let mut counted = fleet.request_counts();
    counted.sort_by_key(|line| line.split(' ').nth(1).map(ToOwned::to_owned));
    assert_eq!(counted, expected);
    assert_eq!(managed_names(fleet.cluster("bj1")).await, ["ConfigMap default/map-0"]);
    assert!(running.overview.borrow().deletions.is_empty());
}

#[tokio::test(start_paused = true)]
async fn late_keep_mark_prevents_the_delete() {
    let keep = json!({"metadata": {"annotations": {"tutti.dev/prune": "keep"}}});
    let (fleet, running) = change_during_delete(keep).await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 1);
    assert_eq!(managed_names(fleet.cluster("bj1")).await.len(), 2);
    let now = running.overview.borrow().clone();
    assert_eq!((now.deletions.len(), now.orphans.len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn object_released_before_delete_stays() {
    let nobodys = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}});
    let (fleet, _running) = change_during_delete(nobodys).await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 1);
    assert!(live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "map-1").await.is_some());
}
