//! A newer revision arrives while an older one is being applied.

use std::collections::BTreeSet;
use std::time::Duration;

use sandbox::{Fault, FaultPlan, FaultRule, RequestMatch};
use serde_json::json;

use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::forge::GiteaStatusServer;
use crate::support::live_objects::{self, edit_as};
use crate::support::manifests::{INSTANCE, cluster, config_map, deployment, objects_app};

fn app(image: &str, value: &str) -> String {
    [config_map("default", "web", value), deployment("default", "web", "web", image)].join("---\n")
}

fn fleet(instance: &str) -> TestFleet {
    let first = app("registry.example.com/web:1", "first");
    TestFleet::new(
        &["bj1"],
        &[
            ("tutti.yaml", instance),
            ("apps/web/app.yaml", &objects_app("default", "web")),
            ("apps/web/objects/web.yaml", &first),
        ],
    )
}

#[tokio::test(start_paused = true)]
async fn superseded_revision_starts_no_new_writes() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea.instance_manifest());
    let bj1 = fleet.cluster("bj1");
    // The first revision blocks in its first phase, configuration; workloads come later.
    let config = RequestMatch::writes().resource("configmaps");
    bj1.fail_next(config.clone(), 1, Fault::Delay(Duration::from_secs(20)));
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "pending 0/1 healthy").await;
    while bj1.count_requests(&config) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let second = app("registry.example.com/web:2", "second");
    let revision = fleet.push(&running, "Second", &[("apps/web/objects/web.yaml", Some(&second))]).await;
    running.until_converged(&revision).await;
    gitea.until_status(&revision, "success").await;

    // The Deployment of the first revision was never applied.
    let web = live_objects::get(bj1, "Deployment", "default", "web").await.expect("a Deployment");
    assert_eq!(web["metadata"]["generation"], 1);
    assert_eq!(web["metadata"]["annotations"]["tutti.dev/revision"], revision.as_str());
    assert_eq!(bj1.count_requests(&RequestMatch::writes().resource("deployments.apps")), 1);
    assert_eq!(bj1.count_requests(&config), 2);
    // The last write of the first revision is not reported for the second.
    let writes = running.overview.borrow().writes.clone();
    assert_eq!((writes.created, writes.configured), (1, 1));

    let expected = format!("skipped superseded by {}", revision.short());
    gitea.until_status(&fleet.first_commit, &expected).await;
    assert_eq!(gitea.final_status(&fleet.first_commit), expected);
}

#[tokio::test(start_paused = true)]
async fn only_the_last_of_many_pushes_is_applied() {
    let fleet = fleet(INSTANCE);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let mut revision = fleet.first_commit.clone();
    for number in 2..10 {
        let text = app(&format!("registry.example.com/web:{number}"), "first");
        revision = fleet
            .push(&running, &format!("Release {number}"), &[("apps/web/objects/web.yaml", Some(&text))])
            .await;
    }
    running.until_converged(&revision).await;
    let web =
        live_objects::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("a Deployment");
    assert_eq!(web.pointer("/spec/template/spec/containers/0/image").unwrap(), "registry.example.com/web:9");
    // The first may already be in progress; those between are never seen.
    let writes = fleet.cluster("bj1").count_requests(&RequestMatch::writes());
    assert!(writes <= 2, "{:?}", fleet.request_counts());
}

#[tokio::test(start_paused = true)]
async fn older_commit_of_another_app_is_reported_completely() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea.instance_manifest());
    let bj1 = fleet.cluster("bj1");
    bj1.fail_next(
        RequestMatch::writes().resource("configmaps").name("web"),
        1,
        Fault::Delay(Duration::from_secs(20)),
    );
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "pending 0/1 healthy").await;
    let revision = fleet
        .push(
            &running,
            "Another app",
            &[
                ("apps/other/app.yaml", Some(&objects_app("default", "other"))),
                ("apps/other/objects/one.yaml", Some(&config_map("default", "one", "first"))),
            ],
        )
        .await;
    running.until_converged(&revision).await;
    gitea.until_status(&revision, "success").await;
    gitea.until_status(&fleet.first_commit, "success").await;
    assert_eq!(gitea.final_status(&revision), "success 1 app healthy on 1 cluster");
    assert_eq!(gitea.final_status(&fleet.first_commit), "success 1 app healthy on 1 cluster");
    gitea.assert_no_repeated_status();
}

