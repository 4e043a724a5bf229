//! A Cluster file is deleted without `state: Removed`: its objects stay, and a process that saw it reports that.

use std::collections::BTreeMap;
use std::time::Duration;

use sandbox::{Fault, RequestMatch};
use serde_json::Value;
use tutti::controller::{RunEnding, RunUntil};
use tutti::model::Revision;
use tutti::report::Overview;

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, set_observe_mode};
use crate::support::forge::GiteaStatusServer;
use crate::support::live_objects;
use crate::support::log::CapturedLog;
use crate::support::manifests::{self, RINGS, config_map, objects_app};
use crate::support::program;
use crate::support::repository::TestRepository;

const GZ1_FILE: &str = "clusters/gz1.yaml";
const GZ1_DELETED: [(&str, Option<&str>); 1] = [(GZ1_FILE, None)];
const README_CHANGE: [(&str, Option<&str>); 1] = [("README.md", Some("Words.\n"))];

fn fleet_with(more: &[(&str, &str)]) -> TestFleet {
    let (app, one) = (objects_app("default", "settings"), config_map("default", "one", "first"));
    let files = [("apps/settings/app.yaml", app.as_str()), ("apps/settings/objects/one.yaml", one.as_str())];
    TestFleet::new(&["bj1", "gz1"], &files.iter().chain(more).copied().collect::<Vec<_>>())
}

/// Two clusters with an app on both.
async fn converged_fleet(more: &[(&str, &str)]) -> (TestFleet, RunningController) {
    let fleet = fleet_with(more);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    (fleet, running)
}

fn removed_cluster() -> String {
    manifests::cluster("gz1").replace("spec: {", "spec: {state: Removed, ")
}

fn cluster_states(now: &Overview) -> Vec<String> {
    now.clusters.iter().map(|it| format!("{} {}", it.name, it.state)).collect()
}

fn gz1_detail(now: &Overview) -> &str {
    &now.clusters.iter().find(|it| it.name.as_str() == "gz1").expect("gz1").detail
}

fn deleted_file_detail(revision: &Revision) -> String {
    format!("{} removed its file; its objects stay", revision.short())
}

/// A process that reads once, as `get` and `plan` do. Returns its overview.
async fn observe_once(fleet: &TestFleet) -> Overview {
    let look = |settings: &mut tutti::controller::ControllerSettings| {
        set_observe_mode(settings);
        settings.until = RunUntil::Settled { timeout: Duration::from_secs(60) };
        settings.posts_statuses = false;
    };
    let (ending, now) = fleet.start_with(&ProcessConnections::unlimited(), look).await.until_ended().await;
    assert!(matches!(ending, RunEnding::Settled), "{ending:?}");
    Overview::clone(&now)
}

/// Asserts that our objects on gz1 are unchanged and that it got no requests.
async fn check_gz1_untouched(fleet: &TestFleet, before: &BTreeMap<String, Value>) {
    let asked: Vec<_> = fleet.requests().into_iter().filter(|(name, _)| name == "gz1").collect();
    assert!(asked.is_empty(), "{asked:?}");
    assert_eq!(live_objects::managed_objects(fleet.cluster("gz1")).await, *before);
}

#[tokio::test(start_paused = true)]
async fn deleted_file_is_reported_while_running() {
    let log = CapturedLog::capture();
    let (fleet, running) = converged_fleet(&[]).await;
    let before = live_objects::managed_objects(fleet.cluster("gz1")).await;
    assert_eq!(before.len(), 1);
    fleet.clear_requests();
    let gone = fleet.push(&running, "Without gz1", &GZ1_DELETED).await;
    let now = running.until_converged(&gone).await;
    assert_eq!(cluster_states(&now), ["bj1 Ready", "gz1 Dropped"]);
    assert_eq!(gz1_detail(&now), deleted_file_detail(&gone));
    // Later commits do not change the report.
    let words = fleet.push(&running, "Words", &README_CHANGE).await;
    let now = running.until_converged(&words).await;
    assert_eq!(
        (cluster_states(&now), gz1_detail(&now)),
        (vec!["bj1 Ready".into(), "gz1 Dropped".into()], &*deleted_file_detail(&gone))
    );
    tokio::time::sleep(Duration::from_secs(300)).await;
    check_gz1_untouched(&fleet, &before).await;
    assert_eq!(log.count(&deleted_file_detail(&gone)), 1, "{}", log.text());
    running.stop().await;
    fleet.clear_requests();
    assert_eq!(
        cluster_states(&observe_once(&fleet).await),
        ["bj1 Ready"],
        "another process does not know of it"
    );
    check_gz1_untouched(&fleet, &before).await;
}

