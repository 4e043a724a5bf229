//! Commands that look once and write nothing, as a person and a script use them: their words and exit codes.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sandbox::{Listener, Sandbox};
use serde_json::json;
use tempfile::TempDir;

use crate::support::live;
use crate::support::manifests::{INSTANCE, cluster, component, config_map, objects};
use crate::support::program::{self, reachable, told, tutti};
use crate::support::repository::ConfigRepository;

const SETTINGS: &str = "apps/settings/app.yaml";
const MAPS: &str = "apps/settings/objects/maps.yaml";

/// A cluster that programs reach, with what a repository says in it.
struct Stage {
    sandbox: Sandbox,
    _listener: Listener,
    folder: TempDir,
    repository: ConfigRepository,
}

fn maps(one: &str) -> String {
    [config_map("default", "one", one), config_map("default", "two", "first")].join("---\n")
}

impl Stage {
    /// `more`: files beside an app of two ConfigMaps. What is said of the first run, and its exit code.
    async fn new(more: &[(&str, &str)]) -> (Self, String, i32) {
        let (sandbox, listener, folder) = reachable("bj1").await;
        let repository = ConfigRepository::empty();
        let (bj1, settings, maps) = (cluster("bj1"), objects("default", "settings"), maps("first"));
        let mut files =
            vec![("tutti.yaml", INSTANCE), ("clusters/bj1.yaml", &bj1), (SETTINGS, &settings), (MAPS, &maps)];
        files.extend(more);
        let changes: Vec<_> = files.iter().map(|(path, text)| (*path, Some(*text))).collect();
        repository.commit("Begin", &changes);
        for (path, text) in files {
            write(repository.path(), path, text);
        }
        let stage = Self { sandbox, _listener: listener, folder, repository };
        let (said, code) = stage.run(&["run", "--once", "--timeout", "30"]).await;
        (stage, said, code)
    }

    async fn run(&self, command: &[&str]) -> (String, i32) {
        let mut program = tutti(self.folder.path());
        let repository = self.repository.path();
        program.args(command).arg("--repo").arg(repository).arg("--kubeconfigs").arg(self.folder.path());
        let output = tokio::task::spawn_blocking(move || program.output()).await.expect("no panic");
        let (stdout, stderr, code) = told(&output.expect("it runs"));
        (stdout + &stderr, code)
    }
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    std::fs::write(path, text).expect("written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletes_that_are_held_are_told() {
    let (stage, said, code) = Stage::new(&[]).await;
    assert_eq!(code, 0, "{said}");
    let one = config_map("default", "one", "first");
    let check = async |why: &str, tutti: &str, app: &str| {
        let changes = [("tutti.yaml", Some(tutti)), (SETTINGS, Some(app)), (MAPS, Some(&*one))];
        stage.repository.commit(why, &changes);
        let words = format!("ConfigMap default/two: {why}, would delete: no longer rendered");
        let (said, code) = stage.run(&["plan", "--exit-code"]).await;
        assert!(said.contains(&words) && said.contains("1 delete"), "{said}");
        assert_eq!(code, 1, "{said}");
        let (said, code) = stage.run(&["get", "deletions"]).await;
        assert!(said.contains("skip") && said.contains("would delete"), "{said}");
        assert_eq!(code, 0, "{said}");
    };
    let observing = INSTANCE.replace("spec: {}", "spec: {mode: observe}");
    let app = objects("default", "settings");
    check("observe mode", &observing, &app).await;
    check("the app is paused", INSTANCE, &app.replace("spec: {", "spec: {paused: true, ")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_apps_fare_does_not_matter_to_a_plan() {
    let web = component("web", "registry.example.com/web:broken-1");
    let (stage, said, code) = Stage::new(&[("apps/web/app.yaml", &web)]).await;
    assert!(matches!(code, 3 | 4), "{said}");
    let begun = Instant::now();
    for command in
        [&["plan", "--exit-code"][..], &["plan", "settings", "--exit-code"], &["diff", "--exit-code"]]
    {
        let (said, code) = stage.run(command).await;
        assert_eq!(code, 0, "{command:?}: {said}");
    }
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
}

/// What was ours, and somebody set since, the commit takes back: the folder is shown to do the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_knows_what_was_applied_from_its_repository() {
    let (stage, said, code) = Stage::new(&[]).await;
    assert_eq!(code, 0, "{said}");
    let edit = json!({"data": {"value": "somebody's"}});
    live::edit_as(&stage.sandbox, "kubectl-edit", ("ConfigMap", "one"), &edit).await;
    write(stage.repository.path(), MAPS, &maps("second"));
    let (said, code) = stage.run(&["diff", "--worktree", "--exit-code"]).await;
    assert!(said.contains("second") && !said.contains("conflict"), "{said}");
    assert_eq!(code, 1, "{said}");
}

/// An example on embedded clusters.
fn embedded() -> ConfigRepository {
    let repository = ConfigRepository::empty();
    let bj1 = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1}\nspec: {connection: {sandbox: {}}}\n";
    let (settings, maps) = (objects("default", "settings"), maps("first"));
    let files = [("tutti.yaml", INSTANCE), ("clusters/bj1.yaml", bj1), (SETTINGS, &settings), (MAPS, &maps)];
    repository.commit("Begin", &files.map(|(path, text)| (path, Some(text))));
    repository
}

#[test]
fn an_approval_needs_some_digits() {
    let repository = embedded();
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
fn a_time_may_be_too_short_and_never_too_long() {
    let repository = embedded();
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
fn who_reads_no_further_changes_no_exit_code() {
    let repository = embedded();
    let mut child = tutti(repository.path())
        .args(["plan", "--exit-code"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(1));

    std::fs::write(repository.path().join("tutti.yaml"), "kind: [").expect("written");
    let mut child = tutti(repository.path())
        .args(["lint", "."])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
}
