//! Credential plug-ins: a hanging one blocks no other cluster, and their input and output are not logged.
//!
//! These tests use the machine's clock, because programs run by it.

use std::path::Path;
use std::time::{Duration, Instant};

use sandbox::Sandbox;
use tutti::report::TargetPhase;

use crate::support::client_certificates::kubeconfig;
use crate::support::fleet::{TestFleet, describe_overview};
use crate::support::log::CapturedLog;
use crate::support::manifests::{config_map, objects_app};

/// More than the machine's cores, and twice the number of parallel plug-ins.
const HANGING_COUNT: usize = 40;

fn plug_in_user(script: &str, more: &str) -> String {
    let script = serde_json::json!(["-c", script]);
    format!("exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: {script}{more}}}")
}

fn write_kubeconfig(folder: &Path, cluster: &str, text: &str) {
    std::fs::write(folder.join(format!("{cluster}.kubeconfig")), text).expect("a file");
}

#[tokio::test]
async fn hanging_plug_ins_block_no_other_cluster() {
    // Clusters connect in this order: the working one is last.
    let names: Vec<String> = (0..HANGING_COUNT).map(|number| format!("a{number}")).collect();
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.push("bj1");
    let app = objects_app("default", "settings");
    let one = config_map("default", "one", "first");
    let files = [("apps/settings/app.yaml", app.as_str()), ("apps/settings/objects/one.yaml", &one)];
    let mut fleet = TestFleet::new(&all, &files);
    for name in &names {
        fleet.clusters.remove(name);
        let hangs = plug_in_user("exec sleep 600", "");
        write_kubeconfig(fleet.repository.path(), name, &kubeconfig("server: 'https://127.0.0.1:1'", &hangs));
    }
    let cluster: Sandbox = fleet.clusters.remove("bj1").expect("it was made");
    let listener = cluster.listen(([127, 0, 0, 1], 0).into()).await.expect("a port");
    let works = plug_in_user(&format!("echo '{{\"status\": {{\"token\": \"{}\"}}}}'", listener.token()), "");
    let folder = fleet.repository.path();
    write_kubeconfig(
        folder,
        "bj1",
        &listener.kubeconfig().replace(&format!("token: {}", listener.token()), &works),
    );
    let start = Instant::now();
    let running = fleet.start().await;
    running
        .until("the one that answers", |now| {
            now.targets.iter().any(|it| it.cluster.as_str() == "bj1" && it.phase == TargetPhase::Running)
        })
        .await;
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    running.stop().await;
}

#[tokio::test]
async fn plug_in_input_and_output_are_not_logged() {
    let log = CapturedLog::capture_all();
    let app = objects_app("default", "settings");
    let one = config_map("default", "one", "first");
    let files = [("apps/settings/app.yaml", app.as_str()), ("apps/settings/objects/one.yaml", &one)];
    let mut fleet = TestFleet::new(&["bj1"], &files);
    let cluster: Sandbox = fleet.clusters.remove("bj1").expect("it was made");
    let listener = cluster.listen(([127, 0, 0, 1], 0).into()).await.expect("a port");
    let folder = fleet.repository.path();
    // The plug-in succeeds for a while, then fails with its token in its output.
    let credential =
        format!(r#"{{"status": {{"token": "{}", "expirationTimestamp": "%s"}}}}"#, listener.token());
    std::fs::write(folder.join("credential"), credential).expect("a file");
    let script = format!(
        "cd {}; mkdir ran && printf \"$(cat credential)\" $(date -u -d +20sec +%FT%TZ) && exit; \
         cat credential; cat credential >&2; echo $SECRET hunter3; exit 7",
        folder.display()
    );
    let user = plug_in_user(&script, ", env: [{name: SECRET, value: hunter2}]");
    write_kubeconfig(
        folder,
        "bj1",
        &listener.kubeconfig().replace(&format!("token: {}", listener.token()), &user),
    );

    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let now = running.until("it fails", |now| now.clusters[0].state == "Offline").await;
    assert_eq!(now.clusters[0].detail, "the plug-in sh failed: exit status: 7");
    // The cluster connects again, and the failure is reported again.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let told = format!("{}{}", describe_overview(&running.overview.borrow()), log.text());
    assert!(told.contains("the plug-in sh failed: exit status: 7"), "{told}");
    for secret in ["hunter2", "hunter3", listener.token(), "SECRET"] {
        assert!(!told.contains(secret), "{secret}: {told}");
    }
    running.stop().await;
}
