//! Clusters with client certificates: a renewed certificate is used from then on without new lists; an expiring
//! one is reported in time.
//!
//! These tests use the machine's clock, because the cluster is reached through a socket. They advance it where
//! files are to be read again.

use std::time::Duration;

use sandbox::{Sandbox, SandboxOptions};
use tutti::cluster::{Client, ClusterLink};
use tutti::model::ClusterName;

use crate::support::client_certificates::{CertificateGateway, CertificatePair, kubeconfig};
use crate::support::fleet::{RunningController, TestFleet};
use crate::support::live_objects;
use crate::support::log::CapturedLog;
use crate::support::manifests::{config_map, objects_app};
use crate::support::program;

const ONE_FILE: &str = "apps/settings/objects/one.yaml";
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// One cluster behind a TLS listener, and an app with one ConfigMap.
struct CertificateCluster {
    fleet: TestFleet,
    cluster: Sandbox,
    listener: CertificateGateway,
}

impl CertificateCluster {
    /// `user` returns the user of the kubeconfig.
    async fn new(user: impl FnOnce(&TestFleet, &CertificateGateway) -> String) -> Self {
        let app = objects_app("default", "settings");
        let one = config_map("default", "one", "first");
        let mut fleet = TestFleet::new(&["bj1"], &[("apps/settings/app.yaml", &app), (ONE_FILE, &one)]);
        let cluster = fleet.clusters.remove("bj1").expect("it was made");
        let door = CertificateGateway::start(&cluster).await;
        let user = user(&fleet, &door);
        let text = kubeconfig(&format!("{}, {}", door.kubeconfig_cluster(), door.authority_data()), &user);
        fleet.repository.write("bj1.kubeconfig", &text);
        Self { fleet, cluster, listener: door }
    }

    /// Commits another value and waits until it is applied. Returns the certificate names of the writers.
    async fn change_and_list_writers(&self, running: &RunningController, value: &str) -> Vec<String> {
        let before = self.listener.requests().len();
        let one = config_map("default", "one", value);
        let commit = self.fleet.push(running, "One changes", &[(ONE_FILE, Some(&one))]).await;
        running.until_converged(&commit).await;
        let seen = self.listener.requests();
        let writes = seen[before..].iter().filter(|it| it.contains(" PATCH "));
        writes.map(|it| it.split(' ').next().expect("a guest").to_owned()).collect()
    }

    /// Lists of ConfigMaps, and watches that begin with a list.
    fn list_count(&self) -> usize {
        let is_list = |verb: &str, query: &str| verb == "list" || query.contains("sendInitialEvents=true");
        let requests = self.cluster.requests();
        requests.iter().filter(|it| it.resource == "configmaps" && is_list(&it.verb, &it.query)).count()
    }
}

/// Advances the clock until files are read again.
async fn advance_one_minute() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
}

fn certificate_file_user(_: &TestFleet, _: &CertificateGateway) -> String {
    "client-certificate: us.crt, client-key: us.key".to_owned()
}

