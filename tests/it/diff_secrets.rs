//! `tutti diff` of Secrets: every output form shows which values change, and never the values.

use std::process::Command;

use crate::drift::app_with_fields;
use crate::support::live_objects;
use crate::support::program::CommandFixture;

const MANIFESTS: &str = "apps/web/objects/all.yaml";

fn secret(name: &str, rest: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: default}}\n{rest}\n")
}

/// Before and after: another notation, another type, a removed value, and a value taken from another manager.
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

async fn run(stage: &CommandFixture, command: &[&str], external: Option<&str>) -> (String, i32) {
    let external = external.unwrap_or_default();
    let change = |program: &mut Command| _ = program.env("KUBECTL_EXTERNAL_DIFF", external);
    let (stdout, stderr, code) = stage.run_with(command, change).await;
    (stdout + &stderr, code)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_diff_form_shows_secret_values() {
    let (before, after) = manifests();
    let web = app_with_fields("adopt: true");
    let stage = CommandFixture::new(&[("apps/web/app.yaml", &web), (MANIFESTS, &before)]).await;
    let (said, code) = run(&stage, &["run", "--once"], None).await;
    assert_eq!(code, 0, "{said}");
    live_objects::create_as(
        &stage.sandbox,
        "kubectl",
        &secret("adopted", "data: {password: aHVudGVyMi1maXZl}"),
    )
    .await;
    stage.repository.commit("After", &[(MANIFESTS, Some(&after))]);

    let ways: [(&[&str], Option<&str>); 6] = [
        (&["diff"], None),
        (&["diff", "--context", "1000"], None),
        (&["diff", "--output", "json"], None),
        (&["diff", "--output", "yaml"], None),
        (&["diff"], Some("diff -r -u")),
        (&["plan", "--explain"], None),
    ];
    for (command, external) in ways {
        let (said, _) = run(&stage, command, external).await;
        for name in ["rewritten", "dropped", "adopted", "new"] {
            assert!(said.contains(name), "{command:?} {external:?}: no {name} in {said}");
        }
        for value in ["hunter", "aHVudGVy"] {
            assert!(!said.contains(value), "{command:?} {external:?} tells {value}: {said}");
        }
    }
}
