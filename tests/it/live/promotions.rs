//! A version moves from ring to ring by pull requests, on the real Gitea and real clusters.

use std::time::Duration;

use serde_json::json;

use super::support::{ForgeUsers, LiveFixture, component};
use super::waves::{APP, confirm};

const RINGS: &str = "apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {name: rings}
spec:
  rings:
    - {name: test, clusters: {matchLabels: {environment: test}}, soak: 4s}
    - name: prod
      clusters: {matchLabels: {environment: prod}}
      promotion: {mode: auto, statuses: [ci/smoke]}
";
const PIN: &str = "apps/web/pins/prod.yaml";

/// Both clusters of a ring run this image.
async fn until_ring_runs(scene: &LiveFixture, ring: &str, image: &str) {
    let clusters = if ring == "test" { [0, 1] } else { [2, 3] };
    for cluster in clusters {
        scene.until_ready(scene.cluster(cluster), "web", image, 2).await;
    }
}

/// It is merged, and prod runs its version.
async fn merge_and_wait(scene: &LiveFixture, people: &ForgeUsers<'_>, number: u64, version: &str) {
    let merged = people.until_merged(number).await;
    scene.until_status(&merged, "deploy/prod", "success", &[]).await;
    until_ring_runs(scene, "prod", &format!("shop/web:{version}")).await;
}

/// Kills the process and deletes its disk; `meanwhile` runs before the next one, which has only Git, the forge and the clusters.
async fn restart_without_disk(scene: &LiveFixture, meanwhile: impl AsyncFnOnce()) {
    scene.kill();
    meanwhile().await;
    scene.delete_state();
    scene.start(&[]).await;
}

/// The process reports why it opens no pull request.
async fn until_not_proposed(scene: &LiveFixture, why: &str) {
    scene
        .eventually(&format!("it says {why:?}"), async || {
            let log = scene.running(|tutti| tutti.log());
            let mut lines = log.lines();
            let is_it = |line: &str| line.contains("no pull request") && line.contains(why);
            lines.any(is_it).then_some(()).ok_or("no such line".to_owned())
        })
        .await;
}

fn pull_merges(scene: &LiveFixture) {
    scene.worktree.git(&["pull", "-q", "--rebase", &scene.gitea().remote(scene.name()), "main"]);
}

/// `test` runs it afterwards.
async fn release(scene: &LiveFixture, version: &str) {
    pull_merges(scene);
    scene.worktree.write(APP, &web(scene, version));
    scene.worktree.publish(&format!("web {version}"));
    until_ring_runs(scene, "test", &format!("shop/web:{version}")).await;
}

fn web(scene: &LiveFixture, version: &str) -> String {
    let strategy = "  updateStrategy: {onFailure: revert, progressDeadline: 10s}\n";
    component(scene.name(), &format!("shop/web:{version}"), strategy)
}

fn pinned(version: &str) -> String {
    format!("# What prod runs.\nversion: '{version}' # since spring\n")
}

