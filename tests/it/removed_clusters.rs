//! `state: Removed` of a cluster: its objects are deleted under all safety rules; then its file may be removed.

use sandbox::{RequestMatch, Sandbox};
use serde_json::{Value, json};
use tutti::manifest::approval_to_yaml;
use tutti::report::Overview;

use crate::support::fleet::{TestFleet, deletion_causes, wait_for_effects};
use crate::support::forge::GiteaStatusServer;
use crate::support::live_objects;
use crate::support::manifests::{self, component, config_map, namespace, objects_app};

const GZ1_FILE: &str = "clusters/gz1.yaml";

fn removed_cluster() -> String {
    manifests::cluster("gz1").replace("spec: {", "spec: {state: Removed, ")
}

fn instance_with_large_caps() -> String {
    manifests::INSTANCE.replace("{}", "{caps: {deletes: 100, deletePercent: 100}}")
}

fn gz1_state(now: &Overview) -> (&'static str, &str) {
    let cluster = now.clusters.iter().find(|it| it.name.as_str() == "gz1").expect("gz1");
    (cluster.state, &cluster.detail)
}

/// Resources of the delete requests, in order.
fn deleted_resources(sandbox: &Sandbox) -> Vec<String> {
    let of_deletes = sandbox.requests().into_iter().filter(|record| record.verb == "delete");
    of_deletes.map(|record| record.resource).collect()
}

#[tokio::test(start_paused = true)]
async fn objects_are_removed_in_reverse_across_apps() {
    let (platform, settings) = (objects_app("infra", "platform"), objects_app("infra", "settings"));
    let web =
        component("web", "registry.example.com/web:1").replace("name: web", "name: web, namespace: infra");
    let route = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: site}\nspec: {defaultBackend: {service: {name: web, port: {number: 80}}}}\n";
    let files = [
        ("tutti.yaml", instance_with_large_caps()),
        ("apps/platform/app.yaml", platform),
        ("apps/platform/objects/namespace.yaml", namespace("infra")),
        ("apps/settings/app.yaml", settings),
        ("apps/settings/objects/map.yaml", config_map("infra", "map", "first")),
        ("apps/settings/objects/route.yaml", route.to_owned()),
        ("apps/web/app.yaml", web),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let fleet = TestFleet::new(&["bj1", "gz1"], &files);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let before = live_objects::managed_objects(fleet.cluster("bj1")).await;

    fleet.push(&running, "Without gz1", &[(GZ1_FILE, Some(&removed_cluster()))]).await;
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let [approval] = now.approvals_wanted.as_slice() else { panic!("{:?}", now.approvals_wanted) };
    assert_eq!(approval.objects.len(), 1, "the namespace alone");
    assert!(now.targets.iter().all(|target| target.cluster.as_str() == "bj1"), "nothing is placed there");
    wait_for_effects().await;
    let expected = ["ingresses.networking.k8s.io", "deployments.apps", "services", "configmaps"];
    assert_eq!(deleted_resources(fleet.cluster("gz1")), expected);
    let now = running.overview.borrow().clone();
    let digest = approval.digest().short();
    assert_eq!(
        gz1_state(&now),
        (
            "Removing",
            &*format!("1 object to delete, 1 of them wait: every Namespace waits for approval {digest}")
        )
    );

    let file = approval_to_yaml(approval);
    let revision = fleet.push(&running, "Approve", &[("approvals/gz1.yaml", Some(&file))]).await;
    let now = running.until_converged(&revision).await;
    assert_eq!(gz1_state(&now), ("Removed", "no other object remains: delete its file"));
    assert_eq!(deleted_resources(fleet.cluster("gz1")).last().map(String::as_str), Some("namespaces"));
    assert_eq!(live_objects::managed_objects(fleet.cluster("gz1")).await.len(), 0);

    let revision =
        fleet.push(&running, "Its file goes", &[(GZ1_FILE, None), ("approvals/gz1.yaml", None)]).await;
    running.until_converged(&revision).await;
    let bj1 = fleet.cluster("bj1");
    assert_eq!(bj1.count_requests(&RequestMatch::writes()), 0, "the other cluster was left alone");
    assert_eq!(live_objects::managed_objects(bj1).await, before);
}

