//! Watches without events, while lists succeed.

use std::time::Duration;

use sandbox::{Fault, FaultPlan, FaultRule, Release, RequestMatch, SandboxOptions};
use serde_json::json;
use tutti::report::{Overview, TargetPhase};

use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::live_objects;
use crate::support::manifests::{config_map, objects_app};

fn cluster_detail(now: &Overview) -> String {
    now.clusters[0].detail.clone()
}

/// Edits a map; returns the time until it is repaired.
async fn repair_time(fleet: &TestFleet, _: &RunningController) -> Duration {
    let bj1 = fleet.cluster("bj1");
    live_objects::edit_as(bj1, "kubectl-edit", ("ConfigMap", "one"), &json!({"data": {"value": "by hand"}}))
        .await;
    let start = tokio::time::Instant::now();
    let is_mended = async || {
        let one = live_objects::get(bj1, "ConfigMap", "default", "one").await.expect("it is there");
        one["data"]["value"] == "first"
    };
    while !is_mended().await {
        assert!(
            start.elapsed() < Duration::from_secs(3600),
            "it is never seen: {:?}",
            fleet.request_counts()
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    start.elapsed()
}

async fn check_drift_found_by_lists(minor: u32, fault: Fault, words: &str) {
    let (app, map) = (objects_app("default", "settings"), config_map("default", "one", "first"));
    let options: fn(&str) -> SandboxOptions = if minor == 36 {
        |name| SandboxOptions::instant(name)
    } else {
        |name| SandboxOptions::instant(name).running(Release::new(31).expect("a release"))
    };
    let files = [("apps/settings/app.yaml", &*app), ("apps/settings/objects/one.yaml", &*map)];
    let fleet = TestFleet::with_options(&["bj1"], &files, options);
    let bj1 = fleet.cluster("bj1");
    let watches = RequestMatch::any().verb("watch").resource("configmaps");
    bj1.set_faults(&FaultPlan::new(1).rule(FaultRule::failing(watches, fault)));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let now =
        running.until("a word about it", |now| cluster_detail(now).contains("cannot be watched since")).await;
    let told = cluster_detail(&now);
    assert!(told.starts_with("v1/ConfigMap cannot be watched since 20"), "{told}");
    assert!(told.contains(words) && told.ends_with(": changes are seen by lists every 5 minutes"), "{told}");
    assert_eq!(now.clusters[0].state, "Ready");

    for _ in 0..3 {
        let took = repair_time(&fleet, &running).await;
        assert!(took <= Duration::from_secs(400), "{took:?}");
    }
    // No further lists.
    let lists = || bj1.count_requests(&RequestMatch::any().verb("list").resource("configmaps"));
    let before = lists();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!((9..=12).contains(&(lists() - before)), "{}", lists() - before);

    bj1.set_faults(&FaultPlan::new(1));
    running.until("no word about it", |now| cluster_detail(now).is_empty()).await;
    let took = repair_time(&fleet, &running).await;
    assert!(took <= Duration::from_secs(2), "{took:?}");
    let before = lists();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(lists(), before);
}

#[tokio::test(start_paused = true)]
async fn lists_find_drift_without_watch_permission() {
    check_drift_found_by_lists(31, Fault::forbidden(), "Forbidden").await;
    check_drift_found_by_lists(36, Fault::forbidden(), "Forbidden").await;
}

/// A proxy that holds back a stream until it ends has this effect.
#[tokio::test(start_paused = true)]
async fn lists_replace_a_watch_that_never_starts() {
    let hour = Duration::from_secs(3600);
    check_drift_found_by_lists(31, Fault::Delay(hour), "no answer within").await;
    check_drift_found_by_lists(36, Fault::Delay(hour), "no answer within").await;
}

/// Old state of a kind is no basis for a delete on another cluster.
#[tokio::test(start_paused = true)]
async fn kind_that_fails_to_list_is_not_healthy() {
    let pages: fn(&str) -> SandboxOptions =
        |name| SandboxOptions::instant(name).running(Release::new(31).expect("a release"));
    let (app, map) = (objects_app("default", "settings"), config_map("default", "one", "first"));
    let files = [("apps/settings/app.yaml", &*app), ("apps/settings/objects/one.yaml", &*map)];
    let fleet = TestFleet::with_options(&["bj1", "gz1"], &files, pages);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let gz1 = fleet.cluster("gz1");
    let lists = RequestMatch::any().verb("list").resource("configmaps");
    gz1.set_faults(&FaultPlan::new(1).rule(FaultRule::failing(lists, Fault::internal_error())));
    live_objects::apply_as(gz1, "somebody", &config_map("default", "theirs", "1")).await;
    gz1.compact();
    gz1.cut_watches();
    live_objects::delete(gz1, "ConfigMap", "one").await;
    let is_told = |now: &Overview| {
        let target = target(now, "gz1", "default/settings");
        target.phase == TargetPhase::Pending && target.detail.starts_with("v1/ConfigMap cannot be watched: ")
    };
    running.until("it is not called well", is_told).await;

    // The app leaves the healthy cluster.
    let app = app.replace("{files:", "{placement: {clusters: {names: [gz1]}}, files:");
    let moved = fleet.push(&running, "Only there", &[("apps/settings/app.yaml", Some(&app))]).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "one").await.is_some());
    gz1.set_faults(&FaultPlan::new(1));
    running.until_converged(&moved).await;
    assert!(live_objects::get(gz1, "ConfigMap", "default", "one").await.is_some());
    assert!(live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "one").await.is_none());
}
