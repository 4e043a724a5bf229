//! Apps that leave a cluster of which this process has never read anything: nobody says that they are gone.

use std::time::Duration;

use tutti::controller::{RunEnding, RunUntil};
use tutti::model::Revision;

use crate::support::fleet::{Fleet, PATIENCE, Running};
use crate::support::forge::Gitea;
use crate::support::live;
use crate::support::manifests::{component, config_map, objects};
use crate::support::wires::Wires;

const WEB: &str = "apps/web/app.yaml";

const SETTINGS: &str = "apps/settings/app.yaml";
const ONE: &str = "apps/settings/objects/one.yaml";
const NO_SETTINGS: [(&str, Option<&str>); 2] = [(SETTINGS, None), (ONE, None)];
const WORDS: [(&str, Option<&str>); 1] = [("README.md", Some("Nothing of it is rendered."))];
const LEFT_ON_GZ1: &str = "pending 1 delete wait: gz1 does not answer, deleted when it answers again";

/// An app of one object on two clusters, of which one does not answer any more.
async fn with_one_cluster_away(gitea: &Gitea) -> Fleet {
    away(gitea, &objects("default", "settings")).await
}

async fn away(gitea: &Gitea, settings: &str) -> Fleet {
    let (instance, web) = (gitea.instance(), component("web", "registry.example.com/web:1"));
    let one = config_map("default", "one", "first");
    let files =
        [("tutti.yaml", instance.as_str()), (WEB, web.as_str()), (SETTINGS, settings), (ONE, one.as_str())];
    let fleet = Fleet::new(&["bj1", "gz1"], &files);
    let running = fleet.start().await;
    gitea.until(&fleet.begin, "success").await;
    running.stop().await;
    fleet.cluster("gz1").set_down(true);
    fleet
}

