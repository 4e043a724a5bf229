//! Where objects go that say no namespace, or one that their kind does not have; and who makes a namespace that is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tutti::chart::{Limits, Service};

use crate::charts::support::{engine, helm};
use crate::support::fleet::Fleet;
use crate::support::live::{self, text};
use crate::support::manifests::objects;
use crate::support::program;
use crate::support::wires::Wires;

const TILLS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tills.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {kind: Till, plural: tills, singular: till}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

const TILL: &str = "apiVersion: shop.example.com/v1\nkind: Till\nmetadata: {name: one}\nspec: {open: true}\n";

fn files_of(root: &Path) -> Vec<(String, String)> {
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
async fn custom_resource_of_a_chart_gets_the_namespace_of_its_release() {
    let Some(helm) = helm() else { return };
    let root =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases/custom-resource-in-chart");
    let files = files_of(&root);
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let fleet = Fleet::new(&["one"], &files);
    let service = Service::new(engine(&helm, Limits::default()), None);
    let running = fleet.start_with(&Wires::lasting(), |settings| settings.charts = Arc::new(service)).await;
    running.converged(&fleet.begin).await;
    let till = live::get(fleet.cluster("one"), "Till", "default", "till").await.expect("it is there");
    assert_eq!(text(&till, "/metadata/namespace"), "default");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn custom_resource_is_placed_by_the_definition_of_another_app() {
    let (shop, kinds) = (objects("default", "shop"), objects("default", "kinds"));
    let fleet = Fleet::new(
        &["bj1"],
        &[
            ("apps/shop/app.yaml", &shop),
            ("apps/shop/objects/till.yaml", TILL),
            ("apps/zz-kinds/app.yaml", &kinds),
            ("apps/zz-kinds/objects/tills.yaml", TILLS),
        ],
    );
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    let sandbox = fleet.cluster("bj1");
    let before = live::get(sandbox, "Till", "default", "one").await.expect("it is there");
    // What is served is asked for once more some seconds after a definition moved.
    tokio::time::sleep(Duration::from_secs(60)).await;
    fleet.forget_requests();
    let revision = fleet.push(&running, "Nothing that is rendered", &[("README.md", Some("Shop\n"))]).await;
    running.converged(&revision).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(fleet.counted(), Vec::<String>::new());
    running.stop().await;

    // Another process knows nothing at first, and comes to the same.
    let running = fleet.start().await;
    running.converged(&revision).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let after = live::get(sandbox, "Till", "default", "one").await.expect("it is there still");
    assert_eq!(text(&before, "/metadata/uid"), text(&after, "/metadata/uid"));
    assert_eq!(text(&before, "/metadata/resourceVersion"), text(&after, "/metadata/resourceVersion"));
    running.stop().await;
}

#[test]
fn definition_of_another_app_is_known_without_a_cluster() {
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
    write("apps/shop/app.yaml", &objects("market", "shop"));
    write("apps/shop/objects/till.yaml", TILL);
    let namespace = || {
        let (output, _, code) = program::run(folder.path(), &["render", "market/shop", "-o", "json"]);
        assert_eq!(code, 0);
        let objects: Vec<serde_json::Value> = serde_json::from_str(&output).expect("JSON");
        objects[0]["metadata"]["namespace"].as_str().map(str::to_owned)
    };
    assert_eq!(namespace(), None, "nothing says what a Till is");
    write("apps/zz-kinds/app.yaml", &objects("default", "kinds"));
    write("apps/zz-kinds/objects/tills.yaml", TILLS);
    assert_eq!(namespace().as_deref(), Some("market"));
    write("apps/zz-kinds/objects/tills.yaml", &TILLS.replace("Namespaced", "Cluster"));
    assert_eq!(namespace(), None);
}
