//! `tutti diff` of Secrets: every way to show it says that values change, and never what they are.

use std::path::Path;

use crate::drift::app;
use crate::support::live;
use crate::support::manifests::{INSTANCE, cluster};
use crate::support::program::{reachable, told, tutti};
use crate::support::repository::ConfigRepository;

const MANIFESTS: &str = "apps/web/objects/all.yaml";

fn secret(name: &str, rest: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: default}}\n{rest}\n")
}

/// Before and after: written otherwise, of another type, a value that goes, one that somebody else wrote and we take over.
fn manifests() -> (String, String) {
    let before = [
        secret("rewritten", "stringData: {password: hunter2-one}"),
        secret("retyped", "type: Opaque\nstringData: {password: hunter2-two}"),
        secret("dropped", "stringData: {gone: hunter2-three, stays: hunter2-four}"),
    ];
    // base64 of `hunter3-one`.
    let after = [
        secret("rewritten", "data: {password: aHVudGVyMy1vbmU=}"),
        secret(
            "retyped",
            "type: kubernetes.io/basic-auth\nstringData: {username: me, password: hunter3-two}",
        ),
        secret("dropped", "stringData: {stays: hunter2-four}"),
        secret("adopted", "stringData: {password: hunter3-five}"),
        secret("new", "stringData: {password: hunter3-six}"),
    ];
    (before.join("---\n"), after.join("---\n"))
}

async fn run(
    folder: &Path,
    repository: &ConfigRepository,
    command: &[&str],
    external: Option<&str>,
) -> (String, i32) {
    let mut program = tutti(folder);
    program.args(command).arg("--repo").arg(repository.path()).arg("--kubeconfigs").arg(folder);
    match external {
        Some(external) => program.env("KUBECTL_EXTERNAL_DIFF", external),
        None => program.env_remove("KUBECTL_EXTERNAL_DIFF"),
    };
    let output =
        tokio::task::spawn_blocking(move || program.output()).await.expect("no panic").expect("it runs");
    let (stdout, stderr, code) = told(&output);
    (stdout + &stderr, code)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_way_to_show_a_difference_tells_a_value() {
    let (sandbox, _listener, folder) = reachable("bj1").await;
    let (before, after) = manifests();
    let (repository, bj1, web) = (ConfigRepository::empty(), cluster("bj1"), app("adopt: true"));
    let files = [
        ("tutti.yaml", INSTANCE),
        ("clusters/bj1.yaml", &bj1),
        ("apps/web/app.yaml", &web),
        (MANIFESTS, &before),
    ];
    repository.commit("Before", &files.map(|(path, text)| (path, Some(text))));
    let (said, code) = run(folder.path(), &repository, &["run", "--once"], None).await;
    assert_eq!(code, 0, "{said}");
    live::create_as(&sandbox, "kubectl", &secret("adopted", "data: {password: aHVudGVyMi1maXZl}")).await;
    repository.commit("After", &[(MANIFESTS, Some(&after))]);

    let ways: [(&[&str], Option<&str>); 6] = [
        (&["diff"], None),
        (&["diff", "--context", "1000"], None),
        (&["diff", "--output", "json"], None),
        (&["diff", "--output", "yaml"], None),
        (&["diff"], Some("diff -r -u")),
        (&["plan", "--explain"], None),
    ];
    for (command, external) in ways {
        let (said, _) = run(folder.path(), &repository, command, external).await;
        for name in ["rewritten", "dropped", "adopted", "new"] {
            assert!(said.contains(name), "{command:?} {external:?}: no {name} in {said}");
        }
        for value in ["hunter", "aHVudGVy"] {
            assert!(!said.contains(value), "{command:?} {external:?} tells {value}: {said}");
        }
    }
}
