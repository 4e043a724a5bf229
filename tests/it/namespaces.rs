//! Namespaces of objects that give none, or one that does not fit their kind's scope; and creation of missing namespaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tutti::chart::{ChartRenderLimits, ChartService};
use tutti::report::{Overview, TargetPhase};

use crate::charts::support::{helm_programs, library_renderer};
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects::{self, required_text};
use crate::support::manifests::{definition, objects_app};
use crate::support::program;

fn till_definition() -> String {
    definition("shop.example.com", "v1", "Till")
}

const TILL: &str = "apiVersion: shop.example.com/v1\nkind: Till\nmetadata: {name: one}\nspec: {open: true}\n";

fn folder_files(root: &Path) -> Vec<(String, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("inside").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("text")));
            }
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn chart_custom_resource_gets_the_release_namespace() {
    let Some(helm) = helm_programs() else { return };
    let root =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases/custom-resource-in-chart");
    let files = folder_files(&root);
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let fleet = TestFleet::new(&["one"], &files);
    let service = ChartService::new(library_renderer(&helm, ChartRenderLimits::default()), None);
    let running = fleet
        .start_with(&ProcessConnections::unlimited(), |settings| settings.charts = Arc::new(service))
        .await;
    running.until_converged(&fleet.first_commit).await;
    let till = live_objects::get(fleet.cluster("one"), "Till", "default", "till").await.expect("it is there");
    assert_eq!(required_text(&till, "/metadata/namespace"), "default");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn custom_resource_scope_comes_from_another_app() {
    let (shop, kinds) = (objects_app("default", "shop"), objects_app("default", "kinds"));
    let fleet = TestFleet::new(
        &["bj1"],
        &[
            ("apps/shop/app.yaml", &shop),
            ("apps/shop/objects/till.yaml", TILL),
            ("apps/zz-kinds/app.yaml", &kinds),
            ("apps/zz-kinds/objects/tills.yaml", &till_definition()),
        ],
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let sandbox = fleet.cluster("bj1");
    let before = live_objects::get(sandbox, "Till", "default", "one").await.expect("it is there");
    // Discovery is repeated some seconds after a definition changed.
    tokio::time::sleep(Duration::from_secs(60)).await;
    fleet.clear_requests();
    let revision = fleet.push(&running, "Nothing that is rendered", &[("README.md", Some("Shop\n"))]).await;
    running.until_converged(&revision).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(fleet.request_counts(), Vec::<String>::new());
    running.stop().await;

    // A new process starts without this knowledge and gets the same result.
    let running = fleet.start().await;
    running.until_converged(&revision).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let after = live_objects::get(sandbox, "Till", "default", "one").await.expect("it is there still");
    assert_eq!(required_text(&before, "/metadata/uid"), required_text(&after, "/metadata/uid"));
    assert_eq!(
        required_text(&before, "/metadata/resourceVersion"),
        required_text(&after, "/metadata/resourceVersion")
    );
    running.stop().await;
}

#[test]
fn definition_of_another_app_needs_no_cluster() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    };
    write(
        "clusters/bj1.yaml",
        "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1}\nspec: {connection: {sandbox: {}}}\n",
    );
    write("tutti.yaml", "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {}\n");
    write("apps/shop/app.yaml", &objects_app("market", "shop"));
    write("apps/shop/objects/till.yaml", TILL);
    let namespace = || {
        let (output, _, code) = program::run(folder.path(), &["render", "market/shop", "-o", "json"]);
        assert_eq!(code, 0);
        let objects: Vec<serde_json::Value> = serde_json::from_str(&output).expect("JSON");
        objects[0]["metadata"]["namespace"].as_str().map(str::to_owned)
    };
    assert_eq!(namespace(), None, "nothing says what a Till is");
    write("apps/zz-kinds/app.yaml", &objects_app("default", "kinds"));
    write("apps/zz-kinds/objects/tills.yaml", &till_definition());
    assert_eq!(namespace().as_deref(), Some("market"));
    write("apps/zz-kinds/objects/tills.yaml", &till_definition().replace("Namespaced", "Cluster"));
    assert_eq!(namespace(), None);
}

