//! Order of deletes when an app is removed, and the deletes that need an approval.

use std::time::Duration;

use sandbox::RequestMatch;
use serde_json::json;
use tutti::report::TargetPhase;

use crate::support::fleet::{RunningController, TestFleet, deletion_causes};
use crate::support::live_objects;
use crate::support::manifests::{self, config_map, deployment, objects_app};

const APP: &str = "apps/shop/app.yaml";
const MANIFESTS: &str = "apps/shop/objects/all.yaml";

fn fleet_of(shop: &str, more: &[(&str, &str)]) -> TestFleet {
    let instance = manifests::INSTANCE.replace("{}", "{caps: {deletes: 100, deletePercent: 100}}");
    let app = objects_app("default", "shop");
    let (other, own) = (objects_app("default", "other"), config_map("default", "own", "first"));
    let files = [
        ("tutti.yaml", &*instance),
        (APP, &*app),
        (MANIFESTS, shop),
        ("apps/other/app.yaml", &*other),
        ("apps/other/objects/own.yaml", &*own),
    ];
    TestFleet::new(&["bj1"], &[&files[..], more].concat())
}

/// Removes the app; returns the resource of each delete request.
async fn remove_app(fleet: &TestFleet, running: &RunningController) -> Vec<String> {
    fleet.clear_requests();
    let revision = fleet.push(running, "Without the shop", &[(APP, None), (MANIFESTS, None)]).await;
    running.until_converged(&revision).await;
    deleted_resources(fleet)
}

fn deleted_resources(fleet: &TestFleet) -> Vec<String> {
    let deletes = fleet.requests().into_iter().filter(|(_, it)| it.verb == "delete");
    deletes.map(|(_, it)| it.resource).collect()
}

#[tokio::test(start_paused = true)]
async fn app_is_deleted_phase_by_phase_in_reverse() {
    let web = deployment("default", "web", "web", "registry.example.com/web:1");
    let others = "\
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: default}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: default}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
";
    let fleet = fleet_of(&format!("{others}{web}---\n{}", config_map("default", "web", "first")), &[]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let mut order = remove_app(&fleet, &running).await;
    // These belong to one phase.
    order[3..].sort();
    let expected =
        ["ingresses.networking.k8s.io", "deployments.apps", "services", "configmaps", "serviceaccounts"];
    assert_eq!(order, expected);
    assert_eq!(
        live_objects::managed_objects(fleet.cluster("bj1")).await.into_keys().collect::<Vec<_>>(),
        ["ConfigMap default/own"]
    );
}

/// The operator removes its finalizer from its resources. Without it they would stay Terminating.
#[tokio::test(start_paused = true)]
async fn operator_is_deleted_after_its_resources_are_gone() {
    let account = "\
apiVersion: example.com/v1
kind: Account
metadata: {name: seven, namespace: default, finalizers: [example.com/clean-up]}
spec: {plan: small}
";
    let operator = deployment("default", "operator", "operator", "registry.example.com/operator:1");
    let (platform, definition) =
        (objects_app("default", "platform"), manifests::definition("example.com", "v1", "Account"));
    let fleet = fleet_of(
        &format!("{operator}---\n{account}"),
        &[("apps/platform/app.yaml", &platform), ("apps/platform/objects/account.yaml", &definition)],
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let revision = fleet.push(&running, "Without the shop", &[(APP, None), (MANIFESTS, None)]).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let bj1 = fleet.cluster("bj1");
    let going =
        live_objects::get(bj1, "Account", "default", "seven").await.expect("somebody has to clean up");
    assert!(going["metadata"]["deletionTimestamp"].is_string(), "{going}");
    assert!(live_objects::get(bj1, "Deployment", "default", "operator").await.is_some(), "and can");
    assert_eq!(deleted_resources(&fleet), ["accounts.example.com"]);

    live_objects::edit_as(bj1, "operator", ("Account", "seven"), &json!({"metadata": {"finalizers": null}}))
        .await;
    running.until_converged(&revision).await;
    assert_eq!(deleted_resources(&fleet), ["accounts.example.com", "deployments.apps"]);
    assert!(live_objects::get(bj1, "Deployment", "default", "operator").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn stateful_set_that_deletes_claims_needs_an_approval() {
    let set = |policy: &str| {
        format!(
            "\
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db, namespace: default}}
spec:
  replicas: 1
  serviceName: db
  persistentVolumeClaimRetentionPolicy: {{whenDeleted: {policy}}}
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec: {{containers: [{{name: main, image: registry.example.com/db:1}}]}}
"
        )
    };
    for (policy, stays) in [("Delete", true), ("Retain", false)] {
        let fleet = fleet_of(&set(policy), &[]);
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        if !stays {
            assert_eq!(remove_app(&fleet, &running).await, ["statefulsets.apps"]);
            continue;
        }
        fleet.push(&running, "Without the shop", &[(APP, None), (MANIFESTS, None)]).await;
        let now = running.until("a wish", |now| now.approvals_wanted.len() == 1).await;
        assert_eq!(deletion_causes(&now)[0]["code"], "claimsGoAlong", "{:?}", now.deletions);
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(fleet.cluster("bj1").count_requests(&RequestMatch::any().verb("delete")), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_delete_names_the_unhealthy_objects() {
    let web = deployment("default", "web", "web", "registry.example.com/web:1");
    let (paused, map) =
        (web.replacen("  replicas", "  paused: true\n  replicas", 1), config_map("default", "old", "1"));
    let fleet = fleet_of(&[&*paused, &*map].join("---\n"), &[]);
    let running = fleet.start().await;
    running
        .until("it is paused", |now| {
            now.targets.iter().any(|it| &*it.app.name == "shop" && it.phase == TargetPhase::Paused)
        })
        .await;
    fleet.push(&running, "Without the map", &[(MANIFESTS, Some(&paused))]).await;
    let now = running.until("a delete waits", |now| !now.deletions.is_empty()).await;
    let words =
        "no longer rendered, deleted when its app is healthy: Deployment default/web: rollout is paused: 0/";
    assert!(now.deletions[0].reason.starts_with(words), "{:?}", now.deletions);
}
