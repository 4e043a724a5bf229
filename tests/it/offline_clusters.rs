//! A cluster that does not answer: the others continue, and it catches up later.

use std::time::Duration;

use kube::api::DeleteParams;
use sandbox::{Fault, RequestMatch};
use tutti::report::TargetPhase;

use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects;
use crate::support::manifests::{component, config_map, objects_app};

fn fleet() -> TestFleet {
    let (web, settings) =
        (component("web", "registry.example.com/web:1"), objects_app("default", "settings"));
    TestFleet::new(
        &["bj1", "bj2", "gz1"],
        &[
            ("apps/web/app.yaml", &web),
            ("apps/settings/app.yaml", &settings),
            ("apps/settings/objects/one.yaml", &config_map("default", "one", "first")),
        ],
    )
}

#[tokio::test(start_paused = true)]
async fn cluster_down_at_start_does_not_stop_others() {
    let fleet = fleet();
    fleet.cluster("gz1").set_down(true);
    let running = fleet.start().await;
    let now = running
        .until("two of three", |now| {
            now.targets.iter().filter(|it| it.phase == TargetPhase::Running).count() == 4
                && now.targets.iter().filter(|it| it.phase == TargetPhase::Unreachable).count() == 2
        })
        .await;
    let cluster = now.clusters.iter().find(|it| it.name.as_str() == "gz1").expect("gz1");
    assert_eq!((cluster.state, cluster.detail.as_str()), ("Offline", "connection refused"));
    assert_eq!(target(&now, "gz1", "default/web").detail, "cluster unreachable: connection refused");

    fleet.cluster("gz1").set_down(false);
    let now = running.until_converged(&fleet.first_commit).await;
    assert!(now.clusters.iter().all(|it| it.state == "Ready"));
    assert_eq!(live_objects::managed_objects(fleet.cluster("gz1")).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn returning_cluster_catches_up_without_a_push() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.cluster("gz1").set_down(true);
    running.until("gz1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;

    let newer = component("web", "registry.example.com/web:2");
    let changed = config_map("default", "one", "second");
    let revision = fleet
        .push(
            &running,
            "While it is away",
            &[("apps/web/app.yaml", Some(&newer)), ("apps/settings/objects/one.yaml", Some(&changed))],
        )
        .await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let now = running.overview.borrow().clone();
    assert_eq!(now.targets.iter().filter(|it| it.phase == TargetPhase::Running).count(), 4);
    assert_eq!(target(&now, "gz1", "default/web").phase, TargetPhase::Unreachable);
    for name in ["bj1", "bj2"] {
        let one = live_objects::get(fleet.cluster(name), "ConfigMap", "default", "one").await.expect("one");
        assert_eq!(one["data"]["value"], "second", "{name}");
    }

    fleet.clear_requests();
    fleet.cluster("gz1").set_down(false);
    // An object is deleted before any watch runs: only a full list shows that.
    let services = live_objects::api(fleet.cluster("gz1"), "Service", Some("default"));
    services.delete("web", &DeleteParams::default()).await.expect("delete");
    running.until_converged(&revision).await;
    let one = live_objects::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.expect("one");
    assert_eq!(one["data"]["value"], "second");
    assert!(live_objects::get(fleet.cluster("gz1"), "Service", "default", "web").await.is_some());
    let elsewhere = fleet.requests().into_iter().filter(|(name, _)| name != "gz1").count();
    assert_eq!(elsewhere, 0, "the others were left alone: {:?}", fleet.request_counts());
}

#[tokio::test(start_paused = true)]
async fn cluster_down_between_writes_is_finished_later() {
    let fleet = fleet();
    let running = fleet.start().await;
    let gz1 = fleet.cluster("gz1").clone();
    while gz1.count_requests(&RequestMatch::writes()) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    gz1.set_down(true);
    running
        .until("two of three", |now| {
            now.targets.iter().filter(|it| it.phase == TargetPhase::Running).count() == 4
                && now.clusters.iter().any(|it| it.state == "Offline")
        })
        .await;
    gz1.set_down(false);
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(live_objects::managed_objects(&gz1).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn cut_watches_resume_at_their_revision() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    for sandbox in fleet.clusters.values() {
        sandbox.cut_watches();
    }
    let newer = component("web", "registry.example.com/web:2");
    let revision = fleet.push(&running, "Release 2", &[("apps/web/app.yaml", Some(&newer))]).await;
    running.until_converged(&revision).await;
    assert_eq!(fleet.request_counts(), ["3 apply deployments.apps"]);
}

/// A lookup is answered after the connection was given up: no write follows.
#[tokio::test(start_paused = true)]
async fn lookup_answered_after_disconnect_causes_no_write() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let gz1 = fleet.cluster("gz1");
    let lookups = RequestMatch::any().verb("get").resource("configmaps");
    gz1.fail_next(lookups, 1, Fault::Delay(Duration::from_secs(25)));
    let probes = RequestMatch::any().verb("get").resource("/version");
    gz1.fail_next(probes, 6, Fault::unavailable());
    fleet.clear_requests();
    let added = config_map("default", "two", "first");
    fleet.push(&running, "One more", &[("apps/settings/objects/two.yaml", Some(&added))]).await;
    running.until("gz1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
    let writes = || gz1.count_requests(&RequestMatch::writes());
    let is_away = |now: &tutti::report::Overview| now.clusters.iter().any(|it| it.state == "Offline");
    while is_away(&running.overview.borrow().clone()) {
        assert_eq!(writes(), 0);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    running.until("all again", |now| now.targets.iter().all(|it| it.phase == TargetPhase::Running)).await;
    assert_eq!(writes(), 1);
}

/// Its etcd is restored from a backup: resource versions that were already seen occur again.
#[tokio::test(start_paused = true)]
async fn cluster_restored_from_backup_is_reconciled() {
    let fleet = fleet();
    let (path, two) = ("apps/settings/objects/two.yaml", config_map("default", "two", "first"));
    let running = fleet.start().await;
    let begin = fleet.push(&running, "Two", &[(path, Some(&two))]).await;
    running.until_converged(&begin).await;
    let gz1 = fleet.cluster("gz1").clone();
    let backup = gz1.backup();
    let changed = config_map("default", "one", "second");
    let revision = fleet
        .push(
            &running,
            "One changes, two goes",
            &[("apps/settings/objects/one.yaml", Some(&changed)), (path, None)],
        )
        .await;
    running.until_converged(&revision).await;
    assert!(live_objects::get(&gz1, "ConfigMap", "default", "two").await.is_none());

    gz1.set_down(true);
    running.until("gz1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
    gz1.restore(&backup);
    gz1.set_down(false);
    running.until("gz1 back", |now| now.clusters.iter().all(|it| it.state == "Ready")).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let one = live_objects::get(&gz1, "ConfigMap", "default", "one").await.expect("one");
    assert_eq!(one["data"]["value"], "second");
    assert!(live_objects::get(&gz1, "ConfigMap", "default", "two").await.is_none());
    running.until_converged(&revision).await;
    running.stop().await;
}
