//! A version that failed and was reverted on the clusters is reverted in Git.

use sandbox::Scenario;
use tutti::forge::MergeMethod;
use tutti::model::Revision;

use super::fixture::{PAY, PIN, PullRequestFixture, pay};
use super::promotions::{BRANCH, PINNED, promotion, rings, until_merged};
use crate::support::forge::simulator::PullRequestView;

const NOTES: &str = "NOTES.md";

/// With units that revert automatically.
fn reverting(version: &str) -> String {
    format!(
        "# Of the team pay.\n{}  updateStrategy: {{onFailure: revert, progressDeadline: 60s}}\n",
        pay(version)
    )
}

/// v2 fails on one cluster.
async fn failing_fixture(fails_on: &str) -> PullRequestFixture {
    let files = [("rings.yaml", &*rings("{mode: auto}")), (PAY, &*reverting("v1")), (PIN, PINNED)];
    let scene = PullRequestFixture::new_started(&["c1", "c2"], &files).await;
    let fails = "rules: [{image: 'registry.example.com/pay:v2', fail: crash-loop}]";
    scene.fleet.cluster(fails_on).set_scenario(Scenario::parse(fails).expect("a scenario"));
    scene
}

/// The open pull request that reverts a commit.
async fn until_revert_pull(scene: &PullRequestFixture, commit: &Revision) -> PullRequestView {
    let branch = format!("tutti/revert/{}", commit.short());
    scene
        .until(&format!("a revert of {}", commit.short()), |now| {
            now.pulls().iter().any(|it| it.is_open && it.branch == branch)
        })
        .await;
    scene.open_of(&branch).expect("it is open")
}

/// v2 is pinned and fails: its pull request, the merge commit, and the pull request that reverts it.
async fn reverted_pin(scene: &PullRequestFixture) -> (u64, Revision, PullRequestView) {
    scene.push("main", &[(PAY, Some(&reverting("v2")))]);
    let number = promotion(scene, "v2").await.number;
    let failing = until_merged(scene, number).await;
    let pull = until_revert_pull(scene, &failing).await;
    (number, failing, pull)
}

async fn merge(scene: &PullRequestFixture, pull: &PullRequestView) -> Revision {
    let li = scene.simulator.client("li");
    li.merge_pull(pull.number, MergeMethod::Merge, &pull.head).await.expect("merged");
    until_merged(scene, pull.number).await
}

async fn versions(scene: &PullRequestFixture) -> [String; 2] {
    [scene.version("c1").await, scene.version("c2").await]
}

#[tokio::test(start_paused = true)]
async fn a_pin_that_fails_gets_its_old_version() {
    let mut scene = failing_fixture("c2").await;
    let (number, failing, pull) = reverted_pin(&scene).await;
    assert_eq!(versions(&scene).await, ["v2", "v1"], "the ring before keeps it");
    assert_eq!(scene.simulator.file_text(&pull.branch, PIN).as_deref(), Some(PINNED));
    assert_eq!(
        (pull.title.as_str(), pull.labels.as_slice()),
        ("revert(pay): v2 → v1", &["tutti/revert".to_owned()][..])
    );
    assert!(pull.body.contains(failing.short()), "{}", pull.body);

    // Another process continues with it; only a person merges it.
    scene.restart().await;
    scene.until_settled(&pull.head).await;
    assert_eq!(scene.simulator.last_status(&pull.head, "tutti/gate"), "success no promotion");
    scene.assert_no_requests(300).await;
    assert_eq!(merged_numbers(&scene), [number]);

    // The next version replaces it, and the failed one does not start again meanwhile.
    scene.push("main", &[(PAY, Some(&reverting("v3")))]);
    scene.assert_no_requests(40).await;
    assert_eq!(versions(&scene).await, ["v3", "v1"]);
    let next = promotion(&scene, "v3").await;
    let arrived = until_merged(&scene, next.number).await;
    scene.running().until_converged(&arrived).await;
    assert_eq!(versions(&scene).await, ["v3", "v3"]);
    scene.assert_no_requests(300).await;
    let pulls = scene.simulator.pulls();
    assert_eq!((pulls.len(), merged_numbers(&scene)), (3, vec![number, next.number]), "{}", scene.describe());
    assert!(pulls.iter().all(|it| !it.is_open) && pulls[1].body.contains("no longer there"), "{pulls:#?}");
}

fn merged_numbers(scene: &PullRequestFixture) -> Vec<u64> {
    let pulls = scene.simulator.pulls();
    pulls.into_iter().filter(|it| it.merged.is_some()).map(|it| it.number).collect()
}

#[tokio::test(start_paused = true)]
async fn a_reverted_version_is_not_proposed_again() {
    let mut scene = failing_fixture("c2").await;
    let (.., pull) = reverted_pin(&scene).await;
    let merged = merge(&scene, &pull).await;
    scene.running().until_converged(&merged).await;
    scene.restart().await;
    scene.running().until_converged(&merged).await;
    scene.assert_no_requests(300).await;
    assert_eq!(versions(&scene).await, ["v2", "v1"]);
    assert_eq!((scene.open_of(BRANCH), scene.simulator.pulls().len()), (None, 2), "{}", scene.describe());
}

#[tokio::test(start_paused = true)]
async fn any_other_change_is_reverted_as_a_commit() {
    let scene = failing_fixture("c1").await;
    let failing = scene.push("main", &[(PAY, Some(&reverting("v2"))), (NOTES, Some("v2 is fast\n"))]);
    let pull = until_revert_pull(&scene, &failing).await;
    assert_eq!(versions(&scene).await, ["v1", "v1"]);
    assert_eq!(scene.simulator.file_text(&pull.branch, PAY), Some(reverting("v1")));
    assert_eq!(scene.simulator.file_text(&pull.branch, NOTES), None);
    // Somebody closes it: it is not opened again.
    scene.simulator.set_open("li", pull.number, false);
    scene.assert_no_requests(300).await;
    assert_eq!(scene.simulator.pulls().len(), 1, "{}", scene.describe());
    scene.simulator.set_open("li", pull.number, true);
    let merged = merge(&scene, &pull).await;
    scene.running().until_converged(&merged).await;
    scene.assert_no_requests(300).await;
    assert_eq!((versions(&scene).await, scene.simulator.pulls().len()), (["v1", "v1"].map(str::to_owned), 1));
}

// If a later commit changed the same file, a person decides, until that change is gone.
#[tokio::test(start_paused = true)]
async fn a_commit_with_later_changes_is_not_reverted() {
    let scene = failing_fixture("c1").await;
    let failing = scene.push("main", &[(PAY, Some(&reverting("v2"))), (NOTES, Some("v2 is fast\n"))]);
    scene.push("main", &[(NOTES, Some("v2 is fast, and small\n"))]);
    let is_refused = |now: &tutti::report::Overview| now.rollouts.iter().any(|it| it.is_reverted());
    scene.running().until("a version that is taken back", is_refused).await;
    scene.assert_no_requests(300).await;
    assert_eq!(scene.simulator.pulls(), [], "{}", scene.describe());
    scene.push("main", &[(NOTES, Some("v2 is fast\n"))]);
    let pull = until_revert_pull(&scene, &failing).await;
    assert_eq!(scene.simulator.file_text(&pull.branch, NOTES), None);
}
