//! Commit statuses on the forge, word for word.

use std::time::Duration;

use serde_json::json;
use tutti::model::Revision;

use crate::support::fleet::TestFleet;
use crate::support::forge::GiteaStatusServer;
use crate::support::live_objects;
use crate::support::manifests::{RINGS, cluster, component, config_map, objects_app};

const WEB_APP: &str = "apps/web/app.yaml";

fn fleet(gitea: &GiteaStatusServer, more: &[(&str, &str)]) -> TestFleet {
    let (instance, web) = (gitea.instance_manifest(), component("web", "registry.example.com/web:1"));
    let mut files = vec![("tutti.yaml", instance.as_str()), (WEB_APP, web.as_str())];
    files.extend(more.iter().copied());
    TestFleet::new(&["bj1", "gz1"], &files)
}

/// Asserts the last status of a commit, posted once.
fn assert_verdict(gitea: &GiteaStatusServer, revision: &Revision, expected: &str) {
    assert_eq!(gitea.final_status(revision), expected);
}

#[tokio::test(start_paused = true)]
async fn statuses_of_first_run_failure_and_revert() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea, &[]);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "success").await;

    let bad = component("web", "registry.example.com/web:broken-1");
    let broken = fleet.push(&running, "A bad image", &[(WEB_APP, Some(&bad))]).await;
    gitea.until_status(&broken, "failure").await;
    tokio::time::sleep(Duration::from_secs(300)).await;

    let good = component("web", "registry.example.com/web:1");
    let reverted = fleet.push(&running, "Revert", &[(WEB_APP, Some(&good))]).await;
    gitea.until_status(&reverted, "success").await;
    tokio::time::sleep(Duration::from_secs(300)).await;

    assert_verdict(&gitea, &fleet.first_commit, "success 2/2 healthy on 2 clusters");
    assert_verdict(&gitea, &reverted, "success 2/2 healthy on 2 clusters");
    let failure = gitea.final_status(&broken);
    let (beginning, rest) = failure.split_at("failure bj1 default/web: ImagePullBackOff web-".len());
    assert_eq!(beginning, "failure bj1 default/web: ImagePullBackOff web-");
    assert!(rest.ends_with(" (registry.example.com/web:broken-1), 0/2 healthy"), "{failure}");
    gitea.assert_no_repeated_status();
}

#[tokio::test(start_paused = true)]
async fn success_is_final() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea, &[]);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let posts = gitea.posts();
    // A cluster that goes offline later does not affect this commit.
    fleet.cluster("gz1").set_down(true);
    running.until("gz1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    fleet.cluster("gz1").set_down(false);
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(gitea.posts(), posts);
}

#[tokio::test(start_paused = true)]
async fn missing_cluster_is_named_until_it_returns() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea, &[]);
    fleet.cluster("gz1").set_down(true);
    let _running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "pending 1/2 healthy, gz1").await;
    assert_eq!(
        gitea.last_status(&fleet.first_commit),
        "pending 1/2 healthy, gz1 default/web: cluster unreachable: connection refused"
    );
    fleet.cluster("gz1").set_down(false);
    gitea.until_status(&fleet.first_commit, "success").await;
    gitea.assert_no_repeated_status();
}

#[tokio::test(start_paused = true)]
async fn mistake_is_reported_on_its_commit_with_position() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea, &[]);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let wrong = component("web", "registry.example.com/web:2") + "  prot: 8080\n";
    let revision = fleet.push(&running, "A typo", &[(WEB_APP, Some(&wrong))]).await;
    gitea.until_status(&revision, "failure").await;
    let expected = "failure apps/web/app.yaml:10:3: unknown field `prot` in `spec`";
    assert_verdict(&gitea, &revision, expected);
    // The next commit did not introduce it.
    let words = fleet.push(&running, "Words", &[("README.md", Some("Words.\n"))]).await;
    gitea.until_status(&words, "success").await;
    assert_verdict(&gitea, &words, "success no change for this ring");
    assert_verdict(&gitea, &revision, expected);
}

/// Another commit's mistake holds back the change, which fails. Returns the last status after the fix.
async fn verdict_during_and_after_mistake(
    path: &str,
    mend: &str,
    wrong: &str,
    change: (&str, &str),
    expected: &str,
) -> String {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea, &[("rings.yaml", RINGS), (path, mend)]);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let mistake = fleet.push(&running, "An error", &[(path, Some(wrong))]).await;
    gitea.until_status(&mistake, "failure").await;
    let change = fleet.push(&running, "A change", &[(change.0, Some(change.1))]).await;
    gitea.until_status(&change, "failure").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(gitea.final_status(&change), expected);
    let mended = fleet.push(&running, "Mended", &[(path, Some(mend))]).await;
    gitea.until_status(&mended, "success").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    gitea.last_status(&change)
}

#[tokio::test(start_paused = true)]
async fn change_on_cluster_with_invalid_file_fails() {
    let mend = cluster("gz1");
    let wrong = format!("{mend}colour: red\n");
    let web = component("web", "registry.example.com/web:2");
    let expected =
        "failure gz1 default/web: error[E1201]: unknown field `colour` at clusters/gz1.yaml:5:1, 1/2 healthy";
    let last =
        verdict_during_and_after_mistake("clusters/gz1.yaml", &mend, &wrong, (WEB_APP, &web), expected).await;
    // The remaining change on the other cluster belongs to the commit that fixed its file.
    assert_eq!(last, "success 1 app healthy on 1 cluster");
}

