//! Rollouts in waves on real servers: running versions, holds, and commit statuses.

mod app_set;
mod clusters;

use serde_json::Value;

use super::support::LiveFixture;

pub const APP: &str = "apps/web/app.yaml";
const APPROVAL: &str = "approvals/web.yaml";

/// `test` on the first two clusters, then `prod` on the last two.
fn rings(gate: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1
kind: Rings
metadata: {{name: rings}}
spec:
  rings:
    - {{name: test, clusters: {{matchLabels: {{environment: test}}}}{gate}}}
    - {{name: prod, clusters: {{matchLabels: {{environment: prod}}}}}}
"
    )
}

pub fn component(namespace: &str, version: &str, more: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1
kind: Component
metadata: {{name: web, namespace: {namespace}}}
spec:
  workloadType: Deployment
  developLanguage: python
  runType: server
  image: shop/web:{version}
  port: 8080
{more}"
    )
}

/// With waves by rings, on all four clusters.
pub async fn fixture_with_rings(name: &'static str, gate: &str) -> Option<LiveFixture> {
    let scene = LiveFixture::new(name, 4).await?;
    with_rings(&scene, gate);
    Some(scene)
}

fn with_rings(scene: &LiveFixture, gate: &str) {
    scene.write_instance_with("poll: 1s", "rings");
    scene.worktree.write("rings.yaml", &rings(gate));
}

