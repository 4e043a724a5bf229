//! An AppSet with canary, blue and green podSets on two clusters.

use serde_json::json;

use super::super::support::{ForgeUsers, LiveFixture};
use super::{APP, confirm, version_and_replicas};

/// Name, version, replicas.
type PodSet<'a> = (&'a str, &'a str, u32);

/// Each podSet with version and replicas; its pods read the ConfigMap of the podSet.
fn app_set(scene: &LiveFixture, topology: &[(usize, &[PodSet<'_>])]) -> String {
    let pod_set = |(name, version, replicas): &PodSet<'_>| json!({"name": name, "version": version, "replicas": replicas});
    let clusters: Vec<_> = topology
        .iter()
        .map(|(cluster, pod_sets)| {
            let pod_sets: Vec<_> = pod_sets.iter().map(pod_set).collect();
            json!({"name": scene.cluster(*cluster).name(), "podSets": pod_sets})
        })
        .collect();
    let total: u32 = topology.iter().flat_map(|(_, sets)| sets.iter().map(|(.., replicas)| replicas)).sum();
    json!({
        "apiVersion": "tutti.dev/v1alpha1", "kind": "AppSet",
        "metadata": {"name": "pay", "namespace": scene.name()},
        "spec": {
            "replicas": total,
            "podSpec": {"template": {"spec": {"containers": [{"name": "pay", "image": "shop/pay:1"}]}}},
            "updateStrategy": {
                "upgradeType": "canary|blue|green",
                "canaryClusters": [scene.cluster(0).name()],
                "needWaitingForConfirm": true,
            },
            "clusterTopology": {"clusters": clusters},
        },
    })
    .to_string()
}

/// It contains the version, so each version has its own config.
const SETTINGS: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: '{{ podSet.name }}-settings'}
data: {version: '{{ podSet.version }}'}
";

const POD_SET_NAMES: [&str; 3] = ["pay-canary", "pay-blue", "pay-green"];

fn same_version(version: &'static str) -> [(&'static str, &'static str, u32); 3] {
    POD_SET_NAMES.map(|name| (name, version, 1))
}

/// `canary@0 blue@0 green@0 canary@1 blue@1 green@1`.
async fn versions(scene: &LiveFixture) -> String {
    let mut all = Vec::new();
    for cluster in 0..2 {
        for name in POD_SET_NAMES {
            all.push(
                version_and_replicas(scene, cluster, name)
                    .await
                    .split(' ')
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
    }
    all.join(" ")
}

async fn until_versions(scene: &LiveFixture, expected: &str) {
    scene
        .eventually(&format!("runs {expected}"), async || {
            let found = versions(scene).await;
            if found == expected { Ok(()) } else { Err(found) }
        })
        .await;
}

async fn start(name: &'static str) -> Option<LiveFixture> {
    let scene = LiveFixture::with_newest_and_oldest(name).await?;
    let all = same_version("v1");
    scene.worktree.write(APP, &app_set(&scene, &[(0, &all), (1, &all)]));
    scene.worktree.write("apps/web/layer/settings.yaml.j2", SETTINGS);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    until_versions(&scene, "v1 v1 v1 v1 v1 v1").await;
    Some(scene)
}

fn publish(scene: &LiveFixture, subject: &str, topology: &[(usize, &[PodSet<'_>])]) -> String {
    scene.worktree.write(APP, &app_set(scene, topology));
    scene.worktree.publish(subject)
}

/// Rows 1 and 2 of the scenarios: six podSets wave by wave; a revert during a rollout, while the canary crashes.
#[tokio::test]
async fn groups_change_in_order_and_revert_at_once() {
    let Some(scene) = start("waves-groups").await else { return };
    let all = same_version("v2");
    let second = publish(&scene, "pay v2", &[(0, &all), (1, &all)]);
    until_versions(&scene, "v2 v1 v1 v1 v1 v1").await;
    assert_eq!(confirm(&scene, "pay").await, "canary");
    until_versions(&scene, "v2 v1 v1 v2 v1 v1").await;
    assert_eq!(confirm(&scene, "pay").await, "blue");
    until_versions(&scene, "v2 v2 v1 v2 v2 v1").await;
    assert_eq!(confirm(&scene, "pay").await, "green");
    scene.until_succeeded(&second).await;
    until_versions(&scene, "v2 v2 v2 v2 v2 v2").await;

    let broken = same_version("broken-3");
    let third = publish(&scene, "an image that nobody has", &[(0, &broken), (1, &broken)]);
    scene.until_status(&third, "deploy", "failure", &["ImagePullBackOff"]).await;
    assert_eq!(versions(&scene).await, "broken-3 v2 v2 v2 v2 v2");
    let back = scene.worktree.revert();
    scene.worktree.push();
    scene.until_succeeded(&back).await;
    until_versions(&scene, "v2 v2 v2 v2 v2 v2").await;
}

/// Each wave opens by the review and the merge of its pull request, whenever the process dies with its disk.
#[tokio::test]
async fn review_and_merge_confirm_a_canary() {
    let Some(scene) = start("waves-reviewed").await else { return };
    let people = ForgeUsers::of(&scene);
    people.reviewer("waves-reviewed-li").await;
    let all = same_version("v2");
    let commit = publish(&scene, "pay v2", &[(0, &all), (1, &all)]);
    let waves =
        [("canary", "v2 v1 v1 v1 v1 v1"), ("blue", "v2 v1 v1 v2 v1 v1"), ("green", "v2 v2 v1 v2 v2 v1")];
    for (wave, before) in waves {
        until_versions(&scene, before).await;
        let (number, head) = people.until_opened(&format!("tutti/approve/{}/{wave}", &commit[..7])).await;
        scene.until_status(&head, "gate", "success", &["no promotion"]).await;
        assert_eq!(versions(&scene).await, before);
        let approval = json!({"event": "APPROVED", "commit_id": head, "body": "good"});
        let review = format!("/pulls/{number}/reviews?sudo=waves-reviewed-li");
        people.request("POST", &review, Some(&approval)).await;
        // One is merged while no process runs.
        let runs_on = wave != "blue";
        scene.kill();
        if !runs_on {
            people.merge(number, &head).await;
        }
        scene.delete_state();
        scene.start(&[]).await;
        if runs_on {
            people.merge(number, &head).await;
        }
    }
    scene.until_succeeded(&commit).await;
    until_versions(&scene, "v2 v2 v2 v2 v2 v2").await;
    let title = |wave: &str| format!("merged approve(pay): wave {wave} of {}", &commit[..7]);
    assert_eq!(people.pull_states().await, waves.map(|(wave, _)| title(wave)));
}

/// A held podSet keeps its config when its pods restart, and its objects are restored, also after a kill.
#[tokio::test]
async fn held_pod_set_keeps_its_config() {
    let Some(scene) = start("waves-config").await else { return };
    let all = same_version("v2");
    publish(&scene, "pay v2", &[(0, &all), (1, &all)]);
    until_versions(&scene, "v2 v1 v1 v1 v1 v1").await;
    let config = async |cluster: usize, name: &str| {
        let found = scene.object(scene.cluster(cluster), "configmaps", &format!("{name}-settings")).await?;
        Ok::<_, String>(found["data"]["version"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(config(0, "pay-canary").await.as_deref(), Ok("v2"));
    let namespace = ["-n", scene.name()];
    let restart = [&["rollout", "restart", "deployment", "pay-blue"], &namespace[..]].concat();
    scene.cluster(1).kubectl(&restart).await.expect("restarted");
    assert_eq!(config(1, "pay-blue").await.as_deref(), Ok("v1"));
    let delete =
        [&["delete", "configmaps/pay-blue-settings", "deployments/pay-green"], &namespace[..]].concat();
    scene.cluster(1).kubectl(&delete).await.expect("deleted");
    scene.eventually("the config is back", async || config(1, "pay-blue").await).await;
    until_versions(&scene, "v2 v1 v1 v1 v1 v1").await;
    assert_eq!(config(1, "pay-blue").await.as_deref(), Ok("v1"));
    scene.kill();
    scene.cluster(1).kubectl(&delete).await.expect("deleted");
    scene.start(&[]).await;
    scene.eventually("the config is back", async || config(1, "pay-blue").await).await;
    until_versions(&scene, "v2 v1 v1 v1 v1 v1").await;
    assert_eq!(config(1, "pay-blue").await.as_deref(), Ok("v1"));
}

/// Row 6: replicas rise at once. Row 7: a shrinking podSet keeps its pods until the others are ready.
#[tokio::test]
async fn replicas_rise_at_once_and_fall_last() {
    let Some(scene) = start("waves-scale").await else { return };
    let grown = [("pay-canary", "v2", 1), ("pay-blue", "v2", 0), ("pay-green", "v2", 3)];
    let second = publish(&scene, "pay v2", &[(0, &grown), (1, &grown)]);
    let shown = async || {
        let mut all = Vec::new();
        for cluster in 0..2 {
            for name in POD_SET_NAMES {
                all.push(version_and_replicas(&scene, cluster, name).await);
            }
        }
        all.join(" ")
    };
    scene
        .eventually("green is three at v1", async || {
            let found = shown().await;
            if found == "v2 x1 v1 x1 v1 x3 v1 x1 v1 x1 v1 x3" { Ok(()) } else { Err(found) }
        })
        .await;
    confirm(&scene, "pay").await;
    until_versions(&scene, "v2 v1 v1 v2 v1 v1").await;
    confirm(&scene, "pay").await;
    until_versions(&scene, "v2 v2 v1 v2 v2 v1").await;
    // Blue has the new content and keeps its pod.
    assert_eq!(shown().await, "v2 x1 v2 x1 v1 x3 v2 x1 v2 x1 v1 x3");
    confirm(&scene, "pay").await;
    scene.until_succeeded(&second).await;
    scene
        .eventually("blue has no pods", async || {
            let found = shown().await;
            if found == "v2 x1 v2 x0 v2 x3 v2 x1 v2 x0 v2 x3" { Ok(()) } else { Err(found) }
        })
        .await;
}

/// Row 10: a moved podSet is deleted after its successor is ready; a renamed podSet is a new one.
#[tokio::test]
async fn moved_pod_set_goes_when_it_has_come() {
    let Some(scene) = start("waves-move").await else { return };
    let all = same_version("v1");
    let gone = async |cluster: usize, name: &str| {
        scene
            .eventually(&format!("{name} is gone"), async || {
                match version_and_replicas(&scene, cluster, name).await.as_str() {
                    "-" => Ok(()),
                    found => Err(found.to_owned()),
                }
            })
            .await;
    };
    let moved = publish(&scene, "green moves", &[(0, &all[..2]), (1, &all)]);
    scene.until_succeeded(&moved).await;
    gone(0, "pay-green").await;

    let renamed = [all[0], ("pay-navy-blue", "v1", 1), all[2]];
    let renamed = publish(&scene, "blue is renamed", &[(0, &all[..2]), (1, &renamed)]);
    scene.until_succeeded(&renamed).await;
    gone(1, "pay-blue").await;
    assert_eq!(version_and_replicas(&scene, 1, "pay-navy-blue").await, "v1 x1");
}

/// The branch is rewritten while a podSet is held: its commit is unknown, so it is left unchanged.
#[tokio::test]
async fn a_rewritten_history_leaves_held_units_alone() {
    let Some(scene) = start("waves-rewritten").await else { return };
    let all = same_version("v2");
    publish(&scene, "pay v2", &[(0, &all), (1, &all)]);
    until_versions(&scene, "v2 v1 v1 v1 v1 v1").await;
    scene.kill();
    scene.worktree.rewrite("all in one commit");
    scene.delete_state();
    scene.start(&[]).await;
    scene.until_logged_for(&[scene.cluster(1)], &["frozen", "cannot be read or rendered"]).await;
    assert_eq!(versions(&scene).await, "v2 v1 v1 v1 v1 v1");
    // Its gates continue.
    confirm(&scene, "pay").await;
    until_versions(&scene, "v2 v1 v1 v2 v1 v1").await;
}
