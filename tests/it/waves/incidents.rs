//! Incidents of other tools with stepwise rollouts, by scenario and end state.
//!
//! | thread | here |
//! |---|---|
//! | argo-cd 29410, 22558 (and 29347, 22852) | [`an_old_healthy_version_completes_no_wave`], `first_write_order::groups_come_one_after_another_each_confirmed` |
//! | argo-cd 19535 | [`a_newer_commit_restarts_at_the_first_wave`], `pushes::only_the_last_of_fast_pushes_goes_through` |
//! | argo-cd 22976 (and 12459, 12202) | [`later_wave_starts_by_itself_in_each_app`] |
//! | argo-cd 14687 | [`drift_behind_a_held_wave_is_repaired`], `basics::held_unit_is_repaired_and_scaled` |
//! | argo-cd 14505 | `moves::deletes_wait_for_the_end_of_the_rollout`, `moves::deleted_app_goes_in_reverse_order_within_caps` |
//! | argo-rollouts 574 | [`rollback_of_a_finished_version_walks_no_steps`], `back::revert_takes_back_only_what_changed` |
//! | argo-rollouts 4261 | `scale::number_rises_at_once_in_a_held_unit`, `scale::a_held_unit_keeps_its_replicas_beside_autoscalers` |
//! | argo-rollouts 1774 (and 1377, 3110) | [`fix_passes_though_the_old_version_is_broken`] |
//! | fleet 594 | [`offline_cluster_stops_no_other`] |
//! | flux2 3378 (and 125, 3390) | [`a_dependent_app_waits_for_the_new_version`] |

use std::time::Duration;

use tutti::report::{Overview, TargetPhase};

use super::fixture::{
    PAY, RINGS, RolloutFixture, TEST_PROD, component, hold_reason, pay_target, ring_fixture, ring_waves,
    sleep_a_while, unit_report,
};
use crate::support::live_objects;
use crate::support::manifests;
use crate::support::oracle::{ExpectedGate, ExpectedWaves, OracleEvent};

/// R without confirmation.
async fn unconfirmed_fixture() -> RolloutFixture {
    let files = [(RINGS, &*TEST_PROD.replace(", confirm: true", "")), (PAY, &*component("v1"))];
    RolloutFixture::new_started(&["c1", "c2", "c3"], &files, unconfirmed_waves("default/pay")).await
}

fn unconfirmed_waves(app: &str) -> ExpectedWaves {
    let mut waves = ring_waves(app);
    waves.gates[0] = ExpectedGate::new("test");
    waves
}

/// The clusters in the order of their first write of this version.
fn first_write_order(scene: &RolloutFixture, app: &str) -> Vec<String> {
    let story = scene.oracle.story();
    let head =
        story.events.iter().rposition(|(_, event)| matches!(event, OracleEvent::Commit(_))).unwrap_or(0);
    let mut clusters: Vec<String> = Vec::new();
    for (_, event) in &story.events[head..] {
        if let OracleEvent::Write(write) = event
            && write.applied.as_ref().is_some_and(|applied| applied.app == app)
            && !clusters.contains(&write.cluster)
        {
            clusters.push(write.cluster.clone());
        }
    }
    clusters
}

// A commit arrives; the app of the first step still shows Synced and Healthy of the commit before, and the last step started first.
#[tokio::test(start_paused = true)]
async fn an_old_healthy_version_completes_no_wave() {
    let scene = unconfirmed_fixture().await;
    // Test answers slowly, its events are late, and its new pods take a minute: for a while it shows the old version as healthy.
    let slow = "rules: [{image: 'registry.example.com/pay:v2', ready-after: 60s}]";
    scene.cluster("c1").set_scenario(sandbox::Scenario::parse(slow).expect("a scenario"));
    scene.cluster("c1").set_latency(Duration::from_secs(3));
    live_objects::silence_watches(scene.cluster("c1"), "deployments.apps", Duration::from_secs(1));
    scene.cluster("c1").cut_watches();
    scene.push_pay("v2", &component("v2")).await;
    tokio::time::sleep(Duration::from_secs(55)).await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    assert_eq!(first_write_order(&scene, "default/pay")[0], "c1");
    scene.assert_ends_at_head();
}

// A newer commit during a step was left half done, or skipped the step.
#[tokio::test(start_paused = true)]
async fn a_newer_commit_restarts_at_the_first_wave() {
    let scene = unconfirmed_fixture().await;
    scene.break_image("c2", "registry.example.com/pay:v2");
    scene.push_pay("v2", &component("v2")).await;
    scene.until("prod changes", |now| unit_report(now, "c2", "").is_some_and(|it| it.is_at_head)).await;
    scene.cluster("c1").set_scenario(
        sandbox::Scenario::parse("rules: [{image: 'registry.example.com/pay:v3', ready-after: 60s}]")
            .expect("a scenario"),
    );
    scene.push_pay("v3", &component("v3")).await;
    scene.until("test changes", |now| unit_report(now, "c1", "").is_some_and(|it| it.is_at_head)).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    // A broken unit does not stay at v2: it keeps what ran before, or v2, but never gets v3.
    assert_eq!(scene.version("c1", "pay").await, "v3");
    assert_ne!(scene.version("c2", "pay").await, "v3");
    assert_ne!(scene.version("c3", "pay").await, "v3");
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v3", "v3", "v3"]);
    scene.assert_ends_at_head();
}