#[tokio::test]
async fn renewed_certificate_is_used_without_new_lists() {
    let scene = CertificateCluster::new(|fleet, door| {
        door.issue("first", YEAR).write(fleet.repository.path(), "us");
        certificate_file_user(fleet, door)
    })
    .await;
    let running = scene.fleet.start().await;
    running.until_converged(&scene.fleet.first_commit).await;
    assert_eq!(scene.change_and_list_writers(&running, "second").await, ["first"]);
    let lists = scene.list_count();

    // The key is still missing: the pair cannot be used yet.
    let CertificatePair { certificate, key } = scene.listener.issue("next", YEAR);
    let folder = scene.fleet.repository.path();
    std::fs::write(folder.join("us.crt"), certificate).expect("a file");
    advance_one_minute().await;
    assert_eq!(scene.change_and_list_writers(&running, "third").await, ["first"]);
    std::fs::write(folder.join("us.key"), key).expect("a file");
    advance_one_minute().await;
    assert_eq!(scene.change_and_list_writers(&running, "fourth").await, ["next"]);

    // The old certificate may expire now.
    scene.listener.reject_client("first");
    assert_eq!(scene.change_and_list_writers(&running, "fifth").await, ["next"]);
    // Watches that started earlier still report events.
    let maps = live_objects::api(&scene.cluster, "ConfigMap", Some("default"));
    maps.delete("one", &kube::api::DeleteParams::default()).await.expect("deleted");
    for _ in 0..100 {
        if live_objects::get(&scene.cluster, "ConfigMap", "default", "one").await.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(
        live_objects::get(&scene.cluster, "ConfigMap", "default", "one").await.is_some(),
        "it is put back"
    );
    assert_eq!(scene.list_count(), lists, "no connection is made anew");
    running.stop().await;
}

#[tokio::test]
async fn refused_certificate_is_requested_again_from_plug_in() {
    let scene = CertificateCluster::new(|fleet, door| {
        let folder = fleet.repository.path();
        write_plug_in_credential(folder, &door.issue("first", YEAR));
        let script = format!("cd {}; echo run >> runs; cat credential", folder.display());
        format!("exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, '{script}']}}")
    })
    .await;
    let folder = scene.fleet.repository.path();
    let runs = || std::fs::read_to_string(folder.join("runs")).expect("it has run").lines().count();
    let running = scene.fleet.start().await;
    running.until_converged(&scene.fleet.first_commit).await;
    assert_eq!(
        (scene.change_and_list_writers(&running, "second").await, runs()),
        (vec!["first".to_owned()], 1)
    );
    let lists = scene.list_count();

    write_plug_in_credential(folder, &scene.listener.issue("next", YEAR));
    scene.listener.reject_client("first");
    for _ in 0..200 {
        if scene.listener.requests().iter().any(|it| it.starts_with("next ")) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(
        (scene.change_and_list_writers(&running, "third").await, runs()),
        (vec!["next".to_owned()], 2)
    );
    assert_eq!(scene.list_count(), lists, "one refusal is no outage");
    running.stop().await;
}

/// Writes the plug-in's output.
fn write_plug_in_credential(folder: &std::path::Path, pair: &CertificatePair) {
    let status = serde_json::json!({"clientCertificateData": pair.certificate, "clientKeyData": pair.key});
    let credential = serde_json::json!({"kind": "ExecCredential", "status": status});
    std::fs::write(folder.join("credential"), credential.to_string()).expect("a file");
}

#[tokio::test]
async fn expiring_certificate_is_reported_in_log_and_table() {
    let log = CapturedLog::capture();
    let scene = CertificateCluster::new(|_, door| {
        use base64::Engine as _;
        let CertificatePair { certificate, key } = door.issue("us", 20 * DAY + DAY / 2);
        let data = [certificate, key].map(|pem| base64::engine::general_purpose::STANDARD.encode(pem));
        format!("client-certificate-data: {}, client-key-data: {}", data[0], data[1])
    })
    .await;
    let running = scene.fleet.start().await;
    let now = running.until_converged(&scene.fleet.first_commit).await;
    assert!(now.clusters[0].credential_expires.is_some(), "{:?}", now.clusters);
    assert_eq!(log.count("the client certificate of user admin expires in 20d, at "), 1);
    running.stop().await;

    // The binary refuses a kubeconfig inside the repository.
    let (folder, outside) =
        (scene.fleet.repository.path().to_owned(), tempfile::tempdir().expect("a folder"));
    std::fs::copy(folder.join("bj1.kubeconfig"), outside.path().join("bj1.kubeconfig")).expect("a copy");
    let kubeconfigs = outside.path().display().to_string();
    let ran = tokio::task::spawn_blocking(move || {
        program::run(&folder, &["get", "clusters", "--repo", ".", "--kubeconfigs", &kubeconfigs])
    });
    let (printed, trouble, _) = ran.await.expect("it ends");
    let table: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(table[0][4], "CREDENTIAL", "{printed}{trouble}");
    assert_eq!((table[1][0], table[1][4]), ("bj1", "20d"), "{printed}{trouble}");
}

#[tokio::test]
async fn server_name_and_authority_come_from_the_kubeconfig() {
    let cluster = Sandbox::new(SandboxOptions::instant("bj1"));
    let door = CertificateGateway::start(&cluster).await;
    let folder = tempfile::tempdir().expect("a folder");
    door.issue("us", YEAR).write(folder.path(), "us");
    std::fs::write(folder.path().join("ca.crt"), &door.authority).expect("a file");
    let other = CertificateGateway::start(&cluster).await;
    std::fs::write(folder.path().join("other.crt"), &other.authority).expect("a file");
    let user = "client-certificate: us.crt, client-key: us.key";
    let path = folder.path().join("config");
    let probe = async |cluster: &str| {
        std::fs::write(&path, kubeconfig(cluster, user)).expect("a file");
        let link = ClusterLink::Kubeconfig { path: path.clone(), context: None };
        let client = Client::connect(ClusterName::from("bj1"), &link).await.map_err(|it| it.to_string())?;
        client.probe().await.map_err(|error| error.to_string())
    };
    let right = door.kubeconfig_cluster();
    probe(&format!("{right}, {}", door.authority_data())).await.expect("its data");
    probe(&format!("{right}, certificate-authority: ca.crt")).await.expect("its file, beside the kubeconfig");
    let error = probe(&format!("{right}, certificate-authority: other.crt")).await.expect_err("another");
    assert!(error.contains("invalid peer certificate"), "{error}");
    let error = probe(&format!("{right}, certificate-authority: gone.crt")).await.expect_err("none");
    assert!(error.contains("gone.crt: No such file"), "{error}");
    let unnamed = right.replace(", tls-server-name: cluster.example", "");
    let error = probe(&format!("{unnamed}, certificate-authority: ca.crt")).await.expect_err("127.0.0.1");
    assert!(error.contains("not valid for name"), "{error}");
    probe(&format!("{unnamed}, insecure-skip-tls-verify: true")).await.expect("nobody is asked");
}
