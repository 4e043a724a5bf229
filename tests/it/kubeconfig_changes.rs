//! A kubeconfig that changes to another cluster: nothing more is written to the old cluster, and its state decides no
//! delete on the new one.
//!
//! These tests use the machine's clock, because the cluster is reached through a socket. They advance it where a
//! kubeconfig is to be read again.

use std::time::Duration;

use sandbox::{Sandbox, SandboxListener, SandboxOptions};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::support::fleet::{RunningController, TestFleet};
use crate::support::live_objects;
use crate::support::manifests::{config_map, objects_app};

const ONE_FILE: &str = "apps/settings/objects/one.yaml";
const TWO_FILE: &str = "apps/settings/objects/two.yaml";

/// One cluster with a kubeconfig file.
struct KubeconfigCluster {
    fleet: TestFleet,
    cluster: Sandbox,
    _listener: SandboxListener,
}

impl KubeconfigCluster {
    /// The app has `one` and `two`.
    async fn new() -> Self {
        let app = objects_app("default", "settings");
        let maps = ["one", "two"].map(|name| config_map("default", name, "first"));
        let files = [("apps/settings/app.yaml", app.as_str()), (ONE_FILE, &maps[0]), (TWO_FILE, &maps[1])];
        let mut fleet = TestFleet::new(&["bj1"], &files);
        let cluster = fleet.clusters.remove("bj1").expect("it was made");
        let door = listen(&cluster).await;
        let scene = Self { fleet, cluster, _listener: door };
        scene.set_kubeconfig(&scene._listener.kubeconfig());
        scene
    }

    fn set_kubeconfig(&self, kubeconfig: &str) {
        self.fleet.repository.write("bj1.kubeconfig", kubeconfig);
    }
}

async fn listen(cluster: &Sandbox) -> SandboxListener {
    cluster.listen(([127, 0, 0, 1], 0).into()).await.expect("a port")
}

/// Advances the clock until all kubeconfigs are read again.
async fn advance_minutes() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(400)).await;
    tokio::time::resume();
}

async fn wait_for_disconnect(running: &RunningController) {
    running.until("the connection is left", |now| now.clusters.iter().all(|it| !it.observed)).await;
}

async fn config_map_object(cluster: &Sandbox, name: &str) -> Option<Value> {
    live_objects::get(cluster, "ConfigMap", "default", name).await
}

async fn config_map_value(cluster: &Sandbox, name: &str) -> Option<String> {
    config_map_object(cluster, name).await?["data"]["value"].as_str().map(str::to_owned)
}

fn write_requests(cluster: &Sandbox) -> Vec<String> {
    let writes = cluster.requests().into_iter().filter(|it| it.is_write());
    writes.map(|it| format!("{} {} {}", it.verb, it.resource, it.name)).collect()
}

#[tokio::test]
async fn replaced_connection_starts_no_write_and_no_delete() {
    let scene = KubeconfigCluster::new().await;
    let running = scene.fleet.start().await;
    running.until_converged(&scene.fleet.first_commit).await;

    // The next lookup is slow.
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = format!("https://{}", silent.local_addr().expect("an address"));
    scene.set_kubeconfig(&scene._listener.kubeconfig().replace(&scene._listener.url(), &address));
    advance_minutes().await;
    wait_for_disconnect(&running).await;
    scene.cluster.reset_requests();
    let one = config_map("default", "one", "second");
    let changed = scene
        .fleet
        .push(&running, "One changes, two goes", &[(ONE_FILE, Some(&one)), (TWO_FILE, None)])
        .await;
    running.until("it is read", |now| now.revision.as_ref() == Some(&changed)).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(write_requests(&scene.cluster), Vec::<String>::new());

    // Another cluster, with a foreign `two` of the same name.
    let other = Sandbox::new(SandboxOptions::instant("bj1"));
    live_objects::create_as(&other, "somebody", &config_map("default", "two", "theirs")).await;
    other.reset_requests();
    let listener = listen(&other).await;
    scene.set_kubeconfig(&listener.kubeconfig());
    drop(silent);
    running.until_converged(&changed).await;
    assert_eq!(write_requests(&other), ["apply configmaps one"]);
    assert_eq!(config_map_value(&other, "two").await.as_deref(), Some("theirs"));
    assert_eq!(write_requests(&scene.cluster), Vec::<String>::new());
    assert_eq!(config_map_value(&scene.cluster, "two").await.as_deref(), Some("first"));
    running.stop().await;
}

#[tokio::test]
async fn cluster_from_backup_is_reconciled_as_found() {
    let scene = KubeconfigCluster::new().await;
    let running = scene.fleet.start().await;
    running.until_converged(&scene.fleet.first_commit).await;
    let backup = scene.cluster.backup();
    let one = config_map("default", "one", "second");
    let changed = scene
        .fleet
        .push(&running, "One changes, two goes", &[(ONE_FILE, Some(&one)), (TWO_FILE, None)])
        .await;
    running.until_converged(&changed).await;
    assert_eq!(config_map_object(&scene.cluster, "two").await, None);

    let other = Sandbox::new(SandboxOptions::instant("bj1"));
    other.restore(&backup);
    assert_eq!(
        config_map_value(&other, "one").await.as_deref(),
        Some("first"),
        "an older state of the same object"
    );
    let listener = listen(&other).await;
    scene.cluster.reset_requests();
    other.reset_requests();
    scene.set_kubeconfig(&listener.kubeconfig());
    advance_minutes().await;
    for _ in 0..600 {
        if config_map_value(&other, "one").await.as_deref() == Some("second")
            && config_map_object(&other, "two").await.is_none()
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        config_map_value(&other, "one").await.as_deref(),
        Some("second"),
        "{:?}",
        write_requests(&other)
    );
    assert_eq!(config_map_object(&other, "two").await, None, "{:?}", write_requests(&other));
    assert_eq!(write_requests(&scene.cluster), Vec::<String>::new());
    running.stop().await;
}
