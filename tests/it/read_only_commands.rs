//! Commands that only read, for people and scripts: output and exit codes.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::live_objects;
use crate::support::manifests::{INSTANCE, cluster, component, config_map, objects_app};
use crate::support::program::{self, CommandFixture, tutti};
use crate::support::repository::TestRepository;

const SETTINGS_APP: &str = "apps/settings/app.yaml";
const MAPS_FILE: &str = "apps/settings/objects/maps.yaml";

fn maps(one: &str) -> String {
    [config_map("default", "one", one), config_map("default", "two", "first")].join("---\n")
}

/// An app of two ConfigMaps, and `more`, in the commit and in the folder. Returns the first run's output and exit code.
async fn applied_stage(more: &[(&str, &str)]) -> (CommandFixture, String, i32) {
    let (settings, maps) = (objects_app("default", "settings"), maps("first"));
    let mut files = vec![(SETTINGS_APP, settings.as_str()), (MAPS_FILE, maps.as_str())];
    files.extend(more);
    let stage = CommandFixture::new(&files).await;
    let bj1 = cluster("bj1");
    files.extend([("tutti.yaml", INSTANCE), ("clusters/bj1.yaml", &bj1)]);
    for (path, text) in files {
        stage.repository.write(path, text);
    }
    let (said, code) = run_with_output(&stage, &["run", "--once", "--timeout", "30"]).await;
    (stage, said, code)
}

async fn run_with_output(stage: &CommandFixture, command: &[&str]) -> (String, i32) {
    let (stdout, stderr, code) = stage.run(command).await;
    (stdout + &stderr, code)
}

