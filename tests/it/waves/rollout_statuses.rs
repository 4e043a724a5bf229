//! The commit status of a rollout.

use std::time::Duration;

use sandbox::Scenario;
use tutti::model::Revision;

use super::fixture::{
    PAY, PodSetsManifest, RINGS, RolloutFixture, TEST_PROD, component, group_waves, ring_waves,
};
use crate::support::forge::GiteaStatusServer;

/// R at v1, with a forge.
async fn ring_fixture_with_forge(gitea: &GiteaStatusServer) -> RolloutFixture {
    let files = [(RINGS, TEST_PROD), (PAY, &*component("v1")), ("tutti.yaml", &*gitea.instance_manifest())];
    let scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, ring_waves("default/pay")).await;
    gitea.until_status(&scene.fleet.first_commit, "success").await;
    scene
}

/// The last status in a context, as `state text`.
fn last_status(gitea: &GiteaStatusServer, revision: &Revision, context: &str) -> String {
    let posts = gitea.posts();
    let of_it = posts.iter().rev().find(|post| post.commit == revision.as_str() && post.context == context);
    of_it.map(|post| format!("{} {}", post.state, post.description)).unwrap_or_default()
}

async fn until_status(
    gitea: &GiteaStatusServer,
    revision: &Revision,
    context: &str,
    beginning: &str,
) -> String {
    for _ in 0..9_000 {
        let text = last_status(gitea, revision, context);
        if text.starts_with(beginning) {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{context} never became {beginning:?}: {:#?}", gitea.statuses_of(revision));
}

#[tokio::test(start_paused = true)]
async fn confirmation_and_its_command_are_told() {
    let gitea = GiteaStatusServer::start().await;
    let mut scene = ring_fixture_with_forge(&gitea).await;
    let second = scene.push_pay("v2", &component("v2")).await;
    let asked = "pending wave prod waits for confirmation: tutti approve rollout default/pay --through prod, 1/3 done, \
         wave test has it since ";
    let text = until_status(&gitea, &second, "tutti/deploy/prod", asked).await;
    assert_eq!(last_status(&gitea, &second, "tutti/deploy/test"), "success 1 app healthy on 1 cluster");
    // It stays unchanged for as long as that lasts, also in another process.
    let posts = gitea.posts().len();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(gitea.posts().len(), posts, "{:#?}", gitea.statuses_of(&second));
    scene.restart().await;
    scene.until_confirmation_requested("prod").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(last_status(&gitea, &second, "tutti/deploy/prod"), text);
    scene.confirm("prod").await;
    until_status(&gitea, &second, "tutti/deploy/prod", "success 2/2 healthy on 2 clusters").await;
    gitea.assert_no_repeated_status();
}

#[tokio::test(start_paused = true)]
async fn unit_that_others_wait_for_is_told() {
    let gitea = GiteaStatusServer::start().await;
    let scene = ring_fixture_with_forge(&gitea).await;
    let bad = scene.push_pay("broken", &component("broken-1")).await;
    let cause = "ImagePullBackOff pay-";
    let failed =
        until_status(&gitea, &bad, "tutti/deploy/test", &format!("failure c1 default/pay: {cause}")).await;
    assert!(failed.ends_with("(registry.example.com/pay:broken-1), wave test 0/1 done"), "{failed}");
    let waits = format!("pending wave test of default/pay 0/1 done: c1: {cause}");
    until_status(&gitea, &bad, "tutti/deploy/prod", &waits).await;
    // It fails at the deadline.
    let waits = "pending wave test of default/pay has failed, 0/1 done: c1: ";
    until_status(&gitea, &bad, "tutti/deploy/prod", waits).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let posts = gitea.posts().len();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(gitea.posts().len(), posts, "{:#?}", gitea.statuses_of(&bad));
}

#[tokio::test(start_paused = true)]
async fn pod_set_that_others_wait_for_is_told() {
    let gitea = GiteaStatusServer::start().await;
    let manifest = |version: &str| {
        let sets = PodSetsManifest::all_at(version);
        let strategy = "upgradeType: canary|blue|green, canaryClusters: [c1]".to_owned();
        PodSetsManifest { strategy, ..sets }.manifest()
    };
    let files = [(PAY, &*manifest("v3")), ("tutti.yaml", &*gitea.instance_manifest())];
    let mut waves = group_waves("default/pay");
    waves.gates.iter_mut().for_each(|gate| gate.confirm = false);
    let scene = RolloutFixture::new_started(&["c1", "c2"], &files, waves).await;
    gitea.until_status(&scene.fleet.first_commit, "success").await;
    let slow = "rules: [{image: 'registry.example.com/pay:v4', ready-after: 20s}]";
    scene.cluster("c1").set_scenario(Scenario::parse(slow).expect("a scenario"));
    let next = scene.push_pay("v4", &manifest("v4")).await;
    let waits = "pending wave first of default/pay 0/1 done: pay-c1-canary on c1: ";
    until_status(&gitea, &next, "tutti/deploy", waits).await;
    scene.until_over().await;
    until_status(&gitea, &next, "tutti/deploy", "success 2/2 healthy on 2 clusters").await;
}

#[tokio::test(start_paused = true)]
async fn automatic_revert_names_its_commands() {
    let gitea = GiteaStatusServer::start().await;
    let reverting = |version: &str| {
        format!("{}  updateStrategy: {{onFailure: revert, progressDeadline: 60s}}\n", component(version))
    };
    let rings = TEST_PROD.replace(", confirm: true", "");
    let mut waves = ring_waves("default/pay");
    waves.gates[0].confirm = false;
    waves.reverts = true;
    let files = [(RINGS, &*rings), (PAY, &*reverting("v1")), ("tutti.yaml", &*gitea.instance_manifest())];
    let scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, waves).await;
    gitea.until_status(&scene.fleet.first_commit, "success").await;
    let bad = scene.push_pay("broken", &reverting("broken-1")).await;
    let reverted = "failure c1 default/pay: version ";
    let text = until_status(&gitea, &bad, "tutti/deploy/test", reverted).await;
    let commands = format!(": git revert {}, or tutti approve rollout default/pay --retry", bad.short());
    assert!(text.ends_with(&commands), "{text}");
}