/// The process dies with its disk in every state of a promotion, and the same pull request continues.
#[tokio::test]
async fn version_travels_from_test_to_prod_whatever_dies() {
    let Some(scene) = LiveFixture::new("promote", 4).await else { return };
    let people = ForgeUsers::of(&scene);
    scene.write_instance_with("poll: 1s", "rings");
    scene.worktree.write("rings.yaml", RINGS);
    scene.worktree.write(APP, &web(&scene, "1.0"));
    scene.worktree.write(PIN, &pinned("1.0"));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    let branch = format!("tutti/promote/{}.web/prod", scene.name());

    // The soak of test: the pull request of the next process changes one scalar.
    release(&scene, "1.1").await;
    restart_without_disk(&scene, async || {}).await;
    let (number, head) = people.until_opened(&branch).await;
    until_ring_runs(&scene, "prod", "shop/web:1.0").await;
    let files = people.request("GET", &format!("/pulls/{number}/files"), None).await;
    assert_eq!(files.as_array().map(Vec::len), Some(1), "{files}");
    assert_eq!((&files[0]["additions"], &files[0]["deletions"]), (&json!(1), &json!(1)));
    assert_eq!(people.file_text(PIN, &head).await, pinned("1.1"));
    people.until_plan_contains(number, &["shop/web:1.1"]).await;
    scene.until_status(&head, "gate/ring", "success", &["2/2 done on test with web 1.1"]).await;
    scene.until_status(&head, "gate/soak", "success", &[]).await;
    scene.until_status(&head, "gate/ci/smoke", "pending", &["no status ci/smoke"]).await;
    scene.until_status(&head, "gate", "pending", &["2/3 gates"]).await;

    // Open with a waiting gate; then with passed gates, but not merged.
    restart_without_disk(&scene, async || {}).await;
    until_ring_runs(&scene, "prod", "shop/web:1.0").await;
    restart_without_disk(&scene, async || people.set_status(&head, "ci/smoke", "success").await).await;
    merge_and_wait(&scene, &people, number, "1.1").await;
    scene.until_status(&head, "gate", "success", &["3/3 gates"]).await;

    // Merged while no process runs.
    release(&scene, "1.2").await;
    let (number, head) = people.until_opened(&branch).await;
    restart_without_disk(&scene, async || people.merge(number, &head).await).await;
    merge_and_wait(&scene, &people, number, "1.2").await;

    // Closed without a merge: that version is held.
    release(&scene, "1.3").await;
    let (number, _) = people.until_opened(&branch).await;
    let closed = json!({"state": "closed"});
    let close = async || drop(people.request("PATCH", &format!("/pulls/{number}"), Some(&closed)).await);
    restart_without_disk(&scene, close).await;
    until_not_proposed(&scene, &format!("#{number} was closed without a merge")).await;

    // By hand: a version that test has not finished is held in prod, however it got there, until a person approves it.
    pull_merges(&scene);
    scene.worktree.write(PIN, &pinned("broken-1"));
    let direct = scene.worktree.publish("a hotfix");
    scene.until_status(&direct, "deploy/prod", "pending", &["test"]).await;
    restart_without_disk(&scene, async || {}).await;
    until_not_proposed(&scene, &format!("#{number} was closed without a merge")).await;
    until_ring_runs(&scene, "prod", "shop/web:1.2").await;
    assert_eq!(confirm(&scene, "web").await, "prod");

    // It fails, and its units are reverted. A pull request does the same in Git.
    let revert = format!("tutti/revert/{}", &direct[..7]);
    let (number, head) = people.until_opened(&revert).await;
    until_ring_runs(&scene, "prod", "shop/web:1.2").await;
    until_ring_runs(&scene, "test", "shop/web:1.3").await;
    assert_eq!(people.file_text(PIN, &head).await, pinned("1.2"));
    scene.until_status(&head, "gate", "success", &["no promotion"]).await;
    restart_without_disk(&scene, async || {}).await;
    until_ring_runs(&scene, "prod", "shop/web:1.2").await;
    restart_without_disk(&scene, async || people.merge(number, &head).await).await;
    merge_and_wait(&scene, &people, number, "1.2").await;

    // The next version is proposed. Foreign commits on its branch: it is left alone.
    release(&scene, "1.4").await;
    let (number, head) = people.until_opened(&branch).await;
    let remote = scene.gitea().remote(scene.name());
    scene.worktree.git(&["fetch", "-q", &remote, &branch]);
    scene.worktree.git(&["checkout", "-q", "-b", "theirs", "FETCH_HEAD"]);
    scene.worktree.write("apps/web/NOTES.txt", "by hand\n");
    let theirs = scene.worktree.commit("a note");
    let pushes = async || {
        scene.worktree.git(&["push", "-q", &remote, &format!("theirs:{branch}")]);
        people.set_status(&head, "ci/smoke", "success").await;
        people.set_status(&theirs, "ci/smoke", "success").await;
    };
    restart_without_disk(&scene, pushes).await;
    until_not_proposed(&scene, "a commit that tutti did not make").await;
    scene.worktree.git(&["checkout", "-q", "main"]);
    release(&scene, "1.5").await;
    scene.until_status(&theirs, "validate", "success", &[]).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let pull = people.request("GET", &format!("/pulls/{number}"), None).await;
    assert_eq!((&pull["state"], &pull["head"]["sha"]), (&json!("open"), &json!(theirs)), "untouched");
    until_ring_runs(&scene, "prod", "shop/web:1.2").await;
    let all = [
        "merged promote(web): 1.0 → 1.1 on prod",
        "merged promote(web): 1.1 → 1.2 on prod",
        "closed promote(web): 1.2 → 1.3 on prod",
        "merged revert(web): broken-1 → 1.2",
        "open promote(web): 1.2 → 1.4 on prod",
    ];
    assert_eq!(people.pull_states().await, all);
}

#[tokio::test]
async fn review_and_merge_confirm_a_wave() {
    let Some(scene) = LiveFixture::new("confirm", 4).await else { return };
    let people = ForgeUsers::of(&scene);
    scene.write_instance_with("poll: 1s", "rings");
    scene.worktree.write("rings.yaml", &RINGS.replace("soak: 4s", "confirm: true"));
    scene.worktree.write(APP, &component(scene.name(), "shop/web:1.0", ""));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    people.reviewer("confirm-li").await;

    scene.worktree.write(APP, &component(scene.name(), "shop/web:1.1", ""));
    let commit = scene.worktree.publish("web 1.1");
    until_ring_runs(&scene, "test", "shop/web:1.1").await;
    let (number, head) = people.until_opened(&format!("tutti/approve/{}/prod", &commit[..7])).await;
    until_ring_runs(&scene, "prod", "shop/web:1.0").await;
    scene.until_status(&head, "gate", "success", &["no promotion"]).await;
    let approval = json!({"event": "APPROVED", "commit_id": head, "body": "good"});
    people.request("POST", &format!("/pulls/{number}/reviews?sudo=confirm-li"), Some(&approval)).await;
    people.merge(number, &head).await;
    until_ring_runs(&scene, "prod", "shop/web:1.1").await;
    scene.until_status(&commit, "deploy/prod", "success", &[]).await;
}
