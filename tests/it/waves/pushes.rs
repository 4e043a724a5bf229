//! Commits that arrive faster than a rollout progresses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sandbox::Scenario;

use super::fixture::{PAY, RINGS, RolloutFixture, TEST_PROD, component, ring_waves};
use crate::support::forge::GiteaStatusServer;
use crate::support::oracle::OracleEvent;

/// The most contents of Deployments in one wave.
fn max_contents_in_wave(scene: &RolloutFixture) -> usize {
    let story = scene.oracle.story();
    let mut most = 0;
    for (_, event) in &story.events {
        let OracleEvent::Write(write) = event else { continue };
        let mut contents: BTreeMap<bool, BTreeSet<_>> = BTreeMap::new();
        for ((cluster, object), seen) in &write.objects_before {
            if &*object.kind == "Deployment" {
                contents.entry(cluster == "c1").or_default().insert(seen.content);
            }
        }
        most = contents.values().map(BTreeSet::len).max().unwrap_or(0).max(most);
    }
    most
}

// Row 29.
#[tokio::test(start_paused = true)]
async fn only_the_last_of_fast_pushes_goes_through() {
    for is_killed in [false, true] {
        let gitea = GiteaStatusServer::start().await;
        let rings = TEST_PROD.replace(", confirm: true", "");
        let mut waves = ring_waves("default/pay");
        waves.gates[0].confirm = false;
        let files = [(RINGS, &*rings), (PAY, &*component("v1")), ("tutti.yaml", &*gitea.instance_manifest())];
        let mut scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, waves).await;
        for cluster in ["c1", "c2", "c3"] {
            let slow = "rules: [{image: 'registry.example.com/pay:*', ready-after: 15s}]";
            scene.cluster(cluster).set_scenario(Scenario::parse(slow).expect("a scenario"));
        }
        let mut commits = Vec::new();
        for number in 2..10 {
            commits.push(scene.push_pay(&format!("v{number}"), &component(&format!("v{number}"))).await);
            tokio::time::sleep(Duration::from_secs(10)).await;
            if is_killed && number % 3 == 0 {
                scene.restart().await;
            }
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        scene.until_over().await;
        assert_eq!(scene.versions().await, ["v9", "v9", "v9"]);
        let most = max_contents_in_wave(&scene);
        assert!(most <= 2, "{most} contents in a wave");
        let last = commits.pop().expect("the last");
        gitea.until_status(&last, "success").await;
        for commit in &commits {
            let words = gitea.last_status(commit);
            assert!(words.contains("superseded by"), "{}: {words:?}", commit.short());
        }
        scene.assert_ends_at_head();
    }
}
