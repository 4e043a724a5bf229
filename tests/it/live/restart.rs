//! A process killed between two applies continues without a trace after a restart.

use std::time::Duration;

use serde_json::Value;

use super::support::{LiveFixture, configmap, print_uncaptured};

const OBJECTS: usize = 150;

/// The round is in the data, and in a label for counting.
fn objects(round: usize) -> Vec<Value> {
    let numbered = |number: usize| {
        let mut object = configmap(&format!("setting-{number}"), "round", &round.to_string());
        object["metadata"]["labels"] = serde_json::json!({"round": round.to_string()});
        object
    };
    (0..OBJECTS).map(numbered).collect()
}

#[tokio::test]
async fn a_kill_between_two_applies_leaves_no_trace() {
    let Some(scene) = LiveFixture::new("restart", 2).await else { return };
    let cluster = scene.cluster(0);
    let mut in_between = 0;
    for (round, delay) in [0, 20, 60, 120, 240].into_iter().enumerate() {
        scene.write_app("settings", &objects(round));
        let commit = scene.worktree.publish(&format!("round {round}"));
        scene.start(&[]).await;
        scene
            .eventually("the first object", async || match scene.count_of_round(cluster, round).await {
                0 => Err("none yet".to_owned()),
                _ => Ok(()),
            })
            .await;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        scene.kill();
        let there = scene.count_of_round(cluster, round).await;
        in_between += usize::from(there < OBJECTS);
        print_uncaptured(&format!(
            "live tests: killed {delay} ms after the first apply, {there} of {OBJECTS} objects applied"
        ));

        scene.start(&[]).await;
        scene.until_succeeded(&commit).await;
        for cluster in scene.clusters() {
            assert_eq!(
                scene.count_of_round(cluster, round).await,
                OBJECTS,
                "round {round} on {}",
                cluster.name()
            );
            assert_eq!(
                scene.managed_objects(cluster, "configmaps").await.len(),
                OBJECTS,
                "none twice, none too many"
            );
        }
        let history = scene.status_history(&commit, "deploy").await;
        assert_eq!(history.iter().filter(|(state, _)| state == "success").count(), 1, "{history:?}");
        scene.kill();
    }
    assert!(in_between > 0, "no kill hit the middle of an apply");
}

impl LiveFixture {
    /// The number of objects of this round on a cluster.
    async fn count_of_round(&self, cluster: &live::LiveCluster, round: usize) -> usize {
        self.list(cluster, "configmaps", &format!("?labelSelector=round%3D{round}")).await.len()
    }
}
