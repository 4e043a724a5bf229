//! Clusters that ConfigMaps of the home cluster register: they are added, changed and removed while the process runs.
//! Missing knowledge about them causes no deletes.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use sandbox::{Sandbox, SandboxOptions};
use serde_json::{Value, json};
use tutti::cluster::{ClusterLink, HomeCluster};
use tutti::controller::ManifestOrigin;
use tutti::report::{Overview, TargetPhase};
use tutti::source::{ConfigRepository, SourceOptions};

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, describe_overview, phases, target};
use crate::support::forge::GiteaStatusServer;
use crate::support::live_objects;
use crate::support::log::CapturedLog;
use crate::support::manifests::{config_map, objects_app};

const INSTANCE: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Instance
metadata: {name: main}
spec: {clusterRegistry: {configMaps: {namespace: default}}}
";

/// On all clusters of the zone bj.
const ZONE_APP: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Objects
metadata: {name: settings, namespace: default}
spec: {placement: {clusters: {matchLabels: {zone: bj}}}, files: [objects/*.yaml]}
";

pub struct RegistryFleet {
    pub fleet: TestFleet,
    pub home: Sandbox,
}

impl RegistryFleet {
    /// bj1 has a file and no zone; bj2 and gz1 can be registered.
    pub fn new() -> Self {
        let one = config_map("default", "one", "first");
        let files = [
            ("tutti.yaml", INSTANCE),
            ("apps/settings/app.yaml", ZONE_APP),
            ("apps/settings/objects/one.yaml", &one),
        ];
        let mut fleet = TestFleet::new(&["bj1"], &files);
        for name in ["bj2", "gz1"] {
            fleet.clusters.insert(name.to_owned(), Sandbox::new(SandboxOptions::instant(name)));
        }
        Self { fleet, home: Sandbox::new(SandboxOptions::instant("home")) }
    }

    pub async fn start(&self) -> RunningController {
        let home = HomeCluster::at(ClusterLink::in_process(self.home.service()));
        self.fleet.start_with(&ProcessConnections::unlimited(), |settings| settings.home = home).await
    }

    pub async fn register(&self, name: &str, labels: &[(&str, &str)], data: Value) {
        let mut all: serde_json::Map<String, Value> =
            labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        all.insert("ClusterOwner".to_owned(), json!("sym-admin"));
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default", "labels": all}, "data": data,
        });
        let object = serde_json::from_value(object).expect("a ConfigMap");
        live_objects::api(&self.home, "ConfigMap", Some("default"))
            .create(&PostParams::default(), &object)
            .await
            .expect("created");
    }

    async fn patch_registration(&self, name: &str, patch: Value) {
        live_objects::api(&self.home, "ConfigMap", Some("default"))
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("patched");
    }
}

pub fn kubeconfig_data(text: &str) -> Value {
    json!({"kubeconfig.yaml": text})
}

fn cluster_state<'a>(overview: &'a Overview, name: &str) -> Option<&'a str> {
    overview.clusters.iter().find(|it| it.name.as_str() == name).map(|it| it.state)
}

#[tokio::test(start_paused = true)]
async fn registered_clusters_are_added_changed_and_removed() {
    let scene = RegistryFleet::new();
    scene.register("bj2", &[("zone", "bj")], kubeconfig_data("one")).await;
    let running = scene.start().await;
    running.until_converged(&scene.fleet.first_commit).await;
    let now = running.until("bj2 alone", |now| phases(now).len() == 1).await;
    assert_eq!(phases(&now), ["bj2 default/settings Running"]);
    assert!(live_objects::get(scene.fleet.cluster("bj2"), "ConfigMap", "default", "one").await.is_some());

    // Another cluster is added without a commit.
    scene.register("gz1", &[("zone", "bj")], kubeconfig_data("two")).await;
    running
        .until("gz1 too", |now| now.targets.iter().filter(|it| it.phase == TargetPhase::Running).count() == 2)
        .await;
    assert!(live_objects::get(scene.fleet.cluster("gz1"), "ConfigMap", "default", "one").await.is_some());

    // It gets another kubeconfig: it connects again, and nothing is written.
    scene.fleet.clear_requests();
    scene.patch_registration("gz1", json!({"data": {"kubeconfig.yaml": "three"}})).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let requests = scene.fleet.requests();
    assert!(requests.iter().any(|(name, it)| name == "gz1" && it.verb == "list"), "{requests:?}");
    assert!(requests.iter().all(|(name, it)| name == "gz1" && !it.is_write()), "{requests:?}");

    // It is in maintenance: manual changes are not reverted.
    scene.patch_registration("gz1", json!({"data": {"status": "Maintaining"}})).await;
    running.until("maintenance", |now| cluster_state(now, "gz1") == Some("Maintaining")).await;
    let maps = live_objects::api(scene.fleet.cluster("gz1"), "ConfigMap", Some("default"));
    let edit = Patch::Merge(json!({"data": {"value": "by hand"}}));
    maps.patch("one", &PatchParams::default(), &edit).await.expect("patched");
    tokio::time::sleep(Duration::from_secs(120)).await;
    let value = async || {
        live_objects::get(scene.fleet.cluster("gz1"), "ConfigMap", "default", "one").await.expect("one")
    };
    assert_eq!(value().await["data"]["value"], "by hand");
    scene.patch_registration("gz1", json!({"data": {"status": "Ready"}})).await;
    running.until("ready", |now| cluster_state(now, "gz1") == Some("Ready")).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(value().await["data"]["value"], "first");

    // It is removed: its objects stay, and every report says so.
    let registry = live_objects::api(&scene.home, "ConfigMap", Some("default"));
    registry.delete("gz1", &DeleteParams::default()).await.expect("deleted");
    let now = running.until("gz1 dropped", |now| cluster_state(now, "gz1") == Some("Dropped")).await;
    assert_eq!(phases(&now), ["bj2 default/settings Running"]);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(value().await["data"]["value"], "first");
    running.stop().await;
}

/// Maintenance of a cluster does not depend on Git.
#[tokio::test(start_paused = true)]
async fn registry_state_applies_while_git_is_unavailable() {
    let log = CapturedLog::capture();
    let scene = RegistryFleet::new();
    scene.register("bj2", &[("zone", "bj")], kubeconfig_data("one")).await;
    let repository = &scene.fleet.repository;
    let state_folder = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", repository.path().display());
    let options = SourceOptions { url, state_folder: state_folder.path().to_owned(), ..repository.options() };
    let origin = ManifestOrigin::Repository(ConfigRepository::open(options).await.expect("a remote"));
    let home = HomeCluster::at(ClusterLink::in_process(scene.home.service()));
    let running = scene
        .fleet
        .start_from_origin(origin, &ProcessConnections::unlimited(), |settings| settings.home = home);
    running.until_converged(&scene.fleet.first_commit).await;
    running.until("bj2 alone", |now| phases(now) == ["bj2 default/settings Running"]).await;

    repository.set_unreachable(true);
    scene.patch_registration("bj2", json!({"data": {"status": "Maintaining"}})).await;
    running.until("maintenance", |now| cluster_state(now, "bj2") == Some("Maintaining")).await;
    let bj2 = scene.fleet.cluster("bj2");
    live_objects::edit_as(bj2, "kubectl-edit", ("ConfigMap", "one"), &json!({"data": {"value": "by hand"}}))
        .await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let one = live_objects::get(bj2, "ConfigMap", "default", "one").await.expect("it is there");
    assert_eq!(one["data"]["value"], "by hand");
    let told = running.overview.borrow().source_error.clone().expect("Git is asked again");
    let (cause, help) = told.split_once("; ").expect("what to do about it");
    let lines = log.text();
    let is_logged = |line: &str| {
        line.contains("failed to read the config repository") && line.contains(cause) && line.contains(help)
    };
    assert!(lines.lines().any(is_logged), "{told}: {lines}");

    repository.set_unreachable(false);
    let two = config_map("default", "two", "first");
    let more = [("apps/settings/objects/two.yaml", Some(&*two))];
    let revision = scene.fleet.push(&running, "Two", &more).await;
    running.until("Git is read", |now| now.revision.as_ref() == Some(&revision)).await;
}

#[tokio::test(start_paused = true)]
async fn unchanged_registry_costs_nothing() {
    let scene = RegistryFleet::new();
    scene.register("bj2", &[("zone", "bj")], kubeconfig_data("one")).await;
    let running = scene.start().await;
    running.until_converged(&scene.fleet.first_commit).await;
    scene.home.reset_requests();
    scene.fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let asked: Vec<_> = scene
        .home
        .requests()
        .into_iter()
        .filter(|it| !it.is_watch() || it.query.contains("sendInitialEvents"))
        .collect();
    assert!(asked.is_empty(), "{asked:?}");
    assert!(scene.fleet.request_counts().is_empty(), "{:?}", scene.fleet.request_counts());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn git_wins_over_registry_for_equal_names() {
    let scene = RegistryFleet::new();
    scene.register("bj1", &[("zone", "bj")], kubeconfig_data("one")).await;
    scene.register("bj2", &[("zone", "bj")], json!({})).await;
    let running = scene.start().await;
    let now = running.until("errors", |now| now.diagnostics.len() >= 2).await;
    let told: Vec<String> = now.diagnostics.iter().map(ToString::to_string).collect();
    assert!(
        told.iter().any(|it| it
            .starts_with("error[E2001]: the cluster bj1 has a manifest already, at clusters/bj1.yaml")
            && it.contains("ConfigMap default/bj1")),
        "{told:?}"
    );
    assert!(
        told.iter().any(|it| it
            .starts_with("error[E2092]: ConfigMap default/bj2 registers a cluster without a kubeconfig")),
        "{told:?}"
    );
    tokio::time::sleep(Duration::from_secs(60)).await;
    // The app needs a label that the file lacks.
    for name in ["bj1", "bj2"] {
        let found = live_objects::get(scene.fleet.cluster(name), "ConfigMap", "default", "one").await;
        assert!(found.is_none(), "{name}");
    }
    running.stop().await;
}

/// A process that starts while the home cluster is offline does not know all clusters: it deletes nothing until it does.
#[tokio::test(start_paused = true)]
async fn unreadable_registry_blocks_deletes() {
    let scene = RegistryFleet::new();
    scene.register("bj2", &[("zone", "bj")], kubeconfig_data("one")).await;
    let other = objects_app("default", "other");
    let two = config_map("default", "two", "first");
    let files =
        [("apps/other/app.yaml", Some(other.as_str())), ("apps/other/objects/two.yaml", Some(two.as_str()))];
    let begin = scene.fleet.repository.commit("Another app, everywhere", &files);
    let running = scene.start().await;
    running.until_converged(&begin).await;
    running.stop().await;

    scene.home.set_down(true);
    let gone = scene
        .fleet
        .repository
        .commit("It goes", &[("apps/other/app.yaml", None), ("apps/other/objects/two.yaml", None)]);
    let running = scene.start().await;
    let now = running.until("the error", |now| now.has_errors()).await;
    assert!(
        describe_overview(&now).contains("error[E2091]: failed to read the cluster registry"),
        "{}",
        describe_overview(&now)
    );
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(live_objects::get(scene.fleet.cluster("bj1"), "ConfigMap", "default", "two").await.is_some());

    scene.home.set_down(false);
    running.until_converged(&gone).await;
    for name in ["bj1", "bj2"] {
        assert!(
            live_objects::get(scene.fleet.cluster(name), "ConfigMap", "default", "two").await.is_none(),
            "{name}"
        );
    }
    let now = running.overview.borrow().clone();
    assert_eq!(target(&now, "bj2", "default/settings").phase, TargetPhase::Running);

    // Offline again: the last state applies.
    scene.home.set_down(true);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(!running.overview.borrow().has_errors());
    let one = config_map("default", "one", "second");
    let changed =
        scene.fleet.push(&running, "A change", &[("apps/settings/objects/one.yaml", Some(&one))]).await;
    running.until_converged(&changed).await;
    let found =
        live_objects::get(scene.fleet.cluster("bj2"), "ConfigMap", "default", "one").await.expect("one");
    assert_eq!(found["data"]["value"], "second");
    running.stop().await;
}

/// One app, and a forge whose token is stored in the home cluster.
fn fleet_with_stored_token(gitea: &GiteaStatusServer) -> RegistryFleet {
    let reference = "config, credentials: {token: {secret: {namespace: default, name: forge, key: token}}}}";
    let instance = gitea.instance_manifest().replace("config}", reference);
    let (app, one) = (objects_app("default", "settings"), config_map("default", "one", "first"));
    let files = [
        ("tutti.yaml", instance.as_str()),
        ("apps/settings/app.yaml", &app),
        ("apps/settings/objects/one.yaml", &one),
    ];
    RegistryFleet {
        fleet: TestFleet::new(&["bj1"], &files),
        home: Sandbox::new(SandboxOptions::instant("home")),
    }
}

async fn store_token(home: &Sandbox) {
    let metadata = json!({"name": "forge", "namespace": "default"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": "hunter2"}});
    live_objects::api(home, "Secret", Some("default"))
        .create(&PostParams::default(), &serde_json::from_value(secret).expect("a Secret"))
        .await
        .expect("created");
}

#[tokio::test(start_paused = true)]
async fn removed_forge_token_is_used_no_longer() {
    let gitea = GiteaStatusServer::start().await;
    let scene = fleet_with_stored_token(&gitea);
    store_token(&scene.home).await;
    let log = CapturedLog::capture();
    let running = scene.start().await;
    gitea.until_status(&scene.fleet.first_commit, "success").await;
    let change = async |value: &str| {
        let one = config_map("default", "one", value);
        let revision =
            scene.fleet.push(&running, value, &[("apps/settings/objects/one.yaml", Some(&one))]).await;
        running.until_converged(&revision).await;
        revision
    };

    scene.home.set_down(true);
    gitea.until_status(&change("second").await, "success").await;
    assert_eq!(log.count("the previous one is used"), 1);

    // The home cluster answers without a token: no status is posted with the old one.
    scene.home.set_down(false);
    let secrets = live_objects::api(&scene.home, "Secret", Some("default"));
    secrets.delete("forge", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let posted = gitea.posts().len();
    let third = change("third").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(gitea.posts().len(), posted, "{:?}", gitea.posts());
    assert!(log.count("commit statuses are not written") > 0);

    // Nor while the home cluster does not answer.
    scene.home.set_down(true);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(gitea.posts().len(), posted, "{:?}", gitea.posts());

    scene.home.set_down(false);
    store_token(&scene.home).await;
    gitea.until_status(&third, "success").await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn forge_token_is_retried_while_home_is_offline() {
    let gitea = GiteaStatusServer::start().await;
    let scene = fleet_with_stored_token(&gitea);
    scene.home.set_down(true);
    let log = CapturedLog::capture();
    // Commits that are read are rendered.
    let renders = || log.count("read the config repository");
    let running = scene.start().await;
    running.until_converged(&scene.fleet.first_commit).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(gitea.posts().is_empty(), "{:?}", gitea.posts());
    // Only the token was requested, repeatedly.
    let asked = log.count("commit statuses are not written");
    assert!((4..=6).contains(&asked), "{asked}");
    assert_eq!(renders(), 1);

    scene.home.set_down(false);
    store_token(&scene.home).await;
    gitea.until_status(&scene.fleet.first_commit, "success").await;
    assert_eq!(renders(), 1);
    // The token is known now, and is not requested before the next commit.
    scene.home.reset_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scene.home.requests().len(), 0, "{:?}", scene.home.requests());
    let one = config_map("default", "one", "second");
    let changed =
        scene.fleet.push(&running, "Change", &[("apps/settings/objects/one.yaml", Some(&one))]).await;
    gitea.until_status(&changed, "success").await;
    assert_eq!(scene.home.requests().len(), 1, "{:?}", scene.home.requests());
    assert_eq!(renders(), 2);
    running.stop().await;
}
