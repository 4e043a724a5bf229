//! Annotations of other deploy tools have their effect here too.

use std::path::PathBuf;

use serde_json::Value;
use tutti::report::TargetPhase;

use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects::{self, required_text};
use crate::support::manifests::objects_app;
use crate::support::program;

fn case_folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(name)
}

fn object(kind: &str, name: &str, annotations: &str) -> String {
    let api_version = if kind == "Job" { "batch/v1" } else { "v1" };
    format!(
        "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}, annotations: {{{annotations}}}}}\n"
    )
}

fn job(name: &str, image: &str, annotations: &str) -> String {
    format!(
        "{}spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: run, image: \"{image}\"}}]}}}}}}\n",
        object("Job", name, annotations)
    )
}

#[tokio::test(start_paused = true)]
async fn objects_with_keep_marks_stay() {
    let folder = case_folder("keep-marks").join("apps/a");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    let names = ["argocd.o.yaml", "flux.o.yaml", "helm.o.yaml"];
    let rest: Vec<String> = (0..20)
        .map(|number| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: map-{number}}}\n"))
        .collect();
    let mut files = vec![("apps/a/app.yaml".to_owned(), read("app.yaml"))];
    files.extend(names.map(|name| (format!("apps/a/{name}"), read(name))));
    files.push(("apps/a/rest.o.yaml".to_owned(), rest.join("---\n")));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;

    let gone = names.map(|name| format!("apps/a/{name}"));
    let changes: Vec<(&str, Option<&str>)> = gone.iter().map(|path| (path.as_str(), None)).collect();
    let revision = fleet.push(&running, "Three files less", &changes).await;
    running.until_converged(&revision).await;
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    for name in ["argocd", "flux", "helm"] {
        let live = live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", name).await.expect(name);
        assert_eq!(required_text(&live, "/metadata/annotations/tutti.dev~1prune"), "keep", "{name}");
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn keep_mark_on_live_object_prevents_delete() {
    let app = objects_app("default", "settings");
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let both = format!("{}---\n{}", map("one"), map("two"));
    let fleet = TestFleet::new(
        &["bj1"],
        &[("apps/settings/app.yaml", &app), ("apps/settings/objects/maps.yaml", &both)],
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let mark = serde_json::json!({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/prune": "disabled"}}});
    live_objects::edit_as(fleet.cluster("bj1"), "kubectl-label", ("ConfigMap", "two"), &mark).await;

    let revision =
        fleet.push(&running, "One map less", &[("apps/settings/objects/maps.yaml", Some(&map("one")))]).await;
    running.until_converged(&revision).await;
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    assert!(live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "two").await.is_some());
    running.stop().await;
}

#[test]
fn lint_names_each_mark_once() {
    let (output, errors, code) = program::run(&case_folder("keep-marks"), &["lint", "-o", "json"]);
    assert_eq!((errors.as_str(), code), ("", 0));
    let found: Vec<Value> = serde_json::from_str(&output).expect("JSON");
    let told: Vec<String> = found
        .iter()
        .map(|it| format!("{} {}", required_text(it, "/code"), required_text(it, "/message")))
        .collect();
    assert_eq!(
        told,
        [
            "E3095 `argocd.argoproj.io/sync-options: Prune=false` of ConfigMap argocd is read as `tutti.dev/prune: keep`",
            "E3095 `helm.sh/resource-policy: keep` of ConfigMap helm is read as `tutti.dev/prune: keep`",
            "E3095 `kustomize.toolkit.fluxcd.io/prune: disabled` of ConfigMap flux is read as `tutti.dev/prune: keep`",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn argo_hooks_run_in_their_phase() {
    let hook = |stage: &str| format!("argocd.argoproj.io/hook: {stage}");
    let all = |image: &str| {
        [
            job("migrate", image, &hook("PreSync")).replace("{name: migrate,", "{generateName: migrate-,"),
            job("notify", image, &hook("PostSync")),
            job("clean", image, &hook("SyncFail")),
            job("by-hand", image, &hook("Skip")),
            job("check", image, "helm.sh/hook: test-success"),
            object("ConfigMap", "settings", ""),
        ]
        .join("---\n")
    };
    let (app, first) = (objects_app("default", "shop"), all("run:1"));
    let fleet =
        TestFleet::new(&["bj1"], &[("apps/shop/app.yaml", &app), ("apps/shop/objects/all.yaml", &first)]);
    let running = fleet.start().await;
    let overview = running.until_converged(&fleet.first_commit).await;
    assert_eq!(target(&overview, "bj1", "default/shop").phase, TargetPhase::Running);
    let sandbox = fleet.cluster("bj1");
    let runs = |names: &[String]| -> Vec<String> {
        names.iter().map(|name| name.rsplit_once('-').expect("a digest").0.to_owned()).collect()
    };
    let before = live_objects::names(sandbox, "Job").await;
    assert_eq!(runs(&before), ["migrate", "notify"]);
    let written = |sandbox: &sandbox::Sandbox, resource: &str| {
        let records = sandbox.requests();
        records.iter().position(|it| it.verb == "apply" && it.resource == resource)
    };
    let (job, map) = (written(sandbox, "jobs.batch"), written(sandbox, "configmaps"));
    assert!(job.is_some() && job < map, "the hook before the rest: {job:?} {map:?}");

    let revision =
        fleet.push(&running, "Another image", &[("apps/shop/objects/all.yaml", Some(&all("run:2")))]).await;
    running.until_converged(&revision).await;
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    let after = live_objects::names(sandbox, "Job").await;
    assert_eq!(runs(&after), ["migrate", "notify"]);
    assert!(after.iter().all(|name| !before.contains(name)), "{before:?} {after:?}");
    running.stop().await;
}