fn service_account(name: &str) -> String {
    format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}, namespace: default}}\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_deletes_are_shown() {
    let (stage, said, code) = applied_stage(&[]).await;
    assert_eq!(code, 0, "{said}");
    let one = config_map("default", "one", "first");
    let check = async |why: &str, tutti: &str, app: &str| {
        let changes = [("tutti.yaml", Some(tutti)), (SETTINGS_APP, Some(app)), (MAPS_FILE, Some(&*one))];
        stage.repository.commit(why, &changes);
        let words = format!("ConfigMap default/two: {why}, would delete: no longer rendered");
        let (said, code) = run_with_output(&stage, &["plan", "--exit-code"]).await;
        assert!(said.contains(&words) && said.contains("1 delete"), "{said}");
        assert_eq!(code, 1, "{said}");
        let (said, code) = run_with_output(&stage, &["get", "deletions"]).await;
        assert!(said.contains("would delete"), "{said}");
        assert_eq!(code, 0, "{said}");
    };
    let observing = INSTANCE.replace("spec: {}", "spec: {mode: observe}");
    let app = objects_app("default", "settings");
    check("observe mode", &observing, &app).await;
    check("the app is paused", INSTANCE, &app.replace("spec: {", "spec: {paused: true, ")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_writes_are_shown() {
    let (stage, said, code) = applied_stage(&[]).await;
    assert_eq!(code, 0, "{said}");
    let check = async |why: &str, bj1: &str, app: &str| {
        let changes = [
            ("clusters/bj1.yaml", Some(bj1)),
            (SETTINGS_APP, Some(app)),
            (MAPS_FILE, Some(&*maps("second"))),
        ];
        stage.repository.commit(why, &changes);
        let (said, code) = run_with_output(&stage, &["plan", "--exit-code"]).await;
        assert!(
            said.contains(&format!("ConfigMap default/one: {why}, would configure: rendered ")),
            "{said}"
        );
        assert_eq!(code, 1, "{said}");
    };
    let (bj1, app) = (cluster("bj1"), objects_app("default", "settings"));
    check("the app is paused", &bj1, &app.replace("spec: {", "spec: {paused: true, ")).await;
    check("the cluster is in maintenance", &bj1.replace("spec: {", "spec: {state: Maintaining, "), &app)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_are_no_empty_plan() {
    let (stage, said, code) = applied_stage(&[]).await;
    assert_eq!(code, 0, "{said}");
    let broken = format!("{INSTANCE}<<<<<<< HEAD\n");
    stage.repository.commit("Broken", &[("tutti.yaml", Some(&broken)), (MAPS_FILE, Some(&maps("second")))]);
    let (said, code) = run_with_output(&stage, &["plan"]).await;
    assert!(said.contains("fix the errors first: nothing can be planned with them"), "{said}");
    assert!(said.contains("E1102") && !said.contains("nothing to do"), "{said}");
    assert_eq!(code, 2, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletes_of_an_app_are_grouped() {
    let (stage, said, code) = applied_stage(&[]).await;
    assert_eq!(code, 0, "{said}");
    stage.repository.commit("Others", &[(MAPS_FILE, Some(&config_map("default", "three", "first")))]);
    let (said, _) = run_with_output(&stage, &["plan"]).await;
    let told: Vec<&str> = said.lines().skip_while(|line| *line != "bj1 default/settings").take(3).collect();
    let line = |name: &str| {
        format!(
            "  - wait       ConfigMap default/{name}: no longer rendered, deleted when its app is healthy"
        )
    };
    assert_eq!(told, ["bj1 default/settings", &line("two"), &line("one")], "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn app_health_does_not_change_plan_exit_code() {
    let web = component("web", "registry.example.com/web:broken-1");
    let strange = "return {status = 'Unknown', message = 'who knows'}";
    let (account, account_app) = (service_account("strange"), objects_app("default", "accounts"));
    let (stage, said, code) = applied_stage(&[
        ("apps/web/app.yaml", &web),
        ("health/core/ServiceAccount/health.lua", strange),
        ("apps/accounts/app.yaml", &account_app),
        ("apps/accounts/objects/strange.yaml", &account),
    ])
    .await;
    assert!(matches!(code, 3 | 4), "{said}");
    let begun = Instant::now();
    for command in
        [&["plan", "--exit-code"][..], &["plan", "settings", "--exit-code"], &["diff", "--exit-code"]]
    {
        let (said, code) = run_with_output(&stage, command).await;
        assert_eq!(code, 0, "{command:?}: {said}");
    }
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
}

/// The commit reverts an edit of our field: the plan of the folder shows the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worktree_plan_reads_applied_state_from_its_repository() {
    let (stage, said, code) = applied_stage(&[]).await;
    assert_eq!(code, 0, "{said}");
    let edit = json!({"data": {"value": "somebody's"}});
    live_objects::edit_as(&stage.sandbox, "kubectl-edit", ("ConfigMap", "one"), &edit).await;
    stage.repository.write(MAPS_FILE, &maps("second"));
    let (said, code) = run_with_output(&stage, &["diff", "--worktree", "--exit-code"]).await;
    assert!(said.contains("second") && !said.contains("conflict"), "{said}");
    assert_eq!(code, 1, "{said}");
}

/// An example on embedded clusters.
fn embedded_example() -> TestRepository {
    let repository = TestRepository::empty();
    let bj1 = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1}\nspec: {connection: {sandbox: {}}}\n";
    let (settings, maps) = (objects_app("default", "settings"), maps("first"));
    let files =
        [("tutti.yaml", INSTANCE), ("clusters/bj1.yaml", bj1), (SETTINGS_APP, &settings), (MAPS_FILE, &maps)];
    repository.commit("Begin", &files.map(|(path, text)| (path, Some(text))));
    repository
}

#[test]
fn approval_needs_a_minimum_of_digits() {
    let repository = embedded_example();
    for digest in ["", "abc", "what"] {
        let (_, errors, code) = program::run(repository.path(), &["approve", digest, "--commit"]);
        assert!(errors.contains("at least 4 of its digits"), "{errors}");
        assert_eq!(code, 2);
    }
    let (_, errors, code) = program::run(repository.path(), &["approve", "ABCD", "--commit"]);
    assert!(errors.contains("no deletes wait for an approval abcd; nothing waits"), "{errors}");
    assert_eq!(code, 2);
}

#[test]
fn short_timeout_fails_and_maximum_is_accepted() {
    let repository = embedded_example();
    for command in ["plan", "diff", "get"] {
        let (output, errors, code) = program::run(repository.path(), &[command, "--timeout", "0"]);
        assert_eq!(output, "", "nothing is known");
        assert!(errors.contains("the config repository was not read in time"), "{errors}");
        assert_eq!(code, 4);
    }
    let ages = u64::MAX.to_string();
    let (output, errors, code) =
        program::run(repository.path(), &["plan", "--exit-code", "--timeout", &ages]);
    assert!(output.contains("2 create"), "{output}{errors}");
    assert_eq!(code, 1);
}

#[test]
fn closed_output_does_not_change_exit_code() {
    let repository = embedded_example();
    let check = |arguments: &[&str], close: fn(&mut Child), expected: i32| {
        let mut program = tutti(repository.path());
        let program = program.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = program.spawn().expect("the binary runs");
        close(&mut child);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}");
    };
    check(&["plan", "--exit-code"], |child| drop(child.stdout.take()), 1);
    repository.write("tutti.yaml", "kind: [");
    check(&["lint", "."], |child| drop(child.stderr.take()), 2);
}