fn settings_files(count: usize) -> Vec<(String, String)> {
    let maps = (0..count).map(|number| config_map("default", &format!("map-{number}"), "first"));
    vec![
        ("apps/settings/app.yaml".to_owned(), objects_app("default", "settings")),
        ("apps/settings/objects/maps.yaml".to_owned(), maps.collect::<Vec<_>>().join("---\n")),
    ]
}

fn fleet_of(files: &[(String, String)]) -> TestFleet {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    TestFleet::new(&["bj1", "gz1"], &files)
}

#[tokio::test(start_paused = true)]
async fn delete_cap_applies_to_removed_clusters() {
    let fleet = fleet_of(&settings_files(12));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.push(&running, "Without gz1", &[(GZ1_FILE, Some(&removed_cluster()))]).await;
    let now = running.until("deletes that wait", |now| now.deletions.len() == 12).await;
    let is_over = |cause: &Value| cause["code"] == "overCap" && cause["pending"] == 12 && cause["cap"] == 4;
    assert!(deletion_causes(&now).iter().all(is_over), "{now:?}");
    wait_for_effects().await;
    assert_eq!(deleted_resources(fleet.cluster("gz1")), Vec::<String>::new());

    // A mistake: the cluster stays, and nothing happens.
    let revision = fleet.push(&running, "Back", &[(GZ1_FILE, Some(&manifests::cluster("gz1")))]).await;
    running.until_converged(&revision).await;
    assert_eq!(live_objects::managed_objects(fleet.cluster("gz1")).await.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn deletes_wait_for_health_on_other_clusters() {
    let fleet = fleet_of(&settings_files(2));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.cluster("bj1").set_down(true);
    running.until("bj1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
    let revision = fleet.push(&running, "Without gz1", &[(GZ1_FILE, Some(&removed_cluster()))]).await;
    let now = running.until("deletes that wait", |now| now.deletions.len() == 2).await;
    let cause = &deletion_causes(&now)[0];
    assert_eq!((&cause["code"], &cause["on"]), (&json!("waitsForHealth"), &json!("bj1")), "{now:?}");
    wait_for_effects().await;
    assert_eq!(live_objects::managed_objects(fleet.cluster("gz1")).await.len(), 2);
    fleet.cluster("bj1").set_down(false);
    let now = running.until_converged(&revision).await;
    assert_eq!(gz1_state(&now).0, "Removed");
}

#[tokio::test(start_paused = true)]
async fn kept_objects_do_not_block_removal() {
    let mut files = settings_files(2);
    files[1].1 = files[1].1.replace("name: map-1,", "name: map-1, annotations: {tutti.dev/prune: keep},");
    let fleet = fleet_of(&files);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let revision = fleet.push(&running, "Without gz1", &[(GZ1_FILE, Some(&removed_cluster()))]).await;
    let now = running.until_converged(&revision).await;
    let words = "1 object kept on purpose, no other object remains: delete its file";
    assert_eq!(gz1_state(&now), ("Removed", words));
    let [orphan] = now.orphans.as_slice() else { panic!("{:?}", now.orphans) };
    assert_eq!((orphan.object.as_str(), orphan.action.as_str()), ("ConfigMap default/map-1", "orphan"));
}

#[tokio::test(start_paused = true)]
async fn app_without_remaining_cluster_needs_an_approval() {
    let mut files = settings_files(2);
    files[0].1 = files[0].1.replace("spec: {", "spec: {placement: {clusters: {names: [gz1]}}, ");
    let fleet = fleet_of(&files);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.push(&running, "Without gz1", &[(GZ1_FILE, Some(&removed_cluster()))]).await;
    let now = running.until("deletes that wait", |now| now.deletions.len() == 2).await;
    assert_eq!(deletion_causes(&now)[0]["code"], "placedNowhere");
    wait_for_effects().await;
    assert_eq!(fleet.cluster("gz1").count_requests(&RequestMatch::any().verb("delete")), 0);
}

#[tokio::test(start_paused = true)]
async fn commit_status_reports_completed_removal() {
    let gitea = GiteaStatusServer::start().await;
    let mut files = settings_files(2);
    files.push(("tutti.yaml".to_owned(), gitea.instance_manifest()));
    let fleet = fleet_of(&files);
    let running = fleet.start().await;
    gitea.until_status(&fleet.first_commit, "success").await;
    // The cluster is unreachable for a short time, so the first attempts fail.
    fleet.cluster("gz1").set_down(true);
    let revision = fleet.push(&running, "Without gz1", &[(GZ1_FILE, Some(&removed_cluster()))]).await;
    gitea
        .until_status(&revision, "pending 2 deletes wait: gz1 does not answer, deleted when it answers again")
        .await;
    // The status is complete, whatever commit follows.
    let words = fleet.push(&running, "Words", &[("README.md", Some("Words.\n"))]).await;
    gitea.until_status(&words, "success no change for this ring").await;
    fleet.cluster("gz1").set_down(false);
    gitea.until_status(&revision, "success").await;
    assert_eq!(gitea.final_status(&revision), "success 2 objects deleted on 1 cluster");
    gitea.assert_no_repeated_status();
}

/// A cluster is renamed: its new file exists, and the old file has `state: Removed`. Or a kubeconfig was copied.
#[tokio::test(start_paused = true)]
async fn objects_desired_under_another_cluster_name_stay() {
    for old in [removed_cluster(), manifests::cluster("gz1")] {
        let app = objects_app("default", "web").replace("spec: {", "spec: {prune: always, ");
        let on_bj1 = app.replace("spec: {", "spec: {placement: {clusters: {names: [bj1]}}, ");
        // More objects than one batch of lookups, and one that no app desires: the last of them.
        let map = |number| config_map("default", &format!("map-{number}"), "first");
        let wanted = (1..20).map(map).collect::<Vec<_>>().join("---\n");
        let all = format!("{wanted}---\n{}", map(0));
        let instance = instance_with_large_caps();
        let files = [
            ("tutti.yaml", instance.as_str()),
            ("apps/web/app.yaml", &on_bj1),
            ("apps/web/objects/maps.yaml", &all),
        ];
        let mut fleet = TestFleet::new(&["bj1"], &files);
        let bj1 = fleet.cluster("bj1").clone();
        fleet.clusters.insert("gz1".to_owned(), bj1);
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        fleet.push(&running, "Another name", &[(GZ1_FILE, Some(&old))]).await;
        wait_for_effects().await;
        assert_eq!(deleted_resources(fleet.cluster("bj1")), Vec::<String>::new());
        let change = [("apps/web/objects/maps.yaml", Some(wanted.as_str()))];
        fleet.push(&running, "One less", &change).await;
        wait_for_effects().await;
        assert!(
            matches!(deleted_resources(fleet.cluster("bj1")).len(), 1..=2),
            "it goes through either name"
        );
        let now = running.overview.borrow().clone();
        let held =
            now.deletions.iter().find(|it| it.cluster.as_str() == "gz1").unwrap_or_else(|| panic!("{now:?}"));
        assert!(held.reason.contains("cluster bj1 shows the same object and renders it"), "{}", held.reason);
        if now.clusters.iter().any(|it| it.state == "Removing") {
            assert!(
                gz1_state(&now).1.starts_with("19 objects to delete: cluster bj1 shows"),
                "{}",
                gz1_state(&now).1
            );
        }
        running.stop().await;
    }
}
