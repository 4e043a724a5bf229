//! Commits that arrive faster than a rollout progresses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sandbox::Scenario;

use super::scene::{PAY, RINGS, Scene, TEST_PROD, component, rings_of};
use crate::support::forge::Gitea;
use crate::support::oracle::Event;

/// The most contents of Deployments in one wave.
fn most_contents_in_a_wave(scene: &Scene) -> usize {
    let story = scene.oracle.story();
    let mut most = 0;
    for (_, event) in &story.events {
        let Event::Write(write) = event else { continue };
        let mut contents: BTreeMap<bool, BTreeSet<_>> = BTreeMap::new();
        for ((cluster, object), seen) in &write.world {
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
        let gitea = Gitea::start().await;
        let rings = TEST_PROD.replace(", confirm: true", "");
        let mut waves = rings_of("default/pay");
        waves.gates[0].confirm = false;
        let files = [(RINGS, &*rings), (PAY, &*component("v1")), ("tutti.yaml", &*gitea.instance())];
        let mut scene = Scene::begin(&["c1", "c2", "c3"], &files, waves).await;
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
        let most = most_contents_in_a_wave(&scene);
        assert!(most <= 2, "{most} contents in a wave");
        let last = commits.pop().expect("the last");
        gitea.until(&last, "success").await;
        for commit in &commits {
            let words = gitea.last(commit);
            assert!(words.contains("superseded by"), "{}: {words:?}", commit.short());
        }
        scene.ends_at_head();
    }
}
