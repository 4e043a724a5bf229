//! Files of an Objects app outside the manifest folder (`--path`).

use std::collections::BTreeMap;
use std::sync::Arc;

use sandbox::{Sandbox, SandboxOptions};
use tutti::controller::ManifestOrigin;
use tutti::report::TargetPhase;
use tutti::source::{ConfigRepository, SourceOptions};

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::manifests::{INSTANCE, cluster, config_map};
use crate::support::repository::TestRepository;
use crate::support::{live_objects, program};

const OUTSIDE_FILE: &str = "services/shop/map.yaml";

fn objects_app(files: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: shop, namespace: default}}\nspec: {{files: [{files}]}}\n"
    )
}

/// The manifests are in `config/`; the app's files are beside its source code.
fn fleet(app: &str) -> TestFleet {
    let repository = TestRepository::empty();
    let begin = repository.commit(
        "Begin",
        &[
            ("config/tutti.yaml", Some(INSTANCE)),
            ("config/clusters/bj1.yaml", Some(&cluster("bj1"))),
            ("config/apps/shop/app.yaml", Some(app)),
            (OUTSIDE_FILE, Some(&config_map("default", "shop", "first"))),
            ("services/shop/package.json", Some("{}")),
        ],
    );
    let clusters = BTreeMap::from([("bj1".to_owned(), Sandbox::new(SandboxOptions::instant("bj1")))]);
    TestFleet { repository, first_commit: begin, clusters, charts: Arc::default() }
}

async fn start_with_subfolder(fleet: &TestFleet) -> RunningController {
    let options = SourceOptions { path: "config".to_owned(), ..fleet.repository.options() };
    let repository = ConfigRepository::open(options).await.expect("open");
    fleet.start_from_origin(ManifestOrigin::Repository(repository), &ProcessConnections::unlimited(), |_| {})
}

#[tokio::test(start_paused = true)]
async fn files_outside_the_folder_are_applied_and_pruned() {
    let fleet = fleet(&objects_app("../../../services/*/map.yaml"));
    let cluster = fleet.cluster("bj1");
    let running = start_with_subfolder(&fleet).await;
    running.until_converged(&fleet.first_commit).await;
    let value = async |name: &str| {
        live_objects::get(cluster, "ConfigMap", "default", name).await.map(|map| map["data"]["value"].clone())
    };
    assert_eq!(value("shop").await.expect("applied"), "first");

    let second = config_map("default", "shop", "second");
    let revision = fleet.push(&running, "Beside", &[(OUTSIDE_FILE, Some(&second))]).await;
    let now = running.until_converged(&revision).await;
    assert_eq!(value("shop").await.expect("applied"), "second");
    assert_eq!(target(&now, "bj1", "default/shop").phase, TargetPhase::Running);

    let (pay, third) = ("services/pay/map.yaml", config_map("default", "pay", "first"));
    let revision = fleet.push(&running, "One more", &[(pay, Some(&third))]).await;
    running.until_converged(&revision).await;
    assert_eq!(value("pay").await.expect("applied"), "first");

    let revision = fleet.push(&running, "One less", &[(OUTSIDE_FILE, None)]).await;
    running.until_converged(&revision).await;
    assert!(value("shop").await.is_none(), "it is pruned");
    assert_eq!(value("pay").await.expect("it stays"), "first");
}

#[test]
fn lint_refuses_files_outside_the_repository() {
    let lint = |files: &str| {
        let fleet = fleet(&objects_app(files));
        let path = fleet.repository.path();
        for (file, text) in [
            ("config/tutti.yaml", INSTANCE),
            ("config/clusters/bj1.yaml", &cluster("bj1")),
            ("config/apps/shop/app.yaml", &objects_app(files)),
            (OUTSIDE_FILE, &config_map("default", "shop", "first").replace("name: shop, ", "")),
        ] {
            fleet.repository.write(file, text);
        }
        let (output, errors, code) = program::run(path, &["lint", "config"]);
        (format!("{output}\n{errors}"), code)
    };
    let (told, code) = lint("../../../services/shop/*.yaml");
    assert!(
        told.contains("the document at ../services/shop/map.yaml:1:1 (ConfigMap) has no metadata.name"),
        "{told}"
    );
    assert!(told.contains("1 | apiVersion: v1"), "{told}");
    assert_eq!(code, 2, "{told}");
    let (told, code) = lint("../../../../services/shop/*.yaml");
    assert!(
        told.contains("error[E1209]: the pattern ../../services/shop/*.yaml leaves the repository"),
        "{told}"
    );
    assert!(told.contains("apps/shop/app.yaml:4:16"), "{told}");
    assert_eq!(code, 2, "{told}");
    let (told, code) = lint("../../../services/none/*.yaml");
    assert!(told.contains("no file fits it"), "{told}");
    assert_eq!(code, 2, "{told}");
}