/// A process that has read the one cluster, and given up on the other.
async fn started(fleet: &Fleet) -> Running {
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

/// Such a process, and the commit that takes the app away, which waits.
async fn removed(gitea: &Gitea, fleet: &Fleet) -> (Running, Revision) {
    let running = started(fleet).await;
    let removal = fleet.push(&running, "No settings", &NO_SETTINGS).await;
    gitea.until(&removal, LEFT_ON_GZ1).await;
    (running, removal)
}

/// It stays as it is until the cluster is back.
async fn check_waits_for_gz1(gitea: &Gitea, fleet: &Fleet, removal: &Revision) {
    gitea.until(removal, LEFT_ON_GZ1).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(gitea.last(removal), LEFT_ON_GZ1);
    assert!(live::get(fleet.cluster("bj1"), "ConfigMap", "default", "one").await.is_none());
    fleet.cluster("gz1").set_down(false);
    gitea.until(removal, "success").await;
    assert!(live::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.is_none());
    gitea.assert_nothing_repeated();
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_from_a_cluster_that_is_away_is_not_called_done_by_a_process_that_never_saw_it() {
    let gitea = Gitea::start().await;
    let fleet = with_one_cluster_away(&gitea).await;
    let running = started(&fleet).await;
    let removal = fleet.push(&running, "No settings", &NO_SETTINGS).await;
    check_waits_for_gz1(&gitea, &fleet, &removal).await;
    assert_eq!(gitea.verdict(&removal), "success 2 objects deleted on 2 clusters");
}

#[tokio::test(start_paused = true)]
async fn nor_where_it_was_taken_while_no_process_ran() {
    let gitea = Gitea::start().await;
    let fleet = with_one_cluster_away(&gitea).await;
    let removal = fleet.repository.commit("No settings", &NO_SETTINGS);
    let _running = fleet.start().await;
    check_waits_for_gz1(&gitea, &fleet, &removal).await;
    assert_eq!(gitea.verdict(&removal), "success 2 objects deleted on 2 clusters");
}

#[tokio::test(start_paused = true)]
async fn nor_by_the_process_after_the_one_that_knew_and_after_another_commit() {
    let gitea = Gitea::start().await;
    let fleet = with_one_cluster_away(&gitea).await;
    let (running, removal) = removed(&gitea, &fleet).await;
    running.stop().await;
    fleet.repository.commit("Words", &WORDS);
    let _running = fleet.start().await;
    check_waits_for_gz1(&gitea, &fleet, &removal).await;
    assert_eq!(gitea.verdict(&removal), "success 1 object deleted on 1 cluster");
}

#[tokio::test(start_paused = true)]
async fn what_comes_back_to_a_cluster_that_is_away_was_never_taken_from_it() {
    let gitea = Gitea::start().await;
    let fleet = with_one_cluster_away(&gitea).await;
    fleet.cluster("gz1").set_down(false);
    let before = live::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.expect("one");
    fleet.cluster("gz1").set_down(true);
    let (running, removal) = removed(&gitea, &fleet).await;
    let (settings, one) = (objects("default", "settings"), config_map("default", "one", "first"));
    let back = fleet.push(&running, "Settings", &[(SETTINGS, Some(&settings)), (ONE, Some(&one))]).await;
    gitea.until(&removal, "success 1 object deleted on 1 cluster").await;
    fleet.cluster("gz1").set_down(false);
    gitea.until(&back, "success").await;
    let now = live::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.expect("one");
    assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn what_came_in_one_push_with_a_newer_commit_is_told_on_that() {
    let gitea = Gitea::start().await;
    let fleet = with_one_cluster_away(&gitea).await;
    fleet.repository.commit("No settings", &NO_SETTINGS);
    let words = fleet.repository.commit("Words", &WORDS);
    let running = fleet.start().await;
    gitea.until(&words, LEFT_ON_GZ1).await;
    running.stop().await;
    let _running = fleet.start().await;
    check_waits_for_gz1(&gitea, &fleet, &words).await;
    assert_eq!(gitea.verdict(&words), "success 1 object deleted on 1 cluster");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_an_earlier_process_told_is_not_taken_back() {
    let gitea = Gitea::start().await;
    let fleet = with_one_cluster_away(&gitea).await;
    fleet.cluster("gz1").set_down(false);
    let running = fleet.start().await;
    let bad = component("web", "registry.example.com/web:broken-1");
    let both = [(SETTINGS, None), (ONE, None), (WEB, Some(bad.as_str()))];
    let broken = fleet.push(&running, "No settings, and a bad image", &both).await;
    gitea.until(&broken, "failure").await;
    let good = component("web", "registry.example.com/web:1");
    let mended = fleet.push(&running, "A good one", &[(WEB, Some(&good))]).await;
    gitea.until(&mended, "success").await;
    running.stop().await;
    let before = gitea.said(&broken);
    // This process cannot know that what the commit took away has gone, and then it can.
    fleet.cluster("gz1").set_down(true);
    let running = started(&fleet).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    fleet.cluster("gz1").set_down(false);
    running.converged(&mended).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(gitea.said(&broken), before);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_before_the_forge_answers_says_what_it_knows() {
    let gitea = Gitea::start().await;
    let fleet = with_one_cluster_away(&gitea).await;
    let (running, removal) = removed(&gitea, &fleet).await;
    running.stop().await;
    fleet.cluster("gz1").set_down(false);
    gitea.set_down(true);
    let running =
        fleet.start_with(&Wires::lasting(), |it| it.until = RunUntil::Settled { timeout: PATIENCE }).await;
    while live::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // It has nothing left to do but to tell the forge.
    tokio::time::sleep(Duration::from_secs(1)).await;
    gitea.set_down(false);
    let (ending, _) = running.ended().await;
    assert!(matches!(ending, RunEnding::Settled), "{ending:?}");
    assert_eq!(gitea.verdict(&removal), "success 1 object deleted on 1 cluster");
}

#[tokio::test(start_paused = true)]
async fn a_mistake_elsewhere_ends_nothing() {
    let gitea = Gitea::start().await;
    let fleet = with_one_cluster_away(&gitea).await;
    let running = started(&fleet).await;
    let mistake = fleet.push(&running, "A mistake", &[(WEB, Some("kind: [Component\n"))]).await;
    running.until("the mistake", |now| now.revision.as_ref() == Some(&mistake) && now.has_errors()).await;
    let removal = fleet.push(&running, "No settings", &NO_SETTINGS).await;
    let held = "pending 2 deletes wait: nothing is deleted while the config repository has errors";
    gitea.until(&removal, held).await;
    fleet.cluster("gz1").set_down(false);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(gitea.last(&removal).starts_with("pending "), "{}", gitea.last(&removal));
    let web = component("web", "registry.example.com/web:1");
    fleet.push(&running, "Mended", &[(WEB, Some(&web))]).await;
    gitea.until(&removal, "success").await;
    assert_eq!(gitea.verdict(&removal), "success 2 objects deleted on 2 clusters");
    assert!(live::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_is_never_pruned_holds_up_nothing() {
    let gitea = Gitea::start().await;
    let never = objects("default", "settings").replace("spec: {", "spec: {prune: never, ");
    assert!(never.contains("prune: never"));
    let fleet = away(&gitea, &never).await;
    let running = started(&fleet).await;
    let removal = fleet.push(&running, "No settings", &NO_SETTINGS).await;
    gitea.until(&removal, "success").await;
    assert_eq!(gitea.verdict(&removal), "success no change for this ring");
    fleet.cluster("gz1").set_down(false);
    running.converged(&removal).await;
    assert!(live::get(fleet.cluster("gz1"), "ConfigMap", "default", "one").await.is_some());
}
