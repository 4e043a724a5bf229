//! Kinds whose server lacks server-side apply: their objects are refused, and nothing is written.

use std::time::Duration;

use sandbox::SandboxOptions;
use serde_json::{Value, json};
use tutti::report::TargetPhase;

use crate::drift::{APP, MANIFESTS, wait_for_repairs};
use crate::support::fleet::{RunningController, TestFleet, is_list, target};
use crate::support::live_objects::{self, create_as};
use crate::support::manifests::objects_app;

fn options_without_apply(name: &str) -> SandboxOptions {
    SandboxOptions { without_apply: vec!["accounts.example.com".to_owned()], ..SandboxOptions::instant(name) }
}

fn account_definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "accounts.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "accounts", "singular": "account", "kind": "Account"}},
    })
}

fn account_manifest(spec: &Value) -> String {
    let metadata = json!({"name": "web", "namespace": "default"});
    json!({"apiVersion": "example.com/v1", "kind": "Account", "metadata": metadata, "spec": spec}).to_string()
}

/// A cluster with the kind, and a process that has finished its work.
async fn start_with_account(existing: Option<&Value>) -> (TestFleet, RunningController) {
    let files =
        [(APP, &*objects_app("default", "web")), (MANIFESTS, &*account_manifest(&json!({"owner": "ada"})))];
    let fleet = TestFleet::with_options(&["bj1"], &files, options_without_apply);
    live_objects::apply_as(fleet.cluster("bj1"), "admin", &account_definition().to_string()).await;
    // Until the kind is served.
    wait_for_repairs().await;
    if let Some(spec) = existing {
        create_as(fleet.cluster("bj1"), "kubectl", &account_manifest(spec)).await;
    }
    fleet.clear_requests();
    let running = fleet.start().await;
    wait_for_repairs().await;
    (fleet, running)
}

fn account_requests(fleet: &TestFleet) -> Vec<String> {
    let is_of_accounts = |what: &String| what.contains("accounts") && !is_list(what);
    fleet.request_counts().into_iter().filter(is_of_accounts).collect()
}

#[tokio::test(start_paused = true)]
async fn new_object_is_refused() {
    let (fleet, running) = start_with_account(None).await;
    let now = running.overview.borrow().clone();
    let web = target(&now, "bj1", "default/web");
    assert_eq!(web.phase, TargetPhase::Refused, "{}", web.detail);
    assert!(web.detail.contains("does not support server-side apply"), "{}", web.detail);
    assert!(live_objects::get(fleet.cluster("bj1"), "Account", "default", "web").await.is_none());
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(
        account_requests(&fleet).iter().all(|it| it.contains(" apply ") || it.contains(" get ")),
        "{:?}",
        account_requests(&fleet)
    );
}

#[tokio::test(start_paused = true)]
async fn foreign_object_is_not_changed() {
    let (fleet, running) = start_with_account(Some(&json!({"owner": "eve"}))).await;
    let now = running.overview.borrow().clone();
    let web = target(&now, "bj1", "default/web");
    assert_eq!(web.phase, TargetPhase::Refused, "{}", web.detail);
    let live =
        live_objects::get(fleet.cluster("bj1"), "Account", "default", "web").await.expect("it is there");
    assert_eq!(live["spec"], json!({"owner": "eve"}));
    assert!(account_requests(&fleet).iter().all(|it| it.contains(" get ")), "{:?}", account_requests(&fleet));
}
