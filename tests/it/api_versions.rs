//! Kinds with several API versions: Git changes the version, or the cluster stops serving it.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use sandbox::Sandbox;
use serde_json::{Value, json};

use crate::drift::{APP, MANIFESTS, wait_for_repairs};
use crate::support::fleet::{RunningController, TestFleet};
use crate::support::live_objects;
use crate::support::manifests::objects_app;

/// For each version: name, whether it is served, and whether it is the storage version.
fn menu_definition(versions: &[(&str, bool, bool)]) -> String {
    let properties =
        json!({"dish": {"type": "string"}, "note": {"type": "string"}, "price": {"type": "integer"}});
    let schema =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    let version = |(name, served, storage): &(&str, bool, bool)| json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "menus.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "versions": versions.iter().map(version).collect::<Vec<_>>(),
            "names": {"plural": "menus", "singular": "menu", "kind": "Menu"},
        },
    })
    .to_string()
}

fn menu_manifest(version: &str, spec: &Value) -> String {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Menu",
        "metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    .to_string()
}

fn menu_api(sandbox: &Sandbox, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", version, "Menu");
    let client = kube::Client::new(sandbox.service(), "default");
    Api::namespaced_with(client, "default", &ApiResource::from_gvk(&kind))
}

struct MenuCluster {
    fleet: TestFleet,
    running: RunningController,
}

impl MenuCluster {
    /// A menu in the version that will be removed.
    async fn new() -> Self {
        let first = menu_manifest("v1beta1", &json!({"dish": "soup", "note": "old"}));
        let fleet = TestFleet::new(&["bj1"], &[(APP, &objects_app("default", "web")), (MANIFESTS, &first)]);
        let both = menu_definition(&[("v1beta1", true, true), ("v1", true, false)]);
        live_objects::apply_as(fleet.cluster("bj1"), "admin", &both).await;
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        wait_for_repairs().await;
        fleet.clear_requests();
        Self { fleet, running }
    }

    fn cluster(&self) -> &Sandbox {
        self.fleet.cluster("bj1")
    }

    async fn live_menu(&self) -> (String, Value) {
        let menu = menu_api(self.cluster(), "v1").get("web").await.expect("a menu");
        (menu.metadata.uid.expect("a uid"), menu.data["spec"].clone())
    }

    async fn push(&self, manifest: &str) {
        let revision =
            self.fleet.push(&self.running, "Another version", &[(MANIFESTS, Some(manifest))]).await;
        self.running.until_converged(&revision).await;
        wait_for_repairs().await;
    }

    async fn check_edit_reverted(&self) {
        let before = self.live_menu().await;
        self.fleet.clear_requests();
        let parameters = PatchParams { field_manager: Some("kubectl".to_owned()), ..PatchParams::default() };
        let edit = Patch::Merge(json!({"spec": {"dish": "stew"}}));
        menu_api(self.cluster(), "v1").patch("web", &parameters, &edit).await.expect("an edit");
        wait_for_repairs().await;
        assert_eq!(self.fleet.request_counts(), ["1 apply menus.example.com", "1 patch menus.example.com"]);
        assert_eq!(self.live_menu().await, before);
    }
}

#[tokio::test(start_paused = true)]
async fn new_version_keeps_the_object() {
    let scene = MenuCluster::new().await;
    let (uid, _) = scene.live_menu().await;
    scene.fleet.clear_requests();
    let newer = json!({"dish": "soup", "price": 3});
    scene.push(&menu_manifest("v1", &newer)).await;
    // The kind is watched in the applied version, which needs one list.
    assert_eq!(scene.fleet.request_counts(), ["1 apply menus.example.com", "1 stream menus.example.com"]);
    assert_eq!(scene.live_menu().await, (uid, newer));
    scene.check_edit_reverted().await;
}

#[tokio::test(start_paused = true)]
async fn object_of_unserved_version_is_read_in_another() {
    let scene = MenuCluster::new().await;
    let (uid, _) = scene.live_menu().await;
    let only = menu_definition(&[("v1beta1", false, false), ("v1", true, true)]);
    live_objects::apply_as(scene.cluster(), "admin", &only).await;
    wait_for_repairs().await;
    let newer = json!({"dish": "soup", "price": 3});
    scene.push(&menu_manifest("v1", &newer)).await;
    assert_eq!(scene.live_menu().await, (uid, newer), "not another object");
    scene.check_edit_reverted().await;
}