#[tokio::test(start_paused = true)]
async fn change_of_invalid_app_fails() {
    let mend = component("web", "registry.example.com/web:1");
    let wrong = format!("{mend}  prot: 8080\n");
    let values = ("apps/web/layer/values.yaml", "replicas: 2\n");
    let expected = "failure bj1 default/web: error[E1201]: unknown field `prot` in `spec` at apps/web/app.yaml:10:3, 0/2 healthy";
    // The whole app belongs to the commit that fixed it.
    assert_eq!(verdict_during_and_after_mistake(WEB_APP, &mend, &wrong, values, expected).await, expected);
}

#[tokio::test(start_paused = true)]
async fn change_beside_invalid_rings_fails() {
    let wrong = format!("{RINGS}colour: red\n");
    let web = component("web", "registry.example.com/web:2");
    let expected = "failure rings.yaml:5:1: unknown field `colour`";
    let last = verdict_during_and_after_mistake("rings.yaml", RINGS, &wrong, (WEB_APP, &web), expected).await;
    assert_eq!(last, "success 2/2 healthy on 2 clusters");
}

#[tokio::test(start_paused = true)]
async fn invalid_instance_is_reported_with_previous_token() {
    let gitea = GiteaStatusServer::start().await;
    gitea.require_token("s3cret");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cret").expect("written");
    let credentials = format!(", credentials: {{token: {{file: {:?}}}}}}}}}", file.display().to_string());
    let instance = gitea.instance_manifest().replace("}}", &credentials);
    let fleet = fleet(&gitea, &[("tutti.yaml", &instance)]);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let wrong = format!("{instance}colour: red\n");
    let mistake = fleet.push(&running, "An error", &[("tutti.yaml", Some(&wrong))]).await;
    gitea.until_status(&mistake, "failure tutti.yaml:5:1: unknown field `colour`").await;
    assert_eq!(gitea.refused_requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn each_ring_has_its_own_context() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea, &[("rings.yaml", RINGS)]);
    let _running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let contexts: Vec<String> = gitea.posts().into_iter().map(|post| post.context).collect();
    assert!(contexts.iter().all(|context| context == "tutti/deploy/prod"), "{contexts:?}");
}

#[tokio::test(start_paused = true)]
async fn restart_posts_no_status_again() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea, &[]);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "success").await;
    running.stop().await;
    let posts = gitea.posts();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(gitea.posts(), posts);

    // A lasting failure is not posted again, and succeeds once it is fixed.
    let bad = component("web", "registry.example.com/web:broken-1");
    let broken = fleet.push(&running, "A bad image", &[(WEB_APP, Some(&bad))]).await;
    gitea.until_status(&broken, "failure").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    running.stop().await;
    let posts = gitea.posts();
    let running = fleet.start().await;
    running.until("a broken app", |now| now.targets.iter().any(|it| it.phase.is_failure())).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let new: Vec<_> = gitea.posts().into_iter().skip(posts.len()).collect();
    assert_eq!(new, [], "after {posts:#?}");
}

#[tokio::test(start_paused = true)]
async fn commit_in_progress_at_exit_is_reported_later() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea, &[]);
    fleet.cluster("gz1").set_down(true);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "pending 1/2 healthy, gz1").await;
    running.stop().await;
    fleet.cluster("gz1").set_down(false);
    let other = [
        ("apps/other/app.yaml", Some(objects_app("default", "other"))),
        ("apps/other/objects/one.yaml", Some(config_map("default", "one", "first"))),
    ];
    let changes: Vec<_> = other.iter().map(|(path, text)| (*path, text.as_deref())).collect();
    let revision = fleet.repository.commit("Another app", &changes);
    let _running = fleet.start().await;
    gitea.until_status(&revision, "success").await;
    gitea.until_status(&fleet.first_commit, "success").await;
    assert_verdict(&gitea, &fleet.first_commit, "success 2/2 healthy on 2 clusters");
    gitea.assert_no_repeated_status();
}

#[tokio::test(start_paused = true)]
async fn unavailable_forge_blocks_nothing_and_is_updated_later() {
    let gitea = GiteaStatusServer::start().await;
    gitea.set_down(true);
    let fleet = fleet(&gitea, &[]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(gitea.refused_requests() > 1);
    assert!(gitea.refused_requests() < 20, "{} requests in two minutes", gitea.refused_requests());
    gitea.set_down(false);
    gitea.until_status(&fleet.first_commit, "success").await;
    assert_verdict(&gitea, &fleet.first_commit, "success 2/2 healthy on 2 clusters");
}

#[tokio::test(start_paused = true)]
async fn status_names_reported_drift() {
    let gitea = GiteaStatusServer::start().await;
    let (instance, path) = (gitea.instance_manifest(), "apps/web/objects/maps.yaml");
    let reporting =
        objects_app("default", "web").replace("[objects/*.yaml]", "[objects/*.yaml], drift: report");
    let maps = |other: &str| {
        [config_map("default", "web", "one"), config_map("default", "other", other)].join("---\n")
    };
    let files = [("tutti.yaml", instance.as_str()), ("apps/web/app.yaml", &reporting), (path, &maps("one"))];
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let edit = json!({"data": {"value": "two"}});
    live_objects::edit_as(fleet.cluster("bj1"), "kubectl-edit", ("ConfigMap", "web"), &edit).await;
    tokio::time::sleep(Duration::from_secs(10)).await;

    let revision = fleet.push(&running, "The other one", &[(path, Some(&maps("two")))]).await;
    let expected = "pending 0/1 healthy, bj1 default/web: ConfigMap default/web: kubectl-edit set .data.value; \
                    the app only reports drift";
    gitea.until_status(&revision, expected).await;
    let other =
        live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "other").await.expect("a map");
    assert_eq!(other["data"]["value"], "two");
}
