//! A chart with hooks under the controller: runs before and after the release, repeated runs, and failures.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use sandbox::{Sandbox, SandboxOptions};
use serde_json::Value;
use tutti::chart::{ChartRenderLimits, ChartService};
use tutti::fleet::assemble;
use tutti::manifest;
use tutti::model::Snapshot;
use tutti::plan::PlanAction;
use tutti::render::FleetRenderer;
use tutti::render::trace::explain::explain;
use tutti::render::trace::touched_objects::{TouchedLine, touched_objects};
use tutti::report::TargetPhase;

use super::support::{fixture_path, helm_programs, library_renderer};
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::live_objects::{self, required_text};

const APP: &str = "apps/web/app.yaml";

fn app(values: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: web}}\nspec:\n  podSpec: {{deployType: \
         Helm, chart: {{chartUrl: {{url: charts/release, chartVersion: 1.0.0}}}}}}\n  clusterTopology: {{clusters: \
         [{{name: bj1, podSets: [{{name: web, rawValues: {{{values}}}}}]}}]}}\n"
    )
}

/// The files of the chart, as in a config repository.
fn chart() -> Vec<(String, String)> {
    let root = fixture_path("release");
    let files = |folder: &Path| -> Vec<_> {
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        entries.filter(|path| path.is_file()).collect()
    };
    let mut paths = files(&root);
    paths.extend(files(&root.join("templates")));
    let named = |path: &std::path::PathBuf| {
        let name = path.strip_prefix(&root).expect("inside").display().to_string();
        (format!("charts/release/{name}"), fs::read_to_string(path).expect("text"))
    };
    paths.iter().map(named).collect()
}

struct ChartHookFixture {
    fleet: TestFleet,
    running: RunningController,
}

impl ChartHookFixture {
    /// Pods need some time here, so that waiting shows.
    async fn new() -> Option<Self> {
        let helm = helm_programs()?;
        let (app, chart) = (app(""), chart());
        let mut files: Vec<(&str, &str)> =
            chart.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.push((APP, &app));
        let fleet = TestFleet::with_options(&["bj1"], &files, |name| SandboxOptions {
            name: name.to_owned(),
            ..SandboxOptions::default()
        });
        let service = ChartService::new(library_renderer(&helm, ChartRenderLimits::default()), None);
        let running = fleet
            .start_with(&ProcessConnections::unlimited(), |settings| settings.charts = Arc::new(service))
            .await;
        running.until_converged(&fleet.first_commit).await;
        Some(Self { fleet, running })
    }

    fn cluster(&self) -> &Sandbox {
        self.fleet.cluster("bj1")
    }

    /// The Job of the hook with this name in the chart.
    async fn hook_job(&self, name: &str) -> Value {
        let mut found = Vec::new();
        for job in live_objects::names(self.cluster(), "Job").await {
            if job == name || job.strip_prefix(name).is_some_and(|rest| rest.len() == 9) {
                found.push(job);
            }
        }
        assert_eq!(found.len(), 1, "runs of {name}: {found:?}");
        live_objects::get(self.cluster(), "Job", "default", &found[0]).await.expect("it is there")
    }

    async fn uids(&self) -> [String; 3] {
        let mut uids = ["web-migrate", "web-seed", "web-warm"].map(str::to_owned);
        for uid in &mut uids {
            *uid = required_text(&self.hook_job(uid).await, "/metadata/uid");
        }
        uids
    }

    async fn web_deployment(&self) -> Value {
        live_objects::get(self.cluster(), "Deployment", "default", "web").await.expect("it is there")
    }
}

fn seconds_of_day(time: &str) -> i64 {
    let parts =
        time.get(11..19).expect("a time").split(':').map(|part| part.parse::<i64>().expect("a number"));
    parts.fold(0, |sum, part| sum * 60 + part)
}

const CREATED_POINTER: &str = "/metadata/creationTimestamp";
const IMAGE_POINTER: &str = "/spec/template/spec/containers/0/image";

