//! Apps that leave a cluster which this process has never read: their removal is not reported as done.

use std::time::Duration;

use tutti::controller::{RunEnding, RunUntil};
use tutti::model::Revision;

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, WAIT_LIMIT};
use crate::support::forge::GiteaStatusServer;
use crate::support::live_objects;
use crate::support::manifests::{component, config_map, objects_app};

const WEB: &str = "apps/web/app.yaml";

const SETTINGS: &str = "apps/settings/app.yaml";
const ONE_FILE: &str = "apps/settings/objects/one.yaml";
const SETTINGS_REMOVED: [(&str, Option<&str>); 2] = [(SETTINGS, None), (ONE_FILE, None)];
const README_CHANGE: [(&str, Option<&str>); 1] = [("README.md", Some("Nothing of it is rendered."))];
const PENDING_ON_GZ1: &str = "pending 1 delete wait: gz1 does not answer, deleted when it answers again";

/// An app with one object on two clusters, one of them offline.
async fn fleet_with_gz1_offline(gitea: &GiteaStatusServer) -> TestFleet {
    offline_fleet(gitea, &objects_app("default", "settings")).await
}

async fn offline_fleet(gitea: &GiteaStatusServer, settings: &str) -> TestFleet {
    let (instance, web) = (gitea.instance_manifest(), component("web", "registry.example.com/web:1"));
    let one = config_map("default", "one", "first");
    let files = [
        ("tutti.yaml", instance.as_str()),
        (WEB, web.as_str()),
        (SETTINGS, settings),
        (ONE_FILE, one.as_str()),
    ];
    let fleet = TestFleet::new(&["bj1", "gz1"], &files);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "success").await;
    running.stop().await;
    fleet.cluster("gz1").set_down(true);
    fleet
}

/// A process that has read one cluster and found the other offline.
async fn start_with_gz1_offline(fleet: &TestFleet) -> RunningController {
    let running = fleet.start().await;
    running
        .until("bj1 read and gz1 away", |now| {
            let is = |name: &str, state: &str| {
                now.clusters.iter().any(|it| it.name.as_str() == name && it.state == state && it.observed)
            };
            is("bj1", "Ready") && is("gz1", "Offline") && !now.targets.is_empty()
        })
        .await;
    running
}

/// Such a process, and the commit that removes the app and waits.
async fn start_and_remove(gitea: &GiteaStatusServer, fleet: &TestFleet) -> (RunningController, Revision) {
    let running = start_with_gz1_offline(fleet).await;
    let removal = fleet.push(&running, "No settings", &SETTINGS_REMOVED).await;
    gitea.until_status(&removal, PENDING_ON_GZ1).await;
    (running, removal)
}

/// The removal stays pending until the cluster returns.
async fn check_waits_for_gz1(gitea: &GiteaStatusServer, fleet: &TestFleet, removal: &Revision) {
    gitea.until_status(removal, PENDING_ON_GZ1).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(gitea.last_status(removal), PENDING_ON_GZ1);
    assert!(live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "one").await.is_none());
    fleet.cluster("gz1").set_down(false);
    gitea.until_status(removal, "success").await;
    assert!(live_objects::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.is_none());
    gitea.assert_no_repeated_status();
}

#[tokio::test(start_paused = true)]
async fn process_without_cluster_state_keeps_removal_pending() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet_with_gz1_offline(&gitea).await;
    let running = start_with_gz1_offline(&fleet).await;
    let removal = fleet.push(&running, "No settings", &SETTINGS_REMOVED).await;
    check_waits_for_gz1(&gitea, &fleet, &removal).await;
    assert_eq!(gitea.final_status(&removal), "success 2 objects deleted on 2 clusters");
}

#[tokio::test(start_paused = true)]
async fn removal_pushed_while_stopped_stays_pending() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet_with_gz1_offline(&gitea).await;
    let removal = fleet.repository.commit("No settings", &SETTINGS_REMOVED);
    let _running = fleet.start().await;
    check_waits_for_gz1(&gitea, &fleet, &removal).await;
    assert_eq!(gitea.final_status(&removal), "success 2 objects deleted on 2 clusters");
}

#[tokio::test(start_paused = true)]
async fn removal_stays_pending_across_restart_and_commit() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet_with_gz1_offline(&gitea).await;
    let (running, removal) = start_and_remove(&gitea, &fleet).await;
    running.stop().await;
    fleet.repository.commit("Words", &README_CHANGE);
    let _running = fleet.start().await;
    check_waits_for_gz1(&gitea, &fleet, &removal).await;
    assert_eq!(gitea.final_status(&removal), "success 1 object deleted on 1 cluster");
}

