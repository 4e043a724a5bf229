//! Objects that leave the repository and stay in the cluster.

use serde_json::{Value, json};
use tutti::plan::StepReason;

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{TestFleet, deletion_causes, set_observe_mode, wait_for_effects};
use crate::support::live_objects::{self, delete_count};
use crate::support::manifests::{config_map, deployment, objects_app};

const ORPHAN_APPROVAL: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Approval
metadata: {name: hand-over-legacy}
spec: {app: default/legacy, action: orphan}
";
const APPROVAL_FILE: &str = "approvals/legacy.yaml";
const APP: &str = "apps/legacy/app.yaml";
const MANIFESTS: &str = "apps/legacy/objects/all.yaml";

fn fleet(app: &str) -> TestFleet {
    let web = deployment("default", "web", "web", "registry.example.com/web:1");
    // Annotations by people are removed with all our metadata.
    let said =
        "annotations: {tutti.dev/prune: keep, tutti.dev/force: 'true', tutti.dev/replace: 'true'}, name: map";
    let map = config_map("default", "map", "first").replace("name: map", said);
    let all = format!("{web}---\n{map}");
    TestFleet::new(
        &["bj1"],
        &[
            (APP, app),
            (MANIFESTS, &all),
            ("apps/other/app.yaml", &objects_app("default", "other")),
            ("apps/other/objects/own.yaml", &config_map("default", "own", "first")),
        ],
    )
}

fn field_managers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().filter_map(|entry| entry["manager"].as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn orphaned_app_keeps_objects_without_owner() {
    let fleet = fleet(&objects_app("default", "legacy"));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let bj1 = fleet.cluster("bj1");
    let get = async |kind: &str, name: &str| {
        live_objects::get(bj1, kind, "default", name).await.expect("it is there")
    };
    let (web, map) = (get("Deployment", "web").await, get("ConfigMap", "map").await);
    running.stop().await;
    fleet.clear_requests();

    let gone = [(APP, None), (MANIFESTS, None), (APPROVAL_FILE, Some(ORPHAN_APPROVAL))];
    let revision = fleet.repository.commit("Hand it over", &gone);
    // The plan shows it before it happens.
    let looking = fleet.start_with(&ProcessConnections::unlimited(), set_observe_mode).await;
    let now = looking.until("what is orphaned", |now| now.deletions.len() == 2).await;
    assert!(now.deletions.iter().all(|it| it.action.as_str() == "orphan"), "{now:?}");
    let expected = json!({"code": "released", "approval": "hand-over-legacy"});
    assert!(deletion_causes(&now).iter().all(|cause| *cause == expected), "{now:?}");
    looking.stop().await;

    let running = fleet.start().await;
    running.until_converged(&revision).await;
    wait_for_effects().await;
    let is_list = |it: &str| it.contains(" list ") || it.contains(" stream ");
    let counted: Vec<String> =
        fleet.request_counts().into_iter().filter(|it| !is_list(it) && !it.contains("/api")).collect();
    let expected =
        ["1 get configmaps", "1 get deployments.apps", "1 patch configmaps", "1 patch deployments.apps"];
    assert_eq!(counted, expected);
    assert_eq!(
        live_objects::managed_objects(bj1).await.into_keys().collect::<Vec<_>>(),
        ["ConfigMap default/own"]
    );
    // The content is unchanged; no metadata of ours is left.
    for (before, kind, name) in [(&web, "Deployment", "web"), (&map, "ConfigMap", "map")] {
        let after = get(kind, name).await;
        assert_eq!((&after["spec"], &after["data"]), (&before["spec"], &before["data"]));
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert!(!after["metadata"]["labels"].to_string().contains("tutti.dev"), "{after}");
        assert!(!after["metadata"]["annotations"].to_string().contains("tutti.dev"), "{after}");
        assert!(!field_managers(&after).contains(&"tutti-main"), "{after}");
    }
    // The next app adopts it without a conflict.
    let applied = config_map("default", "map", "second");
    live_objects::apply_as(bj1, "kubectl", &applied).await;
    wait_for_effects().await;
    assert_eq!(get("ConfigMap", "map").await["data"]["value"], "second");
    let now = running.overview.borrow().clone();
    assert_eq!(now.approvals_unused, ["hand-over-legacy"], "it has done its work");
}

#[tokio::test(start_paused = true)]
async fn app_with_prune_never_keeps_its_objects() {
    let fleet = fleet(&objects_app("default", "legacy").replace("spec: {", "spec: {prune: never, "));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.stop().await;
    // The repository no longer has the objects, and a new process does not know them.
    let revision = fleet.repository.commit("Without it", &[(APP, None), (MANIFESTS, None)]);
    let running = fleet.start().await;
    let now = running.until_converged(&revision).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 0);
    assert_eq!(live_objects::managed_objects(fleet.cluster("bj1")).await.len(), 3);
    let orphans: Vec<&str> = now.orphans.iter().map(|it| it.object.as_str()).collect();
    assert_eq!(orphans, ["Deployment default/web", "ConfigMap default/map"]);
    assert_eq!(now.orphans[0].cause, Some(StepReason::KeepAnnotation));

    // An approval releases them.
    let revision = fleet.push(&running, "Hand it over", &[(APPROVAL_FILE, Some(ORPHAN_APPROVAL))]).await;
    running.until_converged(&revision).await;
    let managed =
        async || live_objects::managed_objects(fleet.cluster("bj1")).await.into_keys().collect::<Vec<_>>();
    assert_eq!(managed().await, ["ConfigMap default/own"]);
    for (kind, name) in [("Deployment", "web"), ("ConfigMap", "map")] {
        let left = live_objects::get(fleet.cluster("bj1"), kind, "default", name).await.expect("it stays");
        assert!(!left["metadata"]["annotations"].to_string().contains("tutti.dev"), "{left}");
    }

    // The next app that has an object decides about its pruning.
    let (app, map) = (
        objects_app("default", "heir").replace("spec: {", "spec: {adopt: true, "),
        "apps/heir/objects/map.yaml",
    );
    let text = config_map("default", "map", "first");
    let changes =
        [(APPROVAL_FILE, None), ("apps/heir/app.yaml", Some(app.as_str())), (map, Some(text.as_str()))];
    let revision = fleet.push(&running, "Another one has it", &changes).await;
    running.until_converged(&revision).await;
    assert_eq!(managed().await, ["ConfigMap default/map", "ConfigMap default/own"]);
    let other = config_map("default", "other", "first");
    let revision = fleet.push(&running, "And lets it go", &[(map, Some(other.as_str()))]).await;
    running.until_converged(&revision).await;
    assert_eq!(managed().await, ["ConfigMap default/other", "ConfigMap default/own"]);
    assert_eq!(delete_count(fleet.cluster("bj1")), 1);
}

#[tokio::test(start_paused = true)]
async fn unknown_state_orphans_nothing() {
    let fleet = fleet(&objects_app("default", "legacy"));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let broken = objects_app("default", "broken").replace("files", "fils");
    let changes = [
        (APP, None),
        (MANIFESTS, None),
        (APPROVAL_FILE, Some(ORPHAN_APPROVAL)),
        ("apps/broken/app.yaml", Some(&*broken)),
    ];
    fleet.push(&running, "With an error elsewhere", &changes).await;
    running.until("an error", |now| now.has_errors()).await;
    wait_for_effects().await;
    assert_eq!(fleet.request_counts(), Vec::<String>::new());
    assert_eq!(live_objects::managed_objects(fleet.cluster("bj1")).await.len(), 3);
}