// The first app synced, and the next one never started.
#[tokio::test(start_paused = true)]
async fn later_wave_starts_by_itself_in_each_app() {
    let other = |version: &str| manifests::component("web", &format!("registry.example.com/web:{version}"));
    let files = [
        (RINGS, &*TEST_PROD.replace(", confirm: true", "")),
        (PAY, &*component("v1")),
        ("apps/web/app.yaml", &*other("v1")),
    ];
    let mut scene =
        RolloutFixture::new_started(&["c1", "c2", "c3"], &files, unconfirmed_waves("default/pay")).await;
    scene.waves.push(unconfirmed_waves("default/web"));
    for version in ["v2", "v3"] {
        let both = [(PAY, Some(&*component(version))), ("apps/web/app.yaml", Some(&*other(version)))];
        let revision = scene.push("Both", &both).await;
        scene.until_converged(&revision).await;
        assert_eq!(scene.versions().await, [version; 3]);
        for app in ["default/pay", "default/web"] {
            assert_eq!(first_write_order(&scene, app)[0], "c1");
        }
    }
    scene.assert_ends_at_head();
}

// An edit behind a step that waits for a person was not repaired.
#[tokio::test(start_paused = true)]
async fn drift_behind_a_held_wave_is_repaired() {
    let scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    let evil = serde_json::json!({"spec": {"template": {"spec": {"containers": [{"name": "pay", "image": "evil:9"}]}}}});
    live_objects::edit_as(scene.cluster("c3"), "kubectl-edit", ("Deployment", "pay"), &evil).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.assert_no_violation();
}

// A rollback passed every step again, with its pauses.
#[tokio::test(start_paused = true)]
async fn rollback_of_a_finished_version_walks_no_steps() {
    let scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    // Test itself is unhealthy now: it holds no revert.
    scene.break_image("c1", "*");
    scene.until("test is unwell", |now| pay_target(now, "c1").phase != TargetPhase::Running).await;
    scene.push_pay("Revert", &component("v1")).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    scene.assert_no_violation();
}

// A fix could not pass, as the version that it replaces was broken.
#[tokio::test(start_paused = true)]
async fn fix_passes_though_the_old_version_is_broken() {
    let scene = ring_fixture().await;
    for cluster in ["c1", "c2", "c3"] {
        scene.break_image(cluster, "registry.example.com/pay:v1");
    }
    scene.until("prod is unwell", |now| pay_target(now, "c3").phase == TargetPhase::Degraded).await;
    sleep_a_while().await;
    scene.push_pay("Fix", &component("v2")).await;
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

// One offline cluster held all others, with a misleading message.
#[tokio::test(start_paused = true)]
async fn offline_cluster_stops_no_other() {
    let scene = ring_fixture().await;
    scene.set_down("c2", true);
    scene.until("c2 is away", |now| pay_target(now, "c2").phase == TargetPhase::Unreachable).await;
    scene.push_pay("v2", &component("v2")).await;
    scene.confirm("prod").await;
    scene
        .until("c3 has it", |now| unit_report(now, "c3", "").is_some_and(|it| it.is_done && it.is_at_head))
        .await;
    assert_eq!(scene.versions_of(&["c1", "c3"]).await, ["v2", "v2"]);
    let words = hold_reason(&scene.overview(), "c2", "");
    assert!(words.contains(" is left out: "), "{words}");
    tokio::time::sleep(Duration::from_secs(900)).await;
    // It returns, gets the version of its wave, and holds none.
    scene.set_down("c2", false);
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}

// A dependent app started while the other one was healthy at the version before, or after a restart of the controller.
#[tokio::test(start_paused = true)]
async fn a_dependent_app_waits_for_the_new_version() {
    let base = |version: &str| manifests::component("base", &format!("registry.example.com/base:{version}"));
    let top = |version: &str| format!("{}  updateStrategy: {{after: [base]}}\n", component(version));
    let files = [("apps/base/app.yaml", &*base("v1")), (PAY, &*top("v1"))];
    let waves = ExpectedWaves { wave_of: |_| 0, ..ring_waves("default/pay") };
    for is_restarted in [false, true] {
        let mut scene = RolloutFixture::new_started(&["c1"], &files, waves.clone()).await;
        let slow = "rules: [{image: 'registry.example.com/base:v2', ready-after: 60s}]";
        scene.cluster("c1").set_scenario(sandbox::Scenario::parse(slow).expect("a scenario"));
        scene.push("Both", &[("apps/base/app.yaml", Some(&base("v2"))), (PAY, Some(&top("v2")))]).await;
        let waits = |now: &Overview| pay_target(now, "c1").detail.starts_with("waits for app default/base");
        scene.until("it waits", waits).await;
        if is_restarted {
            scene.restart().await;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(
            (scene.version("c1", "base").await, scene.version("c1", "pay").await),
            ("v2".into(), "v1".into())
        );
        let head = scene.head();
        scene.until_converged(&head).await;
        assert_eq!(scene.version("c1", "pay").await, "v2");
        scene.assert_ends_at_head();
    }
}