#[tokio::test(start_paused = true)]
async fn app_restored_before_cluster_returns_keeps_objects() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet_with_gz1_offline(&gitea).await;
    fleet.cluster("gz1").set_down(false);
    let before = live_objects::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.expect("one");
    fleet.cluster("gz1").set_down(true);
    let (running, removal) = start_and_remove(&gitea, &fleet).await;
    let (settings, one) = (objects_app("default", "settings"), config_map("default", "one", "first"));
    let back = fleet.push(&running, "Settings", &[(SETTINGS, Some(&settings)), (ONE_FILE, Some(&one))]).await;
    gitea.until_status(&removal, "success 1 object deleted on 1 cluster").await;
    fleet.cluster("gz1").set_down(false);
    gitea.until_status(&back, "success").await;
    let now = live_objects::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.expect("one");
    assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn removal_is_reported_on_newest_commit_of_push() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet_with_gz1_offline(&gitea).await;
    fleet.repository.commit("No settings", &SETTINGS_REMOVED);
    let words = fleet.repository.commit("Words", &README_CHANGE);
    let running = fleet.start().await;
    gitea.until_status(&words, PENDING_ON_GZ1).await;
    running.stop().await;
    let _running = fleet.start().await;
    check_waits_for_gz1(&gitea, &fleet, &words).await;
    assert_eq!(gitea.final_status(&words), "success 1 object deleted on 1 cluster");
}

#[tokio::test(start_paused = true)]
async fn reported_failure_is_not_lifted_after_restart() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet_with_gz1_offline(&gitea).await;
    fleet.cluster("gz1").set_down(false);
    let running = fleet.start().await;
    let bad = component("web", "registry.example.com/web:broken-1");
    let both = [(SETTINGS, None), (ONE_FILE, None), (WEB, Some(bad.as_str()))];
    let broken = fleet.push(&running, "No settings, and a bad image", &both).await;
    gitea.until_status(&broken, "failure").await;
    let good = component("web", "registry.example.com/web:1");
    let mended = fleet.push(&running, "A good one", &[(WEB, Some(&good))]).await;
    gitea.until_status(&mended, "success").await;
    running.stop().await;
    let before = gitea.statuses_of(&broken);
    // This process cannot know that the removed objects are gone, until the cluster returns.
    fleet.cluster("gz1").set_down(true);
    let running = start_with_gz1_offline(&fleet).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    fleet.cluster("gz1").set_down(false);
    running.until_converged(&mended).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(gitea.statuses_of(&broken), before);
}

#[tokio::test(start_paused = true)]
async fn settled_run_waits_for_the_forge_answer() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet_with_gz1_offline(&gitea).await;
    let (running, removal) = start_and_remove(&gitea, &fleet).await;
    running.stop().await;
    fleet.cluster("gz1").set_down(false);
    gitea.set_down(true);
    let running = fleet
        .start_with(&ProcessConnections::unlimited(), |it| {
            it.until = RunUntil::Settled { timeout: WAIT_LIMIT }
        })
        .await;
    while live_objects::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Only the report to the forge is left.
    tokio::time::sleep(Duration::from_secs(1)).await;
    gitea.set_down(false);
    let (ending, _) = running.until_ended().await;
    assert!(matches!(ending, RunEnding::Settled), "{ending:?}");
    assert_eq!(gitea.final_status(&removal), "success 1 object deleted on 1 cluster");
}

#[tokio::test(start_paused = true)]
async fn mistake_in_another_app_keeps_removal_pending() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet_with_gz1_offline(&gitea).await;
    let running = start_with_gz1_offline(&fleet).await;
    let mistake = fleet.push(&running, "An error", &[(WEB, Some("kind: [Component\n"))]).await;
    running.until("the error", |now| now.revision.as_ref() == Some(&mistake) && now.has_errors()).await;
    let removal = fleet.push(&running, "No settings", &SETTINGS_REMOVED).await;
    let held = "pending 2 deletes wait: nothing is deleted while the config repository has errors";
    gitea.until_status(&removal, held).await;
    fleet.cluster("gz1").set_down(false);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(gitea.last_status(&removal).starts_with("pending "), "{}", gitea.last_status(&removal));
    let web = component("web", "registry.example.com/web:1");
    fleet.push(&running, "Mended", &[(WEB, Some(&web))]).await;
    gitea.until_status(&removal, "success").await;
    assert_eq!(gitea.final_status(&removal), "success 2 objects deleted on 2 clusters");
    assert!(live_objects::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn unpruned_app_does_not_block_success() {
    let gitea = GiteaStatusServer::start().await;
    let never = objects_app("default", "settings").replace("spec: {", "spec: {prune: never, ");
    assert!(never.contains("prune: never"));
    let fleet = offline_fleet(&gitea, &never).await;
    let running = start_with_gz1_offline(&fleet).await;
    let removal = fleet.push(&running, "No settings", &SETTINGS_REMOVED).await;
    gitea.until_status(&removal, "success").await;
    assert_eq!(gitea.final_status(&removal), "success no change for this ring");
    fleet.cluster("gz1").set_down(false);
    running.until_converged(&removal).await;
    assert!(live_objects::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.is_some());
}