/// Waits until an apply of the ConfigMap is in progress.
async fn wait_for_apply(fleet: &TestFleet, config: &RequestMatch) {
    while fleet.cluster("bj1").count_requests(config) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Starts; the first write of a ConfigMap takes 25 s. Returns a match for these writes.
async fn start_with_slow_write(fleet: &TestFleet) -> (RunningController, RequestMatch) {
    let config = RequestMatch::writes().resource("configmaps");
    fleet.cluster("bj1").fail_next(config.clone(), 1, Fault::Delay(Duration::from_secs(25)));
    let running = fleet.start().await;
    wait_for_apply(fleet, &config).await;
    (running, config)
}

#[tokio::test(start_paused = true)]
async fn re_added_app_waits_for_running_writes() {
    let fleet = fleet(INSTANCE);
    let bj1 = fleet.cluster("bj1");
    let (running, config) = start_with_slow_write(&fleet).await;
    let paths = ["apps/web/app.yaml", "apps/web/objects/web.yaml"];
    fleet.push(&running, "It goes", &paths.map(|path| (path, None))).await;
    running.until("no target", |now| now.targets.is_empty()).await;
    let (manifest, second) = (objects_app("default", "web"), app("registry.example.com/web:2", "second"));
    let back = [(paths[0], Some(manifest.as_str())), (paths[1], Some(second.as_str()))];
    let revision = fleet.push(&running, "It comes back", &back).await;
    running.until("a target", |now| now.revision.as_ref() == Some(&revision) && now.targets.len() == 1).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(
        bj1.count_requests(&config),
        1,
        "not while the first is under way: {:?}",
        fleet.request_counts()
    );

    running.until_converged(&revision).await;
    let map = live_objects::get(bj1, "ConfigMap", "default", "web").await.expect("a map");
    assert_eq!(map["data"]["value"], "second");
    assert_eq!(bj1.count_requests(&config), 2);
    let web = live_objects::get(bj1, "Deployment", "default", "web").await.expect("a Deployment");
    assert_eq!(web["metadata"]["generation"], 1, "what the first commit said of it was never sent");
    assert_eq!(bj1.count_requests(&RequestMatch::writes().resource("deployments.apps")), 1);
}

#[tokio::test(start_paused = true)]
async fn conflict_is_not_retried_after_git_changes() {
    let fleet = fleet(INSTANCE);
    let (bj1, path) = (fleet.cluster("bj1"), "apps/web/objects/web.yaml");
    let manifest = objects_app("default", "web")
        .replace("{files: [objects/*.yaml]}", "{files: [objects/*.yaml], drift: ignore}");
    let running = fleet.start().await;
    let ignoring = fleet.push(&running, "Drift stays", &[("apps/web/app.yaml", Some(&manifest))]).await;
    running.until_converged(&ignoring).await;
    edit_as(bj1, "kubectl-edit", ("ConfigMap", "web"), &json!({"data": {"value": "by hand"}})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;

    fleet.clear_requests();
    let config = RequestMatch::writes().resource("configmaps");
    bj1.fail_next(config.clone(), 1, Fault::Delay(Duration::from_secs(25)));
    let text = |value: &str| app("registry.example.com/web:1", value);
    fleet.push(&running, "Second", &[(path, Some(&text("second")))]).await;
    wait_for_apply(&fleet, &config).await;
    let revision = fleet.push(&running, "Third", &[(path, Some(&text("third")))]).await;
    running.until_converged(&revision).await;
    let map = live_objects::get(bj1, "ConfigMap", "default", "web").await.expect("a map");
    assert_eq!(map["data"]["value"], "third");
    // One of the second commit and two of the third: refused, and then forced.
    let requests = fleet.requests();
    let applies =
        requests.iter().map(|(_, it)| it).filter(|it| it.verb == "apply" && it.resource == "configmaps");
    let by_force: Vec<bool> = applies.map(|it| it.query.contains("force=true")).collect();
    assert_eq!(by_force, [false, false, true]);
}

/// Another commit becomes the head while one is applied, and is itself reverted.
async fn check_revert_during_apply(path: &str, text: &str) {
    let fleet = fleet(INSTANCE);
    let bj1 = fleet.cluster("bj1");
    let (running, config) = start_with_slow_write(&fleet).await;
    let other = fleet.push(&running, "Second", &[(path, Some(text))]).await;
    running.until("the other head", |now| now.revision.as_ref() == Some(&other)).await;
    fleet.repository.reset(&fleet.first_commit);
    running.wake.send(()).await.expect("it runs");
    running.until_converged(&fleet.first_commit).await;
    let map = live_objects::get(bj1, "ConfigMap", "default", "web").await.expect("a map");
    assert_eq!(map["data"]["value"], "first");
    let web = live_objects::get(bj1, "Deployment", "default", "web").await.expect("a Deployment");
    assert_eq!(
        web.pointer("/spec/template/spec/containers/0/image"),
        Some(&"registry.example.com/web:1".into())
    );
    assert_eq!(bj1.count_requests(&config), 1, "the second was never sent: {:?}", fleet.request_counts());
    assert_eq!(bj1.count_requests(&RequestMatch::writes().resource("deployments.apps")), 1);
}

#[tokio::test(start_paused = true)]
async fn reverted_head_is_applied_completely() {
    check_revert_during_apply("apps/web/objects/web.yaml", &app("registry.example.com/web:2", "second"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn head_is_applied_after_maintenance_is_reverted() {
    let maintaining = cluster("bj1").replace("spec: {", "spec: {state: Maintaining, ");
    check_revert_during_apply("clusters/bj1.yaml", &maintaining).await;
}

/// A write to bj1 is refused after 25 s; a commit changes `path` meanwhile. Returns the sends within 10 s of the refusal.
async fn sends_after_refusal(path: &str, text: &str) -> usize {
    let fleet = TestFleet::new(
        &["bj1", "sh1"],
        &[
            ("tutti.yaml", INSTANCE),
            ("apps/web/app.yaml", &objects_app("default", "web")),
            ("apps/web/objects/web.yaml", &config_map("missing", "web", "first")),
        ],
    );
    let bj1 = fleet.cluster("bj1");
    let (running, config) = start_with_slow_write(&fleet).await;
    let other = fleet.push(&running, "Meanwhile", &[(path, Some(text))]).await;
    running.until("the other head", |now| now.revision.as_ref() == Some(&other)).await;
    running.until("a refusal", |now| target(now, "bj1", "default/web").detail.contains("\"missing\"")).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    bj1.count_requests(&config)
}

#[tokio::test(start_paused = true)]
async fn refusal_is_not_retried_when_another_cluster_changes() {
    let labelled = cluster("sh1").replace("environment: prod", "environment: prod, tier: front");
    assert_eq!(sends_after_refusal("clusters/sh1.yaml", &labelled).await, 1);
}

#[tokio::test(start_paused = true)]
async fn refusal_is_retried_when_its_cluster_changes() {
    let labelled = cluster("bj1").replace("environment: prod", "environment: prod, tier: front");
    assert_eq!(sends_after_refusal("clusters/bj1.yaml", &labelled).await, 2);
}

#[tokio::test(start_paused = true)]
async fn refusal_is_retried_when_its_app_changes() {
    let manifest =
        objects_app("default", "web").replace("[objects/*.yaml]", "[objects/*.yaml], drift: ignore");
    assert_eq!(sends_after_refusal("apps/web/app.yaml", &manifest).await, 2);
}

#[tokio::test(start_paused = true)]
async fn refusal_is_retried_when_the_instance_changes() {
    let ignoring = INSTANCE.replace("spec: {}", "spec: {defaults: {drift: ignore}}");
    assert_eq!(sends_after_refusal("tutti.yaml", &ignoring).await, 2);
}

#[tokio::test(start_paused = true)]
async fn lookups_of_older_revision_delay_nothing() {
    let maps = |value: &str| {
        let maps: Vec<String> =
            (0..40).map(|number| config_map("default", &format!("map-{number:02}"), value)).collect();
        maps.join("---\n")
    };
    let app = objects_app("default", "settings").replace("{files:", "{adopt: true, files:");
    let fleet = TestFleet::new(
        &["bj1"],
        &[("apps/settings/app.yaml", &*app), ("apps/settings/objects/maps.yaml", &maps("first"))],
    );
    let bj1 = fleet.cluster("bj1");
    for map in maps("first").split("---\n") {
        live_objects::create_as(bj1, "kubectl-create", map).await;
    }
    let reads = RequestMatch::any().verb("get").resource("configmaps");
    let slow = Fault::Delay(Duration::from_secs(30));
    bj1.set_faults(&FaultPlan::new(1).rule(FaultRule::failing(reads, slow)));
    fleet.clear_requests();
    let running = fleet.start().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let second = maps("second");
    let change = [("apps/settings/objects/maps.yaml", Some(&*second))];
    let revision = fleet.push(&running, "Second", &change).await;
    tokio::time::sleep(Duration::from_secs(75)).await;
    // Eight in parallel, each with two responses of half a minute: the newer revision starts with the same objects.
    let requests = fleet.requests().into_iter().filter(|(_, it)| it.verb == "get");
    let names: BTreeSet<String> = requests.map(|(_, it)| it.name).collect();
    assert!(names.contains("map-00") && names.iter().all(|name| name.as_str() < "map-08"), "{names:?}");
    bj1.set_faults(&FaultPlan::new(1));
    running.until_converged(&revision).await;
}