#[tokio::test(start_paused = true)]
async fn hooks_run_before_and_after_their_release() {
    let Some(scene) = ChartHookFixture::new().await else { return };
    let scripts =
        live_objects::get(scene.cluster(), "ConfigMap", "default", "web-scripts").await.expect("a hook");
    let (migrate, seed) = (scene.hook_job("web-migrate").await, scene.hook_job("web-seed").await);
    let (web, warm) = (scene.web_deployment().await, scene.hook_job("web-warm").await);
    let available = web["status"]["conditions"].as_array().expect("conditions").iter();
    let mut available =
        available.filter(|it| it["type"] == "Available").map(|it| required_text(it, "/lastTransitionTime"));
    let times = [
        required_text(&scripts, CREATED_POINTER),
        required_text(&migrate, CREATED_POINTER),
        required_text(&migrate, "/status/completionTime"),
        required_text(&seed, CREATED_POINTER),
        required_text(&seed, "/status/completionTime"),
        required_text(&web, CREATED_POINTER),
        available.next().expect("it is available"),
        required_text(&warm, CREATED_POINTER),
        required_text(&warm, "/status/completionTime"),
    ];
    assert!(times.is_sorted(), "{times:#?}");
    assert!(times[1] < times[2] && times[3] < times[4] && times[5] < times[7], "{times:#?}");
    // The release continues after the wait, however often it was written before.
    for (ended, next) in [(2, 3), (4, 5), (6, 7)] {
        let pause = (seconds_of_day(&times[next]) - seconds_of_day(&times[ended])).rem_euclid(24 * 60 * 60);
        assert!(pause <= 1, "{pause} s between {} and {}: {times:#?}", times[ended], times[next]);
    }
    assert_eq!(seed["metadata"]["name"], "web-seed", "it runs once, so it keeps its name");
    assert_eq!(migrate["spec"].get("ttlSecondsAfterFinished"), None);
    assert_eq!(live_objects::names(scene.cluster(), "Job").await.len(), 3);
    assert!(!live_objects::names(scene.cluster(), "Pod").await.contains(&"web-test".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn hooks_run_again_only_after_a_release_change() {
    let Some(scene) = ChartHookFixture::new().await else { return };
    let first = scene.uids().await;

    // Longer than the chart keeps a finished Job.
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    scene.fleet.clear_requests();
    let other = scene.fleet.push(&scene.running, "Words", &[("README.md", Some("Words.\n"))]).await;
    scene.running.until("the commit", |now| now.revision.as_ref() == Some(&other)).await;
    scene.running.until_converged(&other).await;
    assert_eq!(scene.uids().await, first);
    let writes = scene.fleet.request_counts();
    assert!(!writes.iter().any(|line| line.contains("apply")), "{writes:?}");

    let blue = scene.fleet.push(&scene.running, "Blue", &[(APP, Some(&app("colour: blue")))]).await;
    scene.running.until_converged(&blue).await;
    let second = scene.uids().await;
    assert!(second[0] != first[0] && second[2] != first[2], "{first:?} {second:?}");
    assert_eq!(second[1], first[1], "of the installation");
    let settings =
        live_objects::get(scene.cluster(), "ConfigMap", "default", "web").await.expect("it is there");
    let migrated = scene.hook_job("web-migrate").await;
    assert_eq!(settings["data"]["colour"], "blue");
    assert!(
        required_text(&migrated, "/status/completionTime")
            <= required_text(&scene.hook_job("web-warm").await, CREATED_POINTER)
    );
    let checked = scene.hook_job("web-check").await;
    assert!(
        required_text(&checked, "/status/completionTime") <= required_text(&migrated, CREATED_POINTER),
        "of upgrades alone"
    );

    // A deleted run is repeated, and delays nothing.
    let name = required_text(&migrated, "/metadata/name");
    let jobs = live_objects::api(scene.cluster(), "Job", Some("default"));
    jobs.delete(&name, &kube::api::DeleteParams::background()).await.expect("deleted");
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    scene.running.until_converged(&blue).await;
    let third = scene.uids().await;
    assert!(third[0] != second[0] && third[1..] == second[1..], "{second:?} {third:?}");
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_fails_keeps_the_release_back() {
    let Some(scene) = ChartHookFixture::new().await else { return };
    let first = scene.uids().await;
    let values = "image: {tag: '2.0'}, migration: crash-loop";
    let broken = scene.fleet.push(&scene.running, "Broken", &[(APP, Some(&app(values)))]).await;
    let failed = scene.running.until("a failure", |now| {
        now.revision.as_ref() == Some(&broken)
            && now.targets.iter().any(|it| it.phase == TargetPhase::Degraded)
    });
    let failed = failed.await;
    let report = target(&failed, "bj1", "default/web");
    assert!(report.detail.starts_with("Job default/web-migrate-"), "{}", report.detail);
    assert!(report.detail.contains("BackoffLimitExceeded"), "{}", report.detail);
    let plan = report.plan.as_ref().expect("a plan");
    let waits: Vec<String> = plan
        .steps
        .iter()
        .filter(|step| step.action == PlanAction::Wait)
        .map(|step| step.object.to_string())
        .collect();
    assert_eq!(waits.len(), 2, "{waits:?}");
    assert!(
        waits[0] == "Deployment default/web" && waits[1].starts_with("Job default/web-warm-"),
        "{waits:?}"
    );
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert_eq!(required_text(&scene.web_deployment().await, IMAGE_POINTER), "shop/web:1.0");
    let jobs = live_objects::names(scene.cluster(), "Job").await;
    assert_eq!(jobs.len(), 5, "nothing of the release that runs is deleted: {jobs:?}");

    let fixed = scene.fleet.push(&scene.running, "Fixed", &[(APP, Some(&app("image: {tag: '2.0'}")))]).await;
    scene.running.until_converged(&fixed).await;
    assert_eq!(required_text(&scene.web_deployment().await, IMAGE_POINTER), "shop/web:2.0");
    let last = scene.uids().await;
    assert!(last[0] != first[0] && last[2] != first[2], "{first:?} {last:?}");
}

#[test]
fn a_hook_run_names_its_release_sources() {
    let Some(helm) = helm_programs() else { return };
    let service = ChartService::new(library_renderer(&helm, ChartRenderLimits::default()), None);
    let (app, chart) = (app("colour: blue"), chart());
    let texts = chart.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let clusters = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1}\nspec: {connection: {sandbox: \
                    {}}}\n";
    let snapshot = Snapshot::of_texts(texts.chain([
        (APP, app.as_str()),
        ("clusters/bj1.yaml", clusters),
        ("tutti.yaml", crate::support::manifests::INSTANCE),
    ]));
    let fleet = assemble(manifest::read(&snapshot), &snapshot);
    let target = fleet.targets().into_iter().next().expect("a target");
    let renderer = FleetRenderer::new(&fleet, &snapshot, &service);
    let objects = explain(&renderer, &target).expect("it renders");
    let migrate = objects.iter().find(|it| it.id.name.starts_with("web-migrate-")).expect("a run");
    let from = |path: &str| -> Vec<Value> {
        let field = migrate.fields.iter().find(|field| field.path == path).expect("a field");
        field.from.iter().filter_map(|origin| origin.value.clone()).collect()
    };
    assert!(from("metadata.name").contains(&"blue".into()), "{:?}", from("metadata.name"));
    assert!(!from("spec.backoffLimit").contains(&"blue".into()));
    let line = app.lines().position(|line| line.contains("colour")).expect("a line") + 1;
    let touch = TouchedLine { file: APP.to_owned(), line: u32::try_from(line).ok() };
    let reached = touched_objects(&renderer, &target, &touch).expect("it renders");
    assert!(reached.contains(&migrate.id), "{reached:?}");
}