/// Version and replicas of a Deployment on a cluster.
pub async fn version_and_replicas(scene: &LiveFixture, cluster: usize, name: &str) -> String {
    let Ok(found) = scene.object(scene.cluster(cluster), "deployments", name).await else {
        return "-".to_owned();
    };
    let image = found["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    let replicas = found["spec"]["replicas"].as_i64().unwrap_or_default();
    format!("{} x{replicas}", image.rsplit(':').next().unwrap_or_default())
}

async fn versions_and_replicas(scene: &LiveFixture, name: &str) -> Vec<String> {
    let mut all = Vec::new();
    for cluster in 0..scene.clusters().len() {
        all.push(version_and_replicas(scene, cluster, name).await);
    }
    all
}

pub async fn until_running(scene: &LiveFixture, name: &str, expected: &[&str]) {
    scene
        .eventually(&format!("{name} runs as {expected:?}"), async || {
            let found = versions_and_replicas(scene, name).await;
            if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
}

/// Nothing changes for a while.
async fn assert_unchanged(scene: &LiveFixture, name: &str, expected: &[&str]) {
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    assert_eq!(versions_and_replicas(scene, name).await, expected);
}

/// The rollout of an app (`NAMESPACE/NAME`) in a new read of the clusters.
pub async fn rollout(scene: &LiveFixture, app: &str) -> Value {
    let ended = scene.run(&scene.arguments(&["rollout", "get", app], &["-o", "json"])).await;
    serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr))
}

/// Confirms the waiting wave of an app in the scene's namespace, and returns its name.
pub async fn confirm(scene: &LiveFixture, app: &str) -> String {
    confirm_app(scene, &format!("{}/{app}", scene.name())).await
}

/// The same for any app (`NAMESPACE/NAME`).
pub async fn confirm_app(scene: &LiveFixture, app: &str) -> String {
    let asked = scene
        .eventually("a person is asked", async || {
            let rollout = rollout(scene, app).await;
            let asked = rollout["confirmation"].clone();
            if asked.is_null() { Err(rollout.to_string()) } else { Ok(asked) }
        })
        .await;
    let (digest, through) =
        (asked["digest"].as_str().expect("a digest"), asked["through"].as_str().expect("a wave"));
    let text = format!(
        "apiVersion: tutti.dev/v1alpha1
kind: Approval
metadata: {{name: web}}
spec: {{app: {app}, action: rollout, digest: {digest}, through: {through}}}
"
    );
    scene.worktree.write(APPROVAL, &text);
    scene.worktree.publish("confirmed");
    through.to_owned()
}

#[tokio::test]
async fn crashing_image_stops_in_the_first_wave() {
    let Some(scene) = fixture_with_rings("waves-crash", "").await else { return };
    scene.worktree.write(APP, &component(scene.name(), "1.0", ""));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    until_running(&scene, "web", &["1.0 x2", "1.0 x2", "1.0 x2", "1.0 x2"]).await;

    scene.worktree.write(APP, &component(scene.name(), "broken-1", ""));
    let bad = scene.worktree.publish("an image that nobody has");
    scene.until_status(&bad, "deploy/test", "failure", &["ImagePullBackOff", "web-"]).await;
    scene
        .until_status(&bad, "deploy/prod", "pending", &["wave test of", "0/2 done", "ImagePullBackOff"])
        .await;
    let held = ["broken-1 x2", "broken-1 x2", "1.0 x2", "1.0 x2"];
    assert_unchanged(&scene, "web", &held).await;

    // Held units are repaired at their version.
    let image = r#"{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"shop/web:9"}]}}}}"#;
    let namespace = ["-n", scene.name()];
    let edit = [&["patch", "deployments", "web", "--patch", image], &namespace[..]].concat();
    scene.cluster(2).kubectl(&edit).await.expect("an edit");
    let delete = [&["delete", "deployments", "web"], &namespace[..]].concat();
    scene.cluster(3).kubectl(&delete).await.expect("a delete");
    until_running(&scene, "web", &held).await;

    // A revert passes without gates.
    let back = scene.worktree.revert();
    scene.worktree.push();
    scene.until_succeeded(&back).await;
    until_running(&scene, "web", &["1.0 x2", "1.0 x2", "1.0 x2", "1.0 x2"]).await;
}

#[tokio::test]
async fn a_failed_version_reverts_and_stays_stopped() {
    let Some(scene) = fixture_with_rings("waves-revert", "").await else { return };
    let strategy = "  updateStrategy: {onFailure: revert, progressDeadline: 10s}\n";
    scene.worktree.write(APP, &component(scene.name(), "1.0", strategy));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    scene.worktree.write(APP, &component(scene.name(), "broken-1", strategy));
    let bad = scene.worktree.publish("an image that nobody has");
    scene.until_status(&bad, "deploy/test", "failure", &["reverted"]).await;
    let back = ["1.0 x2", "1.0 x2", "1.0 x2", "1.0 x2"];
    until_running(&scene, "web", &back).await;
    assert_unchanged(&scene, "web", &back).await;
    // Also in another process.
    scene.kill();
    scene.start(&[]).await;
    scene.until_status(&bad, "deploy/test", "failure", &["reverted"]).await;
    assert_unchanged(&scene, "web", &back).await;
    // Another version starts.
    scene.worktree.write(APP, &component(scene.name(), "1.1", strategy));
    let good = scene.worktree.publish("web 1.1");
    scene.until_succeeded(&good).await;
    until_running(&scene, "web", &["1.1 x2", "1.1 x2", "1.1 x2", "1.1 x2"]).await;
}

#[tokio::test]
async fn soak_scale_and_second_commit_during_a_rollout() {
    let Some(scene) = fixture_with_rings("waves-soak", ", soak: 20s").await else { return };
    scene.worktree.write(APP, &component(scene.name(), "1.0", "  replicas: 1\n"));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    scene.worktree.write(APP, &component(scene.name(), "1.1", "  replicas: 2\n"));
    let second = scene.worktree.publish("web 1.1");
    // Replicas change at once, the version by waves.
    until_running(&scene, "web", &["1.1 x2", "1.1 x2", "1.0 x2", "1.0 x2"]).await;
    scene.until_status(&second, "deploy/prod", "pending", &["wave test is done"]).await;
    // A second commit during the rollout continues from the first.
    scene.worktree.write(APP, &component(scene.name(), "1.2", "  replicas: 2\n"));
    let third = scene.worktree.publish("web 1.2");
    let commits = [&*second, &*third];
    until_table(
        &scene,
        &commits,
        &[
            "1.2 x2, success, success",
            "1.2 x2, success, success",
            "1.0 x2, skipped, pending",
            "1.0 x2, skipped, pending",
        ],
    )
    .await;
    let (_, text) = scene.status(&second, "deploy/prod").await.expect("a status");
    assert!(text.contains("superseded"), "{text}");
    scene.until_succeeded(&third).await;
    let over = ["1.2 x2, success, success", "1.2 x2, skipped, success"];
    until_table(&scene, &commits, &[over[0], over[0], over[1], over[1]]).await;
}

/// The version on each cluster, and the status of each commit for the ring of that cluster.
async fn until_table(scene: &LiveFixture, commits: &[&str], expected: &[&str]) {
    let row = async |cluster: usize| {
        let mut cells = vec![version_and_replicas(scene, cluster, "web").await];
        let context = scene.contexts()[cluster / 2];
        for commit in commits {
            cells.push(scene.status(commit, context).await.map_or("-".to_owned(), |(state, _)| state));
        }
        cells.join(", ")
    };
    scene
        .eventually(&format!("the clusters are as in {expected:?}"), async || {
            let mut found = Vec::new();
            for cluster in 0..scene.clusters().len() {
                found.push(row(cluster).await);
            }
            if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
}

#[tokio::test]
async fn confirmation_outlives_a_restart_beside_an_offline_cluster() {
    let Some(scene) = LiveFixture::with_exclusive_clusters("waves-outage").await else { return };
    with_rings(&scene, ", confirm: true");
    scene.worktree.write(APP, &component(scene.name(), "1.0", ""));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    // One cluster of prod is offline at its turn.
    scene.cluster(3).stop_server();
    scene.worktree.write(APP, &component(scene.name(), "1.1", ""));
    let second = scene.worktree.publish("web 1.1");
    scene.until_status(&second, "deploy/test", "success", &[]).await;
    assert_eq!(confirm(&scene, "web").await, "prod");
    scene.kill();
    scene.start(&[]).await;
    scene.until_ready(scene.cluster(2), "web", "shop/web:1.1", 2).await;
    scene.cluster(3).start_server().await.expect("a server that starts again");
    scene.until_succeeded(&second).await;
    until_running(&scene, "web", &["1.1 x2", "1.1 x2", "1.1 x2", "1.1 x2"]).await;
}
