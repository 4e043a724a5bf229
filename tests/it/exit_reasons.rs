//! A `run --once` with an exit code other than 0 gives the reason in its last line.

use crate::support::manifests::{config_map, objects_app};
use crate::support::program::CommandFixture;

const APP: &str = "apps/web/app.yaml";
const MANIFESTS: &str = "apps/web/objects/all.yaml";
/// No provisioner serves the claim.
const UNBOUND_CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: default}\n\
                     spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}\n";
/// The namespace does not exist.
const MAP_WITHOUT_NAMESPACE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: nowhere}\n";

async fn check_exit(files: &[(&str, &str)], arguments: &[&str], expected: (i32, &str)) {
    let stage = CommandFixture::new(&[(APP, &objects_app("default", "web"))]).await;
    let changes: Vec<_> = files.iter().map(|(path, text)| (*path, Some(*text))).collect();
    stage.repository.commit("Change", &changes);
    let (stdout, stderr, code) = stage.run(&[&["run", "--once"], arguments].concat()).await;
    assert_eq!(code, expected.0, "{stdout}{stderr}");
    let last = stderr.lines().last().unwrap_or_default();
    if code == 0 {
        assert!(!last.starts_with("ends with"), "{stderr}");
    } else {
        let begin = format!("ends with {code}: ");
        assert!(last.starts_with(&begin) && last.contains(expected.1), "no {:?} in {stderr}", expected.1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_exit_code_comes_with_its_reason() {
    let good = config_map("default", "web", "one");
    let good = (MANIFESTS, good.as_str());
    check_exit(&[good], &[], (0, "")).await;
    check_exit(&[good, ("tutti.yaml", "kind: x\n")], &[], (2, "E1110")).await;
    check_exit(&[(MANIFESTS, "kind: [\n")], &[], (3, "default/web is Invalid")).await;
    check_exit(
        &[(MANIFESTS, MAP_WITHOUT_NAMESPACE)],
        &["--timeout", "5"],
        (3, "namespaces \"nowhere\" not found"),
    )
    .await;
    check_exit(&[(MANIFESTS, UNBOUND_CLAIM)], &["--timeout", "3"], (4, "default/web is Progressing")).await;
    check_exit(&[good], &["--cluster", "bj1=nowhere", "--timeout", "5"], (6, "No such file")).await;
}

/// A delete that waits for a person: no app is unhealthy, and the table shows nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_delete_is_the_exit_reason() {
    let app = objects_app("default", "web");
    let stage = CommandFixture::new(&[
        (APP, &app),
        (MANIFESTS, &format!("{UNBOUND_CLAIM}---\n{}", config_map("default", "web", "one"))),
    ])
    .await;
    let (_, _, first) = stage.run(&["run", "--once", "--timeout", "3"]).await;
    assert_eq!(first, 4);
    let rest = config_map("default", "web", "one");
    stage.repository.commit("Drop the claim", &[(MANIFESTS, Some(&rest))]);
    let (stdout, stderr, code) = stage.run(&["run", "--once", "--timeout", "20"]).await;
    assert_eq!(code, 1, "{stdout}{stderr}");
    let last = stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("ends with 1: bj1 ") && last.contains("waits to be deleted: "), "{stderr}");
}