#[tokio::test(start_paused = true)]
async fn file_deleted_while_stopped_changes_nothing() {
    let (fleet, running) = converged_fleet(&[]).await;
    running.stop().await;
    let before = live_objects::managed_objects(fleet.cluster("gz1")).await;
    fleet.repository.commit("Without gz1", &GZ1_DELETED);
    fleet.clear_requests();
    assert_eq!(cluster_states(&observe_once(&fleet).await), ["bj1 Ready"]);
    check_gz1_untouched(&fleet, &before).await;

    // The deletion was a mistake: the objects exist, so nothing is written.
    let back = fleet.repository.commit("Back", &[(GZ1_FILE, Some(&manifests::cluster("gz1")))]);
    let running = fleet.start().await;
    let now = running.until_converged(&back).await;
    assert_eq!(cluster_states(&now), ["bj1 Ready", "gz1 Ready"]);
    assert!(fleet.requests().iter().all(|(_, it)| !it.is_write()), "{:?}", fleet.requests());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn moved_cluster_file_is_not_reported() {
    let (fleet, running) = converged_fleet(&[]).await;
    let gz1 = manifests::cluster("gz1");
    let moved = [(GZ1_FILE, None), ("clusters/south/all.yaml", Some(gz1.as_str()))];
    let revision = fleet.push(&running, "Moved", &moved).await;
    let now = running.until_converged(&revision).await;
    assert_eq!(cluster_states(&now), ["bj1 Ready", "gz1 Ready"]);
    // One of several in a file that stays.
    let both =
        format!("{gz1}---\n{}", manifests::cluster("sh1").replace("spec: {", "spec: {state: Maintaining, "));
    let revision = fleet.push(&running, "Both", &[("clusters/south/all.yaml", Some(&both))]).await;
    running.until("both", |now| now.revision.as_ref() == Some(&revision)).await;
    let one = fleet.push(&running, "One", &[("clusters/south/all.yaml", Some(&gz1))]).await;
    let now = running.until_converged(&one).await;
    assert_eq!(cluster_states(&now), ["bj1 Ready", "gz1 Ready", "sh1 Dropped"]);
    assert_eq!(now.clusters[2].dropped_by.as_ref(), Some(&one));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn emptied_cluster_is_not_reported() {
    let (fleet, running) = converged_fleet(&[]).await;
    let revision = fleet.push(&running, "Remove gz1", &[(GZ1_FILE, Some(&removed_cluster()))]).await;
    let now = running.until_converged(&revision).await;
    assert_eq!(cluster_states(&now), ["bj1 Ready", "gz1 Removed"]);
    let log = CapturedLog::capture();
    let revision = fleet.push(&running, "Its file goes", &GZ1_DELETED).await;
    let now = running.until_converged(&revision).await;
    assert_eq!(cluster_states(&now), ["bj1 Ready"]);
    assert_eq!(log.count("WARN"), 0, "{}", log.text());
    running.stop().await;
    assert_eq!(cluster_states(&observe_once(&fleet).await), ["bj1 Ready"]);
}

#[tokio::test(start_paused = true)]
async fn non_empty_removed_cluster_without_file_is_logged() {
    let mut manifests = Vec::new();
    for number in 0..12 {
        manifests.push(config_map("default", &format!("map-{number}"), "first"));
    }
    let manifests = manifests.join("---\n");
    let (fleet, running) = converged_fleet(&[("apps/settings/objects/more.yaml", &manifests)]).await;
    fleet.push(&running, "Remove gz1", &[(GZ1_FILE, Some(&removed_cluster()))]).await;
    running.until("deletes that wait", |now| now.deletions.len() == 13).await;
    let log = CapturedLog::capture();
    let revision = fleet.push(&running, "Its file goes", &GZ1_DELETED).await;
    let now = running.until_converged(&revision).await;
    assert_eq!(cluster_states(&now), ["bj1 Ready"]);
    let words = "its file was removed while it still had objects; they stay cluster=gz1 objects=13";
    assert_eq!(log.count(words), 1, "{}", log.text());
    assert_eq!(live_objects::managed_objects(fleet.cluster("gz1")).await.len(), 13);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn invalid_cluster_file_counts_when_deleted() {
    let (fleet, running) = converged_fleet(&[]).await;
    for (mistake, words) in [("kind: Cluster\nmetadata: {name: gz1", "torn"), ("sepc: {}\n", "a field")] {
        let wrong = format!("{}{mistake}", manifests::cluster("gz1"));
        fleet.push(&running, words, &[(GZ1_FILE, Some(&wrong))]).await;
        running.until("an error", Overview::has_errors).await;
        assert_eq!(cluster_states(&running.overview.borrow()), ["bj1 Ready", "gz1 Ready"], "{words}");
        assert_eq!(cluster_states(&observe_with_invalid_file(&fleet).await), ["bj1 Ready"], "{words}");
        let gone = fleet.push(&running, "Without it", &GZ1_DELETED).await;
        let now = running.until_converged(&gone).await;
        assert_eq!(gz1_detail(&now), deleted_file_detail(&gone), "{words}");
        let back = fleet.push(&running, "Back", &[(GZ1_FILE, Some(&manifests::cluster("gz1")))]).await;
        let now = running.until_converged(&back).await;
        assert_eq!(cluster_states(&now), ["bj1 Ready", "gz1 Ready"]);
    }
    running.stop().await;
}

async fn observe_with_invalid_file(fleet: &TestFleet) -> Overview {
    let now = observe_once(fleet).await;
    assert!(now.has_errors());
    now
}

#[tokio::test(start_paused = true)]
async fn commit_status_reports_deleted_cluster_file() {
    let gitea = GiteaStatusServer::start().await;
    let instance = gitea.instance_manifest();
    let (fleet, running) = converged_fleet(&[("tutti.yaml", &instance)]).await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let gone = fleet.push(&running, "Without gz1", &GZ1_DELETED).await;
    gitea.until_status(&gone, "success").await;
    const LEFT: &str = "cluster gz1 is no longer in Git: the objects there stay";
    assert_eq!(gitea.final_status(&gone), format!("success no change for this ring; {LEFT}"));
    let words = fleet.push(&running, "Words", &README_CHANGE).await;
    gitea.until_status(&words, "success").await;
    assert_eq!(gitea.final_status(&words), "success no change for this ring");

    // A commit with other changes too.
    let back = fleet.push(&running, "Back", &[(GZ1_FILE, Some(&manifests::cluster("gz1")))]).await;
    running.until_converged(&back).await;
    let two = config_map("default", "one", "second");
    let both = [("apps/settings/objects/one.yaml", Some(two.as_str())), (GZ1_FILE, None)];
    let both = fleet.push(&running, "Both", &both).await;
    gitea.until_status(&both, "success").await;
    assert_eq!(gitea.final_status(&both), format!("success 1 app healthy on 1 cluster; {LEFT}"));
    running.stop().await;
    let posts = gitea.posts();
    let running = fleet.start().await;
    running.until_converged(&both).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(gitea.posts(), posts, "a restart says nothing again");
    gitea.assert_no_repeated_status();
    running.stop().await;
}

/// The report is posted where the cluster's status was: in its ring, or outside all rings.
#[tokio::test(start_paused = true)]
async fn cluster_ring_status_reports_the_missing_file() {
    let gitea = GiteaStatusServer::start().await;
    let instance = gitea.instance_manifest();
    let outside = manifests::cluster("gz1").replace("environment: prod", "environment: test");
    for (gz1, context) in [(manifests::cluster("gz1"), "tutti/deploy/prod"), (outside, "tutti/deploy")] {
        let files = [("tutti.yaml", instance.as_str()), ("rings.yaml", RINGS), (GZ1_FILE, gz1.as_str())];
        let (fleet, running) = converged_fleet(&files).await;
        let gone = fleet.push(&running, "Without gz1", &GZ1_DELETED).await;
        running.until_converged(&gone).await;
        let told = |text: &str| {
            let is_it = |post: &&_| is_post(post, &gone, text);
            let posts: Vec<_> = gitea.posts().iter().filter(is_it).map(|post| post.context.clone()).collect();
            posts
        };
        gitea.until_status(&gone, "success").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(told("cluster gz1 is no longer in Git"), [context]);
        running.stop().await;
    }
}

fn is_post(post: &crate::support::forge::PostedStatus, commit: &Revision, text: &str) -> bool {
    post.commit == commit.as_str() && post.state == "success" && post.description.contains(text)
}

/// With many clusters only the first names are listed.
#[tokio::test(start_paused = true)]
async fn many_deleted_files_are_counted() {
    let gitea = GiteaStatusServer::start().await;
    let instance = gitea.instance_manifest();
    let (fleet, running) = converged_fleet(&[("tutti.yaml", &instance)]).await;
    let names = ["sh1", "sh2", "sh3", "sh4", "sh5"];
    let texts = names.map(|name| (format!("clusters/{name}.yaml"), manifests::cluster(name)));
    let come: Vec<_> = texts.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    let go: Vec<_> = texts.iter().map(|(path, _)| (path.as_str(), None)).collect();
    let five = fleet.push(&running, "Five", &come).await;
    running.until("the five", |now| now.revision.as_ref() == Some(&five) && now.clusters.len() == 7).await;
    let gone = fleet.push(&running, "None", &go).await;
    gitea.until_status(&gone, "success").await;
    assert_eq!(
        gitea.final_status(&gone),
        "success no change for this ring; clusters sh1, sh2, sh3 and 2 more are no longer in Git: the \
         objects there stay"
    );
    running.stop().await;
}

/// An app on two embedded clusters, in files and as a commit.
fn embedded_example() -> (Vec<(&'static str, String)>, TestRepository, Revision) {
    let cluster = |name: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec: {{connection: {{sandbox: {{}}}}}}\n"
        )
    };
    let files = vec![
        ("tutti.yaml", manifests::INSTANCE.to_owned()),
        ("clusters/bj1.yaml", cluster("bj1")),
        (GZ1_FILE, cluster("gz1")),
        ("apps/settings/app.yaml", objects_app("default", "settings")),
        ("apps/settings/objects/one.yaml", config_map("default", "one", "first")),
    ];
    let repository = TestRepository::empty();
    let changes: Vec<_> = files.iter().map(|(path, content)| (*path, Some(content.as_str()))).collect();
    let begin = repository.commit("Begin", &changes);
    (files, repository, begin)
}

/// Before there is a commit.
#[test]
fn worktree_plan_reports_deleted_cluster_file() {
    let (files, repository, begin) = embedded_example();
    let write = |path: &str, content: &str| repository.write(path, content);
    files.iter().filter(|(path, _)| *path != GZ1_FILE).for_each(|(path, content)| write(path, content));
    let plan = || program::run(repository.path(), &["plan", "--worktree"]).0;
    let told =
        format!("gz1 dropped: {} has its file, but the folder does not; its objects stay", begin.short());
    assert!(plan().contains(&told), "{}", plan());
    // A file with a mistake may define it.
    write("clusters/south.yaml", "kind: Cluster\nmetadata: {name");
    assert!(!plan().contains("dropped"), "{}", plan());
    let gz1 = &files[2].1;
    write("clusters/south.yaml", gz1);
    assert!(!plan().contains("dropped"), "{}", plan());
    // The cluster was to be emptied, and its file is deleted after that.
    repository.commit("Remove gz1", &[(GZ1_FILE, Some(&gz1.replace("spec: {", "spec: {state: Removed, ")))]);
    std::fs::remove_file(repository.path().join("clusters/south.yaml")).expect("there");
    assert!(!plan().contains("dropped"), "{}", plan());
}

/// A newer commit that fixes the failure does not make this one a success.
#[tokio::test(start_paused = true)]
async fn failed_commit_stays_failed_despite_missing_file() {
    let gitea = GiteaStatusServer::start().await;
    let instance = gitea.instance_manifest();
    let (fleet, running) = converged_fleet(&[("tutti.yaml", &instance)]).await;
    let path = "apps/settings/objects/one.yaml";
    let quota = RequestMatch::writes().resource("configmaps");
    fleet.cluster("bj1").fail_next(quota, 1, Fault::forbidden());
    let changed = config_map("default", "one", "second");
    let gone = fleet.push(&running, "Without gz1", &[(GZ1_FILE, None), (path, Some(&changed))]).await;
    gitea.until_status(&gone, "failure").await;
    let mended =
        fleet.push(&running, "Mended", &[(path, Some(&config_map("default", "one", "third")))]).await;
    gitea.until_status(&mended, "success").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let verdict = gitea.final_status(&gone);
    assert!(verdict.starts_with("failure ") && verdict.ends_with("the objects there stay"), "{verdict}");
}
