//! `mode: observe`: everything is planned and reported, nothing is written.

use sandbox::RequestMatch;
use tutti::plan::PlanAction;
use tutti::report::TargetPhase;

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{TestFleet, set_observe_mode, target};
use crate::support::live_objects;
use crate::support::manifests::{INSTANCE, component, config_map, objects_app};

fn observing_instance() -> String {
    INSTANCE.replace("spec: {}", "spec: {mode: observe}")
}

fn fleet(instance: &str) -> TestFleet {
    let maps = [config_map("default", "one", "ours"), config_map("default", "two", "ours")].join("---\n");
    TestFleet::new(
        &["bj1"],
        &[
            ("tutti.yaml", instance),
            ("apps/web/app.yaml", &component("web", "registry.example.com/web:1")),
            ("apps/settings/app.yaml", &objects_app("default", "settings")),
            ("apps/settings/objects/maps.yaml", &maps),
        ],
    )
}

fn intended_actions(overview: &tutti::report::Overview, app: &str) -> Vec<String> {
    let plan = target(overview, "bj1", app).plan.as_ref().expect("a plan");
    plan.steps.iter().map(|step| format!("{} {}", step.intended_action().as_str(), step.object)).collect()
}

#[tokio::test(start_paused = true)]
async fn first_observe_run_plans_without_writes() {
    let fleet = fleet(&observing_instance());
    live_objects::apply_as(fleet.cluster("bj1"), "kubectl", &config_map("default", "two", "theirs")).await;
    fleet.clear_requests();
    let running = fleet.start().await;
    let now = running
        .until("plans", |now| {
            !now.targets.is_empty()
                && now
                    .targets
                    .iter()
                    .all(|it| matches!(it.phase, TargetPhase::OutOfSync | TargetPhase::Refused))
        })
        .await;
    assert_eq!(
        intended_actions(&now, "default/web"),
        ["create Service default/web", "create Deployment default/web"]
    );
    assert_eq!(
        intended_actions(&now, "default/settings"),
        ["create ConfigMap default/one", "refuse ConfigMap default/two"]
    );
    assert_eq!(target(&now, "bj1", "default/web").detail, "2 writes planned");
    assert_eq!(
        target(&now, "bj1", "default/settings").detail,
        "ConfigMap default/two: tutti does not manage it (managers: kubectl); `adopt: true` in the app takes it over"
    );
    tokio::time::sleep(std::time::Duration::from_secs(300)).await;
    assert_eq!(fleet.cluster("bj1").count_requests(&RequestMatch::writes()), 0);
    assert!(live_objects::managed_objects(fleet.cluster("bj1")).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn changes_and_deletes_are_only_planned() {
    let fleet = fleet(INSTANCE);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.stop().await;
    fleet.clear_requests();

    let revision = fleet.repository.commit(
        "A change and a delete",
        &[("apps/settings/objects/maps.yaml", Some(&config_map("default", "one", "changed")))],
    );
    let running = fleet.start_with(&ProcessConnections::unlimited(), set_observe_mode).await;
    let now = running
        .until("a plan", |now| {
            now.revision.as_ref() == Some(&revision)
                && now.targets.iter().any(|it| it.phase == TargetPhase::OutOfSync)
                && now.targets.iter().all(|it| it.plan.is_some())
        })
        .await;
    assert_eq!(intended_actions(&now, "default/settings"), ["configure ConfigMap default/one"]);
    let step = &target(&now, "bj1", "default/settings").plan.as_ref().expect("a plan").steps[0];
    assert_eq!(step.action, PlanAction::Skip);
    let deletions: Vec<&str> = now.deletions.iter().map(|it| it.object.as_str()).collect();
    assert_eq!(deletions, ["ConfigMap default/two"]);
    tokio::time::sleep(std::time::Duration::from_secs(300)).await;
    assert_eq!(fleet.cluster("bj1").count_requests(&RequestMatch::writes()), 0);
}

/// A commit that ends observe mode does not write changes that were only planned before.
#[tokio::test(start_paused = true)]
async fn commit_that_ends_observe_writes_only_its_content() {
    let fleet = fleet(INSTANCE);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let maps = |value: &str| ["one", "two"].map(|name| config_map("default", name, value)).join("---\n");
    let (second, third) = (maps("second"), maps("third"));
    let files = "apps/settings/objects/maps.yaml";
    let changes = [("tutti.yaml", Some(&*observing_instance())), (files, Some(&*second))];
    fleet.push(&running, "Observe", &changes).await;
    running.until("a plan", |now| now.targets.iter().any(|it| it.phase == TargetPhase::OutOfSync)).await;
    fleet.clear_requests();
    let revision =
        fleet.push(&running, "Enforce", &[("tutti.yaml", Some(INSTANCE)), (files, Some(&third))]).await;
    running.until_converged(&revision).await;
    assert_eq!(fleet.request_counts(), ["2 apply configmaps"], "the second version is never written");
}

/// Commits and edits have no effect until the mark is removed.
#[tokio::test(start_paused = true)]
async fn unmanaged_or_paused_app_is_not_changed() {
    let app = objects_app("default", "settings");
    let unmanaged = app
        .replace("namespace: default}", "namespace: default, annotations: {tutti.dev/unmanaged: \"true\"}}");
    let paused = app.replace("spec: {", "spec: {paused: true, ");
    for (left, phase) in [(unmanaged, TargetPhase::Unmanaged), (paused, TargetPhase::Paused)] {
        let fleet = fleet(INSTANCE);
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        let other = config_map("default", "one", "changed");
        let changes = [
            ("apps/settings/app.yaml", Some(left.as_str())),
            ("apps/settings/objects/maps.yaml", Some(&other)),
        ];
        fleet.push(&running, "Leave it", &changes).await;
        running.until("it is left alone", |now| target(now, "bj1", "default/settings").phase == phase).await;
        let bj1 = fleet.cluster("bj1");
        live_objects::apply_as(bj1, "kubectl", &config_map("default", "one", "theirs")).await;
        fleet.clear_requests();
        tokio::time::sleep(std::time::Duration::from_secs(600)).await;
        assert_eq!(bj1.count_requests(&RequestMatch::writes()), 0, "{phase:?}");
        running.stop().await;
        let running = fleet.start().await;
        tokio::time::sleep(std::time::Duration::from_secs(600)).await;
        assert_eq!(bj1.count_requests(&RequestMatch::writes()), 0, "{phase:?}, by a process that starts");

        let revision = fleet.push(&running, "Go on", &[("apps/settings/app.yaml", Some(&app))]).await;
        running.until_converged(&revision).await;
        let one = live_objects::get(bj1, "ConfigMap", "default", "one").await.expect("a map");
        assert_eq!(one["data"]["value"], "changed");
        assert!(live_objects::get(bj1, "ConfigMap", "default", "two").await.is_none());
    }
}
