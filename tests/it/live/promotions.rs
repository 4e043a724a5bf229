//! A version travels from ring to ring by pull requests, on the real Gitea and real clusters.

use std::time::Duration;

use serde_json::json;

use super::support::{People, Scene, component};

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
async fn ring_runs(scene: &Scene, ring: &str, image: &str) {
    let clusters = if ring == "test" { [0, 1] } else { [2, 3] };
    for cluster in clusters {
        scene.ready(scene.cluster(cluster), "web", image, 2).await;
    }
}

async fn restarted_without_its_disk(scene: &Scene) {
    scene.kill();
    scene.forget_state();
    scene.start(&[]).await;
}

#[tokio::test]
async fn version_travels_from_test_to_prod() {
    let Some(scene) = Scene::new("promote", 4).await else { return };
    let people = People::of(&scene);
    scene.write_instance_with("poll: 1s", "rings");
    scene.worktree.write("rings.yaml", RINGS);
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.0", ""));
    scene.worktree.write(PIN, "# What prod runs.\nversion: '1.0' # since spring\n");
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.succeeded(&first).await;

    // test runs it, its soak is over: a pull request changes one scalar.
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.1", ""));
    scene.worktree.publish("web 1.1");
    ring_runs(&scene, "test", "shop/web:1.1").await;
    restarted_without_its_disk(&scene).await;
    let branch = format!("tutti/promote/{}.web/prod", scene.name());
    let (number, head) = people.opened(&branch).await;
    ring_runs(&scene, "prod", "shop/web:1.0").await;
    let files = people.ask("GET", &format!("/pulls/{number}/files"), None).await;
    assert_eq!(files.as_array().map(Vec::len), Some(1), "{files}");
    assert_eq!((&files[0]["additions"], &files[0]["deletions"]), (&json!(1), &json!(1)));
    let content = people.ask("GET", &format!("/raw/{PIN}?ref={head}"), None).await;
    assert_eq!(content.as_str(), Some("# What prod runs.\nversion: '1.1' # since spring\n"));
    people.plan_with(number, &["shop/web:1.1"]).await;
    scene.told(&head, "gate/ring", "success", &["2/2 done on test with web 1.1"]).await;
    scene.told(&head, "gate/soak", "success", &[]).await;
    scene.told(&head, "gate/ci/smoke", "pending", &["no status ci/smoke"]).await;
    scene.told(&head, "gate", "pending", &["2/3 gates"]).await;

    // Another process without a disk opens no second one, and goes on with the first.
    restarted_without_its_disk(&scene).await;
    people.say(&head, "ci/smoke", "success").await;
    let merged = people.merged(number).await;
    scene.told(&merged, "deploy/prod", "success", &[]).await;
    ring_runs(&scene, "prod", "shop/web:1.1").await;
    scene.told(&head, "gate", "success", &["3/3 gates"]).await;
    let all = people.ask("GET", "/pulls?state=all", None).await;
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{all}");

    // The same by hand: a version that test has not finished is held in prod, whatever way it came.
    scene.worktree.git(&["pull", "-q", "--rebase", &scene.gitea().remote(scene.name()), "main"]);
    scene.worktree.write(PIN, "# What prod runs.\nversion: '1.2' # since spring\n");
    let direct = scene.worktree.publish("web 1.2 for prod at once");
    scene.told(&direct, "deploy/prod", "pending", &["test"]).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    ring_runs(&scene, "prod", "shop/web:1.1").await;
    let back = scene.worktree.revert();
    scene.worktree.push();
    scene.succeeded(&back).await;

    // Closed without a merge: that version is held, the next one is proposed.
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.3", ""));
    scene.worktree.publish("web 1.3");
    let (number, _) = people.opened(&branch).await;
    people.ask("PATCH", &format!("/pulls/{number}"), Some(&json!({"state": "closed"}))).await;
    restarted_without_its_disk(&scene).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(people.pull_of(&branch).await.is_none(), "it is held");
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.4", ""));
    scene.worktree.publish("web 1.4");
    let (next, head) = people.opened(&branch).await;
    assert_ne!(next, number);

    // A commit of somebody else on its branch: hands off.
    scene.worktree.git(&["fetch", "-q", &scene.gitea().remote(scene.name()), &branch]);
    scene.worktree.git(&["checkout", "-q", "-b", "theirs", "FETCH_HEAD"]);
    scene.worktree.write("apps/web/NOTES.txt", "by hand\n");
    let theirs = scene.worktree.commit("a note");
    scene.worktree.git(&["push", "-q", &scene.gitea().remote(scene.name()), &format!("theirs:{branch}")]);
    people.say(&head, "ci/smoke", "success").await;
    people.say(&theirs, "ci/smoke", "success").await;
    scene.worktree.git(&["checkout", "-q", "main"]);
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.5", ""));
    scene.worktree.publish("web 1.5");
    ring_runs(&scene, "test", "shop/web:1.5").await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    let pull = people.ask("GET", &format!("/pulls/{next}"), None).await;
    assert_eq!((&pull["state"], &pull["head"]["sha"]), (&json!("open"), &json!(theirs)), "untouched");
    ring_runs(&scene, "prod", "shop/web:1.1").await;
}

#[tokio::test]
async fn review_and_merge_confirm_a_wave() {
    let Some(scene) = Scene::new("confirm", 4).await else { return };
    let people = People::of(&scene);
    scene.write_instance_with("poll: 1s", "rings");
    scene.worktree.write("rings.yaml", &RINGS.replace("soak: 4s", "confirm: true"));
    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.0", ""));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.succeeded(&first).await;
    people.reviewer("confirm-li").await;

    scene.worktree.write("apps/web/app.yaml", &component(scene.name(), "shop/web:1.1", ""));
    let commit = scene.worktree.publish("web 1.1");
    ring_runs(&scene, "test", "shop/web:1.1").await;
    let (number, head) = people.opened(&format!("tutti/approve/{}/prod", &commit[..7])).await;
    ring_runs(&scene, "prod", "shop/web:1.0").await;
    scene.told(&head, "gate", "success", &["no promotion"]).await;
    let approval = json!({"event": "APPROVED", "commit_id": head, "body": "good"});
    people.ask("POST", &format!("/pulls/{number}/reviews?sudo=confirm-li"), Some(&approval)).await;
    people.merge(number, &head).await;
    ring_runs(&scene, "prod", "shop/web:1.1").await;
    scene.told(&commit, "deploy/prod", "success", &[]).await;
}