fn market_app(name: &str, more: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: {name}, namespace: market}}\nspec: {{files: [objects/*.yaml]{more}}}\n"
    )
}

fn config_map_manifest(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

const INSTANCE: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {defaults: {createNamespace: true}}\n";
const PROJECT: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Project\nmetadata: {name: market}\nspec: {labels: {team: market}}\n";

/// Requests for namespaces.
fn namespace_requests(fleet: &TestFleet) -> Vec<String> {
    let records = fleet.requests().into_iter().map(|(_, record)| record);
    let of_one =
        records.filter(|it| it.resource == "namespaces" && !["list", "watch"].contains(&it.verb.as_str()));
    of_one.map(|it| format!("{} {}", it.verb, it.name)).collect()
}

#[tokio::test(start_paused = true)]
async fn missing_namespace_is_refused_and_created_on_request() {
    let (web, maps) =
        (market_app("web", ""), format!("{}---\n{}", config_map_manifest("one"), config_map_manifest("two")));
    let fleet =
        TestFleet::new(&["bj1"], &[("apps/web/app.yaml", &web), ("apps/web/objects/maps.yaml", &maps)]);
    let running = fleet.start().await;
    let refused = running.until("a refusal", is_refused).await;
    assert_eq!(
        target(&refused, "bj1", "market/web").detail,
        "failed to apply ConfigMap market/one: namespaces \"market\" not found; `createNamespace: true` in the app (or in `defaults` of \
         tutti.yaml) creates it, and so does a manifest of kind Project"
    );
    assert_eq!(namespace_requests(&fleet), Vec::<String>::new());

    let (asking, second) =
        (market_app("web", ", createNamespace: true"), market_app("two", ", createNamespace: true"));
    let other = config_map_manifest("three");
    let changes: [(&str, Option<&str>); 3] = [
        ("apps/web/app.yaml", Some(&asking)),
        ("apps/two/app.yaml", Some(&second)),
        ("apps/two/objects/maps.yaml", Some(&other)),
    ];
    let revision = fleet.push(&running, "Two apps of one namespace", &changes).await;
    running.until_converged(&revision).await;
    // Each app that misses it sends one request, however many objects it has.
    assert_eq!(namespace_requests(&fleet), ["create ", "create "]);
    let writes = running.overview.borrow().writes.clone();
    assert_eq!((writes.created, writes.configured), (4, 0), "three maps and their namespace");
    let sandbox = fleet.cluster("bj1");
    let made = market_namespace(sandbox).await.expect("it was made");
    assert!(made["metadata"]["labels"].get("tutti.dev/managed-by").is_none(), "{made:#}");

    fleet.clear_requests();
    let revision = fleet.push(&running, "Nothing", &[("README.md", Some("Market\n"))]).await;
    running.until_converged(&revision).await;
    assert_eq!(fleet.request_counts(), Vec::<String>::new());

    let gone: [(&str, Option<&str>); 2] = [("apps/two/app.yaml", None), ("apps/two/objects/maps.yaml", None)];
    let revision = fleet.push(&running, "One app goes", &gone).await;
    running.until_converged(&revision).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(
        live_objects::names(sandbox, "ConfigMap").await.iter().filter(|name| *name == "three").count(),
        0
    );
    let now = market_namespace(sandbox).await.expect("nobody deletes it");
    assert_eq!(now["metadata"]["uid"], made["metadata"]["uid"]);

    // Another app manages it later.
    let revision = fleet.push(&running, "A project", &[("projects/market.yaml", Some(PROJECT))]).await;
    running.until_converged(&revision).await;
    let owned = market_namespace(sandbox).await.expect("it is there");
    assert_eq!(owned["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(required_text(&owned, "/metadata/labels/team"), "market");
    running.stop().await;
}

fn is_refused(now: &Overview) -> bool {
    now.targets.iter().any(|target| target.phase == TargetPhase::Refused)
}

async fn market_namespace(sandbox: &sandbox::Sandbox) -> Option<serde_json::Value> {
    let api = live_objects::api(sandbox, "Namespace", None);
    api.get_opt("market").await.expect("an answer").map(|it| serde_json::to_value(it).expect("JSON"))
}

#[tokio::test(start_paused = true)]
async fn instance_default_creates_namespaces_unless_app_declines() {
    let (web, no) = (market_app("web", ""), market_app("web", ", createNamespace: false"));
    let file = config_map_manifest("one");
    let files = [("tutti.yaml", INSTANCE), ("apps/web/app.yaml", &no), ("apps/web/objects/maps.yaml", &file)];
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    running.until("a refusal", is_refused).await;
    assert!(market_namespace(fleet.cluster("bj1")).await.is_none());
    let revision = fleet.push(&running, "As all do", &[("apps/web/app.yaml", Some(&web))]).await;
    running.until_converged(&revision).await;
    assert!(market_namespace(fleet.cluster("bj1")).await.is_some());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn foreign_namespace_is_not_changed() {
    let (web, file) = (market_app("web", ", createNamespace: true"), config_map_manifest("one"));
    let fleet =
        TestFleet::new(&["bj1"], &[("apps/web/app.yaml", &web), ("apps/web/objects/maps.yaml", &file)]);
    let sandbox = fleet.cluster("bj1");
    live_objects::create_as(
        sandbox,
        "kubectl",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: market}\n",
    )
    .await;
    let before = market_namespace(sandbox).await.expect("it is there");
    fleet.clear_requests();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(namespace_requests(&fleet), Vec::<String>::new());
    assert_eq!(market_namespace(sandbox).await, Some(before));
    running.stop().await;
}
